"""How the process of a component enters several fields."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..operators import Operator
from ..operators.rows import Row, Weight


class Mixing(eqx.Module):
    """`u_a = w_a g + …` for the fields `u_a` that a process `g` enters; without weights, all of them are one."""

    names: tuple[str, ...] = eqx.field(static=True)
    weights: Float[Array, " a"] | None = None

    def weight(self, name: str) -> Array:
        """The weight in one field, zero where the process does not enter it."""
        if name not in self.names:
            return jnp.zeros(())
        return jnp.ones(()) if self.weights is None else self.weights[self.names.index(name)]

    def seen(self, operator: Operator) -> Operator:
        """What a row is on `g`: `Σ_a w_a A_a`. An operator that is no row is one of the only field."""
        if isinstance(operator, Row):
            return operator.seen_by({n: None if self.weights is None else self.weight(n) for n in self.names})
        return operator if self.weights is None else Weight(self.weight(self.names[0])) * operator

    def __str__(self) -> str:
        return ", ".join(self.names)


def mixing_of(names: Sequence[str], weights: Sequence[float] | None = None) -> Mixing:
    if not names or len(set(names)) < len(names):
        raise ValueError(f"A kernel of fields needs different fields, at least one: got {', '.join(names) or 'none'}.")
    if weights is None:
        return Mixing(tuple(names))
    numbers = np.asarray(weights, dtype=float)
    if numbers.shape != (len(names),) or not np.all(np.isfinite(numbers)):
        raise ValueError(f"`weights` needs a finite number for each of {', '.join(names)}: got {weights!r}.")
    return Mixing(tuple(names), jnp.asarray(numbers))
