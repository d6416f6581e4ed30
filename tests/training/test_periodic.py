"""`fit` with periodic conditions: `−Δu = f` in a square, with values of `u` on the other two sides only."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from oracles import at_points

import pdedkl as pk
from pdedkl.scales import signal_variance

DOMAIN = pk.Domain(x=[(0.0, 1.0)] * 2)
X = DOMAIN.coordinates("x")
PERIOD = pk.Shift(X[0], 1.0)
RNG = np.random.default_rng(0)


def solution(q):
    return jnp.sin(2 * jnp.pi * q[0] + q[1]) + q[1]


def observed(operator, points, **more):
    return pk.Observation(operator, points, at_points(operator(solution), points), **more)


def face(axis, at, count=10):
    points = RNG.uniform(size=(count, 2))
    points[:, axis] = at
    return points


INSIDE = observed(-pk.Laplacian(X), RNG.uniform(size=(30, 2)), name="f")
WALLS = observed(pk.identity, np.concatenate([face(1, 0.0, 5), face(1, 1.0, 5)]), name="u")
PERIODIC = [
    observed(pk.identity - PERIOD, face(0, 0.0), name="periodic"),
    observed(pk.D(X[0]) - PERIOD @ pk.D(X[0]), face(0, 0.0), name="periodic slope"),
]


def error(posterior):
    points = np.random.default_rng(1).uniform(size=(100, 2))
    truth = jax.vmap(solution)(points)
    return np.linalg.norm(posterior.predict(points).mean - truth) / np.linalg.norm(truth)


def test_periodic_conditions_are_learned_from():
    found = pk.fit(DOMAIN, [INSIDE, WALLS, *PERIODIC], model="gp")
    without = pk.condition(found.model, [INSIDE, WALLS])
    history = [step.objective for step in found.training.history if step.phase == "inputs, start 1"]
    assert history[-1] < history[0]
    assert error(found) < 1e-3 and error(found) < 0.1 * error(without)
    left = face(0, 0.0)
    np.testing.assert_allclose(found.predict(left).mean, found.predict(left + np.asarray([1.0, 0])).mean, atol=1e-3)


def test_differences_say_nothing_of_the_size_of_the_solution():
    """Zeros of `u(q) − u(q + L)` are no values of `u`."""
    assert signal_variance([WALLS, *PERIODIC]) == signal_variance([WALLS]) > 0.1
