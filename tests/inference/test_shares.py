"""Shares of the variance: exact integrals against draws, a sample against exact integrals, and known shares."""

from __future__ import annotations

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.inference import legendre
from pdedkl.inference.calibration import Calibration
from pdedkl.inference.shares_sampled import sampled

SQUARE = pk.Domain(x=[(-1.0, 1.0)] * 2)


def conditioned(domain, u, count, groups=None, noise=1e-4, lengthscale=1.5, profile=None):
    """Values of `u` at random points, and of `−Δu` at others."""
    x = domain.coordinates("x")
    kernel = pk.deep(domain, pk.IdentityEmbedding(), profile, groups, 1.0, lengthscale)
    points = domain.from_cube(np.random.default_rng(0).uniform(size=(2 * count, domain.dim)))
    operators = (pk.identity, -pk.Laplacian(x))
    parts = zip(operators, np.split(points, 2))
    return pk.condition(kernel, [pk.Observation(A, q, np.asarray(jax.vmap(A(u))(q)), noise) for A, q in parts])


@pytest.fixture(scope="module")
def uncertain():
    """Few and noisy values, so that the shares are far from known."""
    return conditioned(SQUARE, lambda q: q[0] + q[0] * q[1] ** 2, 10, [(0,), (1,), (0, 1)], 0.1)


def shares_of_draws(posterior, count=4000, nodes=8):
    """Shares of functions that are drawn from the posterior, by Gauss's rule on the whole square."""
    points, to_degrees = legendre.transform(nodes)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    draws = posterior.sample(jax.random.key(0), grid, count=count)
    found = (draws @ np.kron(to_degrees, to_degrees).T).reshape(-1, nodes, nodes) ** 2
    parts = np.stack([found[:, 1:, 0].sum(1), found[:, 0, 1:].sum(1), found[:, 1:, 1:].sum((1, 2))])
    return parts / parts.sum(axis=0)


def test_exact_shares_are_those_of_draws(uncertain):
    found, draws = uncertain.interactions(), shares_of_draws(uncertain)
    assert found.exact and found.rest == (0.0, 0.0) and found.share.sum() == pytest.approx(1.0)
    place = [found.sets.index(own) for own in ((0,), (1,), (0, 1))]
    assert 0.01 < found.std.max() < 0.2
    # Both are first-order in what is unknown, which is a tenth of u here.
    np.testing.assert_allclose(found.share[place], draws.mean(axis=1), atol=0.3 * found.std.max())
    np.testing.assert_allclose(found.std[place], draws.std(axis=1), rtol=0.25, atol=0.002)


def test_calibration_widens_them(uncertain):
    twice = Calibration(jnp.asarray([2.0]), None, ("everything",), "a test")
    wider = dataclasses.replace(uncertain, calibration=twice).interactions()
    plain = uncertain.interactions()
    place = [plain.sets.index(own) for own in wider.sets]
    assert np.all(wider.std > 1.5 * plain.std[place])


def test_a_sample_agrees_with_exact_integrals(uncertain):
    found, exact = sampled(uncertain, pk.identity, *uncertain.model.kernel.box, 0), uncertain.interactions()
    place = [exact.sets.index(own) for own in found.sets]
    std = np.sqrt(np.diagonal(found.covariance))
    # The sample is of the mean, and the expectation of a square is larger by the variance.
    np.testing.assert_allclose(found.share, exact.share[place], atol=0.5 * std.max())
    np.testing.assert_allclose(std, exact.std[place], rtol=0.3, atol=0.01)


@pytest.fixture(scope="module")
def known():
    """`x_0 + x_1 x_2`, of which three quarters are due to `x_0`."""
    cube = pk.Domain(x=[(-1.0, 1.0)] * 3)
    return conditioned(cube, lambda q: q[0] + q[1] * q[2], 60, [(0,), (1,), (2,), (1, 2)], 1e-6)


def test_known_shares(known):
    found = known.interactions()
    assert found.sets[:2] == ((0,), (1, 2)) and found.variance == pytest.approx(4 / 9, rel=1e-3)
    np.testing.assert_allclose(found.share, [0.75, 0.25, 0, 0], atol=1e-4)
    assert found.named()["x[1], x[2]"].share == pytest.approx(0.25, abs=1e-4)
    assert found.alone[1].share < 1e-4 and found.total[1].share == pytest.approx(0.25, abs=1e-4)
    assert "x[1], x[2]" in found.table() and "0.75" in repr(found)


def test_known_shares_in_a_part_of_the_box(known):
    corner = pk.Domain(x=[(0.0, 1.0)] * 3)
    found = known.interactions(domain=corner).named()
    whole = 1 / 12 + 2 / 48 + 1 / 144
    expected = {"x[0]": 1 / 12, "x[1]": 1 / 48, "x[2]": 1 / 48, "x[1], x[2]": 1 / 144}
    assert {name: found[name].share * whole for name in expected} == pytest.approx(expected, abs=1e-4)


def test_shares_of_an_operator(known):
    """`∂u/∂x_1 = x_2` depends on one input."""
    x = pk.Domain(x=[(-1.0, 1.0)] * 3).coordinates("x")
    found = known.interactions(pk.D(x[1]))
    assert not found.exact and found.sets[0] == (2,) and found.share[0] == pytest.approx(1.0, abs=1e-3)


def test_three_inputs_that_act_together_are_in_the_rest():
    """`x_0 + 2 x_1 x_2 x_3`, from a kernel of all four inputs: a sample sees pairs at most."""
    cube = pk.Domain(x=[(-1.0, 1.0)] * 4)
    found = conditioned(cube, lambda q: q[0] + 2 * q[1] * q[2] * q[3], 200, lengthscale=2.5).interactions()
    expected = (1 / 3) / (1 / 3 + 4 / 27)
    assert not found.exact and found.sets[0] == (0,)
    assert abs(found.share[0] - expected) < 4 * found.std[0] < 0.04
    assert abs(found.rest.share - (1 - expected)) < 4 * found.rest.std < 0.08


def test_what_has_no_shares_is_refused(known):
    with pytest.raises(ValueError, match="ball depend on each other"):
        known.interactions(domain=pk.Domain(x=pk.Ball([0.0] * 3, 1.0)))
    with pytest.raises(ValueError, match="needs a Domain with the coordinates"):
        known.interactions(domain=SQUARE)
    round_points = np.random.default_rng(1).normal(size=(60, 2))
    round_points /= 1.01 * np.linalg.norm(round_points, axis=1, keepdims=True)
    of_a_ball = pk.condition(pk.ard(SQUARE), pk.Observation(pk.identity, round_points, round_points[:, 0], 0.01))
    with pytest.raises(ValueError, match="in a ball of x"):
        of_a_ball.interactions()
    nothing = pk.Observation(pk.identity, 0.9 * round_points[:3], np.zeros(3), 0.01)
    with pytest.raises(ValueError, match="constant over the box"):
        pk.condition(pk.ard(SQUARE), nothing).interactions(pk.identity, domain=None)


def test_too_rough_for_exact_integrals():
    """With length scales far below the box a sample is taken instead."""
    make = partial(conditioned, SQUARE, lambda q: q[0], 10, [(0,), (1,), (0, 1)])
    assert make().interactions().exact and not make(lengthscale=0.05).interactions().exact
