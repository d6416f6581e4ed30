"""Networks as means: jets against automatic differentiation, and steps against plain linear algebra."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import domain, operators, points

import pdedkl as pk
from pdedkl.means import observed_mean
from pdedkl.operators import vanishing
from pdedkl.training import natural


def network_mean(d, multiplier=None, seed=0):
    network = pk.MLP(d, 1, width=6, depth=2, activation="tanh", key=jax.random.key(seed))
    return pk.NetworkMean(domain(d), network, size=1.7, multiplier=multiplier)


@pytest.mark.parametrize("on_walls", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_operators_of_a_network_are_those_of_automatic_differentiation(d, on_walls):
    box = domain(d)
    multiplier = vanishing(box, box.boundary(box.coordinates("x")).pieces) if on_walls else None
    mean, q = network_mean(d, multiplier), jnp.asarray(points(d, 5))
    checked = [operators(d)[name] for name in ("identity", "first", "divergence", "wave", "variable")]
    checked.append(pk.identity - pk.Shift(box.coordinates("x")[0], 0.3))
    both = jax.jit(lambda q: [(observed_mean(mean, a, q), jax.vmap(a(mean))(q)) for a in checked])(q)
    for operator, (found, expected) in zip(checked, both, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=str(operator))


def rows(count=6):
    rng = np.random.default_rng(0)
    heat = operators(3)["heat"]
    data = (
        pk.Observation(pk.identity, points(3, 30), rng.normal(size=30), "exact", "u"),
        pk.Observation(heat, points(3, 40, seed=1), rng.normal(size=40), "exact", "f"),
    )
    return natural.rows_of(data, {"u": 2.0, "f": 5.0}, [count, 2 * count])


def test_the_jacobian_is_the_derivative_of_the_residuals():
    mean = network_mean(3)
    w, drawn = natural.weights_of(mean), rows()
    values, slopes = jax.jit(lambda w: natural.jacobian(mean, w, drawn))(w)
    residuals = jax.jit(lambda w: natural.residuals(mean, w, drawn))
    np.testing.assert_allclose(values, residuals(w), rtol=1e-12)
    np.testing.assert_allclose(slopes, jax.jacobian(residuals)(w), atol=1e-12)
    u = drawn[0]
    plain = (jax.vmap(natural.with_weights(mean, w))(u.points) - u.values) / (2.0 * np.sqrt(6))
    np.testing.assert_allclose(values[: len(plain)], plain, rtol=1e-12)


def test_a_step_is_the_best_of_damped_least_squares_steps():
    """The step in the space of rows is that of the normal equations in the space of weights."""
    mean, seed = network_mean(3), jnp.asarray(3)
    state = natural.start(mean)
    rng = np.random.default_rng(1)
    state = state._replace(momentum=jnp.asarray(1e-2 * rng.normal(size=len(state.w))))
    found = jax.jit(lambda state: natural.one_step(mean, rows(), state, seed))(state)
    first, second = jax.random.split(jax.random.fold_in(jax.random.key(seed), 0))
    batch, other = natural.drawn(rows(), first), natural.drawn(rows(), second, natural.OTHERS)
    r, J = map(np.asarray, jax.jit(lambda w: natural.jacobian(mean, w, batch))(state.w))
    assert len(r) == 18 and sum(len(part.values) for part in other) == 18 * natural.OTHERS
    remaining = jax.jit(lambda w: jnp.sqrt(jnp.sum(natural.residuals(mean, w, other) ** 2) / 2))
    left = {}
    for damping in (natural.FIRST_DAMPING, natural.FIRST_DAMPING / natural.FACTOR):
        added = damping * np.trace(J @ J.T) / len(r)
        for mu in (0.0, natural.MOMENTUM):
            carried = mu * np.asarray(state.momentum)
            # min |J φ − r|² + added |φ − μ φ₀|²
            normal = J.T @ J + added * np.eye(J.shape[1])
            move = carried + np.linalg.solve(normal, J.T @ (r - J @ carried))
            for length in natural.LENGTHS:
                w = np.asarray(state.w) - length * move
                left[float(remaining(w))] = (w, damping)
    best = min(left)
    np.testing.assert_allclose(found.residual, best, rtol=1e-6)
    np.testing.assert_allclose(found.w, left[best][0], rtol=1e-5, atol=1e-7)
    assert float(found.damping) == pytest.approx(left[best][1]) and int(found.step) == 1


def test_a_step_that_lowers_nothing_is_not_taken():
    """With the data at the network's own values nothing is left to lower."""
    mean = network_mean(3)
    state = natural.start(mean)
    exact = tuple(
        natural.Rows(r.operator, r.points, observed_mean(mean, r.operator, r.points), r.weight, r.count) for r in rows()
    )
    state = state._replace(w=state.w, momentum=jnp.ones_like(state.w))
    found = natural.steps(mean, exact, state, 0, 1)
    np.testing.assert_allclose(found.w, state.w, atol=1e-6)
    assert float(found.residual) < 1e-8


def test_steps_do_not_depend_on_how_many_are_taken_at_a_time():
    mean = network_mean(3)
    whole = natural.steps(mean, rows(), natural.start(mean), 5, 4)
    parts = natural.steps(mean, rows(), natural.steps(mean, rows(), natural.start(mean), 5, 2), 5, 2)
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))
    other = natural.steps(mean, rows(), natural.start(mean), 6, 4)
    assert not np.array_equal(whole.w, other.w)


def test_a_mean_needs_a_network_of_one_output():
    with pytest.raises(ValueError, match="one output"):
        pk.NetworkMean(domain(3), pk.MLP(3, 2, width=3, depth=1, key=jax.random.key(0)))


def test_a_mean_needs_a_network_of_these_inputs():
    with pytest.raises(ValueError, match="takes 2 inputs"):
        pk.NetworkMean(domain(3), pk.MLP(2, 1, width=3, depth=1, key=jax.random.key(0)))
