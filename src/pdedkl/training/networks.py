"""A network that solves a forward problem on fresh points: the mean of a Gaussian process for what it leaves.

Source and conditions are functions, so points are free: rows are drawn from pools of fresh ones, and each step has a
batch of its own (`natural.py`). Batches begin small and grow when progress slows down, since the last digits need many
rows. In many dimensions two networks are tried for a few steps each: one of all inputs, and one of a few directions of
them, which also shows along which directions the solution varies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..compilation import compiled_quickly
from ..domain import Domain
from ..embeddings import MLP, Bottleneck, Embedding
from ..equations import Nonlinear
from ..inference.built_in import not_held
from ..means import NetworkMean
from ..observations import Learned, Observation
from ..operators import parameters_of
from ..scales import data_scales, signal_variance
from . import gradients, natural
from .journal import Journal, State
from .monitor import Monitor
from .walls import zero_walls

# Hidden units and layers of the network of all inputs.
WIDTH, DEPTH = 64, 3
# Directions, hidden units and layers of the other one.
DIRECTIONS, NARROW, SHALLOW = 8, 32, 2
# With at most this many inputs only the first is tried, with more than the second number only the other: derivatives
# along all inputs are then too slow.
FEW_INPUTS, MANY_INPUTS = 16, 32
# At this residual the directions are known: a kernel on them, started from there, is more accurate than the network.
ROUGHLY = 1e-2
# Rows of the source in the first and in the largest batch; conditions have half as many each. Each size of batches is a
# program of its own, so they grow by a large factor.
FIRST_ROWS, MOST_ROWS, GROWTH = {"cpu": 400, "gpu": 1600}, {"cpu": 1600, "gpu": 6400}, 4
# Fresh rows of each kind to draw from, and the numbers that all points of a kind may take.
POOL, POOL_NUMBERS = 100_000, 10_000_000
# Natural-gradient steps between two looks at the progress; steps in which two networks compete.
STEPS, CONTEST = {"cpu": 10, "gpu": 50}, 30
# Batches grow where the residual has not fallen to this fraction of that at the last look.
SLOW = 0.8
# Looks without any gain, at the largest batch, after which training ends.
PATIENCE = 6
# Gradient steps: rows of the source in a batch, and steps between two looks at the progress.
BATCH, LOOK = {"cpu": 200, "gpu": 2000}, 500
# The first so many of them, and each time twice as many, have to lower the residual to this fraction.
MANY, GAINED = 2000, 0.7


def applies(problem: Any, data: Sequence[Observation]) -> bool:
    """Whether a network can learn the problem: linear, of one field, of order two or less, with nothing measured."""
    if any(isinstance(stated.operator, Nonlinear) for stated in problem.statements) or problem.fields:
        return False
    measured = any(stated.measured for stated in problem.statements) or len(data) > 0
    order = max(stated.operator.order for stated in problem.statements)
    return not measured and order <= 2 and not parameters_of([s.operator for s in problem.statements])


def trained(
    domain: Domain,
    pool: Sequence[Observation],
    mean: NetworkMean,
    journal: Journal,
    monitor: Monitor,
    seed: int,
    goal: float,
) -> NetworkMean:
    """The network whose relative residuals are smallest, trained until they reach `goal` or until the time is up."""
    kinds = networks(domain, seed)
    means = {name: eqx.tree_at(lambda m: m.network, mean, network) for name, network in kinds.items()}
    if len(means) > 1:
        looks = {
            name: _phase(f"{name}, first steps", m, pool, journal, monitor, seed, goal, CONTEST)
            for name, m in means.items()
        }
        name = min(looks, key=lambda name: float(looks[name]["residual"]))
        best = natural.with_weights(means[name], jnp.asarray(looks[name]["x"]))
        if monitor.stopped is not None or float(looks[name]["residual"]) < goal:
            return best
    else:
        name, best = next(iter(means.items()))
    of_directions = isinstance(best.network, Bottleneck)
    goal = max(goal, ROUGHLY) if of_directions else goal
    state = _phase(name, best, pool, journal, monitor, seed + 1, goal, None, grows=of_directions)
    best = natural.with_weights(best, jnp.asarray(state["x"]))
    for number, (more, phase) in enumerate(() if of_directions else LATER, start=2):
        if monitor.stopped is not None or float(state["residual"]) < goal:
            break
        state = phase(f"{name}, {more}", best, pool, journal, monitor, seed + number, goal, float(state["residual"]))
        best = natural.with_weights(best, jnp.asarray(state["x"]))
    return best


def slopes(mean: NetworkMean, points: np.ndarray) -> np.ndarray:
    """`∇m` of the network at points, per half-width of the domain."""
    return np.asarray(_slopes(mean, jnp.asarray(points)))


@compiled_quickly
def _slopes(mean: NetworkMean, points: Float[Array, "n d"]) -> Float[Array, "n d"]:
    return jax.vmap(jax.grad(mean))(points) / mean.normalisation.scale


def networks(domain: Domain, seed: int) -> dict[str, Embedding]:
    """The networks that are tried, by name."""
    inner, outer, whole = jax.random.split(jax.random.key(seed), 3)
    found: dict[str, Embedding] = {}
    if domain.dim > FEW_INPUTS:
        few = MLP(DIRECTIONS, 1, width=NARROW, depth=SHALLOW, activation="tanh", key=inner)
        found["network of directions"] = Bottleneck(domain.dim, few, key=outer)
    if domain.dim <= MANY_INPUTS:
        found["network"] = MLP(domain.dim, 1, width=WIDTH, depth=DEPTH, activation="tanh", key=whole)
    return found


def _rows(sizes: dict[str, int]) -> int:
    """The number of rows, or of steps, for the device that is in use."""
    return sizes.get(jax.default_backend(), sizes["cpu"])


def pool_of(problem: Any, seed: int) -> tuple[tuple[Observation, ...], NetworkMean]:
    """Fresh rows of all kinds, and a mean with the size of `u`, which is zero on walls where `u` is."""
    count = max(min(POOL, POOL_NUMBERS // problem.domain.dim), 2 * _rows(FIRST_ROWS))
    pool = problem.fresh(count, seed=seed, purpose="training")
    # Walls are built in only where values are known to be exact.
    walls = zero_walls(problem, tuple(eqx.tree_at(lambda o: o.noise, o, Learned(exact=True)) for o in pool))
    if walls is not None:
        pool = not_held(walls, pool)
    first = next(iter(networks(problem.domain, seed).values()))
    return pool, NetworkMean(problem.domain, first, float(np.sqrt(signal_variance(pool))), walls)


def _phase(
    name: str,
    mean: NetworkMean,
    pool: Sequence[Observation],
    journal: Journal,
    monitor: Monitor,
    seed: int,
    goal: float,
    most: int | None,
    grows: bool = True,
    rows: int | None = None,
) -> State:
    """Natural-gradient steps until the residual reaches the goal, until little is gained, or until there were enough.

    The batch begins with the given number of `rows`. If it `grows`, training goes on with larger ones.
    """
    largest = _rows(MOST_ROWS)

    def begin() -> State:
        first = natural.start(mean)
        return {
            "x": np.asarray(first.w),
            "momentum": np.asarray(first.momentum),
            "step": np.asarray(0),
            "damping": np.asarray(first.damping),
            "residual": np.asarray(1e300),
            "best": np.asarray(1e300),
            "idle": np.asarray(0),
            "rows": np.asarray(rows or _rows(FIRST_ROWS)),
            "done": np.asarray(False),
        }

    def step(state: State) -> State:
        before = natural.State(*(jnp.asarray(state[name]) for name in ("x", "momentum", "step", "damping", "residual")))
        found = natural.steps(
            mean, _batch(pool, int(state["rows"])), before, seed, min(_rows(STEPS), most or _rows(STEPS))
        )
        count, residual, rows = int(found.step), float(found.residual), int(state["rows"])
        slow = residual > SLOW * float(state["best"])
        damping = float(found.damping)
        if slow and rows < largest and grows:
            rows, damping = min(GROWTH * rows, largest), min(damping, natural.FIRST_DAMPING)
        idle = int(state["idle"]) + 1 if residual >= float(state["best"]) and rows >= largest else 0
        monitor.report(name, count, most or count, residual, damping, {})
        done = residual < goal or idle >= PATIENCE or (most is not None and count >= most) or (slow and not grows)
        return {
            "x": np.asarray(found.w),
            "momentum": np.asarray(found.momentum),
            "step": np.asarray(count),
            "damping": np.asarray(damping),
            "residual": np.asarray(residual),
            "best": np.asarray(min(residual, float(state["best"]))),
            "idle": np.asarray(idle),
            "rows": np.asarray(rows),
            "done": np.asarray(done),
        }

    return journal.run(name, begin, step, lambda: monitor.stopped is not None)


def _with_gradients(
    name: str,
    mean: NetworkMean,
    pool: Sequence[Observation],
    journal: Journal,
    monitor: Monitor,
    seed: int,
    goal: float,
    before: float,
) -> State:
    """Gradient steps until the goal is reached, or until twice as many gain little."""
    rows = _batch(pool, _rows(BATCH))
    flat, unravel = ravel_pytree(gradients.start(mean))
    since = monitor.seconds

    def begin() -> State:
        return {
            "state": np.asarray(flat),
            "x": np.asarray(natural.weights_of(mean)),
            "residual": np.asarray(before),
            "before": np.asarray(before),
            "next": np.asarray(MANY),
            "done": np.asarray(False),
        }

    def step(state: State) -> State:
        now, share = unravel(jnp.asarray(state["state"])), jnp.asarray(monitor.share_left(since))
        found, left = gradients.steps(mean, rows, now, jnp.asarray(seed), share, LOOK)
        residual, count, due = float(left), int(found.step), int(state["next"])
        monitor.report(name, count, due, residual, 0.0, {})
        after = state | {"state": np.asarray(ravel_pytree(found)[0])}
        if residual < float(state["residual"]):
            after |= {"x": np.asarray(found.average), "residual": np.asarray(residual)}
        best = float(after["residual"])
        done = best < goal or not np.isfinite(residual)
        if count >= due:
            done = done or best >= GAINED * float(state["before"])
            after |= {"before": np.asarray(best), "next": np.asarray(2 * due)}
        return after | {"done": np.asarray(done)}

    return journal.run(name, begin, step, lambda: monitor.stopped is not None)


def _with_large_batches(
    name: str,
    mean: NetworkMean,
    pool: Sequence[Observation],
    journal: Journal,
    monitor: Monitor,
    seed: int,
    goal: float,
    before: float,
) -> State:
    """Natural-gradient steps with more rows than at first."""
    return _phase(name, mean, pool, journal, monitor, seed, goal, None, rows=GROWTH * _rows(FIRST_ROWS))


def _batch(pool: Sequence[Observation], count: int) -> tuple[natural.Rows, ...]:
    """Rows to draw batches from: `count` of each kind of the highest order, and half as many of the others."""
    highest = max(item.operator.order for item in pool)
    counts = [count if o.operator.order == highest else count // 2 for o in pool]
    return natural.rows_of(pool, data_scales(pool), counts)


# What follows when the first steps gain little.
LATER = (("gradient steps", _with_gradients), ("large batches", _with_large_batches))
