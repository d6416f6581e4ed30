"""Factors of error bars: against distributions that are known, and against the posterior of the right kernel."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.inference.calibration import (
    SMALLEST,
    TELLING,
    Calibration,
    Compared,
    calibration_of,
    factor_of,
    spread,
    votes,
)

RNG = np.random.default_rng(0)


def wave(q):
    return jnp.sin(2 * q[0] + q[1])


DOMAIN = pk.Domain(x=[(0, 1)] * 2)
X = DOMAIN.coordinates("x")
LAPLACIAN = pk.Laplacian(X)


def observed(operator, n, seed, noise=1e-4):
    q = np.random.default_rng(seed).uniform(size=(n, 2))
    return pk.Observation(operator, q, jax.vmap(operator(wave))(q), noise)


def posterior(variance=1.0, noise=1e-4):
    data = [observed(pk.identity, 12, 1, noise), observed(LAPLACIAN, 12, 2, noise)]
    return pk.condition(pk.ard(DOMAIN, variance=variance, lengthscale=1.5), data)


FRESH = [observed(pk.identity, 200, 3, "exact"), observed(LAPLACIAN, 200, 4, "exact")]


@pytest.mark.parametrize("size", (0.03, 1.0, 40.0))
@pytest.mark.parametrize("noise", (0.0, 0.5))
def test_the_factor_of_normal_errors_is_their_size(size, noise):
    variance = RNG.uniform(0.5, 2.0, 20000)
    total = size**2 * variance + noise**2 * size**2
    errors = RNG.normal(size=20000) * np.sqrt(total)
    found = factor_of(errors, variance, np.full(20000, noise**2 * size**2), np.ones(20000))
    assert found == pytest.approx(size, rel=0.05)


def test_spread_is_one_of_a_standard_normal_and_scales():
    z, weight = RNG.normal(size=50000), RNG.uniform(size=50000)
    assert spread(z, weight) == pytest.approx(1.0, rel=0.02)
    assert spread(7 * z, weight) == pytest.approx(7 * spread(z, weight), rel=1e-12)


def test_a_weight_of_two_is_a_value_given_twice():
    z, twice = RNG.normal(size=400), RNG.integers(1, 3, size=400)
    expected = spread(np.repeat(z, twice), np.ones(int(twice.sum())))
    assert spread(z, twice.astype(float)) == pytest.approx(expected, rel=1e-12)


def test_votes_say_more_of_the_inside_than_all_values_alike():
    """Errors drawn from a posterior itself: half of the fresh values are near the inside, half far away from it."""
    found = posterior()
    inside, near, far = (
        np.random.default_rng(seed).uniform(low, high, size=(40, 2))
        for seed, low, high in ((5, 0.6, 1.0), (6, 0.6, 1.0), (7, 0.0, 0.3))
    )
    places = np.concatenate([inside, near, far])
    covariance = found.covariance(places)
    std = np.sqrt(np.diagonal(covariance))
    weight = votes((covariance / np.outer(std, std))[:40, 40:])
    assert np.mean(weight) == pytest.approx(1.0)
    assert np.mean(weight[:40]) > 1.5
    z2 = (found.sample(jax.random.PRNGKey(1), places, count=2000) - found.predict(places).mean) ** 2 / std**2
    truth, plain = z2[:, :40].mean(axis=1), z2[:, 40:].mean(axis=1)
    voted = np.average(z2[:, 40:], axis=1, weights=weight)
    assert np.mean(voted) == pytest.approx(1.0, abs=0.1)
    assert np.mean((voted - truth) ** 2) < 0.5 * np.mean((plain - truth) ** 2)


def test_values_that_tell_nothing_of_the_inside_count_alike():
    np.testing.assert_allclose(votes(np.zeros((3, 5))), np.ones(5))


@pytest.mark.parametrize(
    "of_u, told, expected",
    [(0.1, 1.0, 0.1), (0.1, TELLING, 0.1), (0.1, 0.0, 0.8), (0.1, TELLING / 2, 0.57), (3.0, 0.0, 3.0)],
    ids=["all", "enough", "nothing", "little", "nothing, but wide"],
)
def test_values_that_tell_nothing_of_the_inside_do_not_narrow(of_u, told, expected):
    """Inside, `u` follows from the source then, whose factor is 0.8 here."""
    z, ones, none = RNG.normal(size=20000), np.ones(20000), np.zeros(20000)
    fresh = [Compared(0, of_u * z, ones, none, ones, told), Compared(2, 0.8 * z, ones, none, ones)]
    found = calibration_of(fresh, (), "fresh values")
    np.testing.assert_allclose(found.factors, [expected, 0.8], rtol=0.03)


def test_errors_that_are_all_zero_leave_a_small_positive_factor():
    assert factor_of(np.zeros(5), np.ones(5), np.zeros(5), np.ones(5)) == pytest.approx(SMALLEST)


def test_a_wrong_size_of_signal_and_noise_is_put_right():
    """Both by the same factor: means are the same, and calibrated error bars have to be."""
    q = RNG.uniform(size=(50, 2))
    right, *others = (posterior(c**2, 1e-4 * c).calibrated(FRESH) for c in (1.0, 100.0, 0.1))
    for other in others:
        for operator in (pk.identity, LAPLACIAN):
            a, b = right.predict(q, operator), other.predict(q, operator)
            np.testing.assert_allclose(b.mean, a.mean, rtol=1e-6)
            np.testing.assert_allclose(b.std, a.std, rtol=1e-4)


def test_fresh_values_end_with_z_scores_of_one_and_means_stay():
    plain = posterior(variance=1e4)
    found = plain.calibrated(FRESH)
    for item in FRESH:
        before, after = plain.predict(item.points, item.operator), found.predict(item.points, item.operator)
        np.testing.assert_array_equal(before.mean, after.mean)
        weight = found.compared(item, np.asarray(FRESH[1].points)).weight
        z = (np.asarray(item.values) - after.mean) / after.std
        assert spread(z, weight) == pytest.approx(1.0, rel=1e-6)
    assert found.calibration.source == "fresh values"
    assert found.calibrated(FRESH).calibration.factors == pytest.approx(found.calibration.factors)


def test_orders_in_between_take_the_mean_factor_but_no_less_than_the_one_below():
    for below, above, between in ((4.0, 9.0, 6.0), (9.0, 4.0, 9.0)):
        calibration = Calibration(jnp.asarray([below, above]), (0, 2), "fresh values")
        factors = [float(calibration.factor(operator)) for operator in (pk.identity, pk.D(X[0]), LAPLACIAN)]
        assert factors == pytest.approx([below, between, above])
    assert float(Calibration(jnp.asarray([9.0]), (2,), "fresh values").factor(pk.identity)) == 9.0
    assert float(calibration.factor(pk.D(X[0]) @ LAPLACIAN)) == pytest.approx(4.0)


def test_variance_covariance_and_samples_agree():
    found = dataclasses.replace(posterior(), calibration=Calibration(jnp.asarray([3.0, 0.5]), (0, 2), "fresh values"))
    q = RNG.uniform(size=(6, 2))
    for operator in (pk.identity, pk.D(X[1]), LAPLACIAN):
        covariance = found.covariance(q, operator)
        np.testing.assert_allclose(np.diagonal(covariance), found.predict(q, operator).variance, rtol=1e-6)
        draws = found.sample(jax.random.PRNGKey(0), q, operator, count=20000)
        np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * np.max(np.abs(covariance)))
    both = np.block(
        [[found.covariance(q, a, q, b) for b in (pk.identity, LAPLACIAN)] for a in (pk.identity, LAPLACIAN)]
    )
    assert np.min(np.linalg.eigvalsh(both)) > -1e-9 * np.max(both)
    kernel = jax.vmap(lambda p: found.kernel(p, p))(jnp.asarray(q))
    np.testing.assert_allclose(kernel, found.predict(q).variance, rtol=1e-6)


def test_left_out_values_equal_conditioning_without_them():
    found = posterior()
    values, source = found.observations
    for i in (0, 7):
        kept = np.arange(len(values)) != i
        others = pk.Observation(pk.identity, values.points[kept], values.values[kept], 1e-4)
        predicted = pk.condition(found.model, [others, source]).predict(np.asarray(values.points)[[i]])
        left_out = found.left_out()[0]
        assert left_out.errors[i] == pytest.approx(float(values.values[i]) - predicted.mean[0], rel=1e-5)
        assert left_out.variance[i] == pytest.approx(predicted.variance[0], rel=1e-4)


def test_left_out_values_widen_and_never_narrow():
    wide, narrow = posterior(variance=1e6).calibrated(), posterior(variance=1e-6).calibrated()
    assert wide.calibration.source == narrow.calibration.source == "left-out values"
    assert np.all(np.asarray(wide.calibration.factors) == 1.0)
    assert np.all(np.asarray(narrow.calibration.factors) > 10.0)


def test_fresh_values_with_noise_widen_and_never_narrow():
    noisy = [observed(pk.identity, 200, 3, 0.1), observed(LAPLACIAN, 200, 4, 0.1)]
    assert np.all(np.asarray(posterior(variance=1e6).calibrated(noisy).calibration.factors) == 1.0)
    assert np.all(np.asarray(posterior(variance=1e-8, noise=1e-8).calibrated(noisy).calibration.factors) >= 1.0)


def test_orders_without_fresh_values_take_left_out_ones():
    found = posterior(variance=1e-6).calibrated(FRESH[1:])
    assert found.calibration.orders == (0, 2)
    assert found.calibration.source == "fresh values and left-out values"


def test_a_variance_is_never_below_its_rounding():
    """Data all around, exact to the last bit: prior and explained variance agree in every digit."""
    q = np.linspace(0, 1, 40)[:, None]
    line = pk.Domain(x=[(0, 1)])
    found = pk.condition(pk.ard(line, variance=100.0, lengthscale=3.0), [pk.Observation(pk.identity, q, q[:, 0], 1e-9)])
    predicted = found.predict(RNG.uniform(size=(200, 1)))
    assert np.all(predicted.std >= 1e-7)
    assert np.all(predicted.std <= 1e-5)


def test_a_saved_calibration_comes_back(tmp_path):
    found = posterior().calibrated(FRESH)
    found.save(tmp_path / "model.pdedkl")
    again = pk.load(tmp_path / "model.pdedkl")
    q = RNG.uniform(size=(5, 2))
    for operator in (pk.identity, LAPLACIAN):
        np.testing.assert_array_equal(again.predict(q, operator).variance, found.predict(q, operator).variance)
    assert again.calibration.source == "fresh values"
