"""The truth of every nonlinear problem and system, checked against its equations without the library's kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from equations_nonlinear import two_body  # noqa: E402
from nonlinear import CASES  # noqa: E402

sys.path.remove(str(BENCHMARKS))

STEP = 2e-3


def slopes(u, q, i):
    """First and second derivative along one coordinate, of order eight."""
    e = STEP * np.eye(q.shape[1])[i]
    first = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    second = (8 / 5, -1 / 5, 8 / 315, -1 / 560)
    sides = [(u(q + k * e), u(q - k * e)) for k in range(1, 5)]
    once = sum(c * (a - b) for c, (a, b) in zip(first, sides)) / STEP
    twice = sum(c * (a + b) for c, (a, b) in zip(second, sides)) + -205 / 72 * u(q)
    return once, twice / STEP**2


# Checked below, in fewer dimensions or at its only known point, or here with another number of dimensions or width.
ELSEWHERE = ("two-body-100", "sine-gordon-50", "eikonal-0.01", "hjb-100")


@pytest.mark.parametrize("name", [name for name in CASES if name not in ELSEWHERE])
def test_the_truth_satisfies_its_equations(name):
    case = CASES[name]()
    if case.problem.exact is not None:
        assert case.problem.verify(n=5).ok
        return
    q = 0.1 + 0.8 * np.random.default_rng(0).uniform(size=(20, case.problem.domain.dim))
    q = np.asarray(case.problem.domain.lower) + q * np.asarray(case.problem.domain.upper - case.problem.domain.lower)
    of = {field: truth(q) for field, truth in case.truth.items()}
    first = {field: [slopes(truth, q, i) for i in range(q.shape[1])] for field, truth in case.truth.items()}
    match name:
        case "burgers":
            (ux, uxx), (ut, _) = first["u"]
            parts = [[ut, of["u"] * ux, -0.02 * uxx]]
        case "eikonal-0.1":
            (ux, uxx), (uy, uyy) = first["u"]
            parts = [[ux**2, uy**2, -0.1 * (uxx + uyy), -np.ones(20)]]
        case "predator-prey":
            u, v = of["u"], of["v"]
            parts = [[first["u"][0][0], -u, u * v], [first["v"][0][0], v, -u * v]]
        case "lorenz":
            u, v, w = of["u"], of["v"], of["w"]
            du, dv, dw = (first[f][0][0] for f in "uvw")
            parts = [[du, -10 * (v - u)], [dv, -u * (28 - w), v], [dw, -u * v, 8 / 3 * w]]
        case _:
            raise AssertionError(f"No check of {name}.")
    for terms in parts:
        assert np.max(np.abs(sum(terms))) < 1e-6 * max(np.max(np.abs(term)) for term in terms)


def test_two_bodies_meet_in_few_dimensions_too():
    assert two_body(d=4).problem.verify(n=5).ok


def test_the_value_at_the_origin_is_the_published_one():
    case = CASES["hjb-100"]()
    np.testing.assert_allclose(case.truth["u"](case.places(0)), 4.590162, atol=2e-6)
