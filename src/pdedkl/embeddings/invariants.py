"""Functions that do not change under swaps and reflections of inputs."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .base import Embedding, Layer
from .jets import Jet, quadratic

# At most so many sums are kept of each orbit. All smooth symmetric functions of up to so many inputs are smooth
# functions of them; of more inputs, those of low degree are.
MOST_POWERS = 5


class Invariants(Embedding):
    """`h_ok(x) = Σ_{i in o} T_k(x_i)/√|o|` for each orbit `o` of inputs, with the Chebyshev polynomials `T_k`.

    A smooth function that does not change when inputs of an orbit are swapped is a smooth function of
    `Σ T_1(x_i), …, Σ T_m(x_i)` over its `m` inputs (Newton's power sums, in another basis). If it is even in these
    inputs too, only even degrees are needed.

    **Arguments:**

    - `orbits`: lists of inputs that may be swapped with each other. Each input is in one list; one that may not be
      swapped is in a list of its own.
    - `even`: for each orbit, whether the function is even in its inputs, that is, symmetric about the middle of the
      domain.

    !!! example
        ```python
        embedding = pk.Invariants([(0, 1), (2,)], even=[False, True])
        assert embedding(jnp.asarray([0.3, 0.5, 0.7])).shape == (3,)
        ```
    """

    orbits: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    even: tuple[bool, ...] = eqx.field(static=True)

    def __init__(self, orbits: Sequence[Sequence[int]], even: Sequence[bool] | None = None) -> None:
        self.orbits = tuple(tuple(int(i) for i in orbit) for orbit in orbits)
        self.even = tuple(map(bool, even)) if even is not None else (False,) * len(self.orbits)
        inputs = sorted(i for orbit in self.orbits for i in orbit)
        if inputs != list(range(len(inputs))) or not all(self.orbits):
            raise ValueError(
                f"`orbits` needs each input 0 … {max(len(inputs) - 1, 0)} in one list, such as [(0, 1), (2,)]: got "
                f"{orbits!r}."
            )
        if len(self.even) != len(self.orbits):
            raise ValueError(f"`even` needs one entry for each of {len(self.orbits)} orbits: got {len(self.even)}.")

    @property
    def input_dim(self) -> int:
        return sum(map(len, self.orbits))

    def latent_dim(self, input_dim: int) -> int:
        return len(self.degrees)

    @property
    def powers(self) -> tuple[int, ...]:
        """Of each latent coordinate, which of the sums of its orbit it is: 1 for the first."""
        return tuple(k for orbit in self.orbits for k in range(1, min(len(orbit), MOST_POWERS) + 1))

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degree of the polynomials of each latent coordinate."""
        even = [flag for orbit, flag in zip(self.orbits, self.even) for _ in orbit[:MOST_POWERS]]
        return tuple(2 * k if flag else k for k, flag in zip(self.powers, even))

    def forward(self, x: Layer) -> Layer:
        """Each latent coordinate is a sum of functions of one input: its second derivatives are a diagonal."""
        if not isinstance(x, Jet):
            return self._sums(chebyshev(x, max(self.degrees))[0])
        value, slope, bend = map(self._terms, chebyshev(x.value, max(self.degrees)))
        jet = x.affine(slope)
        drift = jet.drift
        if x.second_order:
            bent = bend @ _squares(x)
            drift = bent if drift is None else drift + bent
        return Jet(jnp.sum(value, axis=1), drift, directions=jet.directions, weights=jet.weights)

    def _sums(self, terms: Float[Array, "k d"]) -> Float[Array, " h"]:
        return jnp.sum(self._terms(terms), axis=1)

    def _terms(self, terms: Float[Array, "k d"]) -> Float[Array, "h d"]:
        """From functions of each degree of each input, those that each latent coordinate adds."""
        return jnp.asarray(self._shares()) * terms[np.asarray(self.degrees) - 1]

    def _shares(self) -> Float[np.ndarray, "h d"]:
        found = np.zeros((len(self.degrees), self.input_dim))
        row = 0
        for orbit in self.orbits:
            count = min(len(orbit), MOST_POWERS)
            found[row : row + count, list(orbit)] = len(orbit) ** -0.5
            row += count
        return found


def chebyshev(x: Float[Array, " d"], degree: int) -> tuple[Float[Array, "k d"], ...]:
    """`T_1, …, T_k` at each input, their slopes and their second derivatives."""
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    rows = [(one, zero, zero), (x, one, zero)]
    for _ in range(1, degree):
        (a, da, dda), (b, db, ddb) = rows[-2:]
        rows.append((2 * x * b - a, 2 * b + 2 * x * db - da, 4 * db + 2 * x * ddb - dda))
    return tuple(jnp.stack(parts) for parts in zip(*rows[1:]))


def _squares(jet: Jet) -> Float[Array, " d"]:
    """The diagonal of `Jᵀ S J`."""
    found = jnp.zeros_like(jet.value)
    if jet.axes is not None and jet.axis_weights is not None:
        found = found.at[np.asarray(jet.axes.indices)].add(jet.axis_weights * jet.axes.scale**2)
    if jet.directions is not None and jet.weights is not None:
        found = found + quadratic(jet.directions, jet.weights)
    return found
