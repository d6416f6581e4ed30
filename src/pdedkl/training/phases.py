"""The phases of a run: L-BFGS over all but the weights, Gauss–Newton steps of the weights, L-BFGS over everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from ..model import Model
from . import lbfgs
from .gauss_newton import proposals
from .journal import Journal, State
from .monitor import Monitor
from .objective import Objective, value_and_gradient

# Iterations of L-BFGS between two Gauss–Newton steps, and in a round of a kernel without weights once its noise is low.
ITERATIONS_PER_ROUND, POLISHING = 5, 40

# With many parameters, single iterations may gain little on the way to more: the gain over this many is looked at.
LAG = 10

# The smallest difference of objectives that matters, in nats per value. A round of training that gains less counts as
# idle, and a richer kernel that gains less is not kept.
TOLERANCE = 1e-2

# Each round lowers the ceiling of noise that is no noise to this fraction of the level that was learned.
EASING = 0.3

# The logarithm of a ceiling that is none.
NO_CEILING = 100.0

# What the ceilings of noise do in a round.
FREE, FALLING, SETTLED = range(3)

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
        return self.objective.model(self.x)

    @property
    def tolerance(self) -> float:
        """The smallest difference of two objectives on these data that matters."""
        return tolerance(self.objective)


def _value(objective: Objective, x: np.ndarray) -> float:
    return float(value_and_gradient(objective, x)[0])


def tolerance(objective: Objective) -> float:
    return TOLERANCE * sum(map(len, objective.observations))


class Trainer:
    """Runs the phases of one fit, and holds what they share."""

    def __init__(self, journal: Journal, monitor: Monitor) -> None:
        self.journal, self.monitor = journal, monitor
        self.rejected = 0

    def stopped(self) -> bool:
        return self.monitor.stopped is not None

    def ended(self) -> bool:
        """Whether the run is to end before another phase begins."""
        return not self.monitor.time_for_a_phase()

    def fit_kernel(self, name: str, objective: Objective, iterations: int) -> Trained:
        """A first look: some iterations of L-BFGS over everything but the weights."""

        def look(state: State) -> State:
            return self._block(name, objective.eased(state["ceilings"]), state, iterations, frozen=True)

        return self._run(name, objective, look)

    def alternate(
        self,
        name: str,
        objective: Objective,
        rounds: int,
        to_beat: Trained | None = None,
        together: int = 0,
        enough: Callable[[Trained], bool] = lambda trained: False,
    ) -> Trained:
        """Rounds of L-BFGS over everything but the weights, each followed by a Gauss–Newton step of the weights.

        If `together` is not zero, each round ends with at most that many iterations of L-BFGS over all parameters. The
        ceilings of noise levels fall from round to round. A run ends early if it gains too little to reach the
        objective of `to_beat`, or if it is good `enough`.
        """

        @cache
        def goal(eased: bool) -> float:
            """The objective to beat; while zeros and constants are given here, they are given there too."""
            if to_beat is None:
                return np.inf
            other = to_beat.objective
            return _value(other.under(other.ceilings(), other.alike), to_beat.x) if eased else to_beat.value

        def step(state: State) -> State:
            after = self._round(name, objective, state, rounds, goal, together)
            ended = bool(after["done"]) or enough(self._trained(objective, after))
            return after | {"done": np.asarray(ended)}

        return self._run(name, objective, step)

    def _run(self, name: str, objective: Objective, step: Callable[[State], State]) -> Trained:
        def begin() -> State:
            zero, x = np.asarray(0), objective.start()
            return {
                "x": x,
                "value": np.asarray(np.inf),
                "ceilings": self._first_ceilings(objective, x),
                "stage": zero,
                "step": zero,
                "idle": zero,
                "rejected": zero,
                "done": np.asarray(False),
            }

        state = self.journal.run(name, begin, step, self.stopped)
        return self.trained(objective, state)

    def _first_ceilings(self, objective: Objective, x: np.ndarray) -> np.ndarray:
        """Noise starts where the model has it, above its ceiling if need be.

        While weights are far off, their misfit is large. So with weights this noise is free at first, and its ceiling
        comes down once the weights have settled. Zeros and constants never have more noise than in the end.
        """
        if objective.weight_count:
            return np.where(objective.of_conditions(), objective.ceilings(), NO_CEILING)
        free = objective.under(np.full(len(objective.noise_ceiling), NO_CEILING))
        return np.maximum(objective.ceilings(), free.levels(x))

    def trained(self, objective: Objective, state: State) -> Trained:
        """The result of a phase. If it ended before its ceilings were down, its objective is that of all values too."""
        self.rejected += int(state["rejected"])
        found = self._trained(objective, state)
        if found.objective.given == objective.given:
            return found
        whole = objective.under(state["ceilings"])
        return Trained(whole, found.x, _value(whole, found.x))

    def _trained(self, objective: Objective, state: State) -> Trained:
        eased = objective.eased(state["ceilings"]) if "ceilings" in state else objective
        return Trained(eased, state["x"], float(state["value"]))

    def _block(
        self,
        name: str,
        objective: Objective,
        state: State,
        iterations: int,
        frozen: bool,
        first: int = 0,
        most: int | None = None,
        lag: int = 1,
    ) -> State:
        """Some iterations of L-BFGS. Progress counts them from `first`, out of `most` in the whole phase.

        They end early if the last `lag` iterations have gained too little.
        """
        count = objective.weight_count if frozen else 0
        fixed = state["x"][:count]

        def function(y: np.ndarray) -> tuple[float, np.ndarray]:
            x = np.concatenate([fixed, y])
            value, gradient, _ = value_and_gradient(objective, x)
            return float(value), np.asarray(gradient)[count:]

        inner = lbfgs.start(function, state["x"][count:])
        # At the noise floor, gains are rounding errors and line searches are long: such iterations are not worth it.
        values = [float(inner.value)]
        for iteration in range(iterations):
            inner = lbfgs.iterate(function, inner)
            values.append(float(inner.value))
            self._report(name, objective, first + iteration, most or iterations, fixed, inner)
            slow = len(values) > lag and values[-1 - lag] - values[-1] < 0.1 * lag * tolerance(objective)
            if bool(inner.stuck) or slow or self.monitor.stopped:
                break
        return state | {
            "x": np.concatenate([fixed, inner.x]),
            "value": inner.value if np.isfinite(inner.value) else state["value"],
            "rejected": state["rejected"] + inner.rejected,
            "done": np.asarray(True),
        }

    def _round(
        self,
        name: str,
        final: Objective,
        state: State,
        rounds: int,
        goal: Callable[[bool], float],
        together: int,
    ) -> State:
        before, ceilings = float(state["value"]), state["ceilings"]
        free = bool(np.any(ceilings >= NO_CEILING)) and not int(state["idle"])
        if int(state["step"]) and not free:
            learned = final.under(ceilings).levels(state["x"])
            ceilings = np.maximum(final.ceilings(), np.minimum(ceilings, learned + np.log(EASING)))
        objective = final.eased(ceilings)
        state = state | {"x": objective.lowered(state["x"])}
        whole = ITERATIONS_PER_ROUND + together
        first, most = int(state["step"]) * whole, rounds * whole
        settled = bool(np.all(ceilings <= final.ceilings()))
        stage = FREE if free else SETTLED if settled else FALLING
        block = partial(self._block, name, objective, most=most)
        few = objective.weight_count > 0 or not settled
        after = block(
            state, ITERATIONS_PER_ROUND if few else POLISHING, frozen=True, first=first, lag=1 if few else LAG
        )
        if objective.weight_count and np.isfinite(after["value"]) and not self.monitor.stopped:
            x, value, rejected = _gauss_newton_step(objective, after["x"], float(after["value"]))
            after |= {"x": x, "value": np.asarray(value), "rejected": after["rejected"] + rejected}
        if together and not self.monitor.stopped:
            after = block(after, together, frozen=False, first=first + ITERATIONS_PER_ROUND, lag=LAG)
        value, step = float(after["value"]), int(state["step"]) + 1
        gain = before - value
        # A round whose objective is not finite counts as idle too, and gets a second chance as well. While ceilings
        # fall, objectives of two rounds do not compare.
        compares = stage != FALLING and (stage == int(state["stage"]) or not int(state["step"]))
        gained = np.isfinite(value) and (gain >= tolerance(objective) or not compares)
        idle = 0 if gained else int(state["idle"]) + 1
        hopeless = (
            compares and step >= (2 if together else 3) and value - goal(stage == FREE) > HOPE * gain * (rounds - step)
        )
        patience = 2 if objective.weight_count or not np.isfinite(value) else 1
        done = idle >= patience or hopeless or step >= rounds
        return after | {
            "ceilings": ceilings,
            "stage": np.asarray(stage),
            "step": np.asarray(step),
            "idle": np.asarray(idle),
            "done": np.asarray(done),
        }

    def _report(self, name: str, objective: Objective, step: int, steps: int, fixed: np.ndarray, inner: lbfgs.State):
        noise = objective.model(np.concatenate([fixed, inner.x])).noise()
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
