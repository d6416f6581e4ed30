"""The command line: parse, call, print. JAX is imported only inside the commands that compute."""

from .main import main

__all__ = ["main"]
