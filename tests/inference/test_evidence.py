"""The evidence and its derivative rule, against a plain computation of the same number."""

from __future__ import annotations

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import multivariate_normal
from oracles import quick_jit

import pdedkl as pk
from pdedkl.inference import cholesky, gram
from pdedkl.inference.cholesky import JITTER_LADDER, factorise, inverse
from pdedkl.inference.evidence import linear_system


def heat_observations(d=3, sizes=(7, 5, 9), noise="learned", operator=None):
    """Boundary-like values, a flux with known noise per point, and source values of a heat operator."""
    box = cases.domain(d)
    x, t = box.coordinates("x", "t")
    operator = pk.D(t) - pk.Parameter("nu", 0.8, positive=True) * pk.Laplacian(x) if operator is None else operator
    q = [cases.points(d, n, seed) for seed, n in enumerate(sizes)]
    return (
        pk.Observation(pk.identity, q[0], np.sin(q[0].sum(1)), noise, name="u"),
        pk.Observation(pk.D(x[0]), q[1], np.cos(q[1].sum(1)), np.linspace(0.01, 0.1, sizes[1]), name="flux"),
        pk.Observation(operator, q[2], np.cos(q[2][:, 0]), pk.Learned("f", 0.05)),
    )


def plain_evidence(model, observations, jitter=0.0):
    """One density of one big normal distribution, with nothing of our own in the linear algebra."""
    system = linear_system(model, observations)
    K = jnp.block([[system.engine.block(system.parameters, a, b) for b in system.sections] for a in system.sections])
    covariance = K + jnp.diag(system.noise + jitter * jnp.diagonal(K))
    return -multivariate_normal.logpdf(system.residual, jnp.zeros(len(system.residual)), covariance)


@pytest.mark.parametrize("shape, pairs", (("residual", 1 << 16), ("identity", 60), ("additive + deep", 60)))
def test_value_and_gradient_equal_the_plain_computation(shape, pairs, monkeypatch):
    """With one chunk of rows, and with many that do not divide them evenly."""
    monkeypatch.setitem(gram.PAIRS_PER_CHUNK, "cpu", pairs)
    observations = heat_observations()
    mean = pk.ConstantMean(0.3)
    model = pk.Model(cases.kernel(3, "squared exponential", shape), observations, mean=mean)
    rule = eqx.filter_jit(eqx.filter_value_and_grad(pk.negative_log_evidence, has_aux=True))
    (value, info), gradient = rule(model, observations)
    expected, plain = quick_jit(eqx.filter_value_and_grad(plain_evidence))(model, observations)
    assert info.jitter == 0
    assert value == pytest.approx(float(expected), rel=1e-10)
    named = jax.tree_util.tree_leaves_with_path(gradient)
    for (path, a), b in zip(named, jax.tree.leaves(plain)):
        tolerance = 1e-7 * max(1e-3, float(jnp.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=tolerance, err_msg=jax.tree_util.keystr(path))
    assert float(gradient.coefficients["nu"]) != 0 and float(gradient.mean.value) != 0


def test_gradient_is_exact_where_jitter_was_needed(monkeypatch):
    """The jitter is a multiple of the diagonal of K, and so depends on the parameters."""
    monkeypatch.setattr(cholesky, "JITTER_LADDER", (1e-2, 1e-1))
    observations = heat_observations()
    model = pk.Model(cases.kernel(3, "squared exponential", "identity"), observations)
    rule = eqx.filter_jit(eqx.filter_value_and_grad(pk.negative_log_evidence, has_aux=True))
    (value, info), gradient = rule(model, observations)
    expected, plain = quick_jit(eqx.filter_value_and_grad(plain_evidence))(model, observations, jitter=1e-2)
    assert info.jitter == 1e-2 and value == pytest.approx(float(expected), rel=1e-10)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(plain)):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_batched_starts_give_the_same_as_one_at_a_time():
    observations = heat_observations()
    make = lambda key: pk.Model(pk.deep(cases.domain(3), pk.Affine.drawn(3, 2, key=key)), observations)
    models = [make(key) for key in jax.random.split(jax.random.key(0), 3)]
    arrays = [eqx.partition(model, eqx.is_array)[0] for model in models]
    static = eqx.partition(models[0], eqx.is_array)[1]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays)
    objective = jax.value_and_grad(lambda a: pk.negative_log_evidence(eqx.combine(a, static), observations)[0])
    together, gradients = jax.jit(jax.vmap(objective))(stacked)
    alone = jax.jit(objective)
    for i, item in enumerate(arrays):
        value, gradient = alone(item)
        assert together[i] == pytest.approx(float(value), rel=1e-11)
        for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(gradient)):
            np.testing.assert_allclose(a[i], b, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("n, blocks", ((1, 4), (3, 4), (4, 4), (57, 4), (57, 1)))
def test_inverse(n, blocks):
    A = np.random.default_rng(n).normal(size=(n, n))
    K = A @ A.T + np.eye(n)
    factor, jitter = factorise(jnp.asarray(np.triu(K)), jnp.zeros(n))
    got = np.asarray(inverse(factor, blocks))
    assert jitter == 0
    np.testing.assert_allclose(got, np.linalg.inv(K), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(got, got.T)


def test_the_jitter_ladder_climbs_and_gives_up():
    K = jnp.ones((4, 4)) + 1e-9 * jnp.diag(jnp.asarray([-1.0, 1.0, 1.0, 1.0]))
    factor, jitter = factorise(K, jnp.zeros(4))
    assert jitter == 1e-8 and np.all(np.isfinite(factor))
    factor, jitter = factorise(-jnp.eye(4), jnp.zeros(4))
    assert jitter == JITTER_LADDER[-1] and np.all(np.isnan(np.diagonal(factor)))
