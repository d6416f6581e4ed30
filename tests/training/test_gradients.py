"""Gradient steps of a network against another package, and against plain linear algebra."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases import domain, operators, points

import pdedkl as pk
from pdedkl.training import gradients, natural


@pytest.fixture(scope="module")
def mean():
    return pk.NetworkMean(domain(3), pk.MLP(3, 1, width=4, depth=2, activation="tanh", key=jax.random.key(0)))


def slope_of(w):
    """A function with a known slope."""
    factors = np.random.default_rng(2).normal(size=(2, len(w)))
    return lambda w: jnp.asarray(factors[0] ** 2 * w + 0.1 * factors[1])


def test_without_turning_steps_are_those_of_adam(mean, monkeypatch):
    """The same steps by optax, and their mean is mostly of the last ones."""
    monkeypatch.setattr(gradients, "TURN", 10**6)
    state = gradients.start(mean)
    # The only turn, at the first step, is undone.
    straight = [m._replace(p=jnp.eye(len(m.p)), q=jnp.eye(len(m.q))) for m in state.moments]
    slope = slope_of(state.w)
    length = lambda k: 0.7 * gradients.LENGTH / jnp.sqrt(1 + k / gradients.UNTIL)
    optimiser = optax.adam(length, b1=gradients.SLOPES, b2=gradients.SQUARES, eps=0.0)
    expected, memory, path = state.w, optimiser.init(state.w), []
    move = jax.jit(lambda state: gradients.moved(mean, state, slope(state.w), 0.7))
    for _ in range(30):
        update, memory = optimiser.update(slope(expected), memory)
        expected = expected + update
        state = move(state)
        state = state._replace(moments=[m._replace(p=s.p, q=s.q) for m, s in zip(state.moments, straight)])
        path.append(np.asarray(expected))
    np.testing.assert_allclose(state.w, expected, rtol=1e-6, atol=1e-12)
    shares = np.asarray([np.prod([1 - 17 / (k + 16) for k in range(j + 1, 31)]) * 17 / (j + 16) for j in range(1, 31)])
    np.testing.assert_allclose(state.average, shares @ np.stack(path), rtol=1e-6, atol=1e-12)
    assert shares.sum() == pytest.approx(1.0) and shares[-6:].sum() > 0.7


def test_coordinates_are_eigenvectors_of_the_products_of_gradients():
    """After some turns `Pᵀ L P` and `Qᵀ R Q` are diagonal, and a step is Adam's for `Pᵀ G Q`."""
    rng = np.random.default_rng(4)
    draw = lambda: np.diag([3.0, 1.0, 0.3]) @ rng.normal(size=(3, 2)) @ np.asarray([[2.0, 1.0], [0.0, 0.5]])
    zero = jnp.zeros((3, 2))
    m = gradients.Moments(zero, zero, jnp.zeros((3, 3)), jnp.zeros((2, 2)), jnp.eye(3), jnp.eye(2))
    step = jax.jit(gradients.direction)
    for k in range(400):
        before, slope = m, draw()
        found, m = step(jnp.asarray(slope), m, jnp.asarray(k))
    left = np.asarray(m.p).T @ np.asarray(before.left) @ np.asarray(m.p)
    right = np.asarray(m.q).T @ np.asarray(before.right) @ np.asarray(m.q)
    for product in (left, right):
        assert np.abs(product - np.diag(np.diag(product))).max() < 0.05 * np.diag(product).max()
    p, q = np.asarray(before.p), np.asarray(before.q)
    np.testing.assert_allclose(p.T @ p, np.eye(3), atol=1e-12)
    first = 0.9 * np.asarray(before.mean) + 0.1 * slope
    second = 0.99 * np.asarray(before.squares) + 0.01 * (p.T @ slope @ q) ** 2
    np.testing.assert_allclose(found, p @ ((p.T @ first @ q) / np.sqrt(second)) @ q.T, rtol=0.02)
    np.testing.assert_allclose(m.left, 0.99 * np.asarray(before.left) + 0.01 * slope @ slope.T)


def test_steps_lower_the_residual_and_do_not_depend_on_how_many_are_taken_at_a_time(mean):
    q, heat = points(3, 60), operators(3)["heat"]
    u = lambda q: jnp.sin(q[0] + q[1]) * jnp.exp(-q[2])
    values = {a: np.asarray(jax.jit(jax.vmap(o(u)))(jnp.asarray(q))) for a, o in (("u", pk.identity), ("f", heat))}
    data = tuple(pk.Observation(o, q, values[a], "exact", a) for a, o in (("u", pk.identity), ("f", heat)))
    rows = natural.rows_of(data, {"u": 1.0, "f": 1.0}, [20, 20])
    seed, begin = jnp.asarray(5), gradients.start(mean)
    run = lambda state, seed=seed: gradients.steps(mean, rows, state, seed, jnp.asarray(1.0), 40)
    half, _ = run(begin)
    found, residual = run(half)
    assert found.w.dtype == begin.w.dtype == np.float64 and int(found.step) == 80
    first = natural.root_mean_square(natural.residuals(mean, begin.w, rows), 2)
    assert float(residual) < 0.5 * float(first)
    again, other = run(run(begin)[0])[0], run(half, jnp.asarray(6))[0]
    assert np.array_equal(found.average, again.average) and not np.array_equal(found.w, other.w)
