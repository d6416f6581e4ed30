"""Every pair of operators, every kernel, every embedding and sum, at every dimension, against power series.

Power series in two variables are automatic differentiation that compiles nothing. Operators that act on functions by
nested differentiation are the second reference.
"""

from __future__ import annotations

import itertools

import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import taylor

from pdedkl.embeddings import LatentJet
from pdedkl.inference.engines import ClosedForm

ENGINE = ClosedForm()
NAMES = list(cases.operators(2))
SIXTHS = [NAMES[i::6] for i in range(6)]
# The fifteen pairs of sixths, as five ways of pairing up all six.
PAIRINGS = (
    ((0, 5), (1, 4), (2, 3)),
    ((1, 5), (2, 0), (3, 4)),
    ((2, 5), (3, 1), (4, 0)),
    ((3, 5), (4, 2), (0, 1)),
    ((4, 5), (0, 3), (1, 2)),
)


def covering_design():
    """(profile, kernel shape, dimension, operators) such that every two factors meet.

    All operators of a case meet each other, and every two operators are in some case together.
    """
    for i, shape in enumerate(cases.KERNEL_SHAPES):
        for j, profile in enumerate(cases.profiles()):
            d = cases.DIMENSIONS[(i + j) % len(cases.DIMENSIONS)]
            a, b = PAIRINGS[(i + j // 3) % 5][(j + i // 5) % 3]
            yield pytest.param(profile, shape, d, SIXTHS[a] + SIXTHS[b], id=f"{profile}-{shape}-{d}-{a}{b}")


def test_the_design_lets_every_two_factors_meet():
    design = [case.values for case in covering_design()]
    met = set()
    for profile, shape, d, operators in design:
        for op in operators:
            met |= {frozenset([("op", op), other]) for other in (("p", profile), ("s", shape), ("d", d))}
            met |= {frozenset([("op", op), ("op", other)]) for other in operators}
        met |= {frozenset(pair) for pair in itertools.combinations([("p", profile), ("s", shape), ("d", d)], 2)}
    levels = {"op": NAMES, "p": cases.profiles(), "s": cases.KERNEL_SHAPES, "d": cases.DIMENSIONS}
    factors = [[(kind, level) for level in members] for kind, members in levels.items()]
    wanted = {frozenset(pair) for a, b in itertools.combinations(factors, 2) for pair in itertools.product(a, b)}
    wanted |= {frozenset(pair) for pair in itertools.product(factors[0], factors[0])}
    assert wanted <= met


@oracles.quick_jit
def coefficients(operators, q, directions):
    parts = [jax.vmap(lambda p, op=op: oracles.coefficients(op, p, directions))(q) for op in operators]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def filled(jet):
    """The same jet with zeros for the parts that it lacks."""
    h, G = jet.z.shape[-1], jet.diffusion
    G = jnp.zeros((*jet.z.shape, h)) if G is None else jax.vmap(jnp.diag)(G) if G.ndim == 2 else G
    drift = jnp.zeros_like(jet.z) if jet.drift is None else jet.drift
    return LatentJet(jet.z, jnp.zeros(jet.z.shape[:-1]) if jet.c is None else jet.c, drift, G)


def closed_form(kernel, operators, q, upper, apart):
    """All blocks between all operators; those whose rows have the same parts share a block, to compile fewer.

    Blocks of the upper or of the lower triangle are computed, the others are their transposes. Where parts are not to
    be told apart, those that a row lacks are zeros, and all rows share one block.
    """
    rows = [ENGINE.rows(kernel, op, q) for op in operators]
    if not apart:
        rows = [tuple(map(filled, row)) for row in rows]
    kinds: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        kinds.setdefault(str(jax.tree.map(jnp.ndim, row)), []).append(i)
    order = np.concatenate(list(kinds.values()))
    stacked = [
        jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *[rows[i] for i in kind]) for kind in kinds.values()
    ]
    bases = ENGINE.parameters(kernel)
    count = range(len(stacked))
    half = {
        (i, j): ENGINE.block(bases, stacked[i], stacked[j]) for i in count for j in count if i == j or (i < j) == upper
    }
    gram = jnp.block([[half[i, j] if (i, j) in half else half[j, i].T for j in count] for i in count])
    diagonal = jnp.concatenate([ENGINE.diagonal(bases, a) for a in stacked])
    place = np.argsort((order[:, None] * len(q) + np.arange(len(q))).ravel())
    return gram[place[:, None], place], diagonal[place]


@pytest.mark.parametrize("profile, shape, d, names", list(covering_design()))
def test_closed_form_equals_automatic_differentiation(profile, shape, d, names):
    kernel = cases.kernel(d, profile, shape)
    operators = [cases.operators(d)[name] for name in names]
    q = jnp.asarray(cases.points(d, 2))  # rows and columns share them: coincident points are included

    parts = map(np.asarray, coefficients(operators, q, max(d, 9) + 4))
    places = np.tile(np.arange(len(q)), len(operators))
    expected = taylor.covariances(kernel, q, list(zip(places, *parts, strict=True)))
    # Every kernel shape is compiled as users have it at least once, and meets rows that lack parts. In sums they are
    # filled with zeros: each component has met them alone.
    jit = oracles.as_users_have_it if profile == "squared exponential" else oracles.quick_jit
    apart = len(kernel.components) == 1 and (d + list(cases.profiles()).index(profile)) % 2 == 0
    got, diagonal = map(np.asarray, jit(closed_form)(kernel, operators, q, d % 2 == 0, apart))

    # Relative to the two standard deviations, where there are any: a mixed derivative of a sum of functions is zero.
    variance = np.diagonal(expected)
    scale = np.sqrt(np.where(variance > 1e-20, variance, 1.0))
    error = np.abs(got - expected) / np.outer(scale, scale)
    i, j = np.unravel_index(error.argmax(), error.shape)
    assert error.max() < 1e-10, f"{names[i // 2]} against {names[j // 2]}: {error.max():.1e}"
    np.testing.assert_allclose(diagonal, variance, rtol=1e-10, atol=1e-20)


def test_direct_nesting_of_operators_agrees_too():
    """The oracle above takes an operator's coefficients from its symbol; here operators act on functions themselves."""
    d = 2
    kernel = cases.kernel(d, "squared exponential", "affine")
    q = jnp.asarray(cases.points(d, 2))
    operators = [cases.operators(d)[name] for name in NAMES[1::4]]
    k = oracles.kernel_function(kernel)

    @oracles.quick_jit
    def direct(operators, q):
        def pair(a, b):
            return jax.vmap(lambda p: jax.vmap(lambda p_: a(lambda s: b(lambda s_: k(s, s_))(p_))(p))(q))(q)

        return jnp.block([[pair(a, b) for b in operators] for a in operators])

    expected = np.asarray(direct(operators, q))
    got, diagonal = map(np.asarray, oracles.quick_jit(closed_form)(kernel, operators, q, True, True))
    assert np.max(np.abs(got - expected) / np.sqrt(np.outer(diagonal, diagonal))) < 1e-10
