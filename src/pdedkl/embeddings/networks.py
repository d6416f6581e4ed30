"""Networks as embeddings: plain, residual, and behind a low-dimensional linear map."""

from __future__ import annotations

from itertools import pairwise

from jaxtyping import PRNGKeyArray

from .base import Activation, Embedding, Layer, Linear, activate, dense, generators, lecun
from .jets import Jet


class MLP(Embedding):
    """A network of `depth` hidden layers with `width` units each, and a linear output. The paper uses four layers of
    200.

    **Arguments:**

    - `input_dim`: the number of inputs.
    - `latent_dim`: the number of latent coordinates.
    - `width`: units in each hidden layer.
    - `depth`: how many hidden layers there are.
    - `activation`: `"gelu"`, `"tanh"`, `"silu"`, `"sine"` or `"square"`.
    - `key`: a random key of JAX, for the weights.

    !!! example
        ```python
        embedding = pk.MLP(3, 2, width=16, depth=2, key=jax.random.key(0))
        ```
    """

    layers: tuple[Linear, ...]
    activation: Activation

    def __init__(
        self,
        input_dim: int,
        latent_dim: int,
        *,
        width: int = 200,
        depth: int = 4,
        activation: str = "gelu",
        key: PRNGKeyArray,
    ) -> None:
        self.activation = Activation(activation)
        sizes = {"input_dim": input_dim, "latent_dim": latent_dim, "width": width, "depth": depth}
        for name, size in sizes.items():
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"A network needs a positive whole number as `{name}`: got {size!r}.")
        widths = [input_dim, *[width] * depth, latent_dim]
        self.layers = tuple(lecun(*ends, key=rng) for ends, rng in zip(pairwise(widths), generators(key, depth + 1)))

    @property
    def input_dim(self) -> int:
        return self.layers[0].matrix.shape[1]

    def latent_dim(self, input_dim: int) -> int:
        return self.layers[-1].matrix.shape[0]

    def forward(self, x: Layer) -> Layer:
        for layer in self.layers[:-1]:
            x = activate(self.activation, dense(layer, x))
        return dense(self.layers[-1], x)


class Residual(Embedding):
    """`h(x) = W x + N(x)`: a linear map plus a small network, since most solutions vary along few directions.

    **Arguments:**

    - `input_dim`: the number of inputs.
    - `latent_dim`: the number of latent coordinates.
    - `width`: units in each hidden layer of the network.
    - `depth`: how many hidden layers there are.
    - `activation`: `"gelu"`, `"tanh"`, `"silu"`, `"sine"` or `"square"`.
    - `key`: a random key of JAX, for the weights.

    !!! example
        ```python
        embedding = pk.Residual(3, 2, width=16, key=jax.random.key(0))
        ```
    """

    linear: Linear
    network: MLP

    def __init__(
        self,
        input_dim: int,
        latent_dim: int,
        *,
        width: int = 64,
        depth: int = 2,
        activation: str = "gelu",
        key: PRNGKeyArray,
    ) -> None:
        self.network = MLP(input_dim, latent_dim, width=width, depth=depth, activation=activation, key=key)
        self.linear = lecun(input_dim, latent_dim, key=generators(key, depth + 2)[-1], offset=False)

    @property
    def input_dim(self) -> int:
        return self.network.input_dim

    def latent_dim(self, input_dim: int) -> int:
        return self.network.latent_dim(input_dim)

    def forward(self, x: Layer) -> Layer:
        return dense(self.linear, x) + self.network.forward(x)


class Bottleneck(Embedding):
    """`h(x) = N(P x)`: a network behind a linear map `P` to a few dimensions.

    After `P` a jet has at most as many directions as `P` has rows, whatever the number of inputs is.

    **Arguments:**

    - `input_dim`: the number of inputs.
    - `network`: the network `N`, an `MLP` or a `Residual`. `P` has one row for each input of `N`.
    - `key`: a random key of JAX, for `P`.

    !!! example
        ```python
        inner, outer = jax.random.split(jax.random.key(0))
        embedding = pk.Bottleneck(3, pk.MLP(2, 2, width=16, key=inner), key=outer)
        ```
    """

    projection: Linear
    network: MLP | Residual

    def __init__(self, input_dim: int, network: MLP | Residual, *, key: PRNGKeyArray) -> None:
        self.network = network
        self.projection = lecun(input_dim, network.input_dim, key=key, offset=False)

    @property
    def input_dim(self) -> int:
        return self.projection.matrix.shape[1]

    def latent_dim(self, input_dim: int) -> int:
        return self.network.latent_dim(self.network.input_dim)

    def forward(self, x: Layer) -> Layer:
        y = dense(self.projection, x)
        return self.network.forward(y.compressed() if isinstance(y, Jet) else y)
