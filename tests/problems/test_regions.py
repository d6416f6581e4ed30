"""Regions: points lie where they should, evenly, whichever sampler draws them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pdedkl as pk
from pdedkl.sampling import SAMPLERS, draw, shares

BOX = pk.Domain(x=[(0, 1), (0, 4)], t=(0, 2), mu=[(1, 3)])
X, T, MU = BOX.coordinates()
BALL = pk.Domain(x=pk.Ball([1.0, -2.0, 0.5], 2.0), t=(0, 1))
BX, BT = BALL.coordinates()


def points(region, n=4000, sampler="uniform", seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return draw(region, n, np.random.default_rng(seed), sampler)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_faces_come_in_proportion_to_their_areas(sampler):
    q = points(BOX.boundary(X), 3000, sampler)
    assert q.shape == (3000, 4) and bool(np.all(BOX.contains(q)))
    on = np.stack([q[:, 0] == 0, q[:, 0] == 1, q[:, 1] == 0, q[:, 1] == 4])
    assert np.all(on.sum(axis=0) == 1)
    # The faces x[0] = 0, 1 are four times as long as x[1] = 0, 4.
    np.testing.assert_allclose(on.mean(axis=1), [0.4, 0.4, 0.1, 0.1], atol=0.03 if sampler == "uniform" else 2e-3)
    # Time and parameters are drawn from their whole range.
    np.testing.assert_allclose(q[:, 2:].mean(axis=0), [1, 2], atol=0.05)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_points_in_a_ball_are_uniform(sampler):
    q = points(BALL.interior, 3000, sampler)
    assert bool(np.all(BALL.contains(q)))
    away = (q[:, :3] - [1.0, -2.0, 0.5]) / 2
    radius = np.linalg.norm(away, axis=1)
    # |x|³ is uniform in a ball of three dimensions, and each direction has second moment 1/3.
    np.testing.assert_allclose(np.quantile(radius**3, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.03)
    direction = away / radius[:, None]
    np.testing.assert_allclose(direction.T @ direction / len(q), np.eye(3) / 3, atol=0.03)
    np.testing.assert_allclose(direction.mean(axis=0), 0, atol=0.04)
    assert abs(np.corrcoef(radius, direction[:, 0])[0, 1]) < 0.05


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_points_on_a_sphere_are_uniform(sampler):
    q = points(BALL.boundary(BX), 3000, sampler)
    direction = (q[:, :3] - [1.0, -2.0, 0.5]) / 2
    np.testing.assert_allclose(np.linalg.norm(direction, axis=1), 1, rtol=1e-12)
    assert bool(np.all(BALL.contains(q)))
    # Archimedes: each coordinate of a point on a sphere in three dimensions is uniform.
    np.testing.assert_allclose(np.quantile(direction, [0.1, 0.5, 0.9], axis=0).T, [[-0.8, 0, 0.8]] * 3, atol=0.06)
    np.testing.assert_allclose(q[:, 3].mean(), 0.5, atol=0.03)


def test_areas_and_volumes():
    assert np.exp(BOX.boundary(X).log_area) == pytest.approx((4 + 4 + 1 + 1) * 2 * 2)
    assert np.exp(BOX.face(X[1], "upper").log_area) == pytest.approx(1 * 2 * 2)
    assert np.exp(BOX.initial(T).log_area) == pytest.approx(1 * 4 * 2)
    assert np.exp(BALL.log_volume) == pytest.approx(4 / 3 * np.pi * 8)
    assert np.exp(BALL.boundary(BX).log_area) == pytest.approx(4 * np.pi * 4)
    many = pk.Domain(x=pk.Ball(np.zeros(2000), 3.0))
    assert np.isfinite(many.log_volume) and np.isfinite(many.boundary(many.coordinates("x")).log_area)


def test_where_time_begins_and_ends():
    np.testing.assert_array_equal(np.unique(points(BOX.initial(T), 10)[:, 2]), [0])
    np.testing.assert_array_equal(np.unique(points(BOX.final(T), 10)[:, 2]), [2])
    with pytest.raises(ValueError, match=r"final face of t is not part of the boundary: use domain.initial\(t\)"):
        BOX.boundary(T)


def test_groups_that_were_named_one_by_one_have_one_boundary():
    domain = pk.Domain(x=(0, 1), y=(0, 3), t=(0, 1))
    x, y, _ = domain.coordinates()
    q = points(domain.boundary(x, y), 2000)
    assert np.mean((q[:, 0] == 0) | (q[:, 0] == 1)) == pytest.approx(0.75, abs=0.04)


def test_in_one_dimension_the_boundary_is_two_points():
    for domain in (pk.Domain(x=(-1, 2)), pk.Domain(x=pk.Ball([0.5], 1.5))):
        np.testing.assert_array_equal(points(domain.boundary(domain.coordinates("x")), 50), [[-1], [2]])


def test_shares_add_up_and_leave_nobody_out():
    assert shares(12, np.log([1, 1, 2])) == [3, 3, 6]
    assert shares(100, np.log([1e-9, 1.0, 1e-9])) == [1, 98, 1]
    assert shares(3, np.log([1e-9, 1.0, 1e-9])) == [1, 1, 1]
    assert sum(shares(997, np.log(np.arange(1, 60)))) == 997


def test_a_ball_knows_what_it_contains_and_prints():
    edge = 1.0 + 2 / np.sqrt(3)
    inside = np.array([[1.0, -2.0, 0.5, 0.5], [3.0, -2.0, 0.5, 0.5], [edge, -2 + edge - 1, edge - 0.5, 1.0]])
    outside = np.array([[2.5, -0.5, 2.0, 0.5], [1.0, -2.0, 0.5, 1.1]])
    assert np.all(BALL.contains(inside)) and not np.any(BALL.contains(outside))
    np.testing.assert_array_equal(BALL.lower, [-1, -4, -1.5, 0])
    assert str(BALL) == "x ∈ a ball of radius 2 in 3 dimensions × t ∈ [0, 1]"
    again = pk.Domain(x=pk.Ball(np.array([1.0, -2.0, 0.5]), 2), t=(0, 1))
    assert again == BALL and hash(again) == hash(BALL) and again != pk.Domain(x=list(zip(BALL.lower, BALL.upper))[:3])


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: pk.Ball([], 1), "center as a list of finite numbers"),
        (lambda: pk.Ball([0, np.nan], 1), "center as a list of finite numbers"),
        (lambda: pk.Ball("ab", 1), "center as a list of finite numbers"),
        (lambda: pk.Ball([0, 0], 0), "positive radius: got 0"),
        (lambda: BALL.face(BX[0], "lower"), r"has no faces: use domain.boundary\(x\)"),
        (lambda: BALL.boundary(BX[:2]), r"has no faces"),
        (lambda: BOX.face(X, "lower"), r"A face needs one coordinate and x has 2"),
        (lambda: BOX.face(X[0], "left"), "'lower' or the 'upper'"),
        (lambda: BOX.boundary(BX), "x belongs to another domain"),
        (lambda: BOX.boundary(), "Name the coordinates"),
    ],
)
def test_what_is_no_region_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
