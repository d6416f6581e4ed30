"""Prior means `m(q)`, to which operators apply too."""

from __future__ import annotations

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .domain import Domain
from .embeddings import Embedding, Normalisation, push_forward
from .operators import Operator, Vanishing, identity
from .operators.base import Place, translated
from .operators.coefficients import refuse_hidden_parameters

# Points whose jets go through a network at once.
POINTS_PER_CHUNK = 512


class Mean(eqx.Module):
    """A prior mean `m(q)`, differentiable as often as the operators that act on it.

    **Arguments:** none. This is the base class of `ZeroMean`, `ConstantMean`, `FunctionMean` and `NetworkMean`.

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
    if isinstance(mean, NetworkMean) and operator.order <= 2:
        at = mean.observed(operator)
        if len(points) > POINTS_PER_CHUNK:
            return jax.lax.map(at, points, batch_size=POINTS_PER_CHUNK)
        return jax.vmap(at)(points)
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


class NetworkMean(Mean):
    """`m(q) = s μ(q) N(x)`: a network `N` of the inputs `x`, scaled to `[-1, 1]^d`, with one output.

    `s` is the size of the solution. `μ` is one, or a function that is zero on faces where the solution is. Operators of
    order two or less go through the network as jets, as they do in a kernel.

    **Arguments:**

    - `domain`: where the points live.
    - `network`: an `Embedding` with one latent coordinate, such as `MLP(domain.dim, 1, key=key)`.
    - `size`: the number `s`.
    - `multiplier`: the function `μ`; `None` for one.

    !!! example
        ```python
        network = pk.MLP(domain.dim, 1, width=8, depth=1, activation="tanh", key=jax.random.key(0))
        mean = pk.NetworkMean(domain, network, size=2.0)
        assert mean(jnp.zeros(3)).shape == ()
        ```
    """

    network: Embedding
    normalisation: Normalisation
    size: Float[Array, ""]
    multiplier: Vanishing | None = None

    def __init__(
        self, domain: Domain, network: Embedding, size: float = 1.0, multiplier: Vanishing | None = None
    ) -> None:
        if not isinstance(network, Embedding) or network.latent_dim(domain.dim) != 1:
            raise ValueError(f"`network` needs one output, as MLP(domain.dim, 1, key=key) has: got {network!r}.")
        if network.input_dim not in (None, domain.dim):
            raise ValueError(
                f"The network takes {network.input_dim} inputs and the domain has {domain.dim} coordinates: "
                "make it with input_dim=domain.dim."
            )
        self.network, self.normalisation = network, Normalisation(domain)
        self.size, self.multiplier = jnp.asarray(size, dtype=float), multiplier

    def __call__(self, q: Array) -> Array:
        found = self.size * self.network(self.normalisation(q))[0]
        return found if self.multiplier is None else self.multiplier(q) * found

    def observed(self, operator: Operator) -> Callable[[Array], Array]:
        """`A m` as a function of the point, for an operator of order two or less.

        **Arguments:**

        - `operator`: the operator `A`.

        **Returns:** a function of one point.

        !!! example
            ```python
            network = pk.MLP(domain.dim, 1, width=8, depth=1, activation="tanh", key=jax.random.key(0))
            residual = pk.NetworkMean(domain, network).observed(heat)(jnp.zeros(3))
            ```
        """

        def at(q: Array) -> Array:
            total = jnp.zeros((), q.dtype)
            for move, local in operator.local_terms():
                here, inner, shift = q, local, None
                if isinstance(move, Place):
                    here = move(q)
                elif move is not None:
                    shift = move
                if self.multiplier is not None:
                    factor = self.multiplier * identity
                    inner = local @ (factor if shift is None else translated(factor, shift))
                place = here if shift is None else here + shift
                # Numbers of the operator have 64 bits, and points may have 32.
                symbol = jax.tree.map(lambda part: jnp.asarray(part, q.dtype), inner.symbol(here))
                jet = push_forward(symbol, self.network, self.normalisation, place)
                total += (0.0 if jet.c is None else jet.c * jet.z[0]) + (0.0 if jet.drift is None else jet.drift[0])
            return self.size * total

        return at
