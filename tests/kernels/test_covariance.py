"""Every pair of operators, every kernel, every embedding and sum, at every dimension, against nested autodiff."""

from __future__ import annotations

import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from pdedkl.inference.engines import ClosedForm


def covering_design():
    """Kernels × embeddings × dimensions such that every two of them meet; all operators meet in each."""
    shapes, profiles = list(cases.KERNEL_SHAPES), list(cases.profiles())
    for i, shape in enumerate(shapes):
        for j, profile in enumerate(profiles):
            yield profile, shape, cases.DIMENSIONS[(i + j) % len(cases.DIMENSIONS)]


def test_the_design_covers_every_two_factors():
    design = set(covering_design())
    for axis, levels in enumerate((cases.profiles(), cases.KERNEL_SHAPES, cases.DIMENSIONS)):
        assert {case[axis] for case in design} == set(levels)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        sizes = (len(cases.profiles()), len(cases.KERNEL_SHAPES), len(cases.DIMENSIONS))
        assert len({(case[a], case[b]) for case in design}) == sizes[a] * sizes[b]


@pytest.mark.parametrize("profile, shape, d", covering_design())
def test_closed_form_equals_nested_autodiff(profile, shape, d):
    kernel = cases.kernel(d, profile, shape)
    operators = cases.operators(d)
    q = jnp.asarray(cases.points(d, 2))  # rows and columns share them: coincident points are included
    repeated = jnp.tile(q, (len(operators), 1))

    parts = [
        jax.vmap(lambda p, op=op: oracles.coefficients(op, p, directions=max(d, 9) + 4))(q) for op in operators.values()
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
    expected = np.asarray(oracles.nested(oracles.kernel_function, kernel, stacked, repeated, stacked, repeated))

    engine = ClosedForm()
    rows = [engine.rows(kernel, op, q) for op in operators.values()]
    bases = engine.parameters(kernel)
    got = np.block([[np.asarray(engine.block(bases, a, b)) for b in rows] for a in rows])

    scale = np.sqrt(np.diagonal(expected))  # relative to the two standard deviations
    error = np.abs(got - expected) / np.outer(scale, scale)
    assert error.max() < 1e-10, _worst(error, list(operators))
    diagonal = np.concatenate([np.asarray(engine.diagonal(bases, r)) for r in rows])
    np.testing.assert_allclose(diagonal, np.diagonal(expected), rtol=1e-10)


def _worst(error, names):
    i, j = np.unravel_index(error.argmax(), error.shape)
    return f"{names[i // 2]} against {names[j // 2]}: {error.max():.1e}"
