"""The truth of every problem of the zoo, checked against its equation and its data by finite differences."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import pdedkl as pk
from pdedkl.operators import bind, parameters_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from zoo_problems import (  # noqa: E402
    THEMES,
    ZOO,
    coefficients,
    finance,
    kolmogorov,
    parametric,
    reference,
    rough,
    shapes,
)

sys.path.remove(str(BENCHMARKS))

NODES = 9
ROWS = 12

# The length of a stencil, relative to the domain.
STEPS = {"layered-rod": 0.004, "layer-1": 0.004, "front": 0.003, "high-contrast": 0.004}

# Where the truth is not smooth, it is not differentiated: at kinks and corners, and soon after a kinked start.
AWAY = {
    "european-call": lambda q: q[:, 1] > 0.1,
    "european-put": lambda q: q[:, 1] > 0.1,
    "barrier-call": lambda q: q[:, 1] > 0.1,
    "price-call": lambda q: q[:, 1] < 0.9,
    "geometric-basket": lambda q: q[:, 3] > 0.1,
    "basket-call": lambda q: q[:, 5] < 0.4,
    "basket-call-walls": lambda q: q[:, 5] > 0.1,
    "front": lambda q: q[:, 1] > 0.02,
    "kink-source": lambda q: abs(q[:, 0] - 0.5) > 0.02,
    "step-source": lambda q: abs(q[:, 0] - 0.6) > 0.02,
    "interface": lambda q: abs(q[:, 0] - 0.5) > 0.02,
    "l-shape": lambda q: np.hypot(*q.T) > 0.1,
    "loaded-l-shape": lambda q: np.min([np.hypot(*(q - c).T) for c in shapes.L_CORNERS], axis=0) > 0.1,
}

# Relative errors of finite differences; by default 1e-8.
TOLERANCES = {"loaded-l-shape": 1e-6, "offset": 1e-5}

# Noise that was added to observations, by their number: relative to the standard deviation of their values.
NOISE = {
    "regression": {0: 0.05},
    "clustered-sensors": {0: 0.01},
    "broken-sensors": {0: 0.02},
    "offset": {0: 0.01},
    "all-noisy": {0: 0.05, 1: 0.05},
    "noisy-heat": {0: 0.05},
    "unknown-transport": {0: 0.02},
    "unknown-transport-noisy": {0: 0.05},
    "unknown-diffusivity": {1: 0.02},
    "unknown-reaction": {1: 0.01},
}


# Reference solutions with more points: the module, the name in it, and what takes its place.
FINER = {
    "divergence-strong": (coefficients, "square_diffusion", partial(reference.square_diffusion, n=44)),
    "high-contrast": (coefficients, "inclusion", partial(reference.inclusion, n=200)),
    "narrow-source": (rough, "square_poisson", partial(reference.square_poisson, n=104)),
    "parametric-source-2": (parametric, "square_poisson", partial(reference.square_poisson, n=104)),
    "loaded-l-shape": (rough, "harmonic", lambda corners, wall, _: reference.harmonic(corners, wall, [60] + [24] * 5)),
    "kolmogorov-cubic": (kolmogorov, "CUBIC", replace(kolmogorov.CUBIC, n=220, reach=4.0)),
    "kolmogorov-well": (kolmogorov, "DOUBLE", replace(kolmogorov.DOUBLE, n=220, reach=3.6)),
    "fokker-planck-well-1": (kolmogorov, "Well", partial(reference.Well, n=220)),
    "basket-call": (finance, "basket_price", partial(finance.basket_price, nodes=9)),
}


@pytest.fixture(autouse=True)
def one_thread():
    """On small matrices threads only wait for each other."""
    with threadpool_limits(1):
        yield


def slopes(u, domain, points, directions, step):
    """First and second derivatives of `u` along a direction at each point, from a stencil inside the box."""
    lower, upper = domain.lower, domain.upper
    rate = np.max(np.abs(directions) / (upper - lower), axis=1)
    moving = rate > 0
    points, v, rate = points[moving], directions[moving], rate[moving]
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(lower - points) / v, (upper - points) / v]), axis=0)
    low = np.maximum(np.max(np.where(v == 0, -np.inf, ends[0]), axis=1), -step / rate)
    high = np.minimum(np.min(np.where(v == 0, np.inf, ends[1]), axis=1), step / rate)
    half, middle = (high - low) / 2, (high + low) / 2
    nodes = np.polynomial.chebyshev.chebpts1(NODES)
    at = points[:, None, :] + (middle[:, None] + half[:, None] * nodes)[:, :, None] * v[:, None, :]
    values = u(at.reshape(-1, points.shape[1])).reshape(len(points), NODES)
    series = np.polynomial.chebyshev.chebfit(nodes, values.T, NODES - 1)
    found = np.zeros((2, len(moving)))
    for order in (1, 2):
        derivative = np.polynomial.chebyshev.chebder(series, order)
        rows = np.polynomial.chebyshev.chebvander(-middle / half, derivative.shape[0] - 1)
        found[order - 1, moving] = np.sum(rows * derivative.T, axis=1) / half**order
    return found


def applied(operator, u, domain, points, step):
    """`A u` at points, by finite differences; and the size of its largest term."""
    total, size = np.zeros(len(points)), np.zeros(len(points))

    def add(term):
        nonlocal total, size
        total, size = total + term, np.maximum(size, np.abs(term))

    for move, local in operator.local_terms():
        q = points if move is None else points + np.asarray(move)
        symbol = jax.tree.map(np.asarray, jax.vmap(local.symbol)(jnp.asarray(q)))
        if symbol.c is not None:
            add(symbol.c * u(q))
        if symbol.b is not None:
            add(slopes(u, domain, q, symbol.b, step)[0])
        for k, axis in enumerate(symbol.axes):
            along = np.tile(np.eye(domain.dim)[axis], (len(q), 1))
            add(symbol.axis_weights[:, k] * slopes(u, domain, q, along, step)[1])
        if symbol.directions is not None:
            for k in range(symbol.weights.shape[1]):
                add(symbol.weights[:, k] * slopes(u, domain, q, symbol.directions[:, k], step)[1])
    return total, float(np.max(size, initial=0.0))


def known(operator, coefficients):
    """The operator with the true values of its unknown coefficients."""
    raw = {
        name: jnp.asarray(np.log(coefficients[name]) if found.positive else coefficients[name])
        for name, found in parameters_of(operator).items()
    }
    return bind(operator, raw)


@pytest.mark.parametrize("name", ZOO)
def test_truth_fits_equation_and_data(name):
    case = ZOO[name](0)
    domain = case.problem if isinstance(case.problem, pk.Domain) else case.problem.domain
    step, tolerance = STEPS.get(name, 0.01), TOLERANCES.get(name, 1e-8)
    away = AWAY.get(name, lambda q: np.ones(len(q), bool))
    assert case.places.shape == (1000, domain.dim) and np.all(domain.contains(case.places))
    assert 60 <= sum(map(len, case.data)) <= 1000
    assert np.all(np.isfinite(case.truth)) and np.array_equal(case.truth, case.exact(case.places))
    size = np.max(np.abs(case.truth))
    if isinstance(case.problem, pk.Problem) and case.posed:
        budgets = [part.budget for part in case.problem.statements if part.budget]
        assert all(getattr(case.problem.points, budget) for budget in budgets), "a condition without points"

    if case.operator is not None:
        rows = np.flatnonzero(away(case.places))[:ROWS]
        found, terms = applied(case.operator, case.exact, domain, case.places[rows], step)
        np.testing.assert_allclose(found, case.source[rows], rtol=0, atol=tolerance * terms)

    for number, item in enumerate(case.data):
        points, values, noise = np.asarray(item.points), np.asarray(item.values), item.noise
        operator = known(item.operator, case.coefficients)
        added = NOISE.get(name, {}).get(number)
        if isinstance(operator, type(pk.identity)):
            found, allowed = case.exact(points), case.accuracy * size
        else:
            # The same number of rows everywhere, since each new number has to be compiled.
            rows = np.flatnonzero(away(points))
            rows = rows if added or name == "wrong-source" else np.resize(rows, ROWS)
            points, values = points[rows], values[rows]
            found, terms = applied(operator, case.exact, domain, points, step)
            allowed = tolerance * max(terms, np.std(case.truth) / np.max(domain.upper - domain.lower) ** operator.order)
        error = np.abs(values - found)
        level = added * np.std(found) if added else 0.0 if isinstance(noise, pk.Learned) else float(noise)
        if level:
            assert 0.7 < np.median(error) / (0.6745 * level) < 1.4
        elif name == "wrong-source" and number == 1:
            assert 10 <= np.sum(error > allowed) <= 15
        else:
            assert np.max(error) <= allowed, item.name


@pytest.mark.parametrize("name", FINER)
def test_reference_solutions_are_as_accurate_as_stated(name, monkeypatch):
    case = ZOO[name](0)
    monkeypatch.setattr(*FINER[name])
    finer = ZOO[name](0).truth
    assert 0 < np.max(np.abs(case.truth - finer)) < case.accuracy * np.max(np.abs(finer))


def test_zoo_is_large_and_names_are_unique():
    assert len(ZOO) >= 48 and len(ZOO) == sum(map(len, THEMES.values()))


@pytest.mark.parametrize("name", ["annulus", "european-call", "regression", "unknown-transport", "cauchy-data"])
def test_cases_depend_on_the_seed_only(name):
    one, same, other = ZOO[name](3), ZOO[name](3), ZOO[name](4)
    assert all(np.array_equal(a.points, b.points) for a, b in zip(one.data, same.data))
    assert all(np.array_equal(a.values, b.values) for a, b in zip(one.data, same.data))
    assert np.array_equal(one.places, same.places) and not np.array_equal(one.places, other.places)
    assert not any(np.array_equal(a.points, b.points) for a, b in zip(one.data, other.data))
