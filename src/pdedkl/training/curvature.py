"""The minimum of an objective over all but the weights, and its curvature there.

Training ends once it gains little, which may leave an unknown number several of its standard deviations from the best
value. So the last steps are taken in coordinates `x = x₀ + T z` in which the curvature is about one, `T Tᵀ ≈ H⁻¹`, and
the Hessian `H` comes from differences of gradients along these coordinates: each step is a fraction of a standard
deviation, whether a number is known to one digit or to eight, and directions that the data leave open are as exact as
those that they determine.

`H⁻¹` is Laplace's approximation of the covariance of kernel, noise and unknown numbers. Its block for the numbers has
the others integrated out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from . import lbfgs
from .objective import Objective, value_and_gradient
from .phases import Trained

# Differences are taken over this fraction of a standard deviation.
STEP = 0.3
# The first step of a search for the right one, and the largest; most coordinates are logarithms.
FIRST, LARGEST, SMALLEST = 1e-2, 0.3, 1e-10
# The search ends where the objective is within this of its minimum, in nats, or after as many iterations.
CLOSE, ITERATIONS = 1e-3, 25
# Curvatures in scaled coordinates below this fraction of the largest are rounding.
RELATIVE = 1e-5
# The coordinates are good if all curvatures are within this factor of one; they are improved a few times.
FACTOR, ROUNDS = 4.0, 4
# With more coordinates than this, each array of more than a few moves as a whole.
MOST, FEW = 24, 3


class Curvature(NamedTuple):
    """A minimum, and `H⁻¹` for everything but the weights; `moved` is how far it was from the start, in nats."""

    trained: Trained
    covariance: Float[np.ndarray, "q q"]
    moved: float

    def of_numbers(self) -> Float[np.ndarray, "p p"]:
        """The block of the unknown numbers, which come last, by name."""
        first = len(self.covariance) - len(self.trained.objective.unknown)
        return self.covariance[first:, first:]


def settled(trained: Trained, stopped: Callable[[], bool] = lambda: False) -> Curvature:
    """The minimum next to where training ended, and the curvature there."""
    objective, start = trained.objective, np.asarray(trained.x)
    count, basis = objective.weight_count, _basis(trained.objective)

    def function(x: np.ndarray) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        def along(z: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient, _ = value_and_gradient(objective, np.concatenate([x[:count], x[count:] + transform @ z]))
            return float(value), transform.T @ np.asarray(gradient)[count:]

        return along

    x, transform = start, basis
    scales = _scales(function(x), basis.shape[1])
    transform = basis * scales
    whitened = None
    for number in range(ROUNDS):
        hessian = _hessian(function(x), transform.shape[1])
        eigenvalues, vectors = np.linalg.eigh(hessian)
        floored = np.maximum(eigenvalues, RELATIVE * max(float(eigenvalues[-1]), RELATIVE))
        good = number > 0 and bool(np.all((floored < FACTOR) & (floored > 1 / FACTOR)))
        transform = transform @ (vectors / np.sqrt(floored))
        whitened = transform
        if good or stopped():
            break
        x = _minimum(function(x), x, count, transform, stopped)
    assert whitened is not None
    value = float(value_and_gradient(objective, x)[0])
    if not value <= trained.value:
        x, value = start, trained.value
    covariance = whitened @ whitened.T
    return Curvature(Trained(objective, x, value), covariance, trained.value - value)


def _basis(objective: Objective) -> Float[np.ndarray, "q r"]:
    """The coordinates to move: all of them or, if there are many, large arrays as a whole."""
    _, others, _ = objective._parts()
    sizes = [leaf.size for leaf in jax.tree.leaves(others)]
    total = sum(sizes)
    if total <= MOST:
        return np.eye(total)
    columns, begin = [], 0
    for size in sizes:
        block = np.eye(size) if size <= FEW else np.ones((size, 1))
        columns.append(np.pad(block, ((begin, total - begin - size), (0, 0))))
        begin += size
    return np.concatenate(columns, axis=1)


def _scales(function: Callable, count: int) -> np.ndarray:
    """About the standard deviation of each coordinate, with all others held."""
    _, at_zero = function(np.zeros(count))
    found = np.empty(count)
    for i in range(count):
        step = FIRST
        for _ in range(6):
            value, gradient = function(step * np.eye(count)[i])
            curvature = (gradient[i] - at_zero[i]) / step
            if not (np.isfinite(value) and np.isfinite(curvature)):
                step *= 0.1
                continue
            wanted = np.clip(STEP / np.sqrt(max(curvature, 1e-300)), SMALLEST, LARGEST)
            done = step <= 2 * wanted
            step = wanted
            if done:
                break
        found[i] = step / STEP
    return found


def _hessian(function: Callable, count: int) -> np.ndarray:
    """By central differences of gradients, one for each coordinate."""
    rows = []
    for i in range(count):
        step = STEP * np.eye(count)[i]
        (up, above), (down, below) = function(step), function(-step)
        fine = np.isfinite(up) and np.isfinite(down)
        rows.append((above - below) / (2 * STEP) if fine else np.eye(count)[i])
    found = np.asarray(rows)
    return 0.5 * (found + found.T)


def _minimum(
    function: Callable, x: np.ndarray, count: int, transform: np.ndarray, stopped: Callable[[], bool]
) -> np.ndarray:
    """The minimum in coordinates in which the curvature is about one: there a gradient step is Newton's."""
    state = lbfgs.start(function, np.zeros(transform.shape[1]))
    for _ in range(ITERATIONS):
        if stopped() or bool(state.stuck) or float(state.gradient @ state.gradient) < 2 * CLOSE:
            break
        state = lbfgs.iterate(function, state)
    return np.concatenate([x[:count], x[count:] + transform @ state.x])
