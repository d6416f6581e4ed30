"""Saved models: one safetensors file with arrays and a JSON description. It contains data, never code."""

from .functions import FunctionsNotSaved
from .models import describe, functions_of, load, save
from .registry import register

__all__ = ["FunctionsNotSaved", "describe", "functions_of", "load", "register", "save"]
