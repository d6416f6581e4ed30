"""Shifts against their meaning: what they do to a function, what they are composed of, how they print."""

from __future__ import annotations

import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from test_operators import wavy

import pdedkl as pk

X, T = pk.Domain(x=[(0, 1)] * 3, t=(0, 1)).coordinates("x", "t")
STEP = pk.Shift(X[0], 1.0)


def test_a_shift_looks_at_another_point():
    q = jnp.asarray([0.3, 0.7, 0.1, 0.4])
    there, far = q + jnp.asarray([1.0, 0, 0, 0]), q + jnp.asarray([0.5, 0, -2.0, 0])
    expected = [
        (STEP, wavy(there)),
        (pk.Shift(X, [0.5, 0.0, -2.0]), wavy(far)),
        (pk.Shift(T, 1.0) @ pk.Shift(T, -1.0), wavy(q)),
        (pk.identity - STEP, wavy(q) - wavy(there)),
        (STEP @ pk.D(X[1]), jax.grad(wavy)(there)[1]),
        (pk.D(X[1]) @ STEP, jax.grad(wavy)(there)[1]),
        # A coefficient is taken where its operator acts.
        (pk.Coefficient(T) * STEP, 0.4 * wavy(there)),
        (pk.Shift(T, 1.0) @ (pk.Coefficient(T) * pk.identity), 1.4 * wavy(q + jnp.asarray([0, 0, 0, 1.0]))),
    ]
    for operator, value in expected:
        assert operator(wavy)(q) == pytest.approx(float(value), rel=1e-14), str(operator)


@pytest.mark.parametrize("d", (1, 3))
def test_the_local_terms_make_up_the_operator(d):
    """`Σ_k A_k S_k u`, with the symbols of the `A_k`, against the operator's own meaning."""
    operators, q = list(cases.shifted(d).values()), jnp.asarray(cases.points(d, 3))

    @oracles.quick_jit
    def both(operators, q):
        def by_terms(operator, p):
            total = 0.0
            for move, local in operator.local_terms():
                there = wavy if move is None else lambda r, move=move: wavy(r + move)
                total += oracles.apply(oracles.coefficients(local, p, d + 4), there)(p)
            return total

        reference = [jax.vmap(op(wavy))(q) for op in operators]
        return jnp.stack(reference), jnp.stack([jax.vmap(lambda p, op=op: by_terms(op, p))(q) for op in operators])

    reference, terms = both(operators, q)
    np.testing.assert_allclose(terms, reference, rtol=1e-12, atol=1e-12)


def test_terms_are_as_few_as_can_be():
    for operator in cases.operators(2).values():
        assert operator.local and operator.local_terms()[0][1] is operator and len(operator.local_terms()) == 1
    counts = {name: len(operator.local_terms()) for name, operator in cases.shifted(2).items()}
    assert counts == {
        "alone": 1,
        "periodic": 2,
        "periodic slope": 2,
        "coefficient here": 2,
        "coefficient there": 2,
        "first of first": 1,
        "two moves": 4,
    }
    assert not any(operator.local for operator in cases.shifted(2).values())
    here = pk.identity + pk.D(X[0]) - STEP + pk.Laplacian(X)
    assert [str(local) for _, local in here.local_terms()] == ["1 + ∂/∂x[0] + Δ_x", "-1"]


def test_order_and_domain_are_those_of_the_derivatives():
    assert [op.order for op in (STEP, pk.identity - STEP, pk.D(T) - STEP @ pk.Laplacian(X))] == [0, 0, 2]
    assert (pk.identity - STEP).dim == 4
    with pytest.raises(ValueError, match="local_terms"):
        (pk.identity - STEP).symbol(jnp.zeros(4))


def test_a_shift_is_data_that_no_gradient_moves():
    slope = jax.grad(lambda op: op(wavy)(jnp.zeros(4)), allow_int=True)(STEP)
    np.testing.assert_array_equal(slope.move, np.zeros(4))


def test_shifts_print_readably():
    shown = {
        "1 - S(x[0] + 1)": pk.identity - STEP,
        "∂/∂x[0] - S(x[0] + 1) ∂/∂x[0]": pk.D(X[0]) - STEP @ pk.D(X[0]),
        "S(t - 0.5)": pk.Shift(T, -0.5),
        "S(x[0] + 1, x[2] - 2)": pk.Shift(X, [1.0, 0.0, -2.0]),
        "2 S(x[0] + 1) (∂/∂t + 1)": 2 * STEP @ (pk.D(T) + 1),
        "S(y + s)": pk.Shift(pk.Domain(y=[(0, 1)] * 5).coordinates("y"), np.ones(5)),
    }
    for text, operator in shown.items():
        assert str(operator) == text == repr(operator)
    assert jax.eval_shape(lambda op: jnp.zeros(len(str(op))), STEP).shape == (len("S(x[0] + s)"),)
