"""Linear operators: what is observed of the unknown, and what is predicted."""

from .base import Operator, high_order, identity
from .coefficients import Coefficient, Parameter, bind, parameters_of
from .derivatives import D, Diffusion, Directional, Divergence, Laplacian, Partial, check_coordinates
from .directions import along
from .equality import same
from .integrals import Integral
from .priors import LogNormal, Normal, Prior, Support, Uniform
from .rows import Row
from .shift import Shift
from .symbol import Symbol
from .vanishing import Vanishing, vanishing

__all__ = [
    "Coefficient",
    "D",
    "Diffusion",
    "Directional",
    "Divergence",
    "Integral",
    "Laplacian",
    "LogNormal",
    "Normal",
    "Operator",
    "Parameter",
    "Partial",
    "Prior",
    "Row",
    "Shift",
    "Support",
    "Symbol",
    "Uniform",
    "Vanishing",
    "along",
    "bind",
    "check_coordinates",
    "high_order",
    "identity",
    "parameters_of",
    "same",
    "vanishing",
]
