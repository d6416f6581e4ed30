"""The command line: parse, call, print. JAX is imported inside the commands that compute."""

from .main import main

__all__ = ["main"]
