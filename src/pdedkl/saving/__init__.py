"""Saved models: one safetensors file of arrays and a JSON description. Data, never code."""

from .functions import FunctionsNotSaved
from .models import describe, functions_of, load, save
from .registry import register

__all__ = ["FunctionsNotSaved", "describe", "functions_of", "load", "register", "save"]
