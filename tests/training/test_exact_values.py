"""Values that are no measurements: a constant source, values of functions."""

from __future__ import annotations

import numpy as np
import pytest

import pdedkl as pk
from pdedkl.scales import NOISE_OF_EXACT, data_scales

SQUARE = pk.Domain(x=[(-1, 1)] * 2)
X = SQUARE.coordinates("x")
INNER, OUTER = 0.4, 0.95


def exact(points):
    """`−Δu = 1` between two circles, zero on both."""
    r = np.linalg.norm(points, axis=1)
    slope = (OUTER**2 - INNER**2) / (4 * np.log(OUTER / INNER))
    return (OUTER**2 - r**2) / 4 + slope * np.log(r / OUTER)


@pytest.fixture(scope="module")
def annulus():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, size=60)
    radius = np.where(np.arange(60) < 20, INNER, OUTER)
    edge = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    q = rng.uniform(-1, 1, size=(400, 2))
    inside = q[(np.linalg.norm(q, axis=1) > INNER) & (np.linalg.norm(q, axis=1) < OUTER)]
    data = [
        pk.Observation(pk.identity, edge, np.zeros(60), name="u"),
        pk.Observation(-pk.Laplacian(X), inside[:90], np.ones(90), name="f"),
    ]
    return pk.fit(SQUARE, data, model="gp", profile=pk.SquaredExponential()), inside[90:]


def test_a_constant_source_does_not_drive_length_scales_away(annulus):
    posterior, inside = annulus
    truth = exact(inside)
    assert np.linalg.norm(posterior.predict(inside).mean - truth) < 0.02 * np.linalg.norm(truth)
    scales = [np.exp(c.log_lengthscale) for c in posterior.model.kernel.components]
    assert np.max(np.concatenate(scales)) < 30


def test_the_noise_of_exact_values_stays_a_tolerance(annulus):
    posterior, _ = annulus
    scales = data_scales(posterior.observations)
    for name, level in posterior.model.noise().items():
        assert level <= 1.01 * NOISE_OF_EXACT * scales[name]


def test_values_of_a_function_are_not_taken_for_noise():
    """A front that a smooth kernel cannot follow: with learned noise it would be smoothed over."""
    q = np.linspace(-1, 1, 25)[:, None]
    front = np.tanh(25 * q[:, 0])
    data = pk.Observation(pk.identity, q, front, pk.Learned(exact=True), "u")
    found = pk.fit(pk.Domain(x=(-1, 1)), data, model="gp", profile=pk.SquaredExponential())
    assert found.model.noise()["u"] <= 1.01 * NOISE_OF_EXACT * np.std(front)
    np.testing.assert_allclose(found.predict(q).mean, front, atol=1e-2)
