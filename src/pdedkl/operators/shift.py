"""The operator that evaluates `u` at another point, for conditions that relate two places."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Coordinates, Layout
from .base import Field, Operator, Term, identity
from .derivatives import check_coordinates
from .symbol import Symbol

# A move along more coordinates than this is printed without its numbers.
WRITTEN_OUT = 3


class Shift(Operator):
    """`(S u)(q) = u(q + by)`: the same function, seen from another point.

    A function of period `L` satisfies `(identity - Shift(x[0], L)) u = 0` on the face where `x[0]` begins, and its
    slope `(D(x[0]) - Shift(x[0], L) @ D(x[0])) u = 0`.

    **Arguments:**

    - `x`: the coordinates to move along.
    - `by`: how far: a number for one coordinate, a vector for several.

    !!! example
        ```python
        periodic = pk.identity - pk.Shift(x[0], 1.0)
        ```
    """

    x: Coordinates = eqx.field(static=True)
    move: Float[Array, " d"]

    def __init__(self, x: Coordinates, by: Any) -> None:
        check_coordinates("Shift", x)
        self.x = x
        self.move = jnp.asarray(_whole(x, by))

    @property
    def order(self) -> int:
        return 0

    @property
    def layout(self) -> Layout:
        return self.x.layout

    def __call__(self, u: Field) -> Field:
        return lambda q: u(q + self._fixed())

    def symbol(self, q: Array) -> Symbol:
        raise ValueError(
            f"{self} looks at another point, so it has no symbol at one point: use the symbols of its local_terms()."
        )

    def local_terms(self) -> tuple[Term, ...]:
        return ((self._fixed(), identity),)

    def _fixed(self) -> Array:
        # The move is data, not a parameter: training must not change it.
        return jax.lax.stop_gradient(self.move)

    def __str__(self) -> str:
        if isinstance(self.move, jax.core.Tracer):
            return f"S({self.x} + s)"
        by = np.asarray(self.move)[np.asarray(self.x.indices)]
        moved = [f"{name} {'-' if s < 0 else '+'} {abs(s):g}" for name, s in zip(self.x, by) if s != 0]
        return f"S({', '.join(moved)})" if len(moved) <= WRITTEN_OUT else f"S({self.x} + s)"


def _whole(x: Coordinates, by: Any) -> np.ndarray:
    wanted = f"Shift({x}, by) needs " + (
        "one number" if len(x) == 1 else f"a vector of {len(x)} numbers, one for each coordinate"
    )
    if callable(by):
        raise TypeError(f"{wanted}, the same at every point: got the function {by!r}.")
    try:
        given = np.asarray(by, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}: got {by!r}.") from None
    if given.shape != (len(x),) and not (len(x) == 1 and given.shape == ()):
        raise ValueError(f"{wanted}: got shape {given.shape}, {by!r}.")
    if not np.all(np.isfinite(given)):
        raise ValueError(f"{wanted}, all of them finite: got {by!r}.")
    if not np.any(given):
        raise ValueError(f"Shift({x}, by) needs to move somewhere: got {by!r}. To stay at the point use identity.")
    move = np.zeros(x.dim)
    move[np.asarray(x.indices)] = given
    return move
