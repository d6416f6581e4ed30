"""A point and an operator, carried together through a network: the forward-Laplacian layer rule.

For a map `y(q)` and an operator `A = c + b·∇ + a:∇∇ᵀ` a jet holds the value `y`, the drift `L = (b·∇ + a:∇∇ᵀ) y` and
the derivatives `J` of `y` along the directions of `a`, so that `a` in the space of `y` is `Jᵀ S J` with the signed
weights `S`. A dense layer followed by an activation `σ` maps it to

    y ← σ(Wy + w),   J ← σ'(·) W J,   L ← σ'(·) W L + σ''(·) Σ_r s_r (W J)_r²

We wrote this rule out instead of using folx, which derives it from the network's jaxpr. folx takes only non-negative
weights (no wave operator, no mixed derivatives), and cannot use the fact that a low-dimensional linear map limits the
number of directions. `benchmarks/core.py` measures both.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..operators.symbol import Symbol


class Axes(eqx.Module):
    """Directions that are multiples of coordinate axes, `scale_k e_{index_k}`, kept as numbers instead of vectors."""

    indices: tuple[int, ...] = eqx.field(static=True)
    scale: Float[Array, " k"]

    def through(self, matrix: Float[Array, "w d"]) -> Float[Array, "k w"]:
        return (matrix[:, np.asarray(self.indices)] * self.scale).T

    def dense(self, dim: int) -> Float[Array, "k d"]:
        rows = np.arange(len(self.indices))
        return jnp.zeros((len(self.indices), dim)).at[rows, np.asarray(self.indices)].set(self.scale)


class Jet(eqx.Module):
    """Value, drift and directional derivatives of an intermediate layer; a part that is `None` is zero.

    `weights` is a vector of signed weights, or after `compressed` a symmetric matrix.
    """

    value: Float[Array, " w"]
    drift: Float[Array, " w"] | None = None
    axes: Axes | None = None
    directions: Float[Array, "r w"] | None = None
    axis_weights: Float[Array, " k"] | None = None
    weights: Float[Array, " r"] | Float[Array, "r r"] | None = None

    @property
    def second_order(self) -> bool:
        return self.axes is not None or self.directions is not None

    def affine(self, matrix: Float[Array, "v w"], offset: Float[Array, " v"] | None = None) -> Jet:
        value = matrix @ self.value
        return Jet(
            value=value if offset is None else value + offset,
            drift=None if self.drift is None else matrix @ self.drift,
            directions=self._all_directions(lambda rows: rows @ matrix.T, lambda axes: axes.through(matrix)),
            weights=self._all_weights(),
        )

    def activated(self, value: Callable, slope: Callable, curvature: Callable) -> Jet:
        jet, y = self.written_out(), self.value
        directions, weights, first = jet.directions, jet.weights, slope(y)
        drift = None if self.drift is None else first * self.drift
        if directions is not None and weights is not None:
            bend = curvature(y) * quadratic(directions, weights)
            drift = bend if drift is None else drift + bend
            directions = first * directions
        return Jet(value=value(y), drift=drift, directions=directions, weights=weights)

    def compressed(self) -> Jet:
        """The same jet with as many directions as the layer is wide: the unit vectors, weighted by `Jᵀ S J`."""
        jet, width = self.written_out(), self.value.shape[0]
        if jet.directions is None or jet.directions.shape[0] <= width:
            return jet
        return Jet(self.value, self.drift, directions=jnp.eye(width), weights=jet.diffusion())

    def written_out(self) -> Jet:
        """The same jet with all its directions as vectors."""
        if self.axes is None:
            return self
        width = self.value.shape[0]
        directions = self._all_directions(lambda rows: rows, lambda axes: axes.dense(width))
        return Jet(self.value, self.drift, directions=directions, weights=self._all_weights())

    def __add__(self, other: Jet) -> Jet:
        """The jet of `y + y'`, for two maps of the same input jet, neither of them compressed."""
        a, b = self.written_out(), other.written_out()
        return Jet(
            value=a.value + b.value,
            drift=_plus(a.drift, b.drift),
            directions=_plus(a.directions, b.directions),
            weights=a.weights,
        )

    def diffusion(self) -> Float[Array, "w w"]:
        """`G = Jᵀ S J`."""
        assert self.directions is not None and self.weights is not None
        weighted = self.weights @ self.directions if self.weights.ndim == 2 else self.weights[:, None] * self.directions
        return self.directions.T @ weighted

    def _all_directions(self, rows: Callable, axes: Callable) -> Array | None:
        parts = [] if self.axes is None else [axes(self.axes)]
        if self.directions is not None:
            parts.append(rows(self.directions))
        return jnp.concatenate(parts) if len(parts) > 1 else (parts[0] if parts else None)

    def _all_weights(self) -> Array | None:
        if self.axis_weights is None or self.weights is None:
            return self.weights if self.axis_weights is None else self.axis_weights
        return jnp.concatenate([self.axis_weights, self.weights])


def _plus(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return a if b is None else b
    return a + b


def quadratic(directions: Float[Array, "r w"], weights: Array) -> Float[Array, " w"]:
    """`Σ_rs S_rs J_r J_s`, for each unit of the layer."""
    if weights.ndim == 2:
        return jnp.sum(directions * (weights @ directions), axis=0)
    return weights @ directions**2


def input_jet(symbol: Symbol, x: Float[Array, " d"], scale: Float[Array, " d"]) -> Jet:
    """The jet of the input layer `x = scale · (q − centre)`."""
    index = np.asarray(symbol.axes, dtype=int)
    return Jet(
        value=x,
        drift=None if symbol.b is None else scale * symbol.b,
        axes=Axes(symbol.axes, scale[index]) if symbol.axes else None,
        axis_weights=symbol.axis_weights,
        directions=None if symbol.directions is None else scale * symbol.directions,
        weights=symbol.weights,
    )
