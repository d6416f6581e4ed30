"""The phases of a run: L-BFGS over all but the weights, Gauss–Newton steps of the weights, L-BFGS over everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..model import Model
from . import lbfgs
from .gauss_newton import proposals
from .journal import Journal, State
from .monitor import Monitor
from .objective import Objective, model_at, value_and_gradient

# Iterations of L-BFGS between two Gauss–Newton steps.
ITERATIONS_PER_ROUND = 5

# The smallest difference of objectives that matters, in nats per value. A round of training that gains less counts as
# idle, and a richer kernel that gains less is not kept.
TOLERANCE = 1e-2

# Improvements grow once the right valley is found. So a run is given up only when even `HOPE` times the last
# improvement, in every remaining round, would not reach the best objective.
HOPE = 10.0


class Trained(NamedTuple):
    """A model's parameters after training, as the flat vector `x` of its objective."""

    objective: Objective
    x: np.ndarray
    value: float

    @property
    def model(self) -> Model:
        return model_at(self.objective, self.x)

    @property
    def tolerance(self) -> float:
        """The smallest difference of two objectives on these data that matters."""
        return tolerance(self.objective)


def tolerance(objective: Objective) -> float:
    return TOLERANCE * sum(map(len, objective.observations))


class Trainer:
    """Runs the phases of one fit, and holds what they share."""

    def __init__(self, journal: Journal, monitor: Monitor) -> None:
        self.journal, self.monitor = journal, monitor
        self.rejected = 0

    def stopped(self) -> bool:
        return self.monitor.stopped is not None

    def fit_kernel(self, name: str, objective: Objective, iterations: int) -> Trained:
        """A first look: some iterations of L-BFGS over everything but the weights."""

        def look(state: State) -> State:
            return self._block(name, objective, state, iterations, frozen=True, first_look=True)

        return self._run(name, objective, look)

    def alternate(
        self,
        name: str,
        objective: Objective,
        rounds: int,
        to_beat: float = np.inf,
        together: int = 0,
        enough: Callable[[Trained], bool] = lambda trained: False,
    ) -> Trained:
        """Rounds of L-BFGS over everything but the weights, each followed by a Gauss–Newton step of the weights.

        If `together` is not zero, each round ends with `together` iterations of L-BFGS over all parameters. A run ends
        early if it gains too little to reach the objective `to_beat`, or if it is good `enough`.
        """

        def step(state: State) -> State:
            after = self._round(name, objective, state, rounds, to_beat, together)
            ended = bool(after["done"]) or enough(Trained(objective, after["x"], float(after["value"])))
            return after | {"done": np.asarray(ended)}

        return self._run(name, objective, step)

    def _run(self, name: str, objective: Objective, step: Callable[[State], State]) -> Trained:
        def begin() -> State:
            zero = np.asarray(0)
            return {
                "x": objective.start(),
                "value": np.asarray(np.inf),
                "step": zero,
                "idle": zero,
                "rejected": zero,
                "done": np.asarray(False),
            }

        state = self.journal.run(name, begin, step, self.stopped)
        return self.trained(objective, state)

    def trained(self, objective: Objective, state: State) -> Trained:
        self.rejected += int(state["rejected"])
        return Trained(objective, state["x"], float(state["value"]))

    def _block(
        self,
        name: str,
        objective: Objective,
        state: State,
        iterations: int,
        frozen: bool,
        first: int = 0,
        most: int | None = None,
        first_look: bool = False,
    ) -> State:
        """Some iterations of L-BFGS. Progress counts them from `first`, out of `most` in the whole phase."""
        count = objective.weight_count if frozen else 0
        fixed = state["x"][:count]

        def function(y: np.ndarray) -> tuple[float, np.ndarray]:
            x = np.concatenate([fixed, y])
            value, gradient, _ = value_and_gradient(objective, x, first_look=first_look)
            return float(value), np.asarray(gradient)[count:]

        inner = lbfgs.start(function, state["x"][count:])
        # At the noise floor, gains are rounding errors and line searches are long: such iterations are not worth it.
        worthwhile = 0.1 * tolerance(objective) if frozen else 0.0
        for iteration in range(iterations):
            before, inner = float(inner.value), lbfgs.iterate(function, inner)
            self._report(name, objective, first + iteration, most or iterations, fixed, inner)
            slow = before - float(inner.value) < worthwhile
            if bool(inner.stuck) or slow or self.monitor.stopped:
                break
        return state | {
            "x": np.concatenate([fixed, inner.x]),
            "value": inner.value if np.isfinite(inner.value) else state["value"],
            "rejected": state["rejected"] + inner.rejected,
            "done": np.asarray(True),
        }

    def _round(
        self, name: str, objective: Objective, state: State, rounds: int, to_beat: float, together: int
    ) -> State:
        before = float(state["value"])
        whole = ITERATIONS_PER_ROUND + together
        first, most = int(state["step"]) * whole, rounds * whole
        after = self._block(name, objective, state, ITERATIONS_PER_ROUND, frozen=True, first=first, most=most)
        if objective.weight_count and np.isfinite(after["value"]) and not self.monitor.stopped:
            x, value, rejected = _gauss_newton_step(objective, after["x"], float(after["value"]))
            after |= {"x": x, "value": np.asarray(value), "rejected": after["rejected"] + rejected}
        if together and not self.monitor.stopped:
            first += ITERATIONS_PER_ROUND
            after = self._block(name, objective, after, together, frozen=False, first=first, most=most)
        value, step = float(after["value"]), int(state["step"]) + 1
        gain = before - value
        # A round whose objective is not finite counts as idle too, and also gets a second chance.
        gained = np.isfinite(value) and gain >= tolerance(objective)
        idle = 0 if gained else int(state["idle"]) + 1
        hopeless = step >= (2 if together else 3) and value - to_beat > HOPE * gain * (rounds - step)
        patience = 2 if objective.weight_count or not np.isfinite(value) else 1
        done = idle >= patience or hopeless or step >= rounds
        return after | {"step": np.asarray(step), "idle": np.asarray(idle), "done": np.asarray(done)}

    def _report(self, name: str, objective: Objective, step: int, steps: int, fixed: np.ndarray, inner: lbfgs.State):
        noise = model_at(objective, np.concatenate([fixed, inner.x])).noise()
        size = float(np.linalg.norm(inner.gradient))
        self.monitor.report(name, step, steps, float(inner.value), size, noise)


def _gauss_newton_step(objective: Objective, x: np.ndarray, value: float) -> tuple[np.ndarray, float, int]:
    """The step with the best evidence, then with more trust `λ` as long as the objective falls.

    If the objective does not fall at all, shorter steps with less trust are tried.
    """
    evidences, steps, _ = map(np.asarray, proposals(objective, x))
    usable = np.isfinite(evidences) & np.all(np.isfinite(steps), axis=1)
    if not np.any(usable):
        return x, value, 1
    start = int(np.argmin(np.where(usable, evidences, np.inf)))
    rejected = 0

    def move(trust: int, length: float) -> tuple[np.ndarray, float]:
        nonlocal rejected
        moved = x.copy()
        moved[: steps.shape[1]] += length * steps[trust]
        trial, gradient, _ = value_and_gradient(objective, moved)
        if np.isfinite(trial) and np.all(np.isfinite(gradient)):
            return moved, float(trial)
        rejected += 1
        return x, np.inf

    best = (x, value)
    # With noisy data the evidence of the linearised model chooses too little trust: ten or a hundred times more trust
    # may lower the objective further.
    for trust in range(start, len(steps)):
        if not usable[trust] or not (found := move(trust, 1.0))[1] < best[1]:
            break
        best = found
    for fewer, length in ((1, 0.3), (2, 0.1), (3, 0.03)):
        if best[1] < value:
            break
        if usable[trust := max(start - fewer, 0)] and (found := move(trust, length))[1] < value:
            best = found
    return *best, rejected
