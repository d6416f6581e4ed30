"""Problems as users write them, each with a truth that is computed without the library."""

from __future__ import annotations

from collections.abc import Callable

from . import (
    coefficients,
    finance,
    ill_posed,
    kolmogorov,
    mixed,
    own_data,
    parametric,
    rough,
    shapes,
    smooth,
    textbook,
    unknown,
)
from .common import Case

__all__ = ["THEMES", "ZOO", "Case"]

THEMES: dict[str, dict[str, Callable[[int], Case]]] = {
    "textbook": textbook.CASES,
    "smooth": smooth.CASES,
    "mixed conditions": mixed.CASES,
    "coefficients": coefficients.CASES,
    "shapes": shapes.CASES,
    "rough": rough.CASES,
    "parametric": parametric.CASES,
    "random motion": kolmogorov.CASES,
    "finance": finance.CASES,
    "own data": own_data.CASES,
    "unknown coefficients": unknown.CASES,
    "ill-posed": ill_posed.CASES,
}

ZOO: dict[str, Callable[[int], Case]] = {name: make for cases in THEMES.values() for name, make in cases.items()}
