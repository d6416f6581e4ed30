"""Prior means `m(q)`, to which operators apply too."""

from __future__ import annotations

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .operators import Operator


class Mean(eqx.Module):
    """A function of the point, differentiable as often as the operators it meets."""

    @abc.abstractmethod
    def __call__(self, q: Float[Array, " d"]) -> Float[Array, ""]: ...

    def observed(self, operator: Operator, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        """`A m` at the points."""
        return jax.vmap(operator(self))(points)


class ZeroMean(Mean):
    """`m = 0`, the default."""

    def __call__(self, q: Array) -> Array:
        return jnp.zeros(())

    def observed(self, operator: Operator, points: Array) -> Array:
        return jnp.zeros(points.shape[0])


class ConstantMean(Mean):
    """A trainable constant."""

    value: Float[Array, ""] = eqx.field(converter=lambda v: jnp.asarray(v, dtype=float), default=0.0)

    def __call__(self, q: Array) -> Array:
        return self.value


class FunctionMean(Mean):
    """A known guess of the solution, `FunctionMean(lambda q: ...)`."""

    fn: Callable[[Array], Array]

    def __call__(self, q: Array) -> Array:
        return self.fn(q)
