"""The random features that we are compared with: their derivatives, and that they solve an easy problem."""

import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


@pytest.fixture
def elm(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    import elm

    yield elm
    for name in ("elm", "task"):
        sys.modules.pop(name, None)


def poisson(elm):
    """`Δu = f` for `u = sin(x + 2y)` in a rectangle."""
    rng = np.random.default_rng(0)
    lower, upper = np.zeros(2), np.array([1.0, 2.0])
    exact = lambda q: np.sin(q @ np.array([1.0, 2.0]))

    def rows(n):
        inside, faces = rng.uniform(lower, upper, (n, 2)), rng.uniform(lower, upper, (n, 2))
        axis = rng.integers(2, size=n)
        faces[np.arange(n), axis] = np.where(rng.random(n) < 0.5, lower[axis], upper[axis])
        return elm.Rows(faces, exact(faces), inside, -5 * exact(inside))

    test = rng.uniform(lower, upper, (100, 2))
    return elm.Task(0.0, np.zeros(2), np.ones(2), lower, upper, rows(80), rows(500), rows(50), test, exact(test))


@pytest.mark.parametrize("kind", ["tanh", "sine"])
def test_features_are_differentiated_like_jax_does(elm, kind):
    task = replace(poisson(elm), c=0.7, b=np.array([0.3, -1.0]), a=np.array([2.0, -0.5]))
    features = elm.Features(task, elm.Setting(kind, features=8), seed=0)
    function = {"tanh": jnp.tanh, "sine": jnp.sin}[kind]
    field = lambda q: function(q @ features.k + features.s)

    def operated(q):
        second = jax.hessian(field)(q)
        return task.c * field(q) + jax.jacobian(field)(q) @ task.b + jnp.einsum("jii,i->j", second, task.a)

    wanted = jax.jit(jax.vmap(operated))(task.test_points[:5])
    np.testing.assert_allclose(features.operated(task.test_points[:5]), wanted, atol=1e-12)


def test_features_solve_a_poisson_equation(elm, tmp_path):
    poisson(elm).save(tmp_path / "task.npz")
    task = elm.Task.load(tmp_path / "task.npz")
    setting, tried = elm.tune(task, "given", seed=0)
    assert len(tried) > 12
    trail = elm.race(task, "given", setting, seconds=0.3, seed=0)
    assert trail.pairs[-1][1] < 1e-6
