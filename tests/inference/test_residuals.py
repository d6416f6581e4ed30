"""What residuals at fresh values tell about `u`, against conditioning on those values."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from oracles import at_points

import pdedkl as pk
from pdedkl.inference.residuals import error_inside

DOMAIN = pk.Domain(x=[(0.0, 1.0)] * 2)
X = DOMAIN.coordinates("x")
RNG = np.random.default_rng(0)
PLACES = RNG.uniform(size=(7, 2))


def observed(operator, n, noise=1e-2):
    points = RNG.uniform(size=(n, 2))
    return pk.Observation(operator, points, at_points(operator(solution), points), noise)


def solution(q):
    return jnp.sin(3 * q[0]) * jnp.exp(q[1])


def test_the_error_inside_is_what_conditioning_on_fresh_values_would_change():
    data = [observed(pk.identity, 8), observed(pk.Laplacian(X), 8)]
    fresh = [observed(pk.identity, 5, "exact"), observed(pk.Laplacian(X), 6, "exact")]
    model = pk.Model(pk.ard(DOMAIN, lengthscale=0.7), data)
    posterior = pk.condition(model, data)
    found = error_inside(posterior, fresh, PLACES)
    before, after = posterior.predict(PLACES), pk.condition(model, [*data, *fresh]).predict(PLACES)
    # A hundredth of a residual is taken to say nothing about other rows.
    np.testing.assert_allclose(found.mean, after.mean - before.mean, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(found.left, after.variance, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(found.claimed, before.variance, rtol=1e-12)


def test_calibrated_error_bars_are_used():
    data, fresh = [observed(pk.identity, 8)], [observed(pk.identity, 40, "exact")]
    posterior = pk.condition(pk.ard(DOMAIN, variance=1e-4), data).calibrated(fresh)
    found = error_inside(posterior, fresh[:1], PLACES)
    np.testing.assert_allclose(found.claimed, posterior.predict(PLACES).variance, rtol=1e-12)
    assert np.all(found.left < found.claimed)
