"""Equations as on paper: `u * (D(x) @ u) - nu * (Laplacian(x) @ u) == f`, for one field or several."""

from .fields import fields, unknown
from .functions import cos, exp, log, sin, sqrt, tanh
from .nonlinear import Nonlinear, compiled_term, linearised, plain
from .numbers import Number, with_numbers
from .terms import Equation, Linear, Term, as_operator

__all__ = [
    "Equation",
    "Linear",
    "Nonlinear",
    "Number",
    "Term",
    "as_operator",
    "compiled_term",
    "cos",
    "exp",
    "fields",
    "linearised",
    "log",
    "plain",
    "sin",
    "sqrt",
    "tanh",
    "unknown",
    "with_numbers",
]
