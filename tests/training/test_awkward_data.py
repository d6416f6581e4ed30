"""Data that leave no size, no spread or no geometry to start from: training ends, and predictions are finite."""

from __future__ import annotations

import numpy as np
import pytest
import ridge

import pdedkl as pk

ONES, ZEROS = np.ones(ridge.POINTS), np.zeros(ridge.POINTS)
ONE_PLACE = np.full((ridge.POINTS, ridge.DIM), 0.3)


def trained(data, **options):
    posterior = pk.fit(ridge.DOMAIN, data, **options)
    predicted = posterior.predict(ridge.ELSEWHERE)
    assert np.isfinite(posterior.training.objective) and np.isfinite(posterior.training.left_out)
    assert np.all(np.isfinite(ridge.parameters(posterior)))
    assert np.all(np.isfinite(predicted.mean)) and np.all(np.isfinite(predicted.std))
    return posterior, predicted


def harmonic(points):
    return points[:, 0] * points[:, 1] - points[:, 2]


def test_constant_values_are_continued():
    _, predicted = trained(ridge.observations(u=3 * ONES, f=ZEROS))
    np.testing.assert_allclose(predicted.mean, 3.0, rtol=1e-4)


def test_a_source_that_is_zero_everywhere():
    _, predicted = trained(ridge.observations(u=harmonic(ridge.ON_BOUNDARY), f=ZEROS))
    np.testing.assert_allclose(predicted.mean, harmonic(ridge.ELSEWHERE), atol=1e-3)


def test_nothing_but_zeros():
    _, predicted = trained(ridge.observations(u=ZEROS, f=ZEROS))
    np.testing.assert_allclose(predicted.mean, 0.0, atol=1e-10)


def test_one_place_only_and_one_value():
    posterior, predicted = trained(ridge.observations(u=ONES, f=ONES, on_boundary=ONE_PLACE, inside=ONE_PLACE))
    np.testing.assert_allclose(posterior.predict(ONE_PLACE[:1]).mean, 1.0, rtol=1e-3)
    assert np.max(predicted.std) > 1e-2


def test_one_place_only_with_values_that_disagree():
    rng = np.random.default_rng(0)
    u, f = 1 + 0.1 * rng.normal(size=ridge.POINTS), rng.normal(size=ridge.POINTS)
    data = ridge.observations(u=u, f=f, on_boundary=ONE_PLACE, inside=ONE_PLACE)
    posterior, _ = trained(data, model="linear")
    np.testing.assert_allclose(posterior.predict(ONE_PLACE[:1]).mean, np.mean(u), rtol=1e-2)
    assert posterior.model.noise()["u"] == pytest.approx(np.std(u), rel=0.1)


def test_a_single_point():
    posterior, predicted = trained([pk.Observation(pk.identity, ridge.INSIDE[:1], [2.0])], model="gp")
    here = posterior.predict(ridge.INSIDE[:1])
    np.testing.assert_allclose(here.mean, 2.0, rtol=0.1)
    assert here.std[0] < np.median(predicted.std)


@pytest.fixture(scope="module")
def plain():
    return trained(ridge.observations())[0]


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_the_data_does_not_matter(scale, plain):
    u, f = scale * ridge.solution(ridge.ON_BOUNDARY), scale * ridge.DIM * ridge.solution(ridge.INSIDE)
    scaled, _ = trained(ridge.observations(u=u, f=f))
    assert ridge.error(scaled, scale) < max(10 * ridge.error(plain), 1e-7)
    assert scaled.training.kernel == plain.training.kernel


def test_one_value_that_is_wrong():
    """Every kernel of the recipe is tried: none explains an outlier."""
    points = ridge.inside(3, 20)
    values = ridge.solution(points)
    values[7] += 5.0
    posterior, predicted = trained(pk.Observation(pk.identity, points, values))
    tried = dict(posterior.training.candidates)
    assert {"projection", "ridges", "additive", "inputs"} <= set(tried)
    assert posterior.training.objective == min(tried.values())
    assert np.max(np.abs(predicted.mean)) < 10 and posterior.training.left_out > 0.1
