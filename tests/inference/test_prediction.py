"""A prediction as what it is taken to: a tuple, a pytree, a table, a grid."""

from __future__ import annotations

import sys

import jax
import numpy as np
import pytest

import pdedkl as pk

DOMAIN = pk.Domain(x=[(0, 1), (0, 2)], t=(0, 1))
X, T = DOMAIN.coordinates()
POINTS = np.random.default_rng(0).uniform(size=(12, 3))
POSTERIOR = pk.condition(pk.ard(DOMAIN), pk.Observation(pk.identity, POINTS, POINTS.sum(axis=1), noise=0.01))


def test_it_knows_its_points_and_what_it_is_of():
    found = POSTERIOR.predict(POINTS, pk.D(T) - pk.Laplacian(X))
    np.testing.assert_array_equal(found.points, POINTS)
    assert found.names == ("x[0]", "x[1]", "t") and found.what == "(∂/∂t - Δ_x) u"


def test_it_is_a_pytree_and_can_be_taken_apart():
    found = POSTERIOR.predict(POINTS)
    halved = jax.tree.map(lambda leaf: leaf[:6] if np.ndim(leaf) else leaf, found)
    np.testing.assert_array_equal(halved.mean, found.mean[:6])
    assert halved.points.shape == (6, 3) and halved.names == found.names
    mean, variance, clamped = found
    assert mean is found.mean and variance is found[1] and clamped == 0


def test_names_are_those_of_the_domain_also_for_a_group_of_one(tmp_path):
    for domain, name in (
        (pk.Domain(x=[(0, 1)]), "x[0]"),
        (pk.Domain(x=(0, 1)), "x"),
        (pk.Domain(x=pk.Ball([0])), "x[0]"),
    ):
        data = pk.Observation(pk.identity, [[0.2], [0.4]], [1.0, 2.0], noise=0.1)
        found = pk.condition(pk.ard(domain), data)
        found.save(tmp_path / "model.pdedkl")
        for posterior in (found, pk.load(tmp_path / "model.pdedkl")):
            assert posterior.predict([[0.5]]).names == domain.coordinate_names == (name,)


def test_a_table_has_a_row_for_each_point():
    found = POSTERIOR.predict(POINTS)
    table = found.to_pandas(level=0.5)
    assert list(table.columns) == ["x[0]", "x[1]", "t", "mean", "std", "lower", "upper"]
    np.testing.assert_array_equal(table[["x[0]", "x[1]", "t"]].to_numpy(), POINTS)
    np.testing.assert_array_equal(table["upper"], found.interval(0.5)[1])


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_grid_finds_its_axes_whatever_the_order_of_the_points(shuffled):
    points = DOMAIN.grid({"x[1]": 5, T: 3}, at={"x[0]": 0.25})
    order = np.random.default_rng(1).permutation(len(points)) if shuffled else np.arange(len(points))
    found = POSTERIOR.predict(points[order])
    grid = found.to_xarray()
    assert dict(grid.sizes) == {"x[1]": 5, "t": 3} and float(grid["x[0]"]) == 0.25
    for q, mean in zip(points[order], found.mean):
        assert float(grid["mean"].sel({"x[1]": q[1], "t": q[2]})) == mean


def test_rounding_makes_no_new_value_of_a_coordinate():
    points = DOMAIN.grid({X: 4, T: 3})
    noisy = points * (1 + 1e-15 * np.random.default_rng(0).normal(size=points.shape))
    assert dict(POSTERIOR.predict(noisy).to_xarray().sizes) == {"x[0]": 4, "x[1]": 4, "t": 3}


@pytest.mark.parametrize(
    "points",
    [POINTS, DOMAIN.grid({X: 3})[:-1], np.repeat(DOMAIN.grid({X: 2}), 2, axis=0)],
    ids=["scattered", "one missing", "each twice"],
)
def test_what_is_no_grid_is_told_how_to_become_one(points):
    with pytest.raises(ValueError, match=r"not a grid.*every combination.*domain\.grid"):
        POSTERIOR.predict(points).to_xarray()


def test_one_point_is_a_grid_without_axes():
    assert POSTERIOR.predict(POINTS[:1]).to_xarray()["mean"].shape == ()


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_a_missing_package_is_named_with_the_command(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'pip install "pdedkl\[{package}\]"'):
        getattr(POSTERIOR.predict(POINTS), f"to_{package}")()


def test_a_coordinate_with_the_name_of_a_column_is_refused():
    domain = pk.Domain(mean=(0, 1))
    found = pk.condition(pk.ard(domain), pk.Observation(pk.identity, [[0.5]], [1.0], noise=0.1)).predict([[0.1]])
    with pytest.raises(ValueError, match="'mean' has the name of a column"):
        found.to_pandas()


def test_a_grid_of_a_domain():
    points = DOMAIN.grid({"x": 3, "t": 2})
    assert points.shape == (18, 3) and np.all(np.asarray(DOMAIN.contains(points)))
    np.testing.assert_array_equal(points[0], [0, 0, 0])
    np.testing.assert_array_equal(points[1], [0, 0, 1])
    np.testing.assert_array_equal(DOMAIN.grid({T: 2}, at=[0.1, 0.2, 9.0]), [[0.1, 0.2, 0.0], [0.1, 0.2, 1.0]])


@pytest.mark.parametrize(
    "arguments, words",
    [
        (({"y": 3},), "no coordinate 'y'.*x\\[0\\]"),
        (({"t": 1},), "at least 2"),
        (({"t": 2.5},), "at least 2"),
        ((50,), "number of values for each coordinate"),
        (({},), "number of values for each coordinate"),
        (({"x": 10**5, "t": 10**5},), "fewer values"),
        (({"t": 3}, [0.5]), "`at` needs a dictionary"),
        (({"t": 3}, {"x[0]": "middle"}), "`at` needs a finite number for x\\[0\\]"),
    ],
)
def test_a_grid_that_cannot_be_is_refused_with_a_sentence(arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        DOMAIN.grid(*arguments)
