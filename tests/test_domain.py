"""Domains and their coordinates: what they pick out of a point, how they print, and what they refuse."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk

DOMAIN = pk.Domain(x=[(-1, 1)] * 4, t=(0, 2), mu=[(1, 3)])
X, T, MU = DOMAIN.coordinates()
POINT = jnp.arange(6.0)


def test_a_domain_knows_its_box():
    assert DOMAIN.dim == 6
    assert DOMAIN.names == ("x", "t", "mu")
    np.testing.assert_array_equal(DOMAIN.lower, [-1, -1, -1, -1, 0, 1])
    np.testing.assert_array_equal(DOMAIN.upper, [1, 1, 1, 1, 2, 3])


def test_points_on_the_boundary_are_inside():
    points = np.stack([DOMAIN.lower, DOMAIN.upper, DOMAIN.upper + 1e-12, np.zeros(6)])
    np.testing.assert_array_equal(DOMAIN.contains(points), [True, True, False, False])


def test_coordinates_come_by_name_and_in_the_order_asked_for():
    assert DOMAIN.coordinates("t", "x") == (T, X)
    assert DOMAIN.coordinates("t") == T


def test_coordinates_pick_their_part_out_of_a_point():
    np.testing.assert_array_equal(X(POINT), [0, 1, 2, 3])
    np.testing.assert_array_equal(X[1:3](POINT), [1, 2])
    np.testing.assert_array_equal(X[2:](POINT), [2, 3])
    np.testing.assert_array_equal(X[::2](POINT), [0, 2])
    np.testing.assert_array_equal(MU(POINT), [5])


def test_a_single_coordinate_of_a_point_is_a_scalar():
    assert T(POINT).shape == X[2](POINT).shape == MU[0](POINT).shape == ()
    assert (T(POINT), X[2](POINT), X[-1](POINT), MU[0](POINT)) == (4, 2, 3, 5)


def test_lengths_and_iteration():
    assert (len(X), len(X[1:3]), len(T), len(MU)) == (4, 2, 1, 1)
    assert list(X) == [X[0], X[1], X[2], X[3]]
    assert list(T) == [T]


def test_a_coordinate_belongs_to_the_group_it_was_taken_from():
    assert X[1:3][0].indices == X[1].indices
    assert X[0].dim == X[1:].dim == T.dim == DOMAIN.dim


def test_printing():
    assert str(DOMAIN) == "x ∈ [-1, 1]^4 × t ∈ [0, 2] × mu ∈ [1, 3]"
    assert str(pk.Domain(x=[(0, 1), (0, 2.5)])) == "x ∈ a box in 2 dimensions"
    assert [str(c) for c in (X, X[1], X[-1], X[1:3], X[2:], T)] == ["x", "x[1]", "x[3]", "x[1:3]", "x[2:4]", "t"]


def test_equal_domains_are_equal_and_hash_alike():
    again = pk.Domain(x=[(-1, 1)] * 4, t=(0, 2), mu=[(1, 3)])
    assert again == DOMAIN and hash(again) == hash(DOMAIN)
    assert pk.Domain(t=(0, 2), x=[(-1, 1)] * 4, mu=[(1, 3)]) != DOMAIN


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match=r"no coordinate 'y': it has x, t, mu"):
        DOMAIN.coordinates("x", "y")


def test_a_domain_without_coordinates_is_refused():
    with pytest.raises(ValueError, match="at least one coordinate"):
        pk.Domain()


@pytest.mark.parametrize("bounds", [5, None, "ab", [], (0, 1, 2), [(0, 1), (0,)], [[(0, 1)]], (0, 1j)], ids=repr)
def test_bounds_that_are_no_pairs_are_refused(bounds):
    with pytest.raises(ValueError, match=r"`x` needs a pair \(low, high\) or a list of pairs: got"):
        pk.Domain(x=bounds)


@pytest.mark.parametrize(
    "bounds, came",
    [
        ((1, 0), r"\(1, 0\)"),
        ((2, 2), r"\(2, 2\)"),
        ((0, np.inf), r"\(0, inf\)"),
        ((np.nan, 1), r"\(nan, 1\)"),
        ([(0, 1), (3, 2)], r"\(3, 2\)"),
    ],
)
def test_bounds_that_make_no_box_are_refused(bounds, came):
    with pytest.raises(ValueError, match=f"`x` needs finite bounds with low < high: got {came}"):
        pk.Domain(x=bounds)


def test_a_single_coordinate_has_no_parts():
    for single in (T, X[0]):
        with pytest.raises(IndexError, match=r"is a single coordinate"):
            single[0]


def test_indices_beyond_the_group_are_refused():
    with pytest.raises(IndexError):
        X[4]
    with pytest.raises(IndexError, match="slice of `x` holds none of its 4"):
        X[4:9]
