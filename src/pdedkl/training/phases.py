"""The phases of a run: fit what is no weight, take Gauss–Newton steps, polish everything with L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..model import Model
from . import lbfgs
from .gauss_newton import proposals
from .journal import Journal, State
from .monitor import Monitor
from .objective import NOISE_FLOOR, Objective, model_at, value_and_gradient

# Iterations of L-BFGS between two Gauss–Newton steps.
ITERATIONS_PER_ROUND = 8

# A round, or a block of L-BFGS, that gains less than this per observation is the last but one.
SMALLEST_GAIN = 2e-3


class Trained(NamedTuple):
    """A model's parameters after training, as a vector of its objective."""

    objective: Objective
    x: np.ndarray
    value: float
    rejected: int

    @property
    def model(self) -> Model:
        return model_at(self.objective, self.x)

    @property
    def relative_noise(self) -> float:
        """The largest of the learned noise levels, relative to its data: what the model leaves unexplained."""
        floors = self.objective.noise_floor
        levels = [NOISE_FLOOR * float(np.exp(level - floors[name])) for name, level in self.model.log_noise.items()]
        return max(levels, default=0.0)


class Trainer:
    """Runs phases of one fit: everything they share."""

    def __init__(self, journal: Journal, monitor: Monitor) -> None:
        self.journal, self.monitor = journal, monitor

    def fit_kernel(self, name: str, objective: Objective, iterations: int) -> Trained:
        """L-BFGS over everything but the weights."""
        return self._run(name, objective, lambda state: self._block(name, objective, state, iterations, frozen=True))

    def alternate(self, name: str, objective: Objective, rounds: int, x: np.ndarray | None = None) -> Trained:
        """Rounds of L-BFGS over everything but the weights, each followed by a Gauss–Newton step of the weights."""
        return self._run(name, objective, lambda state: self._round(name, objective, state, rounds), x)

    def polish(self, name: str, objective: Objective, blocks: int, x: np.ndarray | None = None) -> Trained:
        """L-BFGS over everything, in blocks."""

        def step(state: State) -> State:
            state = self._block(name, objective, state, 20, frozen=False)
            return state | {"done": np.asarray(bool(state["idle"] >= 1) or int(state["step"]) >= blocks)}

        return self._run(name, objective, step, x)

    def _run(
        self, name: str, objective: Objective, step: Callable[[State], State], x: np.ndarray | None = None
    ) -> Trained:
        def begin() -> State:
            zero = np.asarray(0)
            return {
                "x": objective.start() if x is None else x,
                "value": np.asarray(np.inf),
                "step": zero,
                "idle": zero,
                "rejected": zero,
                "moves": np.zeros((0, 0)),
                "changes": np.zeros((0, 0)),
                "done": np.asarray(False),
            }

        def watched(state: State) -> State:
            state = step(state)
            return state | {"done": state["done"] | np.asarray(self.monitor.stopped is not None)}

        state = self.journal.run(name, begin, watched)
        return Trained(objective, state["x"], float(state["value"]), int(state["rejected"]))

    def _block(self, name: str, objective: Objective, state: State, iterations: int, frozen: bool) -> State:
        """Some iterations of L-BFGS; the memory of earlier ones is kept."""
        count = objective.weight_count if frozen else 0
        fixed = state["x"][:count]

        def function(y: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient, _ = value_and_gradient(objective, np.concatenate([fixed, y]))
            return float(value), np.asarray(gradient)[count:]

        inner = lbfgs.start(function, state["x"][count:])
        if state["moves"].shape[1] == inner.x.size:
            inner = inner._replace(moves=state["moves"], changes=state["changes"])
        before = float(inner.value)
        for iteration in range(iterations):
            inner = lbfgs.iterate(function, inner)
            self._report(name, objective, int(state["step"]) * iterations + iteration, iterations, fixed, inner)
            if bool(inner.stuck) or self.monitor.stopped:
                break
        gain = before - float(inner.value)
        points = sum(map(len, objective.observations))
        idle = int(state["idle"]) + 1 if gain < SMALLEST_GAIN * points else 0
        return state | {
            "x": np.concatenate([fixed, inner.x]),
            "value": inner.value,
            "step": state["step"] + 1,
            "idle": np.asarray(idle),
            "rejected": state["rejected"] + inner.rejected,
            "moves": inner.moves,
            "changes": inner.changes,
            "done": np.asarray(True),
        }

    def _round(self, name: str, objective: Objective, state: State, rounds: int) -> State:
        before = float(state["value"])
        after = self._block(name, objective, state | {"moves": np.zeros((0, 0))}, ITERATIONS_PER_ROUND, frozen=True)
        count = objective.weight_count
        x, value, rejected = after["x"], float(after["value"]), int(after["rejected"])
        if count and np.isfinite(value) and not self.monitor.stopped:
            x, value, more = _gauss_newton_step(objective, x, value)
            rejected += more
        points = sum(map(len, objective.observations))
        idle = int(state["idle"]) + 1 if before - value < SMALLEST_GAIN * points else 0
        step = int(state["step"]) + 1
        return after | {
            "x": x,
            "value": np.asarray(value),
            "step": np.asarray(step),
            "idle": np.asarray(idle),
            "rejected": np.asarray(rejected),
            "moves": np.zeros((0, 0)),
            "changes": np.zeros((0, 0)),
            "done": np.asarray(idle >= 2 or step >= rounds or not np.isfinite(value)),
        }

    def _report(self, name: str, objective: Objective, step: int, steps: int, fixed: np.ndarray, inner: lbfgs.State):
        noise = model_at(objective, np.concatenate([fixed, inner.x])).noise()
        size = float(np.linalg.norm(inner.gradient))
        self.monitor.report(name, step, max(steps, step + 1), float(inner.value), size, noise)


def _gauss_newton_step(objective: Objective, x: np.ndarray, value: float) -> tuple[np.ndarray, float, int]:
    """The step of best evidence, shortened and with less trust until the objective itself falls."""
    evidences, steps = map(np.asarray, proposals(objective, x))
    usable = np.isfinite(evidences) & np.all(np.isfinite(steps), axis=1)
    if not np.any(usable):
        return x, value, 1
    trust = int(np.argmin(np.where(usable, evidences, np.inf)))
    rejected = 0
    for length in (1.0, 0.3, 0.1, 0.03):
        if usable[trust]:
            moved = x.copy()
            moved[: steps.shape[1]] += length * steps[trust]
            trial, _, _ = value_and_gradient(objective, moved)
            if float(trial) < value:
                return moved, float(trial), rejected
            rejected += int(not np.isfinite(float(trial)))
        trust = max(trust - 1, 0)
    return x, value, rejected
