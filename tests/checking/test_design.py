"""Where to measure next, against conditioning on each choice."""

from __future__ import annotations

import numpy as np
import pytest

import pdedkl as pk
from pdedkl.checking.design import designed
from pdedkl.inference.estimates import with_estimates

LINE = pk.Domain(x=(0.0, 1.0))
X = LINE.coordinates("x")
K = pk.Parameter("k", 2.0)
INSIDE, SENSORS = np.linspace(0.05, 0.95, 9)[:, None], np.asarray([[0.1], [0.2]])
CANDIDATES, NOISE = np.linspace(0.0, 1.0, 12)[:, None], 0.1
U = lambda q: np.sin(3 * q[:, 0]) + 1.0


def posterior_with(*more):
    operator = K * pk.identity - pk.D(X, X)
    f = 2.0 * U(INSIDE) + 9.0 * np.sin(3 * INSIDE[:, 0])
    data = [pk.Observation(operator, INSIDE, f, noise=0.05), pk.Observation(pk.identity, SENSORS, U(SENSORS), NOISE)]
    return pk.condition(pk.Model(pk.ard(LINE, lengthscale=0.7), [*data, *more]), [*data, *more])


@pytest.fixture(scope="module")
def now():
    return with_estimates(posterior_with())


def with_values_at(now, points):
    """What follows if the values there are those expected: then the number and `u` stay as they are."""
    values = now.predict(points).mean
    return with_estimates(posterior_with(pk.Observation(pk.identity, points, values, NOISE, name="new")))


def test_the_expected_deviation_is_that_after_measuring(now):
    found = designed(now, K, CANDIDATES, 3, NOISE)
    np.testing.assert_allclose(found.before, now.parameters["k"].raw_std)
    for count in (1, 3):
        after = with_values_at(now, found.points[:count]).parameters["k"].raw_std
        np.testing.assert_allclose(found.after[count - 1], after, rtol=1e-3)


def test_no_other_candidate_tells_more(now):
    found = designed(now, "k", CANDIDATES, 1, None)  # the noise of the sensors is known
    each = [with_values_at(now, CANDIDATES[[i]]).parameters["k"].raw_std for i in (0, 3, 6, 9, 11)]
    assert found.after[0] <= min(each) * (1 + 1e-6)


def test_a_value_of_u_can_be_the_goal(now):
    found = designed(now, [0.7], CANDIDATES, 2, NOISE)
    place = np.asarray([[0.7]])
    np.testing.assert_allclose(found.before, now.predict(place).std[0], rtol=1e-6)
    np.testing.assert_allclose(found.after[1], with_values_at(now, found.points).predict(place).std[0], rtol=1e-3)
    assert "u at (0.7,)" in str(found)


def test_an_integral_can_be_the_goal(now):
    total = pk.Integral(LINE.interior, nodes=6)
    found = designed(now, total, CANDIDATES, 2, NOISE)
    assert found.before == pytest.approx(now.quantity(total).std, rel=1e-6) and "∫ over the interior" in str(found)
    np.testing.assert_allclose(found.after[1], with_values_at(now, found.points).quantity(total).std, rtol=1e-3)
    with pytest.raises(ValueError, match="such as an Integral over all coordinates"):
        designed(now, pk.identity, CANDIDATES, 2, NOISE)


def test_chosen_places_tell_more_than_random_ones(now):
    many, rng = np.linspace(0.0, 1.0, 101)[:, None], np.random.default_rng(0)
    chosen = designed(now, K, many, 4, NOISE).after[-1]
    random = [designed(now, K, many[rng.choice(101, 4, replace=False)], 4, NOISE).after[-1] for _ in range(9)]
    assert chosen < np.min(random)


def test_a_problem_proposes_points_of_its_own(now):
    problem = pk.Problem(LINE, K * pk.identity - pk.D(X, X), 1.0, [], points=pk.Points(source=5))
    found = problem.refine(now, 4, goal=K)
    assert found.points.shape == (4, 1) and found.after[-1] < found.before
    with pytest.raises(ValueError, match="an unknown number of the posterior, k"):
        problem.refine(now, 4, goal="nu")
