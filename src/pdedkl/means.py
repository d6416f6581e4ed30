"""Prior means `m(q)`, to which operators apply too."""

from __future__ import annotations

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .operators import Operator
from .operators.coefficients import refuse_hidden_parameters


class Mean(eqx.Module):
    """A function of the point, differentiable as often as the operators it meets."""

    @abc.abstractmethod
    def __call__(self, q: Float[Array, " d"]) -> Float[Array, ""]: ...


def observed_mean(mean: Mean, operator: Operator, points: Float[Array, "n d"]) -> Float[Array, " n"]:
    """`A m` at the points."""
    if isinstance(mean, ZeroMean):
        return jnp.zeros(points.shape[0])
    return jax.vmap(operator(mean))(points)


class ZeroMean(Mean):
    """`m = 0`, the default."""

    def __call__(self, q: Array) -> Array:
        return jnp.zeros(())


class ConstantMean(Mean):
    """A trainable constant."""

    value: Float[Array, ""] = eqx.field(converter=lambda v: jnp.asarray(v, dtype=float), default=0.0)

    def __call__(self, q: Array) -> Array:
        return self.value


class FunctionMean(Mean):
    """A known guess of the solution, `FunctionMean(lambda q: ...)`."""

    fn: Callable[[Array], Array]

    def __check_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"FunctionMean needs a function of the point q: got {self.fn!r}. See also ConstantMean.")
        refuse_hidden_parameters(self.fn, "FunctionMean", "a mean without it: only operators hold parameters")

    def __call__(self, q: Array) -> Array:
        return self.fn(q)
