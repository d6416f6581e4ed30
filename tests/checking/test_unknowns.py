"""What learned coefficients add to the error of `u`, against a joint model of `u` and the coefficients."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import pdedkl as pk
from pdedkl.inference.estimates import LINEAR, with_estimates

LINE = pk.Domain(x=(0.0, 1.0))
X = LINE.coordinates("x")
K = pk.Parameter("k", 2.0)
OPERATOR = K * pk.identity - pk.D(X, X)
RNG = np.random.default_rng(0)
INSIDE, SENSORS, PLACES = (
    np.linspace(0.05, 0.95, 9)[:, None],
    np.linspace(0.1, 0.9, 7)[:, None],
    RNG.uniform(size=(5, 1)),
)


def u(q):
    return jnp.sin(3 * q[0]) + 1.0


def data(noise=0.1):
    f = oracles.at_points((2.0 * pk.identity - pk.D(X, X))(u), INSIDE)
    values = np.asarray(jax.vmap(u)(SENSORS)) + noise * RNG.normal(size=len(SENSORS))
    return [
        pk.Observation(OPERATOR, INSIDE, np.asarray(f), noise=1e-3),
        pk.Observation(pk.identity, SENSORS, values, noise=noise),
    ]


@pytest.fixture(scope="module")
def posteriors():
    """With the coefficient held, and with its uncertainty in the error bars."""
    observations = data()
    plain = pk.condition(pk.Model(pk.ard(LINE, lengthscale=0.7), observations), observations)
    return plain, with_estimates(plain)


# ∂(k u − u'')/∂k is u itself.
ROWS = {"u": pk.identity, "a known operator": pk.D(X, X), "an operator with the coefficient": OPERATOR}


@pytest.fixture(scope="module")
def joint(posteriors):
    """Covariances of `u` and of rows at the places, with the coefficient held and as a further unknown `δ`.

    The rows `y = A u + J δ + ε` are written as one Gaussian vector. The prior of `k` is Cauchy's, of width 20.
    """
    plain, _ = posteriors
    kernel = pk.ard(LINE, lengthscale=0.7)
    bound = 2.0 * pk.identity - pk.D(X, X)
    rows = [(bound, INSIDE), (pk.identity, SENSORS), (pk.identity, PLACES), (pk.D(X, X), PLACES), (bound, PLACES)]

    def covariance(left, right):
        of_right = lambda q, p: right[0](lambda s: kernel(q, s))(p)
        both = lambda q, p: left[0](lambda s: of_right(s, p))(q)
        every = oracles.quick_jit(jax.vmap(lambda q: jax.vmap(lambda p: both(q, p))(right[1])))
        return np.asarray(every(left[1]))

    whole = np.block([[covariance(a, b) for b in rows] for a in rows])
    n, m = len(INSIDE) + len(SENSORS), len(PLACES)
    at = lambda points: plain.predict(points).mean
    slopes = np.concatenate([at(INSIDE), np.zeros(len(SENSORS) + 2 * m), at(PLACES)])
    noise = np.diag(np.repeat([1e-6, 1e-2], [len(INSIDE), len(SENSORS)]))
    found = []
    for prior in (whole, whole + 20.0**2 * np.outer(slopes, slopes)):
        found.append(prior[n:, n:] - prior[n:, :n] @ np.linalg.solve(prior[:n, :n] + noise, prior[:n, n:]))
    return found


@pytest.mark.parametrize("name", ROWS)
def test_the_variance_is_that_of_a_joint_model_of_u_and_the_coefficient(posteriors, joint, name):
    plain, wide = posteriors
    at = list(ROWS).index(name) * len(PLACES) + np.arange(len(PLACES))
    held, both = (np.diagonal(covariance)[at] for covariance in joint)
    found = wide.predict(PLACES, ROWS[name]).variance - plain.predict(PLACES, ROWS[name]).variance
    np.testing.assert_allclose(found, both - held, rtol=1e-3, atol=1e-3 * np.max(held))
    assert np.max(found) > 0.1 * np.max(held) or name == "an operator with the coefficient"
    np.testing.assert_array_equal(wide.predict(PLACES).mean, plain.predict(PLACES).mean)


def test_covariances_samples_and_the_kernel_contain_it_too(posteriors, joint):
    _, wide = posteriors
    _, both = joint
    m = len(PLACES)
    np.testing.assert_allclose(wide.covariance(PLACES), both[:m, :m], rtol=1e-3, atol=1e-8)
    mixed = wide.covariance(PLACES, OPERATOR, PLACES, pk.D(X, X))
    np.testing.assert_allclose(mixed, both[2 * m :, m : 2 * m], rtol=1e-3, atol=1e-3 * np.max(np.abs(mixed)))
    at = lambda i, j: float(wide.kernel(jnp.asarray(PLACES[i]), jnp.asarray(PLACES[j])))
    np.testing.assert_allclose([at(0, 0), at(0, 3)], [both[0, 0], both[0, 3]], rtol=1e-3)
    draws = wide.sample(jax.random.key(0), PLACES, count=4000)
    np.testing.assert_allclose(np.std(draws, axis=0), np.sqrt(np.diagonal(both)[:m]), rtol=0.05)


def test_calibrated_error_bars_contain_it_unchanged(posteriors):
    """Factors multiply the error of `u` for a known coefficient; what the coefficient adds stays."""
    plain, wide = posteriors
    fresh = pk.Observation(pk.identity, np.linspace(0.05, 0.95, 30)[:, None], np.ones(30), noise="exact")
    found = wide.calibrated([fresh])
    held = replace(found, estimates=None)
    assert np.max(np.asarray(found.calibration.factors)) > 2
    added = wide.predict(PLACES).variance - plain.predict(PLACES).variance
    np.testing.assert_allclose(found.predict(PLACES).variance, held.predict(PLACES).variance + added)
    at = lambda one: float(one.kernel(jnp.asarray(PLACES[0]), jnp.asarray(PLACES[0])))
    np.testing.assert_allclose(at(found), found.predict(PLACES).variance[0], rtol=1e-6)


def test_the_table_of_a_posterior_that_was_only_conditioned(posteriors):
    plain, wide = posteriors
    found = plain.parameters
    assert list(found) == ["k"] and LINEAR in found.method and found["k"].identified
    slopes = np.concatenate([plain.predict(INSIDE).mean, np.zeros(len(SENSORS))])
    information = slopes @ np.asarray(plain.solver.solve(plain.gram, jnp.asarray(slopes)))
    np.testing.assert_allclose(found["k"].std, (information + 1 / 400) ** -0.5, rtol=1e-6)
    np.testing.assert_allclose(wide.parameters["k"].interval(), 2.0 + 1.959964 * found["k"].std * np.asarray([-1, 1]))
    with pytest.raises(KeyError, match="there is k"):
        found["nu"]


def test_without_unknown_coefficients_there_is_nothing_to_add():
    known = [pk.Observation(pk.identity, SENSORS, np.ones(len(SENSORS)), 0.1)]
    posterior = pk.condition(pk.Model(pk.ard(LINE), known), known)
    assert with_estimates(posterior) is posterior and len(posterior.parameters) == 0


def test_error_bars_contain_an_uncertain_coefficient():
    """The source is exact, so `u` is certain but for the coefficient, which noisy sensors leave open."""
    k = pk.Parameter("k", 1.0, positive=True)
    field = lambda q: jnp.sin(jnp.pi * q[0])
    places = np.linspace(0.05, 0.95, 40)[:, None]
    noise = 0.05 * np.random.default_rng(1).normal(size=len(places))
    sensors = pk.Sensors(places, np.asarray(jax.vmap(field)(places)) + noise)
    walls = pk.Dirichlet(LINE.boundary(X), 0.0)
    source = lambda q: (np.pi**2 + 5.0) * field(q)
    problem = pk.Problem(LINE, k * pk.identity - pk.D(X, X), source, [walls, sensors])
    posterior = pk.fit(problem, problem.sample(boundary=2, source=20, seed=0), model="gp")
    verdict = posterior.verdict
    inside = np.linspace(0, 1, 50)[:, None]
    error = posterior.predict(inside).mean - np.asarray(jax.vmap(field)(inside))
    assert verdict.error_u > 0.2 * np.sqrt(2 * np.mean(error**2))
    held = replace(posterior, estimates=None)
    assert np.mean(np.abs(error) < 2 * posterior.predict(inside).std) > 0.9
    assert np.mean(np.abs(error) < 2 * held.predict(inside).std) < 0.5
    low, high = posterior.parameters["k"].interval()
    assert low < 5.0 < high and posterior.parameters["k"].identified
    judged = held.check(problem, n=50)
    assert judged.status == "not calibrated" and any("leave k uncertain" in reason for reason in judged.reasons)
