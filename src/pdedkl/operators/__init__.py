"""Linear operators: what is observed of the unknown, and what is predicted."""

from .base import Operator, identity
from .coefficients import Coefficient, Parameter, bind, parameters_of
from .derivatives import D, Diffusion, Directional, Divergence, Laplacian, Partial
from .symbol import Symbol

__all__ = [
    "Coefficient",
    "D",
    "Diffusion",
    "Directional",
    "Divergence",
    "Laplacian",
    "Operator",
    "Parameter",
    "Partial",
    "Symbol",
    "bind",
    "identity",
    "parameters_of",
]
