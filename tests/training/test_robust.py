"""Data with values that are far off: they are named, and with robust noise they count less."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pdedkl as pk
from pdedkl.training import starts
from pdedkl.training.robust import with_weights

INTERVAL = pk.Domain(x=(0, 1))
RNG = np.random.default_rng(0)
Q = np.linspace(0, 1, 60)[:, None]
TRUTH = np.sin(6 * Q[:, 0])
WRONG = np.sort(RNG.choice(60, 6, replace=False))
VALUES = TRUTH + 0.02 * RNG.normal(size=60)
VALUES[WRONG] += 3.0 * RNG.choice([-1, 1], size=6)


def fitted(noise, **options):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        posterior = pk.fit(INTERVAL, [pk.Observation(pk.identity, Q, VALUES, noise)], model="gp", **options)
    return posterior, " ".join(str(w.message) for w in heard if w.category is pk.FitWarning)


@pytest.fixture(scope="module")
def robust():
    return fitted("robust")


def error(posterior):
    return np.sqrt(np.mean((posterior.predict(Q).mean - TRUTH) ** 2))


def test_values_far_off_do_not_pull(robust):
    plain, _ = fitted("learned")
    assert error(robust[0]) < 0.03
    assert error(robust[0]) < 0.2 * error(plain)
    assert robust[0].model.noise()["u"] < 0.1 < plain.model.noise()["u"]


def test_weights_are_small_where_values_are_wrong_and_stay_with_the_data(robust):
    weights = np.asarray(robust[0].observations[0].weights)
    others = np.setdiff1d(np.arange(60), WRONG)
    assert weights.shape == (60,)
    assert np.max(weights[WRONG]) < 0.01 and np.median(weights[others]) > 0.8
    np.testing.assert_allclose(
        robust[0].observations[0].noise_variance(robust[0].model.log_noise),
        robust[0].model.noise()["u"] ** 2 / weights,
    )


def test_values_that_are_not_trained_on_get_weights_too():
    posterior, _ = fitted("robust", trained_values=40)
    weights = np.asarray(posterior.observations[0].weights)
    assert weights.shape == (60,) and np.max(weights[WRONG]) < 0.05
    assert error(posterior) < 0.05


def test_observations_of_one_name_have_weights_of_their_own():
    """Two groups of sensors, of different lengths, that share a name."""
    parts = [slice(0, 25), slice(25, 60)]
    data = [pk.Observation(pk.identity, Q[part], VALUES[part], "robust", "sensors") for part in parts]
    posterior = pk.fit(INTERVAL, data, model="gp")
    weights = [np.asarray(item.weights) for item in posterior.observations]
    assert [len(w) for w in weights] == [25, 35]
    assert np.max(np.concatenate(weights)[WRONG]) < 0.01 and error(posterior) < 0.03


def test_a_part_of_the_data_keeps_its_weights():
    (weighted,) = with_weights([pk.Observation(pk.identity, Q, VALUES, "robust")], [np.arange(1.0, 61.0)])
    (part,) = starts.subsample([weighted], 20, 0)
    (kept,) = starts.kept([weighted], 20, 0)
    np.testing.assert_array_equal(part.weights, kept + 1.0)
    np.testing.assert_array_equal(part.values, VALUES[kept])


def test_exact_values_have_no_outliers():
    with pytest.raises(ValueError, match="exact=True or robust=True"):
        pk.Learned(exact=True, robust=True)
