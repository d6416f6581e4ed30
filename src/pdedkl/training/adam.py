"""Gradient steps for a network that solves a problem on fresh points: thousands of cheap ones (Kingma and Ba, 2015).

A natural-gradient step solves with the rows of its batch. Where a solution needs very many rows, such a step gains
little for its price (docs/studies.md). A gradient step costs as much as the residuals of a few hundred rows, so it can
be repeated until the network has seen millions of them.

Step `k` has the length `η/√(1 + k/κ)`. The chance of batches is averaged out: the result is a mean `a` of all weights
so far in which the last twentieth counts most, `a ← a + 17/(k + 16) (w − a)` (Shamir and Zhang, 2013). So it is good
at any time, and nobody has to know how many steps there will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ..compilation import compiled
from ..means import NetworkMean
from . import natural
from .natural import Rows

# The length `η` of the first step; after `κ` steps lengths have fallen by a root of two.
LENGTH, UNTIL = 1e-2, 1000.0
# How much more the last weights count than the first, in their mean.
LATE = 16.0
# Rows on which the residual is measured at the end, as a multiple of those of a batch.
OTHERS = 16

DIRECTION = optax.scale_by_adam()


class State(NamedTuple):
    """Weights, means of gradients and of their squares, the mean of weights, and the number of steps."""

    w: Float[Array, " p"]
    mean: Float[Array, " p"]
    squares: Float[Array, " p"]
    average: Float[Array, " p"]
    step: Any


def start(w: Float[Array, " p"]) -> State:
    zero = jnp.zeros_like(w)
    return State(w, zero, zero, w, np.asarray(0))


def steps(mean: NetworkMean, rows: Sequence[Rows], state: State, seed: int, count: int) -> tuple[State, float]:
    """Some steps, each on a batch of its own, and the residual of the mean weights on rows that no step came from."""
    found, residual = _steps(mean, tuple(rows), State(*map(jnp.asarray, state)), jnp.asarray(seed), count)
    return found, float(residual)


@compiled
def _steps(
    mean: NetworkMean, rows: tuple[Rows, ...], state: State, seed: Array, count: int
) -> tuple[State, Float[Array, ""]]:
    key, other = jax.random.split(jax.random.key(seed))

    def one(_: Any, state: State) -> State:
        batch = natural.drawn(rows, jax.random.fold_in(key, state.step))
        return moved(state, jax.grad(lambda w: jnp.sum(natural.residuals(mean, w, batch) ** 2))(state.w))

    state = jax.lax.fori_loop(0, count, one, state)
    others = natural.drawn(rows, jax.random.fold_in(other, state.step), OTHERS)
    return state, natural.root_mean_square(natural.residuals(mean, state.average, others), len(rows))


def moved(state: State, slope: Float[Array, " p"]) -> State:
    """One step along the mean of gradients, each weight in units of the root of its mean square."""
    step = jnp.asarray(state.step)
    direction, after = DIRECTION.update(slope, optax.ScaleByAdamState(step, state.mean, state.squares))
    w = state.w - length_at(step) * direction
    average = state.average + (LATE + 1) / (after.count + LATE) * (w - state.average)
    return State(w, after.mu, after.nu, average, after.count)


def length_at(step: Any) -> Any:
    return LENGTH / jnp.sqrt(1 + step / UNTIL)
