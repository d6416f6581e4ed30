"""Bayesian optimisation of what training leaves open: the latent dimension first of all."""

from .evaluation import Evaluation
from .result import Search
from .run import search

__all__ = ["Evaluation", "Search", "search"]
