"""From an operator at a point to an operator on the latent space."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Domain, Layout
from ..operators.symbol import Symbol
from .base import Embedding
from .jets import Jet, input_jet


class Normalisation(eqx.Module):
    """`x = (q − centre) / half`, which maps the domain's box onto `[-1, 1]^d`. Not trained."""

    centre: Float[Array, " d"]
    scale: Float[Array, " d"]
    layout: Layout = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(default=(), static=True)

    def __init__(self, domain: Domain) -> None:
        self.layout = domain.layout
        self.names = domain.coordinate_names
        self.centre = jnp.asarray(0.5 * (domain.lower + domain.upper))
        self.scale = jnp.asarray(2.0 / (domain.upper - domain.lower))

    def __call__(self, q: Float[Array, " d"]) -> Float[Array, " d"]:
        return jax.lax.stop_gradient(self.scale) * (q - jax.lax.stop_gradient(self.centre))


class LatentJet(eqx.Module):
    """`A (g∘h)` at a point is `c g + drift·∇g + diffusion:∇∇ᵀg` at `z = h(q)`; a part that is `None` is zero.

    The diffusion is a matrix, or only its diagonal if it is a diagonal matrix (see `diffusion.ndim`).
    """

    z: Float[Array, "*batch h"]
    c: Float[Array, "*batch"] | None
    drift: Float[Array, "*batch h"] | None
    diffusion: Float[Array, "*batch h"] | Float[Array, "*batch h h"] | None

    @property
    def order(self) -> int:
        return 2 if self.diffusion is not None else 0 if self.drift is None else 1

    @property
    def nothing(self) -> bool:
        """Whether all its parts are zero."""
        return self.c is None and self.drift is None and self.diffusion is None

    def divided(self, lengthscale: Float[Array, " h"]) -> LatentJet:
        """The same operator in the coordinates `z / lengthscale`."""

        def scale_matrix(matrix: Array) -> Array:
            return matrix / (lengthscale**2 if matrix.ndim == 1 else jnp.outer(lengthscale, lengthscale))

        return LatentJet(
            z=self.z / lengthscale,
            c=self.c,
            drift=None if self.drift is None else self.drift / lengthscale,
            diffusion=None if self.diffusion is None else scale_matrix(self.diffusion),
        )


def push_forward(
    symbol: Symbol, embedding: Embedding, normalisation: Normalisation, q: Float[Array, " d"]
) -> LatentJet:
    """Rewrite `A (g∘h)` at `q` as a second-order operator on `g` at `h(q)`.

    The zeroth-order part of `A` scales `g` and never enters the drift.
    """
    jet = embedding.forward(input_jet(symbol, normalisation(q), jax.lax.stop_gradient(normalisation.scale)))
    return LatentJet(z=jet.value, c=symbol.c, drift=jet.drift, diffusion=_diffusion(jet))


def _diffusion(jet: Jet) -> Array | None:
    if not jet.second_order:
        return None
    if jet.axes is None or jet.axis_weights is None:
        return jet.diffusion()
    # No layer has mixed the inputs: the axes give a diagonal matrix, and only general directions give a full one.
    width = jet.value.shape[0]
    diagonal = jnp.zeros(width).at[np.asarray(jet.axes.indices)].set(jet.axis_weights * jet.axes.scale**2)
    return diagonal if jet.directions is None else jnp.diag(diagonal) + jet.diffusion()
