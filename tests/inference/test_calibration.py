"""Factors of error bars: against distributions that are known, and against the posterior of the right kernel."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import at_points

import pdedkl as pk
from pdedkl.inference.calibration import SMALLEST, Compared, factor_of, factors_of, spread, votes
from pdedkl.inference.comparing import CLUSTER, PROBES, chance, clusters

RNG = np.random.default_rng(0)


def wave(q):
    return jnp.sin(2 * q[0] + q[1])


DOMAIN = pk.Domain(x=[(0, 1)] * 2)
X = DOMAIN.coordinates("x")
LAPLACIAN = pk.Laplacian(X)


def observed(operator, n, seed, noise=1e-4):
    q = np.random.default_rng(seed).uniform(size=(n, 2))
    return pk.Observation(operator, q, at_points(operator(wave), q), noise)


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
    found = factor_of(Compared(errors, variance[None], np.full(20000, noise**2 * size**2), np.ones(20000)))
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


def errors_of_two_causes(sizes, shares, count=40000):
    """Errors of two kinds of rows. Both causes have a part in each: the first has `shares[k]` of kind `k`."""
    rng = np.random.default_rng(8)
    found = []
    for share in shares:
        parts = np.outer([share, 1 - share], rng.uniform(0.5, 2.0, count))
        found.append(
            Compared(
                rng.normal(size=count) * np.sqrt(np.square(sizes) @ parts), parts, *np.zeros((1, count)), np.ones(count)
            )
        )
    return found


@pytest.mark.parametrize("sizes", [(0.1, 3.0), (1.0, 1.0), (20.0, 0.5)])
def test_each_cause_gets_its_own_factor(sizes):
    found = factors_of(errors_of_two_causes(sizes, (1.0, 0.2 if sizes[0] <= sizes[1] else 0.0)), (0.0, 0.0))
    np.testing.assert_allclose(found, sizes, rtol=0.1)


def test_a_cause_that_its_own_values_hardly_show_is_not_blown_up():
    """One per cent of the variance of its rows: a factor of 20 would explain errors that are twice too large there."""
    rows = errors_of_two_causes((1.0, 1.0), (0.01, 0.0))
    rows[0] = rows[0]._replace(errors=2 * rows[0].errors)
    found = factors_of(rows, (0.0, 0.0))
    assert np.all(found < 10) and found[1] > 1.5


def test_a_cause_that_others_cover_keeps_a_factor_that_changes_nothing():
    rows = errors_of_two_causes((1.0, 1.0), (0.01, 0.0))
    rows[0] = rows[0]._replace(errors=0.5 * rows[0].errors)
    found = factors_of(rows, (0.0, 0.0))
    assert found[1] == pytest.approx(1.0, rel=0.05)
    assert 0.1 < found[0] < 10


def test_factors_stay_above_the_least_that_is_allowed():
    rows = errors_of_two_causes((0.1, 0.2), (1.0, 0.0))
    np.testing.assert_allclose(factors_of(rows, (1.0, 0.0)), [1.0, 0.2], rtol=0.05)


def test_errors_that_are_all_zero_leave_a_small_positive_factor():
    assert factor_of(Compared(np.zeros(5), np.ones((1, 5)), np.zeros(5), np.ones(5))) == pytest.approx(SMALLEST)


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
    edge = RNG.uniform(size=(200, 2))
    edge[np.arange(200), np.arange(200) % 2] = np.arange(200) % 4 // 2
    fresh = [pk.Observation(pk.identity, edge, jax.vmap(wave)(edge), "exact"), FRESH[1]]
    plain = posterior(variance=1e4)
    found = plain.calibrated(fresh)
    inside, spreads = np.asarray(FRESH[1].points), []
    for item, within in zip(fresh, (inside, None)):
        before, after = plain.predict(item.points, item.operator), found.predict(item.points, item.operator)
        np.testing.assert_array_equal(before.mean, after.mean)
        z = (np.asarray(item.values) - after.mean) / after.std
        spreads.append(spread(z, found.compared(item, within).weight))
    assert all(0.5 < found < 2 for found in spreads)
    assert found.calibration.source == "fresh values"
    assert found.calibration.causes == ("u inside", "u", "Δ_x u")
    assert found.calibrated(fresh).calibration.factors == pytest.approx(found.calibration.factors)


def with_factors(*factors):
    """A calibrated posterior with other factors, so that causes matter: one for u inside and on the probes of u."""
    found, factors = posterior().calibrated(FRESH), (factors[0], *factors)
    return dataclasses.replace(
        found, calibration=dataclasses.replace(found.calibration, factors=jnp.asarray(factors, dtype=float))
    )


def test_parts_are_what_conditioning_on_the_probes_removes():
    """With the factors (2, 0.5): 4 times what values of u on the probes would remove, a quarter of what they leave."""
    found = with_factors(2.0, 0.5)
    probes = found.calibration.probes
    assert probes.counts == (PROBES, PROBES, PROBES)
    known = []
    for points in probes.points[:2]:
        jitter = 1e-6 * np.asarray(found.uncalibrated().predict(points).variance)
        known.append(pk.Observation(pk.identity, points, np.zeros(PROBES), np.sqrt(jitter)))
    told = pk.condition(found.model, [*found.observations, *known])
    q = RNG.uniform(size=(7, 2))
    for operator in (pk.identity, pk.D(X[0]), LAPLACIAN):
        before, after = found.uncalibrated().covariance(q, operator), told.covariance(q, operator)
        scale = np.max(before)
        np.testing.assert_allclose(found.covariance(q, operator), 4 * (before - after) + after / 4, atol=1e-3 * scale)


def test_covariances_are_linear_in_the_operators_and_continuous():
    found = with_factors(3.0, 0.2)
    q, p = RNG.uniform(size=(2, 5, 2))
    operators = (pk.identity, pk.D(X[0]), LAPLACIAN)
    scale = np.sqrt(found.predict(q, LAPLACIAN).variance.max() * found.predict(p).variance.max())
    total = found.covariance(q, pk.identity + 2.0 * pk.D(X[0]) - LAPLACIAN, p, pk.identity)
    parts = sum(c * found.covariance(q, a, p, pk.identity) for c, a in zip((1.0, 2.0, -1.0), operators))
    np.testing.assert_allclose(total, parts, atol=1e-10 * scale)
    np.testing.assert_allclose(found.predict(q, pk.identity + 1e-12 * LAPLACIAN).std, found.predict(q).std, rtol=1e-6)


def test_a_calibrated_posterior_is_a_gaussian_process():
    """Covariances of operators are operators of the covariance, all operators together are positive definite."""
    found = with_factors(3.0, 0.2)
    q = RNG.uniform(size=(4, 2))
    operators = (pk.identity, pk.D(X[1]), LAPLACIAN)
    joint = np.block([[found.covariance(q, a, q, b) for b in operators] for a in operators])
    size = np.sqrt(np.diagonal(joint))
    assert np.min(np.linalg.eigvalsh(joint / np.outer(size, size))) > -1e-8
    pair = lambda a, b: LAPLACIAN(lambda s: pk.D(X[1])(lambda s_: found.kernel(s, s_))(b))(a)
    by_hand = at_points(lambda a: jax.vmap(lambda b: pair(a, b))(q), q)
    expected = found.covariance(q, LAPLACIAN, q, pk.D(X[1]))
    np.testing.assert_allclose(by_hand, expected, atol=1e-6 * np.max(np.abs(expected)))


def test_variance_covariance_and_samples_agree():
    found = with_factors(3.0, 0.5)
    q = RNG.uniform(size=(6, 2))
    for operator in (pk.identity, pk.D(X[1]), LAPLACIAN):
        covariance = found.covariance(q, operator)
        np.testing.assert_allclose(np.diagonal(covariance), found.predict(q, operator).variance, rtol=1e-5)
        draws = found.sample(jax.random.PRNGKey(0), q, operator, count=20000)
        np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * np.max(np.abs(covariance)))
    kernel = at_points(lambda p: found.kernel(p, p), q)
    np.testing.assert_allclose(kernel, found.predict(q).variance, rtol=1e-5)


def test_a_known_boundary_does_not_narrow_the_inside():
    """Values of u at the two ends are known to the last digit; what is not known inside comes from the source."""
    line = pk.Domain(x=[(0, 1)])
    x = line.coordinates("x")
    ends, inside = np.asarray([[0.0], [1.0]]), np.linspace(0.1, 0.9, 5)[:, None]
    bump = lambda q: jnp.sin(9 * q[0]) * q[0] * (1 - q[0])
    second = pk.D(x, x)
    observe = lambda a, q, noise: pk.Observation(a, q, jax.vmap(a(bump))(q), noise)
    data = [observe(pk.identity, ends, 1e-6), observe(second, inside, 1e-6)]
    found = pk.condition(pk.ard(line, variance=1.0, lengthscale=0.5), data)
    q = np.linspace(0.02, 0.98, 200)[:, None]
    fresh = [observe(pk.identity, ends, "exact"), observe(second, q, "exact")]
    calibrated = found.calibrated(fresh)
    of_inside, of_ends, of_source = np.asarray(calibrated.calibration.factors)
    assert of_ends < 0.1 * min(of_inside, of_source)
    z = (calibrated.predict(q).mean - np.asarray(jax.vmap(bump)(q))) / calibrated.predict(q).std
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.5


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


def test_left_out_clusters_equal_conditioning_without_them():
    """The mean of a cluster, against a posterior that has never seen the cluster."""
    found = posterior()
    values, source = found.observations
    left = found.left_out_clusters()[0]
    parts = clusters(np.asarray(values.points) * np.asarray(found.model.kernel.components[0].normalisation.scale))
    assert len(left.errors) == len(parts) > 1
    for k, part in enumerate(parts):
        kept = np.setdiff1d(np.arange(len(values)), part)
        others = pk.Observation(pk.identity, values.points[kept], values.values[kept], 1e-4)
        without, places = pk.condition(found.model, [others, source]), np.asarray(values.points)[part]
        error = np.mean(np.asarray(values.values)[part] - without.predict(places).mean)
        assert left.errors[k] == pytest.approx(error, rel=1e-4)
        assert left.variance[k] == pytest.approx(np.mean(without.covariance(places)), rel=1e-3)
        assert left.noise[k] == pytest.approx(1e-8 / len(part), rel=1e-6)


def test_clusters_are_neighbours_and_hold_every_point_once():
    points = RNG.uniform(size=(87, 2))
    parts = clusters(points)
    assert sorted(np.concatenate(parts)) == list(range(87))
    assert max(map(len, parts)) <= CLUSTER
    assert np.mean([np.ptp(points[part], axis=0).max() for part in parts]) < 0.5
    assert [len(part) for part in clusters(points[:1])] == [1]
    assert len(clusters(points[:4])) == 2


def test_left_out_values_widen_and_never_narrow():
    wide, narrow = posterior(variance=1e6).calibrated(), posterior(variance=1e-6).calibrated()
    assert wide.calibration.source == narrow.calibration.source == "left-out values"
    assert np.all(np.asarray(wide.calibration.factors) == 1.0)
    assert np.all(np.asarray(narrow.calibration.factors) > 10.0)


def test_dense_sensors_do_not_vouch_for_each_other():
    """Four dense groups of sensors at different levels: a sensor is predicted well from its neighbours alone."""
    line = pk.Domain(x=[(0, 1)])
    q = np.concatenate([np.linspace(c, c + 0.06, 10) for c in (0.0, 0.3, 0.62, 0.94)])[:, None]
    y = np.repeat([1.0, -1.0, 1.0, -1.0], 10) + 0.05 * np.random.default_rng(0).normal(size=40)
    kernel = pk.ard(line, pk.Matern52(), variance=0.1, lengthscale=0.3)
    found = pk.condition(kernel, [pk.Observation(pk.identity, q, y, 0.05)])
    left = (*found.left_out(), *found.left_out_clusters())
    single, clusters = (factor_of(c) / chance(len(c.errors)) for c in left)
    assert single < 1.5 < clusters
    assert float(found.calibrated().calibration.factors[0]) == pytest.approx(clusters)


def test_fresh_values_with_noise_widen_and_never_narrow():
    noisy = [observed(pk.identity, 200, 3, 0.1), observed(LAPLACIAN, 200, 4, 0.1)]
    assert np.all(np.asarray(posterior(variance=1e6).calibrated(noisy).calibration.factors) == 1.0)
    assert np.all(np.asarray(posterior(variance=1e-8, noise=1e-8).calibrated(noisy).calibration.factors) >= 1.0)


def test_data_without_fresh_values_are_left_out():
    found = posterior(variance=1e-6).calibrated(FRESH[1:])
    assert found.calibration.causes == ("u", "Δ_x u")
    assert found.calibration.source == "fresh values and left-out values"
    assert float(found.calibration.factors[0]) > 10


def test_rounding_of_the_mean_is_part_of_the_error_bar():
    """Weights of both signs that are far larger than the mean: what is lost in their sum is not known."""
    q = np.linspace(0, 1, 60)[:, None]
    line = pk.Domain(x=[(0, 1)])
    exact = jnp.exp(jnp.asarray(q[:, 0]))
    found = pk.condition(pk.ard(line, variance=1e6, lengthscale=2.0), [pk.Observation(pk.identity, q, exact, 1e-7)])
    places = RNG.uniform(size=(100, 1))
    terms = np.abs(found.alpha) @ np.abs(np.asarray(jax.vmap(lambda p: found._with_data(p, found.sections))(places))).T
    assert np.all(found.predict(places).std >= 0.99 * np.finfo(float).eps * terms)


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


def test_fresh_values_of_walls_do_not_narrow_what_sensors_leave_open():
    domain = pk.Domain(x=(0.0, 1.0))
    inside, walls = np.linspace(0.1, 0.9, 12)[:, None], np.array([[0.0], [1.0]])
    noisy = np.sin(np.pi * inside[:, 0]) + np.resize([0.1, -0.1], 12)
    data = [
        pk.Observation(pk.identity, inside, noisy, 0.1, "sensors"),
        pk.Observation(pk.identity, walls, [0.0, 0.0], "exact"),
    ]
    posterior = pk.condition(pk.ard(domain), data)
    found = posterior.calibrated([pk.Observation(pk.identity, walls, [0.0, 0.0], "exact")])
    factors = dict(zip(found.calibration.causes, np.asarray(found.calibration.factors)))
    assert set(factors) == {"sensors", "u"} and factors["sensors"] >= 1
    assert np.all(found.predict(inside).std > 0.9 * posterior.predict(inside).std)
