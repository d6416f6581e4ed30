"""An operator's symbol against its reference meaning, its algebra, and how it prints."""

from __future__ import annotations

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import pdedkl as pk
from pdedkl.operators import bind, parameters_of


def wavy(q):
    """A function with all derivatives, that no symmetry of the operators is blind to."""
    w = jnp.linspace(0.3, 1.1, q.shape[0])
    return jnp.sin(jnp.dot(w, q)) + jnp.exp(-0.1 * jnp.sum((q - 0.2) ** 2) * w[0]) + q[0] ** 2 * q[-1]


@pytest.mark.parametrize("d", cases.DIMENSIONS)
def test_symbol_equals_the_reference_meaning(d):
    operators = list(cases.operators(d).values())
    q = jnp.asarray(cases.points(d, 3))

    @oracles.quick_jit
    def both(operators, q):
        reference = [jax.vmap(op(wavy))(q) for op in operators]
        symbol = [
            jax.vmap(lambda p, op=op: oracles.apply(oracles.coefficients(op, p, d + 13), wavy)(p))(q)
            for op in operators
        ]
        return jnp.stack(reference), jnp.stack(symbol)

    reference, symbol = both(operators, q)
    scale = np.abs(reference).max(axis=1, keepdims=True)
    assert np.all(scale > 0)
    assert np.max(np.abs(symbol - reference) / scale) < 1e-12


def test_reference_meaning_of_known_derivatives():
    x, t = pk.Domain(x=[(0, 1)] * 3, t=(0, 1)).coordinates("x", "t")
    u = lambda q: jnp.exp(-2 * t(q)) * jnp.sin(x(q)[0]) * x(q)[1] ** 3
    q = jnp.asarray([0.3, 0.7, 0.1, 0.4])
    e, s, c = np.exp(-0.8), np.sin(0.3), np.cos(0.3)
    expected = [
        (pk.D(t), -2 * e * s * 0.7**3),
        (pk.D(x[0], x[1]), 3 * e * c * 0.7**2),
        (pk.Laplacian(x), e * s * (6 * 0.7 - 0.7**3)),
        (pk.Directional(x, [1.0, 2.0, 5.0]), e * (c * 0.7**3 + 6 * s * 0.7**2)),
        (pk.Divergence(x, lambda p: x(p)[1]), e * s * (-(0.7**4) + 9 * 0.7**2)),
        (pk.D(x[1], x[1], x[1]), 6 * e * s),
    ]
    for operator, value in expected:
        assert operator(u)(q) == pytest.approx(value, rel=1e-12), str(operator)


def test_a_laplacian_builds_no_matrix_per_point():
    d = 3000
    x = pk.Domain(x=[(0, 1)] * d).coordinates("x")
    symbol = (pk.Laplacian(x) - 2.0).symbol(jnp.zeros(d))
    assert max(leaf.size for leaf in jax.tree.leaves(symbol)) == d


def test_order_and_dimension():
    x, t = pk.Domain(x=[(0, 1)] * 3, t=(0, 1)).coordinates("x", "t")
    assert [
        op.order for op in (pk.identity, pk.D(t), pk.D(t) - pk.Laplacian(x), pk.Laplacian(x) @ pk.Laplacian(x))
    ] == [0, 1, 2, 4]
    assert pk.identity.dim is None and (pk.identity + pk.D(t)).dim == 4


def test_composition_collects_partial_derivatives():
    x, t = pk.Domain(x=[(0, 1)] * 3, t=(0, 1)).coordinates("x", "t")
    assert pk.D(t) @ pk.D(x[1]) == pk.D(x[1], t)
    assert pk.identity @ pk.D(t) == pk.D(t) == pk.D(t) @ pk.identity


def test_symbol_of_high_order_is_refused():
    x = pk.Domain(x=[(0, 1)] * 2).coordinates("x")
    for operator in (pk.D(x[0], x[0], x[0]), pk.Laplacian(x) @ pk.D(x[0])):
        with pytest.raises(ValueError, match='engine="autodiff"'):
            operator.symbol(jnp.zeros(2))


def test_operators_print_readably():
    x, t = pk.Domain(x=[(0, 1)] * 3, t=(0, 1)).coordinates("x", "t")
    nu, a = pk.Parameter("nu", 0.1), pk.Coefficient(lambda q: q[0], name="a")
    shown = {
        "∂/∂t - Δ_x + 1": pk.D(t) - pk.Laplacian(x) + 1.0,
        "∂²/∂t² - 4 Δ_x": pk.D(t, t) - 4 * pk.Laplacian(x),
        "∂²/∂x[0] ∂t": pk.D(t, x[0]),
        "∂³/∂x[0]³": pk.D(x[0], x[0], x[0]),
        "∂/∂t - nu Δ_x": pk.D(t) - nu * pk.Laplacian(x),
        "a(q) ∂/∂x[2] + a(q)": a * pk.D(x[2]) + a,
        "2 - Δ_x": 2.0 - pk.Laplacian(x),
        "-∂/∂t + 2 Δ_x": -(pk.D(t) - 2 * pk.Laplacian(x)),
        "Δ_x[0:3:2]": pk.Laplacian(x[::2]),
        "∇_x·(a(q) ∇_x)": pk.Divergence(x, a),
        "(1, 2)·∇_x[0:2]": pk.Directional(x[:2], [1.0, 2.0]),
        "a(q) ∂/∂t + b(q) + c(q) Δ_x": (
            pk.Coefficient(lambda q: q[0]) * pk.D(t)
            + pk.Coefficient(lambda q: q[1])
            + pk.Coefficient(lambda q: q[2]) * pk.Laplacian(x)
        ),
        "(∂/∂t + 1) Δ_x": (pk.D(t) + 1) @ pk.Laplacian(x),
    }
    for text, operator in shown.items():
        assert str(operator) == text == repr(operator)


def test_parameters_are_found_and_bound_by_name():
    x, t = pk.Domain(x=[(0, 1)] * 2, t=(0, 1)).coordinates("x", "t")
    nu, r = pk.Parameter("nu", 0.5, positive=True), pk.Parameter("r", -2.0)
    rate = pk.Coefficient(lambda q, k: k * q[0], r)
    heat = pk.D(t) - nu * pk.Laplacian(x) + rate
    assert set(parameters_of(heat)) == {"nu", "r"}
    u, q = (lambda q: q[0] ** 2 + q[2]), jnp.asarray([0.5, 0.1, 0.3])
    assert heat(u)(q) == pytest.approx(1 - 0.5 * 2 - 2.0 * 0.5 * (0.25 + 0.3))
    bound = bind(heat, {"nu": jnp.log(3.0), "r": jnp.asarray(1.0)})
    assert bound(u)(q) == pytest.approx(1 - 3.0 * 2 + 0.5 * (0.25 + 0.3))


def test_parameters_in_vectors_and_matrices_are_learned_and_saved(tmp_path):
    domain = pk.Domain(x=[(0, 1)] * 2)
    x = domain.coordinates("x")
    k, nu = pk.Parameter("k", 0.5), pk.Parameter("nu", 0.2, positive=True)
    operator = pk.Directional(x, [k, 0.0]) + pk.Divergence(x, [[nu, 0.1], [0.1, 2 * nu]])
    assert set(parameters_of(operator)) == {"k", "nu"}
    points = np.random.default_rng(0).uniform(size=(6, 2))
    data = pk.Observation(operator, points, points[:, 0], noise=0.1)
    model = pk.Model(pk.ard(domain), data)

    @oracles.quick_jit
    def both(operator, q):
        slope = jax.grad(lambda c: jnp.sum(bind(operator, {"k": c})(lambda q: q[0] ** 2)(jnp.ones(2))))(1.0)
        return oracles.apply(oracles.coefficients(operator, q, 8), wavy)(q), operator(wavy)(q), slope

    symbol, reference, slope = both(operator, jnp.asarray(points[0]))
    assert symbol == pytest.approx(float(reference), rel=1e-12) and slope == pytest.approx(2.0)
    gradient = oracles.quick_jit(eqx.filter_grad(lambda m: pk.negative_log_evidence(m, data)[0]))(model)
    assert all(abs(float(g)) > 1e-6 for g in gradient.coefficients.values())
    posterior = pk.condition(model, data)
    posterior.save(tmp_path / "m.pdedkl")
    again = pk.load(tmp_path / "m.pdedkl")
    np.testing.assert_array_equal(again.predict(points, operator).mean, posterior.predict(points, operator).mean)


def test_variable_matrix_is_differentiable_where_eigenvalues_meet():
    x = pk.Domain(x=[(0, 1)] * 2).coordinates("x")

    def total(scale):
        operator = pk.Diffusion(x, lambda q: scale * jnp.eye(2))
        symbol = operator.symbol(jnp.zeros(2))
        return jnp.sum(symbol.diffusion_times(jnp.ones(2)))

    assert jax.grad(total)(1.5) == pytest.approx(2.0)
