"""Powers, quotients and comparisons are not linear operators. The error messages say what to write instead."""

from __future__ import annotations

from typing import Any

from ..shown import shortened
from .coefficients import AbstractCoefficient, as_coefficient


class OnlyLinear:
    """Raises an error for every Python operation whose result is not a linear operator."""

    def __rtruediv__(self, other: Any) -> Any:
        raise not_linear(f"{other!r} / ({self})")

    def __pow__(self, other: Any) -> Any:
        raise not_linear(f"({self}) ** {other!r}")

    def __rpow__(self, other: Any) -> Any:
        raise not_linear(f"{other!r} ** ({self})")

    def __xor__(self, other: Any) -> Any:
        raise not_linear(f"({self}) ^ {other!r}")

    def __floordiv__(self, other: Any) -> Any:
        raise not_linear(f"({self}) // {other!r}")

    def __mod__(self, other: Any) -> Any:
        raise not_linear(f"({self}) % {other!r}")

    def __abs__(self) -> Any:
        raise not_linear(f"abs({self})")

    def __lt__(self, other: Any) -> bool:
        raise TypeError(
            f"Operators have no order: {self} cannot be compared with {other!r}. An equation A u = f is given as "
            "Problem(domain, A, f, conditions) or as Observation(A, points, values of f)."
        )

    __le__ = __gt__ = __ge__ = __lt__


def not_linear(expression: str) -> TypeError:
    return TypeError(
        f"Operators are linear in u, and {expression} is not. To apply one operator after another write A @ B, so "
        "A @ A for a power; to multiply by a known function of the point write Coefficient(fn) * A; to multiply or "
        "divide by a number write 2.0 * A or A / 2.0. Products of u with u or its derivatives are not supported."
    )


def factor_of(value: Any, operator: Any) -> Any:
    """The factor of an operator, as a coefficient. A plain function is refused: wrap it in `Coefficient`."""
    if callable(value) and not isinstance(value, AbstractCoefficient):
        raise TypeError(
            "An operator is multiplied by a number, a Coefficient or a Parameter: got "
            f"{shortened(repr(value), 80)}. A known function of the point is written Coefficient(fn) * ({operator}). "
            "The unknown u itself cannot be a factor: operators are linear in u."
        )
    return as_coefficient(value)
