"""The language of equations: printing, checks, and linearisations against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.equations import Nonlinear, compiled_term, linearised, plain, with_numbers
from pdedkl.equations.numbers import numbers_in

DOMAIN = pk.Domain(x=[(0, 1)] * 2, t=(0, 1))
X, T = DOMAIN.coordinates("x", "t")
U, V, P = pk.fields("u", "v", "p")
NU = pk.Number("nu", 0.05)
SPEED = pk.Coefficient(lambda q: 1.0 + 0.3 * jnp.sin(q[0]) * q[1], name="speed")
DX, DY, DT = pk.D(X[0]), pk.D(X[1]), pk.D(T)
LAP = pk.Laplacian(X)

NONLINEAR = {
    "momentum": U * (DX @ U) + V * (DY @ U) + DX @ P - NU * (LAP @ U),
    "cubic": -(LAP @ U) + U**3,
    "bratu": LAP @ U + SPEED * pk.exp(U),
    "sine-gordon": pk.D(T, T) @ U - LAP @ U + pk.sin(U) / 2,
    "eikonal": pk.sqrt((DX @ U) ** 2 + (DY @ U) ** 2 + 0.1) - 0.1 * (LAP @ U),
    "quotient": (DX @ U) / (1 + V**2) - 2 / (3 + pk.cos(P)),
    "functions": pk.tanh(U) * pk.log(2 + V**2) + pk.cos(U - V) ** 2 - SPEED,
    "conservation": DT @ U + DX @ (U**2 / 2) - NU * (LAP @ U),
    "porous": DT @ U - LAP @ (SPEED * U**3),
    "quasilinear": DX @ ((1 + U**2) * (DX @ U)) + DY @ (pk.exp(V) / (2 + U**2) * (DY @ U)),
    "coordinates": X[0] * U * V + T * (T * (DT @ U)) * V - pk.exp(T) + U**1.0 * pk.sqrt(SPEED) * V,
    "convection": (2.0 * U) * (3.0 * (DX @ U)) * (SPEED * V) / SPEED,
}

FUNCTIONS = {
    "u": lambda q: jnp.sin(1.3 * q[0] - q[1]) * jnp.exp(-0.4 * q[2]) + 0.2,
    "v": lambda q: jnp.cos(q[0] * q[1]) + q[2] ** 2,
    "p": lambda q: 0.5 * q[0] ** 3 - q[1] * q[2] + 0.3,
}
TRIALS = {
    "u": lambda q: jnp.cos(0.7 * q[0]) + q[1] ** 2 * q[2],
    "v": lambda q: jnp.sin(q[0] + 2.0 * q[2]) * q[1],
    "p": lambda q: jnp.exp(0.3 * q[0] - 0.2 * q[1]) + q[2],
}


@pytest.mark.parametrize("name", NONLINEAR)
def test_a_linearisation_is_the_derivative_along_a_direction(name):
    operator = compiled_term(NONLINEAR[name])
    assert isinstance(operator, Nonlinear)
    points = np.random.default_rng(0).uniform(size=(5, 3))
    rows = lambda u: np.stack([jax.vmap(row(u))(points) for row in operator.rows], axis=1)
    found = linearised(operator, points, rows(FUNCTIONS))

    def moved(step, q):
        fields = {k: lambda p, k=k: FUNCTIONS[k](p) + step * TRIALS[k](p) for k in FUNCTIONS}
        return operator(fields)(q)

    value, slope = jax.vmap(lambda q: jax.jvp(lambda s: moved(s, q), (0.0,), (1.0,)))(jnp.asarray(points))
    scale = np.max(np.abs(slope)) + 1
    np.testing.assert_allclose(found.value, value, atol=1e-10 * scale)
    np.testing.assert_allclose(np.sum(found.slopes * rows(TRIALS), axis=1), slope, atol=1e-10 * scale)


@pytest.mark.parametrize(
    "term, by_hand",
    [
        (DX @ (U**2 / 2), lambda u: lambda q: jax.grad(lambda p: u(p) ** 2 / 2)(q)[0]),
        (LAP @ (SPEED * U**3), lambda u: lambda q: jnp.trace(jax.hessian(lambda p: SPEED(p) * u(p) ** 3)(q)[:2, :2])),
        (
            (SPEED * DT + 2.0 * pk.D(X[0], X[1])) @ pk.exp(U * SPEED),
            lambda u: (
                lambda q: (
                    SPEED(q) * jax.grad(lambda p: jnp.exp(u(p) * SPEED(p)))(q)[2]
                    + 2 * jax.hessian(lambda p: jnp.exp(u(p) * SPEED(p)))(q)[0, 1]
                )
            ),
        ),
        (DY @ pk.tanh(U / (2 + U**2)), lambda u: lambda q: jax.grad(lambda p: jnp.tanh(u(p) / (2 + u(p) ** 2)))(q)[1]),
        (DT @ (pk.sqrt(2 + U) + pk.log(3 + U) + pk.cos(U) * T), None),
    ],
)
def test_derivatives_of_nonlinear_terms_follow_the_rules_of_calculus(term, by_hand):
    u = FUNCTIONS["u"]
    if by_hand is None:
        by_hand = lambda u: (
            lambda q: jax.grad(lambda p: jnp.sqrt(2 + u(p)) + jnp.log(3 + u(p)) + jnp.cos(u(p)) * p[2])(q)[2]
        )
    points = np.random.default_rng(1).uniform(size=(4, 3))
    found = jax.vmap(compiled_term(term)({"u": u}))(points)
    np.testing.assert_allclose(found, jax.vmap(by_hand(u))(points), rtol=1e-12)


@pytest.mark.parametrize(
    "term, text",
    [
        (U, "u"),
        (DX @ U, "∂u/∂x[0]"),
        (pk.D(T, T) @ U - LAP @ U, "∂²u/∂t² - Δ_x u"),
        (DX @ U + DY @ V, "∂u/∂x[0] + ∂v/∂x[1]"),
        (DX @ V - 2.0 * (DY @ U), "∂v/∂x[0] - 2 ∂u/∂x[1]"),
        (NONLINEAR["momentum"], "u ∂u/∂x[0] + v ∂u/∂x[1] + ∂p/∂x[0] - nu Δ_x u"),
        (NONLINEAR["cubic"], "-Δ_x u + u³"),
        (NONLINEAR["bratu"], "Δ_x u + speed(q) exp(u)"),
        ((1 + U) ** 2 * V, "(u + 1)² v"),
        (U / (1 + V), "u / (v + 1)"),
        ((DX @ U) ** 2, "(∂u/∂x[0])²"),
        (-U * V, "-u v"),
        (U - 3 * pk.exp(V), "u - 3 exp(v)"),
        (-2 / V, "-2 / v"),
        (3 - U * V, "-u v + 3"),
        (U * (V - P), "u (v - p)"),
    ],
)
def test_terms_print_as_on_paper(term, text):
    assert str(term) == text


def test_equations_print_with_their_source():
    assert str(LAP @ U == 2.0) == "Δ_x u = 2"
    u = pk.fields("u")
    assert str(LAP @ u == (lambda q: q[0])) == "Δ_x u = f"
    assert str(U**2 == V) == "u² - v = 0"


def test_linear_terms_are_rows():
    row = compiled_term(2.0 * (DX @ V) - DY @ U + SPEED * U / 2 + V / SPEED - (U - U) * 3)
    assert row.names == ("v", "u") and row.order == 1
    q = jnp.asarray([0.3, 0.6, 0.2])
    u, v = FUNCTIONS["u"], FUNCTIONS["v"]
    by_hand = 2 * jax.grad(v)(q)[0] - jax.grad(u)(q)[1] + SPEED(q) * u(q) / 2 + v(q) / SPEED(q)
    np.testing.assert_allclose(row({"u": u, "v": v})(q), by_hand, rtol=1e-13)


def test_a_row_of_the_only_field_is_an_operator():
    operator = plain(compiled_term(DT @ U - 2.0 * U), ("u",))
    assert str(operator) == str(DT - 2.0 * pk.identity)
    with pytest.raises(ValueError, match="field v, which is not known here: there is u"):
        plain(compiled_term(U + V), ("u",))


def test_named_numbers_can_be_changed():
    operator = compiled_term(NONLINEAR["momentum"])
    assert numbers_in(operator) == {"nu": 0.05}
    assert numbers_in(with_numbers(operator, {"nu": 0.1})) == {"nu": 0.1}


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (lambda: U**V, "power of a number"),
        (lambda: 2**U, "is written pk.exp"),
        (lambda: U + LAP, "is an operator and no term"),
        (lambda: U * (lambda q: q[0]), r"written Coefficient\(fn\)"),
        (lambda: U @ LAP, "operator on the left"),
        (lambda: bool(U == V), "neither true nor false"),
        (lambda: bool(U), "neither true nor false"),
        (lambda: U == "f", "a number, a function of the point q or another term"),
        (lambda: U / 0, "a number other than zero"),
        (lambda: pk.exp(np.ones(3)), "For arrays use jax.numpy.exp"),
        (lambda: pk.fields(), "a name for each field"),
        (lambda: pk.fields("u", "u"), "different names"),
        (lambda: pk.fields("u v"), "a name such as"),
        (lambda: compiled_term(pk.exp(SPEED) * 2), "needs an unknown field"),
        (lambda: pk.Directional(X, [1.0, 2.0]) @ U**2, "written with D and Laplacian"),
        (lambda: pk.Number("nu", np.inf), "a finite number"),
        (lambda: compiled_term(U**2).symbol(jnp.zeros(3)), "is not linear in its fields"),
    ],
)
def test_what_is_no_term_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises((TypeError, ValueError, ZeroDivisionError), match=sentence):
        wrong()
