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
    """A prior mean `m(q)`, differentiable as often as the operators that act on it.

    **Arguments:** none. This is the base class of `ZeroMean`, `ConstantMean` and `FunctionMean`.

    !!! example
        ```python
        mean: pk.Mean = pk.ConstantMean(2.0)
        assert mean(jnp.zeros(3)) == 2.0
        ```
    """

    @abc.abstractmethod
    def __call__(self, q: Float[Array, " d"]) -> Float[Array, ""]: ...


def observed_mean(mean: Mean, operator: Operator, points: Float[Array, "n d"]) -> Float[Array, " n"]:
    """`A m` at the points."""
    if isinstance(mean, ZeroMean):
        return jnp.zeros(points.shape[0])
    return jax.vmap(operator(mean))(points)


class ZeroMean(Mean):
    """`m = 0`, the default.

    **Arguments:** none.

    !!! example
        ```python
        model = pk.Model(pk.ard(domain), data, mean=pk.ZeroMean())
        ```
    """

    def __call__(self, q: Array) -> Array:
        return jnp.zeros(())


class ConstantMean(Mean):
    """`m = c`, a constant that is learned.

    **Arguments:**

    - `value`: the constant to start from.

    !!! example
        ```python
        model = pk.Model(pk.ard(domain), data, mean=pk.ConstantMean(20.0))
        ```
    """

    value: Float[Array, ""] = eqx.field(converter=lambda v: jnp.asarray(v, dtype=float), default=0.0)

    def __call__(self, q: Array) -> Array:
        return self.value


class FunctionMean(Mean):
    """`m(q)`, a guess of the solution. The process then describes the difference between `u` and this guess.

    **Arguments:**

    - `fn`: a function of the point, written with `jax.numpy`.

    !!! example
        ```python
        model = pk.Model(pk.ard(domain), data, mean=pk.FunctionMean(lambda q: jnp.exp(-t(q))))
        ```
    """

    fn: Callable[[Array], Array]

    def __check_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"FunctionMean needs a function of the point q: got {self.fn!r}. See also ConstantMean.")
        refuse_hidden_parameters(self.fn, "FunctionMean", "a mean without it: only operators hold parameters")

    def __call__(self, q: Array) -> Array:
        return self.fn(q)
