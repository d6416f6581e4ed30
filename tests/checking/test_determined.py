"""Whether what was given determines `u`: known answers, without training and without values."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.checking import determined
from pdedkl.checking.determined import interior, left_of_u, level, level_is_free, undetermined, widened
from pdedkl.sampling import draw

SQUARE = pk.Domain(x=[(0, 1)] * 2)
X = SQUARE.coordinates("x")
LINE = pk.Domain(x=(0, 1), t=(0, 1))
S, T = LINE.coordinates("x"), LINE.coordinates("t")
HEAT, WAVE = pk.D(T) - pk.Laplacian(S), pk.D(T, T) - pk.Laplacian(S)
PLATE = pk.Domain(x=[(0, 1)] * 2, t=(0, 1))
PX, PT = PLATE.coordinates("x"), PLATE.coordinates("t")

ALL, LEFT = SQUARE.boundary(X), SQUARE.face(X[0], "lower")
WALLS, START, END = LINE.boundary(S), LINE.initial(T), LINE.final(T)
ONE = pk.identity

# What is stated: a domain, and rows of operators on regions.
DETERMINED = {
    "Poisson": (SQUARE, [(ONE, ALL), (pk.Laplacian(X), SQUARE.interior)]),
    "heat": (LINE, [(ONE, WALLS), (ONE, START), (HEAT, LINE.interior)]),
    "heat on a plate": (
        PLATE,
        [(ONE, PLATE.boundary(PX)), (ONE, PLATE.initial(PT)), (pk.D(PT) - pk.Laplacian(PX), PLATE.interior)],
    ),
    "wave": (LINE, [(ONE, WALLS), (ONE, START), (pk.D(T), START), (WAVE, LINE.interior)]),
}
UNDETERMINED = {
    "heat without initial condition": (LINE, [(ONE, WALLS), (HEAT, LINE.interior)]),
    "wave with one": (LINE, [(ONE, WALLS), (ONE, START), (WAVE, LINE.interior)]),
    "an open face": (
        SQUARE,
        [(ONE, SQUARE.boundary(X[0])), (ONE, SQUARE.face(X[1], "lower")), (pk.Laplacian(X), SQUARE.interior)],
    ),
    "slopes only": (
        SQUARE,
        [(pk.D(X[0]), SQUARE.boundary(X[0])), (pk.D(X[1]), SQUARE.boundary(X[1])), (pk.Laplacian(X), SQUARE.interior)],
    ),
    "all on one side": (SQUARE, [(ONE, LEFT), (pk.D(X[0]), LEFT), (pk.Laplacian(X), SQUARE.interior)]),
    "heat backwards": (LINE, [(ONE, WALLS), (ONE, END), (HEAT, LINE.interior)]),
}


@pytest.mark.parametrize("name", (*DETERMINED, *UNDETERMINED))
def test_the_plain_kernel_tells_what_is_determined(name):
    domain, stated = {**DETERMINED, **UNDETERMINED}[name]
    rng = np.random.default_rng(0)
    rows = [(op, draw(where, 250 if where.pieces == () else 100, rng, "sobol")) for op, where in stated]
    assert bool(determined._left_open(domain, rows, interior(domain))) == (name in UNDETERMINED)


def test_what_is_left_of_u_is_the_standard_deviation_of_the_plain_kernel():
    """Nothing known leaves all of it, `u` on the places leaves the noise."""
    places = interior(SQUARE)[:20]
    nothing = [(pk.identity, np.asarray([[0.5, 0.5]]))]
    far, with_values = left_of_u(SQUARE, nothing, places, places)
    assert 0.5 < far < 1.0 and with_values < 2 * determined.NOISE


# ── problems ──────────────────────────────────────────────────────────────────────────────────────────────────────


def problem(domain, operator, conditions, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pk.ProblemWarning)
        return pk.Problem(domain, operator, 1.0, conditions, **options)


def test_the_statement_is_read_in_any_dimension():
    domain = pk.Domain(x=[(0, 1)] * 10, t=(0, 1))
    x, t = domain.coordinates("x"), domain.coordinates("t")
    walls = pk.Dirichlet(domain.boundary(x), 0.0)
    open_one = problem(domain, pk.D(t) - pk.Laplacian(x), [walls])
    (reason,) = undetermined(open_one, open_one.sample(boundary=20, source=20))
    assert "no initial condition" in reason and "Initial(t, value=…)" in reason
    closed = problem(domain, pk.D(t) - pk.Laplacian(x), [walls, pk.Initial(t, 0.0)])
    assert undetermined(closed, closed.sample(boundary=20, initial=20, source=20)) == ()


def test_a_condition_of_which_the_data_have_no_value():
    walls = pk.Dirichlet(WALLS, 0.0)
    heat = problem(LINE, HEAT, [walls, pk.Initial(T, 0.0)])
    data = heat.sample(boundary=10, initial=0, source=10)
    (reason,) = undetermined(heat, data)
    assert "initial condition" in reason


# ── bare domains ──────────────────────────────────────────────────────────────────────────────────────────────────


def observed(*rows):
    return [pk.Observation(op, q, np.zeros(len(q)), "exact") for op, q in rows]


def some(where, n, seed=0):
    return draw(where, n, np.random.default_rng(seed), "uniform")


@pytest.mark.parametrize("n", (8, 60))
def test_few_values_of_enough_conditions_determine_u(n):
    """Ten values on the boundary are few, but none is missing that more points would not give."""
    data = observed((ONE, some(WALLS, n)), (ONE, some(START, n)), (HEAT, some(LINE.interior, 2 * n)))
    assert undetermined(LINE, data) == ()
    (reason,) = undetermined(LINE, [data[0], data[2]])
    assert "open" in reason


def test_corners_of_walls_are_no_initial_condition():
    """A grid on the walls has a point in each corner of the face at the initial time."""
    t = np.linspace(0, 1, 12)
    walls = np.concatenate([np.stack([np.full(12, end), t], axis=1) for end in (0.0, 1.0)])
    assert undetermined(LINE, observed((ONE, walls), (HEAT, some(LINE.interior, 30))))


def test_values_of_u_alone_and_unknown_coefficients_are_not_judged():
    assert undetermined(LINE, observed((ONE, some(WALLS, 5)))) == ()
    unknown = pk.D(T) - pk.Parameter("k", 1.0) * pk.Laplacian(S)
    assert undetermined(LINE, observed((unknown, some(LINE.interior, 5)))) == ()


def test_a_free_level_is_seen_in_any_dimension():
    domain = pk.Domain(x=[(0, 1)] * 10)
    x = domain.coordinates("x")
    data = observed((pk.D(x[0]), some(domain.boundary(x), 20)), (pk.Laplacian(x), some(domain.interior, 20)))
    assert undetermined(domain, data) == (level(),)
    assert level_is_free([(pk.Laplacian(x), np.zeros((1, 10)))])
    assert not level_is_free([(pk.Laplacian(x) + 1.0, np.zeros((1, 10)))])


def test_a_circle_of_own_points_determines_its_disc_and_a_part_of_it_does_not():
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = 0.5 + 0.4 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    q = some(SQUARE.interior, 120)
    inside = q[np.linalg.norm(q - 0.5, axis=1) < 0.4]
    assert undetermined(SQUARE, observed((ONE, circle), (pk.Laplacian(X), inside))) == ()
    assert undetermined(SQUARE, observed((ONE, circle[:4]), (pk.Laplacian(X), inside)))


def test_a_widened_model_has_the_plain_kernel_added():
    model = pk.Model(pk.ard(SQUARE, variance=2.0), observed((ONE, np.zeros((1, 2)))))
    q = jnp.asarray([0.3, 0.4])
    assert float(widened(model, SQUARE, 3.0).kernel(q, q)) == pytest.approx(5.0)
