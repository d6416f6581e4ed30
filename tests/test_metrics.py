"""Metrics against their definitions, and at the edges: exact claims, a truth of zeros."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from pdedkl import metrics

RNG = np.random.default_rng(0)
MEAN, STD, TRUTH = RNG.normal(size=40), RNG.uniform(0.2, 2.0, 40), RNG.normal(size=40)


def test_relative_error_and_its_flag():
    assert metrics.relative_l2([3.0, 0.0], [0.0, 4.0]) == (1.25, True)
    assert metrics.relative_l2([3.0, 4.0], [0.0, 0.0]) == (math.sqrt(12.5), False)
    assert metrics.relative_l2([0.0], [0.0]) == (0.0, False)


def test_coverage_counts_intervals():
    draws = np.random.default_rng(1).normal(size=(2, 20_000))
    found = metrics.coverage(draws[0], np.full(20_000, math.sqrt(2)), draws[0] + math.sqrt(2) * draws[1])
    assert set(found) == {"0.5", "0.8", "0.9", "0.95", "0.99"}
    assert all(abs(value - float(level)) < 0.01 for level, value in found.items())
    lower, upper = norm.interval(0.9, MEAN, STD)
    assert metrics.coverage(MEAN, STD, TRUTH)["0.9"] == np.mean((lower <= TRUTH) & (upper >= TRUTH))


def test_scores_equal_their_definitions():
    assert metrics.nlpd(MEAN, STD, TRUTH) == pytest.approx(-np.mean(norm.logpdf(TRUTH, MEAN, STD)), rel=1e-12)
    assert metrics.z_rms(MEAN, STD, TRUTH) == pytest.approx(np.sqrt(np.mean(((TRUTH - MEAN) / STD) ** 2)), rel=1e-12)
    width = np.mean(norm.ppf(0.975, MEAN, STD) - norm.ppf(0.025, MEAN, STD))
    expected = width / np.sqrt(np.mean((MEAN - TRUTH) ** 2))
    assert metrics.sharpness(MEAN, STD, TRUTH) == pytest.approx(expected, rel=1e-12)


def test_the_calibration_error_is_zero_only_where_all_levels_hold():
    z = norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    zero, one = np.zeros_like(z), np.ones_like(z)
    assert metrics.calibration_error(zero, one, z) < 1e-3
    wide = metrics.coverage(zero, 3 * one, z)
    expected = np.mean([abs(value - float(level)) for level, value in wide.items()])
    assert metrics.calibration_error(zero, 3 * one, z) == pytest.approx(expected) and expected > 0.1


def test_the_histogram_of_z_counts_points():
    parts, edges = metrics.z_histogram(MEAN, STD, TRUTH, [-1.0, 0.0, 1.0])
    z = (TRUTH - MEAN) / STD
    np.testing.assert_allclose(parts, [np.mean((z >= -1) & (z < 0)), np.mean((z >= 0) & (z <= 1))])
    np.testing.assert_array_equal(edges, [-1.0, 0.0, 1.0])
    assert np.sum(metrics.z_histogram(MEAN, 1e6 * STD, TRUTH)[0]) == pytest.approx(1.0)


def test_the_bootstrap_band_holds_the_spread_of_a_mean_square():
    z = np.random.default_rng(3).normal(size=4000)
    low, high = metrics.bootstrap(metrics.z_rms, np.zeros(4000), np.ones(4000), z)
    assert low < metrics.z_rms(np.zeros(4000), np.ones(4000), z) < high
    assert (high - low) / 2 == pytest.approx(1.96 / math.sqrt(2 * 4000), rel=0.3)
    assert metrics.bootstrap(metrics.z_rms, *(np.ones(5),) * 3) == (0.0, 0.0)


def test_crps_equals_the_integral():
    for m, s, y in list(zip(MEAN, STD, TRUTH))[:6]:
        below, above = norm(m, s).cdf, norm(m, s).sf
        left, _ = quad(lambda x, below=below: below(x) ** 2, min(m, y) - 12 * s, y)
        right, _ = quad(lambda x, above=above: above(x) ** 2, y, max(m, y) + 12 * s)
        assert metrics.crps([m], [s], [y]) == pytest.approx(left + right, rel=1e-7)


def test_claims_of_exactness():
    right, wrong = ([1.0], [0.0], [1.0]), ([1.0, 2.0], [0.0, 0.0], [1.0, 2.5])
    assert metrics.coverage(*right)["0.5"] == 1.0 and metrics.coverage(*wrong)["0.95"] == 0.5
    assert metrics.z_rms(*right) == 0.0 and metrics.z_rms(*wrong) == math.inf
    assert metrics.nlpd(*right) == -math.inf and metrics.nlpd(*wrong) == math.inf
    assert metrics.crps(*wrong) == 0.25
    assert math.isnan(metrics.sharpness(*right)) and metrics.sharpness(*wrong) == 0.0
    assert metrics.sharpness([1.0], [0.3], [1.0]) == math.inf
    found = metrics.summary(*right, "u")
    assert found["nlpd_u"] is None and found["sharpness_u"] is None and found["error_u"] == 0.0
    json.dumps(found, allow_nan=False)


def test_trivial_predictors():
    q = RNG.uniform(size=(30, 3))
    values = 2.0 - q @ [1.0, 0.0, 3.0]
    fresh = RNG.uniform(size=(5, 3))
    np.testing.assert_allclose(metrics.best_line(q, values)(fresh), 2.0 - fresh @ [1.0, 0.0, 3.0], rtol=1e-12)
    np.testing.assert_allclose(metrics.best_constant(q, values)(fresh), values.mean())
    few = metrics.best_line(q[:2], values[:2])  # more slopes than data: it still passes through them
    np.testing.assert_allclose(few(q[:2]), values[:2], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0, 2.0], [1.0]), r"shapes \(1,\), \(2,\), \(1,\)"),
        (([1.0], [-1.0], [1.0]), "smallest given is -1"),
        (([1.0], [1.0], [math.nan]), "finite"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.crps(*arguments)
