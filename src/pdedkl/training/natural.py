"""Natural-gradient steps for a network that solves a problem on fresh points.

Let `r(w)` be the residuals of a batch of `B` rows, `A_i m(q_i) − y_i`, each relative to the size of its kind and
divided by `√B`, and `J = ∂r/∂w`. A step solves in the space of rows, with momentum (SPRING; Goldshlager, Abrahamsen
and Lin, 2024):

    (J Jᵀ + λ tr(J Jᵀ)/B I) z = r − μ J φ,      φ ← Jᵀ z + μ φ,      w ← w − η φ.

This is the natural gradient (Gauss–Newton) of the squared residuals, at the cost of a factorisation of `B` rows. In a
forward problem source and conditions are functions, so every step has other points. Two dampings `λ` and some lengths
are tried, with and without momentum, and those are taken for which the residuals of *another* batch are smallest: on
its own batch a long step always looks good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..compilation import compiled
from ..means import NetworkMean
from ..observations import Observation
from ..operators import Operator

# The momentum `μ`, the first damping `λ`, and its range.
MOMENTUM, FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 0.9, 1e-2, 1e-12, 1e6
# In each step the last damping is tried, and one that is this many times smaller or, in the next step, larger.
FACTOR = 4.0
# Lengths of a step that are tried.
LENGTHS = (1.0, 0.4, 0.1)
# Rows of the other batch, as a multiple of those of the batch: it takes only residuals.
OTHERS = 4


class Rows(eqx.Module):
    """Rows of one operator to draw batches from, `count` at a time. Weights make residuals relative."""

    operator: Operator
    points: Float[Array, "n d"]
    values: Float[Array, " n"]
    weight: Float[Array, " n"]
    count: int = eqx.field(static=True)


class State(NamedTuple):
    """Weights `w`, the last step `φ`, the number of steps, the damping `λ`, the residual of the last other batch."""

    w: Float[Array, " p"]
    momentum: Float[Array, " p"]
    step: Any
    damping: Any
    residual: Any


def weights_of(mean: NetworkMean) -> Float[Array, " p"]:
    """The weights of the network, one after the other."""
    return ravel_pytree(mean.network)[0]


def with_weights(mean: NetworkMean, w: Float[Array, " p"]) -> NetworkMean:
    """The mean with other weights."""
    return eqx.tree_at(lambda m: m.network, mean, ravel_pytree(mean.network)[1](w))


def residuals(mean: NetworkMean, w: Float[Array, " p"], rows: Sequence[Rows]) -> Float[Array, " b"]:
    """The relative residuals of all given rows."""
    moved = with_weights(mean, w)
    parts = [r.weight * (jax.vmap(moved.observed(r.operator))(r.points) - r.values) for r in rows]
    return jnp.concatenate(parts)


def jacobian(mean: NetworkMean, w: Float[Array, " p"], rows: Sequence[Rows]) -> tuple[Array, Array]:
    """The residuals and their derivatives with respect to the weights, a row at a time in reverse mode."""
    values, slopes = [], []
    for r in rows:

        def one(q: Array, y: Array, weight: Array, operator: Operator = r.operator) -> tuple[Array, Array]:
            def residual(v: Array) -> Array:
                return weight * (with_weights(mean, v).observed(operator)(q) - y)

            return jax.value_and_grad(residual)(w)

        value, slope = jax.vmap(one)(r.points, r.values, r.weight)
        values.append(value)
        slopes.append(slope)
    return jnp.concatenate(values), jnp.concatenate(slopes)


def drawn(rows: Sequence[Rows], key: Array, times: int = 1) -> list[Rows]:
    """A batch: `count` rows of each kind at random, or a multiple of that."""
    found = []
    for r, rng in zip(rows, jax.random.split(key, len(rows))):
        index = jax.random.randint(rng, (times * r.count,), 0, len(r.values))
        found.append(Rows(r.operator, r.points[index], r.values[index], r.weight[index] / times**0.5, r.count))
    return found


def root_mean_square(r: Float[Array, " b"], kinds: int) -> Float[Array, ""]:
    return jnp.sqrt(jnp.sum(r**2) / kinds)


def steps(mean: NetworkMean, rows: Sequence[Rows], state: State, seed: int, count: int) -> State:
    """Some steps, each on a batch of its own."""
    return _steps(mean, tuple(rows), State(*map(jnp.asarray, state)), jnp.asarray(seed), count)


@compiled
def _steps(mean: NetworkMean, rows: tuple[Rows, ...], state: State, seed: Array, count: int) -> State:
    return jax.lax.fori_loop(0, count, lambda _, state: one_step(mean, rows, state, seed), state)


def one_step(mean: NetworkMean, rows: Sequence[Rows], state: State, seed: Array) -> State:
    first, second = jax.random.split(jax.random.fold_in(jax.random.key(seed), state.step))
    batch, other = drawn(rows, first), drawn(rows, second, OTHERS)
    kinds = len(rows)
    left_of = lambda w: root_mean_square(residuals(mean, w, other), kinds)
    r, slopes = jacobian(mean, state.w, batch)
    gram = slopes @ slopes.T
    unit = jnp.trace(gram) / len(r)
    right = jnp.stack([r, r - MOMENTUM * (slopes @ state.momentum)], axis=1)
    old = jnp.stack([jnp.zeros_like(state.w), MOMENTUM * state.momentum], axis=1)

    def tried(damping: Array) -> tuple[Array, Array]:
        factor = jnp.linalg.cholesky(gram.at[jnp.diag_indices(len(r))].add(damping * unit))
        moves = (slopes.T @ jax.scipy.linalg.cho_solve((factor, True), right) + old).T
        moves = jnp.concatenate([length * moves for length in LENGTHS])
        left = jax.lax.map(lambda move: left_of(state.w - move), moves)
        left = jnp.where(jnp.isfinite(left), left, jnp.inf)
        best = jnp.argmin(left)
        return left[best], moves[best]

    before = left_of(state.w)
    ratio = jnp.where(state.step % 2 == 0, 1 / FACTOR, FACTOR)
    dampings = jnp.clip(state.damping * jnp.stack([jnp.ones(()), ratio]), LEAST_DAMPING, MOST_DAMPING)
    left, moves = jax.lax.map(tried, dampings)
    best = jnp.argmin(left)
    lower = left[best] < before
    return State(
        w=jnp.where(lower, state.w - moves[best], state.w),
        momentum=jnp.where(lower, moves[best], 0.0),
        step=state.step + 1,
        damping=jnp.where(lower, dampings[best], jnp.minimum(FACTOR**2 * state.damping, MOST_DAMPING)),
        residual=jnp.where(lower, left[best], before),
    )


def start(mean: NetworkMean) -> State:
    w = weights_of(mean)
    return State(w, jnp.zeros_like(w), np.asarray(0), np.asarray(FIRST_DAMPING), np.asarray(np.inf))


def rows_of(observations: Sequence[Observation], sizes: dict[str, float], counts: Sequence[int]) -> tuple[Rows, ...]:
    """Rows to draw from, given the size of each kind of values and how many to draw of each."""
    found = []
    for item, count in zip(observations, counts):
        weight = 1.0 / (sizes[item.noise_name or item.name] * np.sqrt(count))
        found.append(
            Rows(item.operator, jnp.asarray(item.points), jnp.asarray(item.values), jnp.full(len(item), weight), count)
        )
    return tuple(found)
