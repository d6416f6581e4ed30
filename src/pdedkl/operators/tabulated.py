"""Operators whose coefficients are numbers that are stored for each point, as those of a linearised equation are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..domain import Layout
from .base import Field, Operator, Term, common_layout, gathered
from .normals import GivenNormals
from .symbol import Symbol
from .unknown import InFull

# Points this close to each other, relative to the extent of all, are one point.
CLOSE = 1e-9
# Keys of different points have to differ by this much; if they do not, another direction is drawn.
APART = 1e-12
DRAWS = 16


class Table(eqx.Module):
    """Points, and which of them a given point is.

    Points are sorted by their keys `w·q` along a direction `w`, so finding one takes a few comparisons.
    """

    points: Float[Array, "n d"]
    keys: Float[Array, " n"]
    direction: Float[Array, " d"]
    extent: Float[Array, ""]

    def place(self, q: Float[Array, " d"]) -> tuple[Int[Array, ""], Array]:
        """The row of a point, and whether it is there."""
        # Rounding may move a key to either side of its own.
        near = jnp.searchsorted(self.keys, jnp.dot(self.direction, q)) + jnp.arange(-1, 2)
        near = jnp.clip(near, 0, self.keys.shape[0] - 1)
        away = jnp.max(jnp.abs((self.points[near] - q) * self.direction), axis=1)
        best = jnp.argmin(away)
        return near[best], away[best] <= CLOSE * self.extent


def table_of(points: Float[np.ndarray, "n d"]) -> tuple[Table, Int[np.ndarray, " n"]]:
    """A table of points, and the order in which it holds them."""
    width = np.ptp(points, axis=0)
    unit = 1 / np.where(width > 0, width, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(DRAWS):
        direction = rng.uniform(0.5, 1.0, size=points.shape[1]) * unit
        keys = points @ direction
        order = np.argsort(keys, kind="stable")
        extent = max(float(np.max(np.abs(points * direction))), 1.0)
        same = np.all(np.abs(np.diff(points[order], axis=0)) * direction <= CLOSE * extent, axis=1)
        if np.all(same | (np.diff(keys[order]) > APART * extent)):
            arrays = map(jnp.asarray, (points[order], keys[order], direction, extent))
            return Table(*arrays), order
    raise ValueError(f"{len(points)} points lie too close to each other to be told apart: leave out all but one.")


class Tabulated(InFull, Operator):
    """`Σ_i c_i(q) L_i` with numbers `c_i` that are known at its own points; anywhere else it is not a number."""

    operators: tuple[Operator, ...]
    table: Table
    values: Float[Array, "n k"]
    text: str = eqx.field(static=True)

    @property
    def order(self) -> int:
        return max(operator.order for operator in self.operators)

    @property
    def layout(self) -> Layout | None:
        return common_layout(*self.operators)

    def coefficients(self, q: Float[Array, " d"]) -> Float[Array, " k"]:
        """The stored numbers of a point."""
        row, there = self.table.place(q)
        return jnp.where(there, self.values[row], jnp.nan)

    def __call__(self, u: Field) -> Field:
        parts = [operator(u) for operator in self.operators]
        return lambda q: jnp.dot(self.coefficients(q), jnp.stack([part(q) for part in parts]))

    def symbol(self, q: Array) -> Symbol:
        numbers = self.coefficients(q)
        symbols = [operator.symbol(q).scaled(number) for operator, number in zip(self.operators, numbers)]
        return sum(symbols[1:], symbols[0])

    def local_terms(self) -> tuple[Term, ...]:
        """All parts without a move are one term; each other one is a term of its own."""
        return gathered(self, list(enumerate(self.operators)), self._of)

    def _of(self, parts: Sequence[tuple[int, Operator]]) -> Tabulated:
        numbers, operators = zip(*parts)
        return Tabulated(operators, self.table, self.values[:, np.asarray(numbers)], self.text)

    def __str__(self) -> str:
        return self.text


def tabulated(
    operators: Sequence[Operator], points: Float[np.ndarray, "n d"], values: Float[np.ndarray, "n k"], text: str
) -> Tabulated:
    """`Σ_i c_i(q) L_i` from the numbers `c_i` at points."""
    table, order = table_of(np.asarray(points))
    return Tabulated(tuple(operators), table, jnp.asarray(np.asarray(values)[order]), text)


def known_everywhere(operator: Any) -> bool:
    """Whether an operator is known at all points, and not only at its own, by a list of coefficients or of normals."""
    listed = lambda node: isinstance(node, Tabulated | GivenNormals)
    return not any(map(listed, jax.tree.leaves(operator, is_leaf=listed)))
