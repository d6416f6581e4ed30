"""What learned coefficients add to the error of `u`, against a joint model of `u` and the coefficients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import pdedkl as pk
from pdedkl.checking.unknowns import variance_by_coefficients

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


def test_the_variance_is_that_of_a_joint_model_of_u_and_the_coefficient():
    """The rows with the coefficient as a further unknown, `y = A u + J δ + ε`, written as one Gaussian vector."""
    observations = data()
    posterior = pk.condition(pk.Model(pk.ard(LINE, lengthscale=0.7), observations), observations)
    found = variance_by_coefficients(posterior, PLACES)
    kernel = pk.ard(LINE, lengthscale=0.7)
    rows = [(2.0 * pk.identity - pk.D(X, X), INSIDE), (pk.identity, SENSORS), (pk.identity, PLACES)]

    def covariance(left, right):
        of_right = lambda q, p: right[0](lambda s: kernel(q, s))(p)
        both = lambda q, p: left[0](lambda s: of_right(s, p))(q)
        every = oracles.quick_jit(jax.vmap(lambda q: jax.vmap(lambda p: both(q, p))(right[1])))
        return np.asarray(every(left[1]))

    whole = np.block([[covariance(a, b) for b in rows] for a in rows])
    n = len(INSIDE) + len(SENSORS)
    # ∂(k u − u'')/∂k is u itself, here the posterior mean.
    slopes = np.concatenate([posterior.predict(INSIDE).mean, np.zeros(len(SENSORS))])
    gram = whole[:n, :n] + np.diag(np.repeat([1e-6, 1e-2], [len(INSIDE), len(SENSORS)]))
    with_k = gram + (10.0 * 2.0) ** 2 * np.outer(slopes, slopes)
    left = [np.diagonal(whole[n:, n:] - whole[n:, :n] @ np.linalg.solve(k, whole[:n, n:])) for k in (gram, with_k)]
    np.testing.assert_allclose(found, left[1] - left[0], rtol=1e-4)
    assert np.all(found > 0)


def test_without_unknown_coefficients_there_is_nothing_to_add():
    known = [pk.Observation(pk.identity, SENSORS, np.ones(len(SENSORS)), 0.1)]
    posterior = pk.condition(pk.Model(pk.ard(LINE), known), known)
    assert np.all(variance_by_coefficients(posterior, PLACES) == 0)


def test_error_bars_that_hide_an_uncertain_coefficient_are_not_called_calibrated():
    """The source is exact, so `u` is certain but for the coefficient, which noisy sensors leave open."""
    k = pk.Parameter("k", 1.0, positive=True)
    field = lambda q: jnp.sin(jnp.pi * q[0])
    places = np.linspace(0.05, 0.95, 40)[:, None]
    noise = 0.05 * np.random.default_rng(1).normal(size=len(places))
    sensors = pk.Sensors(places, np.asarray(jax.vmap(field)(places)) + noise)
    walls = pk.Dirichlet(LINE.boundary(X), 0.0)
    source = lambda q: (np.pi**2 + 5.0) * field(q)
    problem = pk.Problem(LINE, k * pk.identity - pk.D(X, X), source, [walls, sensors])
    with pytest.warns(pk.FitWarning, match="uncertain"):
        posterior = pk.fit(problem, problem.sample(2, 20, seed=0), model="gp")
    verdict = posterior.verdict
    assert verdict.status == "not calibrated" and any("leave k uncertain" in reason for reason in verdict.reasons)
    inside = np.linspace(0, 1, 50)[:, None]
    error = posterior.predict(inside).mean - np.asarray(jax.vmap(field)(inside))
    assert verdict.error_u > 0.2 * np.sqrt(2 * np.mean(error**2))
