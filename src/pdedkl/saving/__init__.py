"""Saved models: one safetensors file of arrays and a JSON description. Data, never code."""

from .functions import FunctionsNotSaved
from .models import describe, load, save
from .registry import register

__all__ = ["FunctionsNotSaved", "describe", "load", "register", "save"]
