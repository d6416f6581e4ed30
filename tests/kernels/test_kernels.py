"""Profiles, kernels and their derivatives with respect to parameters."""

from __future__ import annotations

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import as_users_have_it, at_points, quick_jit
from scipy import special

import pdedkl as pk
from pdedkl.inference.engines import ClosedForm
from pdedkl.kernels import covariance, covariances
from pdedkl.kernels.covariance import _all_pairs, all_from_differences, from_differences, from_products


@pytest.mark.parametrize("name", cases.profiles())
def test_profile_derivatives(name):
    profile = cases.profiles()[name]
    s = jnp.linspace(0.05, 6.0, 30)
    f = lambda x: profile.derivatives(x, 0)[0]
    for k, derivative in enumerate(as_users_have_it(lambda profile, s: profile.derivatives(s, 4))(profile, s)):
        np.testing.assert_allclose(derivative, at_points(f, s), rtol=1e-9, err_msg=f"derivative {k}")
        f = jax.grad(f)
    assert float(profile(jnp.zeros(()))) == 1.0


@pytest.mark.parametrize("twice_nu, profile", ((5, pk.Matern52()), (7, pk.Matern72()), (9, pk.Matern92())))
def test_matern_equals_its_bessel_function(twice_nu, profile):
    nu, r = twice_nu / 2, np.linspace(0.1, 5, 20)
    x = np.sqrt(2 * nu) * r
    expected = 2 ** (1 - nu) / special.gamma(nu) * x**nu * special.kv(nu, x)
    np.testing.assert_allclose(profile(jnp.asarray(r**2 / 2)), expected, rtol=1e-12)


def test_smoothness():
    assert [p.smoothness for p in (pk.Matern52(), pk.Matern72(), pk.Matern92())] == [2, 3, 4]
    assert pk.SquaredExponential().smoothness == np.inf


@pytest.mark.parametrize("h", (1, 4, 10, 20))
@pytest.mark.parametrize("diagonal", (False, True))
def test_products_equal_differences(h, diagonal):
    """The values of all pairs come from one, their derivatives from the other: they are the same numbers."""
    rng = np.random.default_rng(h)

    def jets(n, diagonal):
        G = rng.normal(size=(n, h) if diagonal else (n, h, h))
        G = G if diagonal else G + G.transpose(0, 2, 1)
        z, c, drift = rng.normal(size=(n, h)), rng.normal(size=n), rng.normal(size=(n, h))
        return pk.embeddings.LatentJet(*map(jnp.asarray, (z, c, drift, G)))

    left, right = jets(3, diagonal), jets(4, False)

    @as_users_have_it
    def three_ways(left, right):
        pair_by_pair, products = (_all_pairs(numbers, left, right) for numbers in (from_differences, from_products))
        return tuple(zip(all_from_differences(left, right), pair_by_pair, products))

    for a, b, c in three_ways(left, right):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14 * np.abs(a).max())
        np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-11 * np.abs(a).max())


@pytest.mark.parametrize("profile", (pk.SquaredExponential(), pk.RationalQuadratic(), pk.Matern92()))
def test_many_latent_coordinates(profile):
    """All pairs at once against pair by pair, for points far apart, 1e-6 apart and equal."""
    rng = np.random.default_rng(5)
    h = 40
    z = rng.uniform(-1, 1, size=(5, h)) / np.sqrt(h) * 3
    near = np.concatenate([z + 1e-6 * rng.normal(size=z.shape), z, rng.uniform(-1, 1, size=(3, h))])
    drift, diffusion = (rng.normal(size=(len(near), h)) for _ in range(2))
    parts = lambda z, k: map(jnp.asarray, (z, np.ones(len(z)), drift[:k], diffusion[:k]))
    left, right = pk.embeddings.LatentJet(*parts(z, 5)), pk.embeddings.LatentJet(*parts(near, len(near)))
    one = lambda k, at: jax.tree.map(lambda leaf: leaf[at], k)
    expected = [[covariance(profile, one(left, i), one(right, j)) for j in range(len(near))] for i in range(5)]
    found = as_users_have_it(covariances)(profile, left, right)
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", ("identity", "tanh", "additive"))
def test_gradients_of_blocks_equal_plain_autodiff(shape):
    """The rule for the derivatives of all pairs against differentiating the formula of each pair."""
    d = 3
    kernel, q = cases.kernel(d, "rational quadratic", shape), jnp.asarray(cases.points(d, 4))
    left, right = cases.operators(d)["variable"], cases.operators(d)["divergence matrix"]
    weight = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)))
    engine = ClosedForm()

    def by_rule(kernel):
        rows = [engine.rows(kernel, op, q) for op in (left, right)]
        return jnp.vdot(weight, engine.block(engine.parameters(kernel), *rows))

    def by_pairs(kernel):
        def block(component):
            a, b = component.jets(left, q), component.jets(right, q)
            return jax.vmap(lambda x: jax.vmap(lambda y: component.base.pair(x, y))(b))(a)

        return jnp.vdot(weight, sum(map(block, kernel.components)))

    rule = as_users_have_it(eqx.filter_grad(by_rule))(kernel)
    plain = quick_jit(eqx.filter_grad(by_pairs))(kernel)
    for a, b in zip(jax.tree.leaves(rule), jax.tree.leaves(plain)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, float(jnp.abs(b).max())))


def test_matern_covariance_is_finite_between_nearly_equal_points():
    jet = lambda z: pk.embeddings.LatentJet(jnp.asarray([z, 0.0]), jnp.ones(()), jnp.ones(2), jnp.eye(2))
    at = [float(covariance(pk.Matern52(), jet(0.0), jet(z))) for z in (0.0, 1e-300, 1e-17, 1e-9, 1e-6)]
    assert np.all(np.isfinite(at))
    np.testing.assert_allclose(at, at[0], rtol=1e-4)


def test_a_sum_of_kernels_adds_components():
    box = cases.domain(3)
    both = pk.additive(box) + pk.ard(box, pk.Matern52())
    q, q_ = (jnp.asarray(p) for p in cases.points(3, 2))
    assert both(q, q_) == pytest.approx(float(pk.additive(box)(q, q_) + pk.ard(box, pk.Matern52())(q, q_)))
    assert both.smoothness == 2
