"""Operators that look at other points, through covariances, evidence and posterior."""

from __future__ import annotations

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import pdedkl as pk
from pdedkl.inference import gram
from pdedkl.inference.engines import Autodiff, ClosedForm

D = 2
BOX = cases.domain(D)
X, T = BOX.coordinates()


@eqx.filter_jit
def closed_form(kernel, operators, q):
    engine = ClosedForm()
    bases, rows = engine.parameters(kernel), [engine.rows(kernel, op, q) for op in operators]
    blocks = [[engine.block(bases, a, b) for b in rows[i:]] for i, a in enumerate(rows)]
    values = jnp.stack([engine.with_value(kernel, q[0], a) for a in rows])
    return blocks, jnp.stack([engine.diagonal(bases, a) for a in rows]), values


def test_covariances_equal_nested_autodiff():
    """Each local term is its coefficients at `q`, applied at `q + s`; covariances of terms add."""
    kernel, shifted = cases.kernel(D, "matern 7/2", "tanh"), cases.shifted(D)
    operators = [pk.identity, *(shifted[name] for name in ("periodic slope", "coefficient here", "two moves"))]
    q = jnp.asarray(cases.points(D, 2))
    blocks, diagonal, values = closed_form(kernel, operators, q)

    @oracles.quick_jit
    def terms(operators, q):
        parts, places = [], []
        for op in operators:
            for move, local in op.local_terms():
                parts.append(jax.vmap(lambda p, local=local: oracles.coefficients(local, p, D + 4))(q))
                places.append(q if move is None else q + move)
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts), jnp.concatenate(places)

    rows = terms(operators, q)
    pairs = oracles.nested(oracles.kernel_function, kernel, *rows, *rows)
    owner = np.concatenate([np.tile([2 * i, 2 * i + 1], len(op.local_terms())) for i, op in enumerate(operators)])
    adding = np.eye(2 * len(operators))[owner]
    expected = adding.T @ np.asarray(pairs) @ adding
    scale = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    for i, row in enumerate(blocks):
        for j, got in enumerate(row, start=i):
            where = np.ix_([2 * i, 2 * i + 1], [2 * j, 2 * j + 1])
            error = np.abs(got - expected[where]) / scale[where]
            assert error.max() < 1e-10, f"{operators[i]} against {operators[j]}"
    np.testing.assert_allclose(np.ravel(diagonal), np.diagonal(expected), rtol=1e-10)
    np.testing.assert_allclose(np.ravel(values), expected[0], rtol=1e-9, atol=1e-10)


def test_covariances_equal_those_of_the_autodiff_engine():
    """Here the operators act on the kernel themselves, and their local terms are not asked for."""
    kernel, q, shifted = cases.kernel(D, "squared exponential", "additive"), cases.points(D, 2), cases.shifted(D)
    operators = [shifted[name] for name in ("periodic", "coefficient there", "first of first")]

    @oracles.quick_jit
    def nested(kernel, operators, q):
        engine = Autodiff()
        rows = [engine.rows(kernel, op, q) for op in operators]
        return [[engine.block(kernel, a, b) for b in rows[i:]] for i, a in enumerate(rows)]

    got, _, _ = closed_form(kernel, operators, jnp.asarray(q))
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(nested(kernel, operators, jnp.asarray(q))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


# A function of period 2 in `x`, up to a slope that the observations know of.
PERIOD = pk.Shift(X[0], -2.0)
SLOPE = 0.3


def truth(q):
    return jnp.sin(jnp.pi * q[0]) * jnp.cos(q[1]) + SLOPE * q[0]


def observations(noise=1e-3):
    rng = np.random.default_rng(0)
    inside, face = rng.uniform((-0.4, 0.0), (0.4, 2.0), size=(12, 2)), rng.uniform(0.0, 2.0, size=(6, 2))
    face[:, 0] = 1.0
    speed = pk.Parameter("k", 1.0, positive=True)
    jump, kink = pk.identity - PERIOD, pk.D(X[0]) - PERIOD @ (speed * pk.D(X[0]))
    return (
        pk.Observation(pk.identity, inside, oracles.at_points(truth, inside), noise, name="u"),
        pk.Observation(jump, face, oracles.at_points(jump(truth), face), noise, name="jump"),
        pk.Observation(kink, face, oracles.at_points(kink(truth), face), pk.Learned("kink", 0.01), name="kink"),
    )


def test_evidence_and_gradient_equal_those_of_the_autodiff_engine(monkeypatch):
    monkeypatch.setitem(gram.PAIRS_PER_CHUNK, "cpu", 100)  # chunks of rows that do not divide them evenly
    data = observations(noise=0.1)
    kernel = pk.deep(BOX, pk.Affine.drawn(D, 2, key=jax.random.key(0)), lengthscale=0.7)
    rule = eqx.filter_value_and_grad(pk.negative_log_evidence, has_aux=True)
    found = [
        jit(rule)(pk.Model(kernel, data, mean=pk.ConstantMean(0.2), engine=engine), data)
        for jit, engine in ((eqx.filter_jit, "closed-form"), (oracles.quick_jit, "autodiff"))
    ]
    ((value, info), gradient), ((expected, _), reference) = found
    assert info.jitter == 0 and value == pytest.approx(float(expected), rel=1e-10)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(reference), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7 * max(1e-3, float(jnp.abs(b).max())))
    assert float(gradient.coefficients["k"]) != 0 and float(gradient.mean.value) != 0


def test_a_posterior_is_periodic_where_it_was_told_so():
    data = observations()
    posterior = pk.condition(pk.ard(BOX, lengthscale=(0.5, 1.0)), data)
    face = np.random.default_rng(1).uniform(0.0, 2.0, size=(4, 2))
    face[:, 0] = 1.0
    jump = data[1].operator
    between = lambda q: posterior.predict(q).mean - posterior.predict(q - np.asarray([2.0, 0.0])).mean
    np.testing.assert_allclose(between(np.asarray(data[1].points)), data[1].values, atol=3e-3)
    assert np.allclose(data[1].values, 2.0 * SLOPE)
    # The operator itself is predicted too: the same mean, the variance of a difference.
    predicted = posterior.predict(face, jump)
    np.testing.assert_allclose(predicted.mean, between(face), atol=1e-9)
    np.testing.assert_allclose(predicted.mean, oracles.at_points(jump(posterior.mean), face), atol=1e-9)
    joint = posterior.covariance(np.concatenate([face, face - np.asarray([2.0, 0.0])]))
    difference = np.concatenate([np.eye(4), -np.eye(4)])
    np.testing.assert_allclose(posterior.covariance(face, jump), difference.T @ joint @ difference, atol=1e-9)
    np.testing.assert_allclose(predicted.variance, np.diagonal(posterior.covariance(face, jump)), atol=1e-9)
    # Seen from the other face the data are half a period away: what is known there comes through the condition.
    alone = pk.condition(pk.ard(BOX, lengthscale=(0.5, 1.0)), data[:1])
    assert np.all(predicted.std < 0.05 * alone.predict(face, jump).std)
