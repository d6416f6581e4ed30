"""What an embedding is, and the two layers that networks are made of."""

from __future__ import annotations

import abc
import math
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import ndtr, ndtri

from .jets import Jet

Layer = TypeVar("Layer", Array, Jet)

# The standard deviation of a standard normal variable that is truncated at two.
TRUNCATED = 0.87962566103423978


class Embedding(eqx.Module):
    """A map `h` from inputs, scaled to `[-1, 1]^d`, to latent coordinates.

    **Arguments:** none. This is the base class; `docs/extending.md` shows how to add an embedding.

    !!! example
        ```python
        embedding: pk.Embedding = pk.Affine([[1.0, 1.0, 0.0]])
        assert embedding(jnp.ones(3)) == 2.0
        ```
    """

    @property
    @abc.abstractmethod
    def input_dim(self) -> int | None:
        """How many inputs it takes; `None` if any number will do."""

    @abc.abstractmethod
    def latent_dim(self, input_dim: int) -> int:
        """The number of latent coordinates.

        **Arguments:**

        - `input_dim`: the number of inputs.

        **Returns:** a number.

        !!! example
            ```python
            assert pk.IdentityEmbedding().latent_dim(3) == 3
            ```
        """

    @abc.abstractmethod
    def forward(self, x: Layer) -> Layer:
        """`h(x)`, for an array or for a jet. Written with `dense` and `activate`, the same code works for both.

        **Arguments:**

        - `x`: the inputs of one point, as an array or as a `Jet`.

        **Returns:** the same kind, with the latent coordinates.

        !!! example
            ```python
            assert (pk.IdentityEmbedding().forward(jnp.ones(3)) == 1.0).all()
            ```
        """

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " h"]:
        return self.forward(x)


class Linear(eqx.Module):
    """`W x + w`; no `w` if the offset is `None`."""

    matrix: Float[Array, "v w"]
    offset: Float[Array, " v"] | None


def generators(key: PRNGKeyArray, count: int) -> list[np.random.Generator]:
    """Independent generators from a random key of JAX. NumPy draws, since JAX would compile each shape."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    seed = np.asarray(jax.random.key_data(key) if typed else key)
    return [np.random.default_rng(part) for part in np.random.SeedSequence(seed.ravel().tolist()).spawn(count)]


def lecun(inputs: int, outputs: int, *, key: PRNGKeyArray | np.random.Generator, offset: bool = True) -> Linear:
    """A layer with normal `W` of variance 1/fan-in, truncated at two standard deviations, and zero `w`."""
    rng = key if isinstance(key, np.random.Generator) else generators(key, 1)[0]
    draws = ndtri(rng.uniform(ndtr(-2.0), ndtr(2.0), (outputs, inputs)))
    matrix = draws / (TRUNCATED * np.sqrt(inputs))
    return Linear(jnp.asarray(matrix), jnp.asarray(np.zeros(outputs)) if offset else None)


def dense(layer: Linear, x: Layer) -> Layer:
    if isinstance(x, Jet):
        return x.affine(layer.matrix, layer.offset)
    y = layer.matrix @ x
    return y if layer.offset is None else y + layer.offset


class Activation(eqx.Module):
    """A smooth scalar function with its first two derivatives."""

    name: str = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.name not in _ACTIVATIONS:
            raise ValueError(f"Unknown activation {self.name!r}: choose one of {', '.join(sorted(_ACTIVATIONS))}.")

    def derivatives(self) -> tuple:
        return _ACTIVATIONS[self.name]


def activate(activation: Activation, x: Layer) -> Layer:
    value, slope, curvature = activation.derivatives()
    return x.activated(value, slope, curvature) if isinstance(x, Jet) else value(x)


def _normal_cdf(y: Array) -> Array:
    return 0.5 * jax.lax.erfc(-math.sqrt(0.5) * y)  # half the time of jax.scipy.special.ndtr


def _normal_pdf(y: Array) -> Array:
    return jnp.exp(-0.5 * y * y) / jnp.sqrt(2 * jnp.pi)


def _silu_curvature(y: Array) -> Array:
    s = jax.nn.sigmoid(y)
    return s * (1 - s) * (2 + y * (1 - 2 * s))


_ACTIVATIONS = {
    # GELU is y Φ(y) with the normal distribution function Φ, not its tanh approximation: its derivatives are short.
    "gelu": (
        lambda y: y * _normal_cdf(y),
        lambda y: _normal_cdf(y) + y * _normal_pdf(y),
        lambda y: (2 - y * y) * _normal_pdf(y),
    ),
    "tanh": (jnp.tanh, lambda y: 1 - jnp.tanh(y) ** 2, lambda y: -2 * jnp.tanh(y) * (1 - jnp.tanh(y) ** 2)),
    "silu": (
        lambda y: y * jax.nn.sigmoid(y),
        lambda y: jax.nn.sigmoid(y) * (1 + y * (1 - jax.nn.sigmoid(y))),
        _silu_curvature,
    ),
    "sine": (jnp.sin, jnp.cos, lambda y: -jnp.sin(y)),
    # A layer of squares represents every quadratic form exactly, and so all products of two inputs.
    "square": (lambda y: 0.5 * y * y, lambda y: y, jnp.ones_like),
}
