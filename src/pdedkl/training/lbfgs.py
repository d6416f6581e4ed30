"""L-BFGS with an explicit state, so that a run can be stored after any iteration and resumed exactly.

A point whose objective or gradient is not finite is rejected: the line search shortens the step, and counts the point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]

MEMORY = 30
LONGEST_STEP = 2.0  # largest change of a parameter in one iteration; most parameters are logarithms
SUFFICIENT_DECREASE = 1e-4
TRIALS = 8


class State(NamedTuple):
    """`moves` and `changes` are the last steps and changes of the gradient, oldest first."""

    x: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    moves: np.ndarray
    changes: np.ndarray
    evaluations: np.ndarray
    rejected: np.ndarray
    stuck: np.ndarray


def start(function: Function, x: np.ndarray) -> State:
    value, gradient = function(x)
    empty = np.zeros((0, x.size))
    finite = _finite(value, gradient)
    gradient = gradient if finite else np.zeros_like(x)
    return State(
        x, np.asarray(value), gradient, empty, empty, np.asarray(1), np.asarray(int(not finite)), np.asarray(not finite)
    )


def iterate(function: Function, state: State) -> State:
    """One iteration. `stuck` is set if no step along the negative gradient lowers the objective."""
    direction = -_inverse_hessian_times(state, state.gradient)
    slope = float(state.gradient @ direction)
    if not slope < 0:
        state = state._replace(moves=state.moves[:0], changes=state.changes[:0])
        direction = -_inverse_hessian_times(state, state.gradient)
        slope = float(state.gradient @ direction)
    if not slope < 0:
        return state._replace(stuck=np.asarray(True))
    longest = float(np.max(np.abs(direction)))
    if longest > LONGEST_STEP:
        direction, slope = direction * (LONGEST_STEP / longest), slope * (LONGEST_STEP / longest)
    found, evaluations, rejected = _line_search(function, state, direction, slope)
    counts = {"evaluations": state.evaluations + evaluations, "rejected": state.rejected + rejected}
    if found is None:
        fresh = state.moves.shape[0] == 0
        return state._replace(moves=state.moves[:0], changes=state.changes[:0], stuck=np.asarray(fresh), **counts)
    length, value, gradient = found
    move, change = length * direction, gradient - state.gradient
    moves, changes = state.moves, state.changes
    if move @ change > 1e-10 * np.linalg.norm(move) * np.linalg.norm(change):
        moves = np.concatenate([moves, move[None]])[-MEMORY:]
        changes = np.concatenate([changes, change[None]])[-MEMORY:]
    return state._replace(
        x=state.x + move, value=np.asarray(value), gradient=gradient, moves=moves, changes=changes, **counts
    )


def _line_search(function: Function, state: State, direction: np.ndarray, slope: float):
    """Shorten the step until the objective falls enough; double it while the objective still falls steeply."""
    value, length, best, evaluations, rejected = float(state.value), 1.0, None, 0, 0
    # Smaller differences of the objective are rounding errors.
    rounding = 1e-12 * max(1.0, abs(value))
    while evaluations < TRIALS:
        trial, gradient = function(state.x + length * direction)
        evaluations += 1
        if not _finite(trial, gradient):
            rejected += 1
            if best is not None:
                break
            length *= 0.1
        elif trial > value + SUFFICIENT_DECREASE * length * slope + rounding:
            if best is not None:
                break
            curvature = trial - value - length * slope
            length *= min(0.5, max(0.1, -slope * length / (2 * curvature)))
        elif best is not None and trial >= best[1]:
            break
        else:
            best = (length, trial, gradient)
            if not gradient @ direction < 0.9 * slope:
                break
            length *= 2.0
    return best, evaluations, rejected


def _inverse_hessian_times(state: State, vector: np.ndarray) -> np.ndarray:
    out = vector.copy()
    pairs = list(zip(state.moves, state.changes))
    factors = []
    for move, change in reversed(pairs):
        factor = (move @ out) / (change @ move)
        factors.append(factor)
        out -= factor * change
    if pairs:
        move, change = pairs[-1]
        out *= (move @ change) / (change @ change)
    else:
        out *= min(1.0, 0.1 / max(float(np.max(np.abs(vector))), 1e-300))
    for (move, change), factor in zip(pairs, reversed(factors)):
        out += move * (factor - (change @ out) / (change @ move))
    return out


def _finite(value: float, gradient: np.ndarray) -> bool:
    return bool(np.isfinite(value) and np.all(np.isfinite(gradient)))
