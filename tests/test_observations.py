"""Observations: the kinds of noise, where a learned one starts, and what the noise means for the posterior."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk

DOMAIN = pk.Domain(x=[(0, 1)] * 2, t=(0, 1))
X, T = DOMAIN.coordinates()
POINTS = np.random.default_rng(0).uniform(size=(5, 3))
VALUES = np.array([1.0, -2.0, 0.5, 3.0, 0.0])


def observe(noise, operator=pk.identity, values=VALUES, name=None):
    return pk.Observation(operator, POINTS[: len(values)], values, noise, name)


def model(*observations):
    return pk.Model(pk.ard(DOMAIN), observations)


# ── what an observation holds ─────────────────────────────────────────────────────────────────────────────────────


def test_lists_and_integers_become_arrays_of_doubles():
    item = pk.Observation(pk.D(T), [[0, 0, 0], [1, 1, 1]], [1, 2], noise=[1, 2])
    assert item.points.dtype == item.values.dtype == item.noise.dtype == jnp.float64
    assert item.points.shape == (2, 3) and item.values.shape == (2,)
    assert len(item) == 2


def test_an_observation_is_named_after_its_operator_unless_it_has_a_name():
    assert observe(0.1, pk.D(T) - pk.Laplacian(X)).name == "(∂/∂t - Δ_x) u"
    assert observe(0.1).name == "u" and observe(0.1, pk.D(T)).name == "∂/∂t u"
    assert observe(0.1, name="wall").name == "wall"


# ── noise that is known ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "noise, variance",
    [
        (0.1, [0.01] * 5),
        (np.float32(0.5), [0.25] * 5),
        (jnp.asarray(2), [4.0] * 5),
        ([0.1, 0.2, 0.3, 0.0, 1.0], [0.01, 0.04, 0.09, 0.0, 1.0]),
        (0, [0.0] * 5),
        ("exact", [0.0] * 5),
    ],
    ids=["number", "numpy", "jax", "per point", "zero", "exact"],
)
def test_known_noise_is_a_standard_deviation_and_is_not_learned(noise, variance):
    item = observe(noise)
    np.testing.assert_allclose(item.noise_variance({}), variance, rtol=1e-15)
    assert item.noise_name is None
    assert model(item).noise() == {}


# ── noise that is learned ─────────────────────────────────────────────────────────────────────────────────────────


def test_noise_is_learned_by_default_under_the_name_of_the_observation():
    item = pk.Observation(pk.D(T), POINTS, VALUES)
    assert item.noise == pk.Learned()
    assert item.noise_name == "∂/∂t u"
    assert list(model(item).noise()) == ["∂/∂t u"]
    assert observe("learned", name="wall").noise_name == "wall"
    assert observe(pk.Learned("sensor"), name="wall").noise_name == "sensor"


def test_a_learned_level_starts_at_a_hundredth_of_the_spread():
    item = observe("learned", name="wall")
    assert item.initial_noise() == pytest.approx(0.01 * np.std(VALUES), rel=1e-14)
    assert model(item).noise() == pytest.approx({"wall": 0.01 * np.std(VALUES)})


def test_a_learned_level_starts_where_it_is_told_to():
    item = observe(pk.Learned(initial=0.3), name="wall")
    assert item.initial_noise() == 0.3
    assert model(item).noise() == pytest.approx({"wall": 0.3})


@pytest.mark.parametrize(
    "values, start",
    [([2.0] * 5, 0.02), ([-2.0] * 5, 0.02), ([4.0], 0.04), ([0.0] * 5, 0.01), ([0.0], 0.01)],
    ids=["constant", "negative constant", "one value", "zeros", "one zero"],
)
def test_values_without_spread_start_from_their_size_or_from_one(values, start):
    assert observe("learned", values=values).initial_noise() == pytest.approx(start)


def test_observations_of_different_names_have_levels_of_their_own():
    built = model(observe("learned", name="wall"), observe(pk.Learned(initial=0.5), name="start"))
    assert built.noise() == pytest.approx({"wall": 0.01 * np.std(VALUES), "start": 0.5})


def test_observations_that_name_the_same_level_share_it():
    shared = [observe(pk.Learned("sensor", 0.1)), observe(pk.Learned("sensor", 0.4), pk.D(T))]
    built = model(*shared, observe(0.7))
    assert built.noise() == pytest.approx({"sensor": 0.4})
    for item in shared:
        np.testing.assert_allclose(item.noise_variance(built.log_noise), [0.16] * 5, rtol=1e-14)


def test_the_level_is_stored_by_its_logarithm():
    item = observe("learned", name="wall")
    variance, slope = jax.value_and_grad(lambda s: item.noise_variance({"wall": s})[0])(jnp.log(0.3))
    assert variance == pytest.approx(0.09)
    assert slope == pytest.approx(2 * 0.09)


# ── what noise does ───────────────────────────────────────────────────────────────────────────────────────────────


def test_exact_values_are_interpolated():
    predicted = pk.condition(pk.ard(DOMAIN), [observe("exact")]).predict(POINTS)
    np.testing.assert_allclose(predicted.mean, VALUES, atol=1e-8)
    np.testing.assert_allclose(predicted.variance, 0.0, atol=1e-8)


def test_a_point_with_much_noise_counts_for_little():
    noise = np.array([1e-3, 1e-3, 1e-3, 1e3, 1e-3])
    predicted = pk.condition(pk.ard(DOMAIN), [observe(noise)]).predict(POINTS)
    without = np.arange(5) != 3
    others = pk.Observation(pk.identity, POINTS[without], VALUES[without], 1e-3)
    expected = pk.condition(pk.ard(DOMAIN), [others]).predict(POINTS)
    np.testing.assert_allclose(predicted.mean, expected.mean, atol=1e-3)
    np.testing.assert_allclose(predicted.variance, expected.variance, atol=1e-4)


def test_one_observation_needs_no_list():
    item = observe(pk.Learned(initial=0.5), name="wall")
    assert pk.Model(pk.ard(DOMAIN), item).noise() == pytest.approx({"wall": 0.5})


def test_an_observation_keeps_its_values_when_the_callers_array_changes():
    values = np.zeros(100_000)
    item = pk.Observation(pk.identity, np.zeros((100_000, 3)), values, 0.1)
    values[:] = 5.0
    assert float(item.values.max()) == 0.0


def test_constants_that_round_start_from_their_size():
    item = pk.Observation(pk.identity, np.zeros((1000, 3)), np.full(1000, 0.1))
    assert item.initial_noise() == pytest.approx(1e-3)


def test_an_observation_can_be_copied_with_its_weights():
    item = pk.Observation(pk.identity, np.eye(3), np.ones(3), 0.1, weights=[1.0, 0.5, 2.0])
    other = dataclasses.replace(item, name="other")
    np.testing.assert_array_equal(other.weights, item.weights)
    np.testing.assert_allclose(other.noise_variance({}), 0.01 / np.array([1.0, 0.5, 2.0]))
    for weights in ([1.0, 0.0, 1.0], [1.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="`weights`"):
            dataclasses.replace(item, weights=weights)
