"""The paper's initialisation against its formulas, written out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import ridge

import pdedkl as pk
from pdedkl.scales import data_scales
from pdedkl.training.objective import Objective
from pdedkl.training.paper import OPTIMISER, _adam_step, combined_variance, mean_distances
from pdedkl.training.starts import model_of


@pytest.mark.parametrize("n", [2, 3, 17])
def test_mean_distances_are_those_of_all_pairs(n):
    z = np.random.default_rng(n).normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0]
    z[:, 3] = np.round(z[:, 3])  # with ties
    pairs = [np.abs(z[i] - z[j]) for i in range(n) for j in range(i)]
    expected = np.mean(pairs, axis=0)
    np.testing.assert_allclose(mean_distances(jnp.asarray(z)), np.where(expected > 0, expected, 1.0), rtol=1e-12)


def test_mean_distances_of_one_point_or_equal_points_are_one():
    np.testing.assert_array_equal(mean_distances(jnp.ones((1, 2))), np.ones(2))
    np.testing.assert_array_equal(mean_distances(jnp.ones((5, 2))), np.ones(2))


def test_the_variance_combines_values_of_u_with_the_projected_source():
    """`(k Aᵀ)(A k Aᵀ)⁻¹ y_f` with the blocks of the kernel from differentiation; the solve is regularised by noise."""
    kernel = pk.deep(ridge.DOMAIN, pk.Affine.drawn(ridge.DIM, 2, key=jax.random.key(0)), lengthscale=0.3)
    values, source = ridge.observations()
    q, a = source.points, ridge.OPERATOR
    one = kernel.components[0]
    pairs = lambda k: jax.jit(lambda p: jax.vmap(lambda x: jax.vmap(lambda y: k(x, y))(p))(p))(q)
    half = lambda x, y: a(lambda y: one(x, y))(y)
    with_source, of_source = pairs(half), pairs(lambda x, y: a(lambda x: half(x, y))(x))
    noise = (1e-3 * data_scales([source])["f"]) ** 2
    projected = with_source @ np.linalg.solve(of_source + noise * np.eye(len(q)), source.values)
    expected = np.var(np.concatenate([values.values, projected]))
    np.testing.assert_allclose(combined_variance(kernel, [values, source]), expected, rtol=1e-7)


@pytest.mark.parametrize("u, expected", [([2.0, 4.0], 1.0), ([3.0, 3.0], 9.0), ([0.0, 0.0], 1.0)])
def test_the_variance_of_values_of_u_alone(u, expected):
    data = [pk.Observation(pk.identity, ridge.inside(0, 2), u)]
    np.testing.assert_allclose(combined_variance(pk.ard(ridge.DOMAIN), data), expected, rtol=1e-12)


def test_a_step_that_is_not_finite_moves_nothing():
    data = [pk.Observation(pk.identity, ridge.inside(0, 4), np.arange(4.0))]
    objective = Objective(model_of(pk.ard(ridge.DOMAIN), data), data)
    x = objective.start()
    units, memory = jnp.ones(x.size), OPTIMISER.init(jnp.ones(x.size))
    moved, after, value, _, finite = _adam_step(objective, units, x, memory)
    assert finite and np.isfinite(value) and np.any(moved != x)
    broken = np.where(np.arange(x.size) == 0, 1e4, x)  # exp(10⁴) overflows
    moved, kept, _, _, finite = _adam_step(objective, units, broken, after)
    assert not finite
    np.testing.assert_array_equal(moved, broken)
    for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(a, b)
