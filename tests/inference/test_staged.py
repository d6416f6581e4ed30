"""Stages that know only jets, against one program for the whole problem."""

from __future__ import annotations

from itertools import cycle

import equinox as eqx
import jax
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.inference import staged
from pdedkl.inference.engines import ClosedForm
from pdedkl.inference.evidence import linear_system
from pdedkl.inference.parts import joined, layout_of, size_of
from pdedkl.inference.staged import (
    STAGED_VALUES,
    cross_of,
    evaluate,
    filled_system,
    gram_of,
    matrix_of,
    pulled_back,
    rows_at,
    variances_of,
)

DOMAIN = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 1.0))
X, T = DOMAIN.coordinates()
HEAT = pk.D(T) - 0.3 * pk.Laplacian(X)
RNG = np.random.default_rng(0)


def observed(operator, n, values=None, name=None):
    q = 0.5 * RNG.uniform(size=(n, 3))
    return pk.Observation(operator, q, np.sin(q.sum(axis=1)) if values is None else np.full(n, values), 0.1, name)


U, ZERO = observed(pk.identity, 11), observed(pk.identity, 9, 0.0, "walls")
F, NONE = observed(HEAT, 10), observed(pk.Laplacian(X), 13, 0.0)
FLUX = observed(pk.D(X[0]), 5)
PERIOD = observed(pk.identity - pk.Shift(T, 0.4), 6, 0.0)
MIXED = observed(pk.D(X[0], X[1]) + pk.D(T), 4)

# Data, and how many of the first observations are given.
CASES = {
    "values": ((U,), 0),
    "equation": ((F,), 0),
    "both": ((U, F), 0),
    "order of sections does not matter": ((F, U, FLUX), 0),
    "given equation": ((NONE, U), 1),
    "given values": ((ZERO, U, F), 1),
    "all values given": ((ZERO, F), 1),
    "some of both given": ((ZERO, NONE, U, F), 2),
    "sums of two places": ((PERIOD, U, F), 0),
    "given sums of two places": ((PERIOD, U, F), 1),
    "mixed derivatives": ((MIXED, U), 0),
}
KERNELS = {
    "inputs": lambda: pk.ard(DOMAIN, lengthscale=[0.7, 1.0, 1.3]),
    "rational quadratic": lambda: pk.ard(DOMAIN, pk.RationalQuadratic(0.8)),
    "additive": lambda: pk.additive(DOMAIN, pk.Matern52()),
    "ridges": lambda: pk.deep(DOMAIN, pk.Affine(RNG.normal(size=(9, 3))), groups=[(i,) for i in range(9)]),
    "groups of two sizes": lambda: pk.deep(DOMAIN, pk.IdentityEmbedding(), groups=[(0, 2), (1,), (0, 1)]),
    "a sum with a network": lambda: (
        pk.additive(DOMAIN) + pk.deep(DOMAIN, pk.Residual(3, 2, width=4, depth=1, key=jax.random.key(1)))
    ),
}


# Every kind of data with the plain kernel, and every other kernel with one of the two that need most.
PAIRS = [(data, "inputs") for data in CASES]
PAIRS += list(zip(cycle(("some of both given", "sums of two places")), list(KERNELS)[1:]))


@pytest.mark.parametrize("data, kernel", PAIRS)
def test_evidence_and_gradient_are_those_of_one_program(data, kernel):
    observations, given = CASES[data]
    model = pk.Model(KERNELS[kernel](), observations)
    moving, fixed = eqx.partition(model, eqx.is_inexact_array)

    def arrays(moving):
        system, _ = filled_system(eqx.combine(moving, fixed), observations, given)
        parts = [(eqx.filter(part.parameters, eqx.is_inexact_array), part.sections) for part in system.parts]
        return parts, system.noise, system.residual

    system, _ = eqx.filter_jit(filled_system)(model, observations, given)
    found = evaluate(system)
    back = eqx.filter_jit(lambda m, cotangent: jax.vjp(arrays, m)[1](cotangent)[0])
    gradient = back(moving, (pulled_back(system.parts, found.weights), found.of_noise, found.of_residual))
    whole = eqx.filter_jit(
        eqx.filter_value_and_grad(lambda m: pk.negative_log_evidence(m, observations, given=given)[0])
    )
    value, expected = whole(model)
    np.testing.assert_allclose(found.value, value, rtol=1e-9)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8 * max(1.0, float(np.max(np.abs(b)))))


@pytest.mark.parametrize("data", CASES)
def test_left_out_values_are_those_of_a_posterior(data):
    observations, given = CASES[data]
    model = pk.Model(pk.ard(DOMAIN), observations)
    system, order = filled_system(model, observations, given)
    left_out = np.asarray(evaluate(system).left_out)[order.place]
    expected = [item.errors for item in pk.condition(model, observations).left_out()]
    np.testing.assert_allclose(left_out, np.concatenate(expected), rtol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_matrix_of_all_rows_and_its_diagonal(kernel):
    engine, observations = ClosedForm(), (U, F, FLUX, MIXED)
    model = pk.Model(KERNELS[kernel](), observations)
    whole = linear_system(model, observations)
    every = lambda: [[engine.block(whole.parameters, a, b) for b in whole.sections] for a in whole.sections]
    blocks = jax.jit(every)()
    parts, layout = joined(engine, whole.parameters, whole.sections)
    np.testing.assert_allclose(matrix_of(parts, layout), np.block(blocks), rtol=1e-10, atol=1e-10)
    for item in observations:
        rows = rows_at(engine, model.kernel, item.operator, item.points)
        alone = joined(engine, whole.parameters, (rows,))
        found = variances_of(*alone, engine, whole.parameters, rows)
        np.testing.assert_allclose(found, engine.diagonal(whole.parameters, rows), rtol=1e-10)


@pytest.mark.parametrize("kernel", ["inputs", "groups of two sizes"])
def test_covariances_in_tiles_are_those_of_one_program(kernel, monkeypatch):
    """With sections of less than a tile, a whole one and more; rows that lack parts to the left and to the right."""
    data = (U, F, FLUX, ZERO)
    model = pk.Model(KERNELS[kernel](), list(data))
    engine = ClosedForm()
    sections = [rows_at(engine, model.kernel, item.operator, item.points) for item in data]
    parameters = engine.parameters(model.kernel)
    parts, layout = joined(engine, parameters, sections)
    others, _ = joined(engine, parameters, sections[::-1][:2])
    monkeypatch.setattr(staged, "TILE", 8)
    tiled = matrix_of(parts, layout), np.asarray(cross_of(parts, others))
    monkeypatch.setattr(staged, "TILED_PAIRS", 0)
    for found, expected in zip(tiled, (matrix_of(parts, layout), cross_of(parts, others)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_usual_sizes():
    sizes = [size_of(n) for n in range(1, 5000)]
    assert all(n <= size <= 1.25 * n or n < 9 for n, size in enumerate(sizes, start=1))
    assert all(size_of(size) == size for size in sizes)
    assert len(set(sizes)) < 70 and size_of(0) == 0


def test_problems_of_about_one_size_have_programs_of_one_size():
    shapes = set()
    for dim, values, source in ((2, 98, 158), (3, 96, 155)):
        problem = pk.problems.built_in("heat", dim=dim)
        data = problem.sample(source, values, 30)
        model = pk.Model(pk.deep(problem.domain, pk.Affine(np.eye(dim + 1)[:3])), data)
        parts, _ = joined(ClosedForm(), ClosedForm().parameters(model.kernel), linear_system(model, data).sections)
        shapes.add(gram_of(parts).shape)
    assert len(shapes) == 1


def test_many_values_are_not_evaluated_in_stages():
    assert STAGED_VALUES >= 4000  # what training takes at most by itself


def test_layouts_bring_given_rows_to_the_front():
    counts = [(5, 1), (9, 1), (3, 1)]
    for full, given, first in (
        ([False, False, True], 1, 5),
        ([True, False, False], 1, 5),
        ([False, True, False], 2, 15),
        ([False, True, True], 2, 15),
    ):
        layout = layout_of(counts, full, given)
        assert layout.first == first
        assert sorted(layout.owner[layout.owner >= 0]) == list(range(17))
        np.testing.assert_array_equal(layout.owner[layout.place[:, 0]], np.arange(17))
    assert layout_of([*counts, (4, 1)], [False, True, False, True], 2).first is None
