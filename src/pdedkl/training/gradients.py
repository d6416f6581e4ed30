"""Gradient steps for a network that solves a problem on fresh points: thousands of cheap ones.

Where a solution needs very many rows, a natural-gradient step, which solves with the rows of its batch, gains little
for its price (docs/studies.md). A gradient step costs as much as the residuals of a few hundred rows, so it can be
repeated until the network has seen millions of them.

Weights of one layer depend on each other, which Adam (Kingma and Ba, 2015) leaves out. So its steps are taken in other
coordinates. Let `G` be the gradient of one matrix of weights. The means of `G Gᵀ` and `Gᵀ G` over the steps have
eigenvectors `P` and `Q`, and Adam's direction `D` is that of the rotated gradients `Pᵀ G Q` (SOAP; Vyas et al., 2025):

    W ← W − η_k P D Qᵀ.

`P` and `Q` are followed by one orthogonal iteration in every `TURN` steps. Step `k` has the length
`η_k = η τ/√(1 + k/κ)`, where `τ` is the share of the time that is left, or one if there is no limit. The chance of
batches is averaged out: the result is a mean `a` of all weights so far in which the last twentieth counts most,
`a ← a + 17/(k + 16) (w − a)` (Shamir and Zhang, 2013). So it is good at any time, and nobody has to know how many
steps there will be.

Numbers have 32 bits here, in half the time: what chance leaves is far above their rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..compilation import compiled
from ..means import NetworkMean
from . import natural
from .natural import Rows

# The length `η` of the first step; after `κ` steps lengths have fallen by a root of two.
LENGTH, UNTIL = 1e-2, 1000.0
# How much of the last step remains: in means of gradients, in means of their squares and products.
SLOPES, SQUARES = 0.9, 0.99
# Steps between two turns of the coordinates.
TURN = 10
# How much more the last weights count than the first, in their mean.
LATE = 16.0
# Rows on which the residual is measured at the end, as a multiple of those of a batch.
OTHERS = 16


class Moments(NamedTuple):
    """Of each array of weights, as a matrix: means of `G`, of `(Pᵀ G Q)²`, of `G Gᵀ` and `Gᵀ G`; and `P` and `Q`."""

    mean: Float[Array, "m n"]
    squares: Float[Array, "m n"]
    left: Float[Array, "m m"]
    right: Float[Array, "n n"]
    p: Float[Array, "m m"]
    q: Float[Array, "n n"]


class State(NamedTuple):
    """Weights, their mean, the moments of each array of them, and the number of steps."""

    w: Float[Array, " p"]
    average: Float[Array, " p"]
    moments: list[Moments]
    step: Any


def start(mean: NetworkMean) -> State:
    w = natural.weights_of(mean)
    return State(w, w, [_first(*_as_matrix(part).shape) for part in jax.tree.leaves(mean.network)], jnp.zeros((), int))


def _first(m: int, n: int) -> Moments:
    zero = jnp.zeros((m, n))
    return Moments(zero, zero, jnp.zeros((m, m)), jnp.zeros((n, n)), jnp.eye(m), jnp.eye(n))


def _as_matrix(part: Array) -> Float[Array, "m n"]:
    return part.reshape(len(part), -1)


@compiled
def steps(
    mean: NetworkMean, rows: Sequence[Rows], state: State, seed: Array, left: Array, count: int
) -> tuple[State, Float[Array, ""]]:
    """Some steps, each on a batch of its own, and the residual of the mean weights on rows drawn anew.

    `left` is the share `τ` of the time.
    """
    key, other = jax.random.split(jax.random.key(seed))
    mean, rows, first, left = jax.tree.map(_with_32_bits, (mean, rows, state, left))

    def one(_: Any, state: State) -> State:
        batch = natural.drawn(rows, jax.random.fold_in(key, state.step))
        slope = jax.grad(lambda w: jnp.sum(natural.residuals(mean, w, batch) ** 2))(state.w)
        return moved(mean, state, slope, left)

    found = jax.lax.fori_loop(0, count, one, first)
    others = natural.drawn(rows, jax.random.fold_in(other, found.step), OTHERS)
    residual = natural.root_mean_square(natural.residuals(mean, found.average, others), len(rows))
    return jax.tree.map(lambda after, before: after.astype(before.dtype), found, state), residual


def _with_32_bits(leaf: Any) -> Any:
    return leaf.astype(jnp.float32) if eqx.is_inexact_array(leaf) else leaf


def moved(mean: NetworkMean, state: State, slope: Float[Array, " p"], left: Array) -> State:
    """One step, given the gradient with respect to the weights of the network."""
    parts, tree = jax.tree.flatten(ravel_pytree(mean.network)[1](slope))
    found = [direction(_as_matrix(part), m, state.step) for part, m in zip(parts, state.moments, strict=True)]
    moves = [move.reshape(part.shape) for part, (move, _) in zip(parts, found)]
    count = jnp.asarray(state.step, slope.dtype)
    w = state.w - LENGTH * left / jnp.sqrt(1 + count / UNTIL) * ravel_pytree(jax.tree.unflatten(tree, moves))[0]
    average = state.average + (LATE + 1) / (count + 1 + LATE) * (w - state.average)
    return State(w, average, [m for _, m in found], state.step + 1)


def direction(slope: Float[Array, "m n"], before: Moments, step: Any) -> tuple[Float[Array, "m n"], Moments]:
    """Adam's direction in the coordinates `P` and `Q`, and the moments after it. Steps count from zero."""
    mean, squares, left, right, p, q = before
    mean = SLOPES * mean + (1 - SLOPES) * slope
    squares = SQUARES * squares + (1 - SQUARES) * (p.T @ slope @ q) ** 2
    left = SQUARES * left + (1 - SQUARES) * slope @ slope.T
    right = SQUARES * right + (1 - SQUARES) * slope.T @ slope
    # The means begin at zero, and so are too small at first.
    count = jnp.asarray(step + 1, slope.dtype)
    size = jnp.sqrt(squares / (1 - SQUARES**count)) + jnp.finfo(slope.dtype).tiny ** 0.5
    found = p @ (p.T @ mean @ q / size) @ q.T / (1 - SLOPES**count)
    turned = lambda: (jnp.linalg.qr(left @ p)[0], jnp.linalg.qr(right @ q)[0])
    p, q = jax.lax.cond(step % TURN == 0, turned, lambda: (p, q))
    return found, Moments(mean, squares, left, right, p, q)
