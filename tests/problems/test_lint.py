"""What is found wrong with a problem before it is solved, and what is not."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk

SQUARE = pk.Domain(x=[(0, 1)] * 2)
X = SQUARE.coordinates("x")
LINE = pk.Domain(x=(0, 1), t=(0, 1))
S, T = LINE.coordinates("x"), LINE.coordinates("t")
WALLS = pk.Dirichlet(on=LINE.boundary(S), value=0.0)
START = pk.Initial(T, value=lambda q: jnp.sin(jnp.pi * q[0]))
AT_REST = pk.Initial(T, value=0.0, operator=pk.D(T))
HEAT = pk.D(T) - pk.Laplacian(S)
WAVE = pk.D(T, T) - pk.Laplacian(S)


def found(domain, operator, source, conditions, **options):
    """The findings by name, and whether each is fatal. Every finding is heard once, as a warning at this line."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        problem = pk.Problem(domain, operator, source, conditions, **options)
    assert [w.category for w in heard] == [pk.ProblemWarning] * len(problem.lint())
    assert all(w.filename == __file__ for w in heard)
    for finding, warned in zip(problem.lint(), heard):
        assert finding.text in str(warned.message) and f"[{finding.name}]" in str(warned.message)
    return {finding.name: finding.fatal for finding in problem.lint()}


def on_square(*conditions, source=1.0, **options):
    return found(SQUARE, -pk.Laplacian(X), source, conditions, **options)


def on_line(operator, *conditions, **options):
    return found(LINE, operator, 0.0, conditions, **options)


# ── nothing to find ───────────────────────────────────────────────────────────────────────────────────────────────


def well_posed():
    ball = pk.Domain(x=pk.Ball([0.0, 0.0, 0.0]))
    yield "Poisson on a box", SQUARE, -pk.Laplacian(X), 1.0, [pk.Dirichlet(SQUARE.boundary(X), 0.0)]
    b = ball.coordinates("x")
    yield "Poisson on a ball", ball, -pk.Laplacian(b), 1.0, [pk.Dirichlet(ball.boundary(b), 0.0)]
    mixed = [pk.Dirichlet(SQUARE.boundary(X[0]), 0.0), pk.Neumann(SQUARE.boundary(X[1]), 1.0)]
    yield "mixed conditions", SQUARE, -pk.Laplacian(X), 1.0, mixed
    yield "level by the operator", SQUARE, 1.0 - pk.Laplacian(X), 1.0, [pk.Neumann(SQUARE.boundary(X), 0.0)]
    yield "heat", LINE, HEAT, 0.0, [WALLS, START]
    yield "wave", LINE, WAVE, 0.0, [WALLS, START, AT_REST]
    inflow = pk.Dirichlet(LINE.face(S, "lower"), 0.0)
    yield "advection", LINE, pk.D(T) + 2.0 * pk.D(S), 0.0, [inflow, START]
    adr = pk.D(T) + 2.0 * pk.D(S) - 0.1 * pk.Laplacian(S) + 1.0
    yield "advection, diffusion, reaction", LINE, adr, 0.0, [WALLS, START]
    wave = pk.Initial(T, lambda q: jnp.sin(2 * jnp.pi * q[0]))
    yield "periodic heat", LINE, HEAT, 0.0, [pk.Periodic(S), wave]
    decay = pk.Domain(t=(0, 1))
    yield "decay", decay, pk.D(decay.coordinates("t")) + 1.0, 0.0, [pk.Initial(decay.coordinates("t"), 1.0)]


@pytest.mark.parametrize("case", list(well_posed()), ids=lambda case: case[0])
def test_well_posed_problems_have_no_findings(case):
    assert found(*case[1:]) == {}


def test_an_equation_that_runs_backwards_has_its_final_condition():
    domain = pk.Domain(s=(0.5, 1.5), t=(0, 1))
    s, t = domain.coordinates("s"), domain.coordinates("t")
    price = pk.D(t) + pk.Coefficient(lambda q: 0.02 * q[0] ** 2) * pk.D(s, s) - 0.05
    payoff = lambda q: jnp.maximum(q[0] - 1.0, 0.0)
    ends = pk.Dirichlet(domain.boundary(s), payoff)
    assert found(domain, price, 0.0, [pk.Dirichlet(domain.final(t), payoff), ends]) == {}
    assert found(domain, price, 0.0, [pk.Initial(t, payoff), ends])["direction"]


def test_in_all_of_space_faces_are_open_and_that_is_not_fatal():
    assert on_line(HEAT, START) == {"faces": False}


def test_conditions_at_points_of_any_shape_are_not_judged_by_faces():
    angle = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    circle = 0.5 + 0.4 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert on_square(pk.Dirichlet(circle, 0.0)) == {}


# ── each rule ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_level_that_nothing_fixes():
    assert on_square(pk.Neumann(SQUARE.boundary(X), 0.0))["level"]
    assert "level" not in on_square(pk.Neumann(SQUARE.boundary(X), 0.0), pk.Dirichlet(np.zeros((1, 2)), 0.0))


def test_no_initial_condition():
    assert on_line(HEAT, pk.Dirichlet(LINE.boundary(S), 1.0)) == {"initial": True}


def test_one_initial_condition_where_two_are_needed():
    assert on_line(WAVE, WALLS, START) == {"initial": True}


def test_diffusion_of_the_wrong_sign():
    assert on_line(pk.D(T) + pk.Laplacian(S), WALLS, START) == {"direction": True}
    assert on_line(HEAT, WALLS, pk.Dirichlet(LINE.final(T), lambda q: jnp.sin(jnp.pi * q[0]))) == {"direction": True}


def test_a_face_without_a_condition():
    three = [pk.Dirichlet(SQUARE.boundary(X[0]), 0.0), pk.Dirichlet(SQUARE.face(X[1], "lower"), 0.0)]
    assert on_square(*three) == {"faces": True}
    outflow = pk.Dirichlet(LINE.face(S, "upper"), 0.0)
    assert on_line(pk.D(T) + 2.0 * pk.D(S), outflow, START) == {"faces": True}


@pytest.mark.parametrize(
    ("a", "jumps"),
    [
        (lambda q: jnp.where(q[0] + q[1] < 1.0, 1.0, 10.0), True),
        (lambda q: jnp.where(jnp.sum((q - 0.5) ** 2) < 0.05, jnp.array([1.0, 2.0]), 1.0), True),
        (lambda q: 1.0 + jnp.floor(4 * q[0]), True),
        (lambda q: 5.5 + 4.5 * jnp.tanh((q[0] - 0.5) / 1e-4), False),
        (lambda q: 1.0 + jnp.abs(q[0] - 0.5), False),
        (3.0, False),
        (pk.Coefficient(lambda q, k: jnp.where(q[0] < 0.5, 1.0, k), pk.Parameter("k", 2.0)), False),
    ],
)
def test_a_coefficient_that_jumps(a, jumps):
    walls = [pk.Dirichlet(SQUARE.boundary(X), 0.0)]
    assert found(SQUARE, pk.identity - pk.Divergence(X, a), 1.0, walls) == ({"jump": True} if jumps else {})


def test_conditions_that_contradict_each_other():
    assert on_line(HEAT, pk.Dirichlet(LINE.boundary(S), 1.0), START) == {"contradiction": False}


def test_an_exact_solution_that_is_none():
    assert on_square(pk.Dirichlet(SQUARE.boundary(X), 0.0), exact=lambda q: q[0]) == {"exact": False}


def test_nothing_but_zeros():
    assert on_square(pk.Dirichlet(SQUARE.boundary(X), 0.0), source=0.0) == {"zero": False}


# ── silence ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_finding_that_is_silenced_is_not_heard():
    assert on_square(pk.Dirichlet(SQUARE.boundary(X), 0.0), source=0.0, silenced=["zero"]) == {}
    assert on_line(HEAT, pk.Dirichlet(LINE.boundary(S), 1.0), silenced=["zero", "faces"]) == {"initial": True}


@pytest.mark.parametrize("names", (["zeros"], "initials", [3]))
def test_unknown_names_are_refused(names):
    with pytest.raises((TypeError, ValueError), match="silenced"):
        pk.Problem(SQUARE, -pk.Laplacian(X), 1.0, [pk.Dirichlet(SQUARE.boundary(X), 0.0)], silenced=names)


def test_a_fatal_finding_says_what_to_give():
    with pytest.warns(pk.ProblemWarning, match=r"Initial\(t, value=…, operator=D\(t\)\)"):
        pk.Problem(LINE, WAVE, 0.0, [WALLS, START])
