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

from ..inference import condition
from ..inference.estimates import prior_spreads, slopes_at
from ..inference.staged import STAGED_VALUES
from . import lbfgs
from .gauss_newton import widened_by_weights
from .objective import Objective, value_and_gradient
from .phases import Trained

# Differences are taken over this fraction of a standard deviation.
STEP = 0.3
# The first step of a search for the right one, and the largest; most coordinates are logarithms.
FIRST, LARGEST, SMALLEST = 1e-2, 0.3, 1e-10
# The search ends where the objective is within this of its minimum, in nats, or after as many iterations.
CLOSE, ITERATIONS = 1e-3, 25
# The standard deviation of a coordinate that changes nothing; most are logarithms.
FURTHEST = 10.0
# Curvatures below this are rounding.
RELATIVE = 1e-12
# The coordinates are good if all curvatures are within this factor of one; they are improved a few times.
FACTOR, ROUNDS = 4.0, 4
# A rise over two standard deviations below this, in nats, shows that the curvature at the minimum is not all.
SLOW = 1.3
# With more coordinates than this, each array of more than a few moves as a whole.
MOST, FEW = 24, 3


class Curvature(NamedTuple):
    """A minimum, and `T` with `T Tᵀ = H⁻¹` for everything but the weights; `moved` is how far it was, in nats."""

    trained: Trained
    transform: Float[np.ndarray, "q r"]
    moved: float

    @property
    def numbers(self) -> int:
        """How many unknown numbers there are."""
        return len(self.trained.objective.unknown)

    @property
    def of_numbers(self) -> Float[np.ndarray, "p r"]:
        """The rows of `T` for the unknown numbers, which come last, by name."""
        return self.transform[len(self.transform) - self.numbers :]

    def covariance(self) -> Float[np.ndarray, "p p"]:
        """That of the unknown numbers, with everything else integrated out."""
        return self.of_numbers @ self.of_numbers.T


class Held(NamedTuple):
    """The best of everything else with one number held: its value, the rise above the minimum, the coordinates."""

    raw: float
    rise: float
    rest: np.ndarray


class Line:
    """Everything but one number optimised, as that number moves away from a minimum.

    In the coordinates `z` the number changes along one direction only, and to second order everything else is best at
    zero there: so only the other directions are searched, from where a line through the last results leads.
    """

    def __init__(self, found: Curvature, number: int) -> None:
        self.found = found
        row = found.of_numbers[number]
        self.std = float(np.linalg.norm(row))
        self.place = len(found.trained.x) - found.numbers + number
        # The first column is the direction along which the number changes.
        whole = np.linalg.qr(np.column_stack([row / self.std, np.eye(len(row))]))[0]
        self.direction, self.others = row / self.std, whole[:, 1 : len(row)]

    def at(self, away: float, rest: np.ndarray | None = None) -> Held:
        """The number held as many standard deviations away."""
        objective, x = self.found.trained.objective, self.found.trained.x
        count = objective.weight_count

        def whole(w: np.ndarray) -> np.ndarray:
            z = away * self.direction + self.others @ w
            return np.concatenate([x[:count], x[count:] + self.found.transform @ z])

        def function(w: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient, _ = value_and_gradient(objective, whole(w))
            return float(value), self.others.T @ (self.found.transform.T @ np.asarray(gradient)[count:])

        state = lbfgs.start(function, np.zeros(self.others.shape[1]) if rest is None else rest)
        for _ in range(ITERATIONS if len(state.x) else 0):
            if bool(state.stuck) or float(state.gradient @ state.gradient) < 2 * CLOSE:
                break
            state = lbfgs.iterate(function, state)
        return Held(float(whole(state.x)[self.place]), float(state.value) - self.found.trained.value, state.x)


def widened(found: Curvature, prior: np.ndarray, stopped: Callable[[], bool] = lambda: False) -> np.ndarray:
    """The covariance of the numbers, wider along each for which the evidence rises slower than its curvature says.

    Two standard deviations away the objective of a normal distribution has risen by two nats. A curved valley, such as
    that of two numbers whose sum alone is known, hardly rises; then the number is followed until it does.
    """
    covariance = found.covariance()
    for number in range(found.numbers):
        line, ratio = Line(found, number), 1.0
        for side in (-1.0, 1.0):
            away, rest = 2.0, None
            while not stopped():
                held = line.at(side * away, rest)
                if not np.isfinite(held.rise) or held.rise > SLOW or away * line.std > 2 * prior[number]:
                    break
                ratio, rest, away = max(ratio, away / np.sqrt(2 * max(held.rise, 0.1))), 2 * held.rest, 2 * away
        # Everything else follows the number as it does at the minimum.
        follow = found.covariance()[:, number] / line.std
        covariance = covariance + (min(ratio, prior[number] / line.std + 1.0) ** 2 - 1) * np.outer(follow, follow)
    return within(covariance + _of_weights(found.trained, prior), prior)


def _of_weights(trained: Trained, prior: np.ndarray) -> np.ndarray:
    """What the weights of an embedding, which are held, add to the covariance of the numbers."""
    objective = trained.objective
    if not objective.weight_count or sum(map(len, objective.observations)) > STAGED_VALUES:
        return np.zeros((len(prior), len(prior)))
    posterior = condition(trained.model, objective.observations, solver="dense")
    slopes = np.concatenate([slopes_at(posterior, item.operator, item.points) for item in objective.observations])
    return widened_by_weights(objective, trained.x, slopes, prior)


def within(covariance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The covariance with the information of the data, which is never negative, and that of the priors."""
    scaled = covariance / np.outer(prior, prior)
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    return prior[:, None] * ((vectors * np.clip(values, 1e-30, 1.0)) @ vectors.T) * prior


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
    transform = basis * _scales(function(x), basis.shape[1])
    priors = FURTHEST * prior_spreads(objective.unknown)
    furthest = np.concatenate([np.full(len(basis) - len(priors), FURTHEST), priors])
    for number in range(ROUNDS):
        hessian = _hessian(function(x), transform.shape[1])
        eigenvalues, vectors = np.linalg.eigh(hessian)
        convex = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
        # Nothing moves further than this: the level of a noise at its limit changes nothing.
        limits = transform / furthest[:, None]
        eigenvalues, vectors = np.linalg.eigh(convex + limits.T @ limits)
        good = number > 0 and bool(np.all((eigenvalues < FACTOR) & (eigenvalues > 1 / FACTOR)))
        transform = transform @ (vectors / np.sqrt(np.maximum(eigenvalues, RELATIVE)))
        if good or stopped():
            break
        x = _minimum(function(x), x, count, transform, stopped)
    value = float(value_and_gradient(objective, x)[0])
    if not value <= trained.value:
        x, value = start, trained.value
    return Curvature(Trained(objective, x, value), transform, trained.value - value)


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
