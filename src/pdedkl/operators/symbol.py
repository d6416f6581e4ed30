"""The symbol of a second-order operator at a point."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Symbol(eqx.Module):
    """`A = c + b·∇ + Σ_i w_i ∂_i² + Σ_r s_r (v_r·∇)²` at one point; a part that is `None` is absent.

    The second-order part is kept as weighted, *signed* directions. Most of them are coordinate axes, which are stored
    by number (`axes`, with `axis_weights` w) so that a Laplacian never builds a `d × d` matrix. Mixed derivatives and
    full diffusion matrices add general directions `v` with `weights` s. Constant parts do not depend on the point, so
    `vmap` over points leaves them unbatched.
    """

    c: Float[Array, ""] | None = None
    b: Float[Array, " d"] | None = None
    axes: tuple[int, ...] = eqx.field(default=(), static=True)
    axis_weights: Float[Array, " k"] | None = None
    directions: Float[Array, "r d"] | None = None
    weights: Float[Array, " r"] | None = None

    @property
    def second_order(self) -> bool:
        return bool(self.axes) or self.directions is not None

    def __add__(self, other: Symbol) -> Symbol:
        axes = tuple(sorted({*self.axes, *other.axes}))
        return Symbol(
            c=_sum(self.c, other.c),
            b=_sum(self.b, other.b),
            axes=axes,
            axis_weights=_sum(self._weights_over(axes), other._weights_over(axes)),
            directions=_stack(self.directions, other.directions),
            weights=_stack(self.weights, other.weights),
        )

    def scaled(self, factor: Float[Array, ""]) -> Symbol:
        """`factor · A`: the directions stay, their weights are scaled."""
        return Symbol(
            c=_times(factor, self.c),
            b=_times(factor, self.b),
            axes=self.axes,
            axis_weights=_times(factor, self.axis_weights),
            directions=self.directions,
            weights=_times(factor, self.weights),
        )

    def diffusion_times(self, v: Float[Array, " d"]) -> Float[Array, " d"]:
        """`a v` for the symmetric matrix `a` of the second-order part."""
        out = jnp.zeros_like(v)
        if self.axis_weights is not None:
            index = np.asarray(self.axes)
            out = out.at[index].add(self.axis_weights * v[index])
        if self.directions is not None and self.weights is not None:
            out = out + (self.weights * (self.directions @ v)) @ self.directions
        return out

    def diagonal(self, dim: int) -> Float[Array, " d"]:
        """The coefficients of `∂_i²`: the diagonal of the matrix of the second-order part."""
        out = jnp.zeros(dim)
        if self.axis_weights is not None:
            out = out.at[np.asarray(self.axes)].add(self.axis_weights)
        if self.directions is not None and self.weights is not None:
            out = out + self.weights @ self.directions**2
        return out

    def _weights_over(self, axes: tuple[int, ...]) -> Array | None:
        if not self.axes or self.axes == axes:
            return self.axis_weights
        where = np.searchsorted(np.asarray(axes), np.asarray(self.axes))
        return jnp.zeros(len(axes)).at[where].set(self.axis_weights)


def _sum(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b


def _stack(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return a if b is None else b
    return jnp.concatenate([a, b])


def _times(factor: Array, part: Array | None) -> Array | None:
    return None if part is None else factor * part
