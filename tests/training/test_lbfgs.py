"""L-BFGS on functions whose minimum is known, on functions with holes, and after a rest in a file."""

from __future__ import annotations

import io

import numpy as np
import pytest

from pdedkl.training import lbfgs

CENTRE = np.array([1.0, -2.0, 0.5, 3.0])
CURVATURE = np.array([1.0, 10.0, 100.0, 1000.0])


def quadratic(x):
    return 0.5 * float(CURVATURE @ (x - CENTRE) ** 2) - 7.0, CURVATURE * (x - CENTRE)


def rosenbrock(x):
    a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    gradient = np.zeros_like(x)
    gradient[1:] += 200 * a
    gradient[:-1] += -400 * a * x[:-1] - 2 * b
    return float(np.sum(100 * a**2 + b**2)), gradient


def minimise(function, x, iterations=80):
    state = lbfgs.start(function, np.asarray(x, dtype=float))
    for _ in range(iterations):
        if state.stuck:
            break
        state = lbfgs.iterate(function, state)
    return state


@pytest.mark.parametrize(
    "function, start, minimum",
    [
        (quadratic, np.zeros(4), CENTRE),
        (rosenbrock, [-1.2, 1.0], np.ones(2)),
        (rosenbrock, [-1.2, 1.0, -0.5, 0.8, 1.2], np.ones(5)),
    ],
    ids=["quadratic", "Rosenbrock", "Rosenbrock, 5 dimensions"],
)
def test_minima_are_found(function, start, minimum):
    state = minimise(function, start)
    np.testing.assert_allclose(state.x, minimum, atol=1e-8)
    np.testing.assert_allclose(state.value, function(minimum)[0], atol=1e-12)
    assert state.rejected == 0


def test_the_value_never_rises():
    state, values = lbfgs.start(rosenbrock, np.array([-1.2, 1.0])), []
    for _ in range(60):
        values.append(float(state.value))
        state = lbfgs.iterate(rosenbrock, state)
        value, gradient = rosenbrock(state.x)
        assert value == state.value and np.array_equal(gradient, state.gradient)
    assert np.all(np.diff(values) <= 1e-12)


def test_stuck_at_a_minimum_and_nothing_moves():
    state = lbfgs.iterate(quadratic, lbfgs.start(quadratic, CENTRE.copy()))
    assert state.stuck
    np.testing.assert_array_equal(state.x, CENTRE)


def test_stuck_where_the_gradient_is_wrong():
    uphill = lambda x: (quadratic(x)[0], -quadratic(x)[1])
    state = lbfgs.iterate(uphill, lbfgs.start(uphill, np.zeros(4)))
    assert state.stuck and state.evaluations == 1 + lbfgs.TRIALS
    np.testing.assert_array_equal(state.x, np.zeros(4))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("part", ["value", "gradient"])
def test_points_that_are_not_finite_are_counted_and_never_taken(part, bad):
    """A wall close behind the minimum: long steps land behind it."""
    seen = []

    def walled(x):
        value, gradient = rosenbrock(x)
        if x[0] > 1.05 or x[1] > 1.1:
            seen.append(x)
            return (bad, gradient) if part == "value" else (value, gradient * bad)
        return value, gradient

    state = minimise(walled, [0.5, 1.05])
    assert len(seen) == state.rejected > 0
    assert np.isfinite(state.value) and np.all(np.isfinite(state.gradient))
    np.testing.assert_allclose(state.x, np.ones(2), atol=1e-8)


def test_a_start_that_is_not_finite_is_stuck():
    state = lbfgs.start(lambda x: (np.nan, np.full_like(x, np.nan)), np.ones(3))
    assert state.stuck and state.rejected == 1
    np.testing.assert_array_equal(state.gradient, np.zeros(3))


@pytest.mark.parametrize("rest", [0, 1, 7, 30])
def test_a_state_that_was_stored_goes_on_with_the_same_bits(rest):
    whole = state = lbfgs.start(rosenbrock, np.array([-1.2, 1.0, -0.5]))
    for iteration in range(40):
        if iteration == rest:
            file = io.BytesIO()
            np.savez(file, **state._asdict())
            file.seek(0)
            with np.load(file) as stored:
                state = lbfgs.State(**{name: stored[name] for name in stored.files})
        whole, state = lbfgs.iterate(rosenbrock, whole), lbfgs.iterate(rosenbrock, state)
    for a, b in zip(whole, state, strict=True):
        np.testing.assert_array_equal(a, b)
