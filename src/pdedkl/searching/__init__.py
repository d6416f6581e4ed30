"""Bayesian optimisation of settings that training does not choose, above all the latent dimension."""

from .evaluation import Evaluation
from .result import Search
from .run import search

__all__ = ["Evaluation", "Search", "search"]
