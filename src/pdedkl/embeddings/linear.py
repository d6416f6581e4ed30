"""Embeddings without a network."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .base import Embedding, Layer, Linear, dense, lecun


class IdentityEmbedding(Embedding):
    """`h(x) = x`: a Gaussian process on the inputs themselves (the paper's PDE-GP).

    **Arguments:** none.

    !!! example
        ```python
        kernel = pk.deep(domain, pk.IdentityEmbedding())
        ```
    """

    @property
    def input_dim(self) -> None:
        return None

    def latent_dim(self, input_dim: int) -> int:
        return input_dim

    def forward(self, x: Layer) -> Layer:
        return x


class Affine(Embedding):
    """`h(x) = W x + w`, a linear map that is learned.

    **Arguments:**

    - `matrix`: `W`, with one row for each latent coordinate.
    - `offset`: `w`; zero by default.

    !!! example
        ```python
        embedding = pk.Affine([[1.0, 1.0, 0.0]], offset=[0.5])
        ```
    """

    layer: Linear

    def __init__(self, matrix: Any, offset: Any = None) -> None:
        W = _finite("matrix", matrix, 2)
        w = jnp.zeros(W.shape[0]) if offset is None else _finite("offset", offset, 1)
        if w.shape[0] != W.shape[0]:
            raise ValueError(
                f"`offset` needs one entry per row of the matrix: {W.shape[0]} rows, {w.shape[0]} entries."
            )
        self.layer = Linear(W, w)

    @classmethod
    def drawn(cls, input_dim: int, latent_dim: int, *, key: PRNGKeyArray) -> Affine:
        """A random matrix with entries of variance `1/input_dim`, and no offset.

        **Arguments:**

        - `input_dim`: the number of inputs.
        - `latent_dim`: the number of latent coordinates.
        - `key`: a random key of JAX.

        **Returns:** an `Affine`.

        !!! example
            ```python
            embedding = pk.Affine.drawn(3, 2, key=jax.random.key(0))
            ```
        """
        return cls(lecun(input_dim, latent_dim, key=key).matrix)

    @property
    def input_dim(self) -> int:
        return self.layer.matrix.shape[1]

    def latent_dim(self, input_dim: int) -> int:
        return self.layer.matrix.shape[0]

    def forward(self, x: Layer) -> Layer:
        return dense(self.layer, x)


def _finite(name: str, value: Any, ndim: int) -> Float[Array, ...]:
    array = np.asarray(value, dtype=float)
    if array.ndim != ndim or array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError(f"`{name}` needs {ndim} axes and finite entries: got shape {array.shape}.")
    return jnp.asarray(array)
