"""What an equation knows besides `u`, with unknown numbers: `A u + g`, as in `A u − q₀ f₀` with an unknown strength.

A Gaussian process sees `A`. The values of the row are those of `y − g`, with the numbers as they are learned.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..domain import Layout
from .base import Field, Operator, Term, applied
from .coefficients import AbstractCoefficient
from .rows import Row
from .symbol import Symbol
from .unknown import InFull


class Offset(InFull, Operator):
    """`u ↦ A u + g` with a function `g` of the point that contains unknown numbers."""

    operator: Operator
    more: AbstractCoefficient

    @property
    def order(self) -> int:
        return self.operator.order

    @property
    def layout(self) -> Layout | None:
        return self.operator.layout

    def __call__(self, u: Field) -> Field:
        function = self.operator(u)
        return lambda q: function(q) + self.more(q)

    def symbol(self, q: Array) -> Symbol:
        return self.operator.symbol(q)

    def local_terms(self) -> tuple[Term, ...]:
        return self.operator.local_terms()

    def __str__(self) -> str:
        text = str(self.more)
        return f"{applied(self.operator)} " + (f"- {text[1:]}" if text.startswith("-") else f"+ {text}")


def with_offset(operator: Operator, more: AbstractCoefficient) -> Operator:
    """`A u + g`; of a row, with `g` beside its first field."""
    if isinstance(operator, Row):
        return Row(operator.names, (Offset(operator.operators[0], more), *operator.operators[1:]))
    return Offset(operator, more)


def has_offset(operator: Any) -> bool:
    parts = operator.operators if isinstance(operator, Row) else (operator,)
    return any(isinstance(part, Offset) for part in parts)


def offset_at(operator: Operator, points: Float[Array, "n d"]) -> Float[Array, " n"]:
    """`g` at points; zero where there is none."""
    parts = operator.operators if isinstance(operator, Row) else (operator,)
    found = [jax.vmap(part.more)(points) for part in parts if isinstance(part, Offset)]
    return sum(found[1:], found[0]) if found else jnp.zeros(points.shape[0])


def linear_part(operator: Operator) -> Operator:
    """`A` of `A u + g`."""
    if isinstance(operator, Row):
        return Row(operator.names, tuple(map(linear_part, operator.operators)))
    return operator.operator if isinstance(operator, Offset) else operator
