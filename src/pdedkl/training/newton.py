"""Newton's method: linearise, condition, and linearise anew where the posterior mean is.

Steps are damped so that the residual `f − F(m)` and those of the conditions fall together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..domain import Domain
from ..inference import Posterior, condition
from ..inference.built_in import not_built_in
from ..inference.linearising import (
    Values,
    bounded,
    change,
    linear_at,
    linear_residuals,
    mean_square_root,
    misfit,
    moved,
    sizes,
    values_of,
)
from ..model import Model
from ..observations import Observation
from ..operators.rows import names_in
from ..scales import exact_levels, signal_variance, with_tolerance
from . import starts
from .building import independent
from .judging import Candidate
from .objective import Objective
from .phases import Trained, Trainer
from .recipes import FAILED
from .robust import with_weights

# Iterations with a plain kernel, the number of values it is trained on, and the rounds of training in each.
LOOKS, LOOKED_AT, ROUNDS = 8, 400, 8
# There are more, at most so many, as long as each lowers the residual to this fraction.
MOST_LOOKS, LOWERS = 16, 0.5
# It is trained on this many once iterates change by less than that: with fewer it is too smooth for all of them.
LOOKED_CLOSER_AT, SOME_WAY = 1500, 0.3
# Looks are over when rows change by less than this fraction of their size, and iterations when by less than that: what
# is left after such a step is of second order.
NEAR, CONVERGED = 3e-2, 1e-5
# Iterations that only condition.
MOST = 12
# Residuals below this fraction of their terms are as good as zero.
NEGLIGIBLE = 1e-6
# The largest residual after a step with another model, of that second order.
SECOND_ORDER = 0.1
# A whole step may leave residuals this many times those that the linearisation itself leaves.
AS_EXPECTED = 2.0
# Iterates that still change by this much have not converged.
FAR = 1e-3
# The shortest step, as a fraction of Newton's.
SHORTEST = 1 / 64
# Tolerances are lowered by this factor, so often, as long as fresh residuals fall to this fraction.
LOWER, LOWERINGS, FALLS = 0.1, 2, 0.95


@dataclass(frozen=True)
class Iteration:
    """One linearisation: what was done, the relative residual after it, the length of the step and the change."""

    phase: str
    residual: float
    step: float
    change: float
    objective: float


class Iterate(NamedTuple):
    """The values of all rows, the posterior of the last linearisation, and how it went."""

    values: Values
    posterior: Posterior | None
    residual: float
    change: float


class Newton:
    """Newton's method on one set of observations."""

    def __init__(
        self,
        domain: Domain,
        data: Sequence[Observation],
        trainer: Trainer,
        solver: str = "auto",
        name: str = "Newton",
        fields: Sequence[str] = (),
    ) -> None:
        self.domain, self.trainer, self.solver, self.name, self.fields = domain, trainer, solver, name, tuple(fields)
        self.data = with_tolerance(data)
        self.history: list[Iteration] = []
        self.best: Iterate | None = None
        self.looked: Trained | None = None

    def looks(self, start: Values) -> Iterate:
        """Iterations with a plain kernel that is trained a little in each."""
        found, model = Iterate(start, None, np.inf, np.inf), None
        for number in range(MOST_LOOKS):
            linear = linear_at(self.data, found.values)
            close = found.change < SOME_WAY
            part = starts.subsample(linear, LOOKED_CLOSER_AT if close else LOOKED_AT, 0)
            if model is None:
                fields = names_in([item.operator for item in linear])
                variance = signal_variance(part)
                kernel = independent(starts.on_inputs(self.domain, variance, factor=0.5), fields, part)
                model = starts.with_field(starts.model_of(kernel, part), self.fields)
            objective = Objective(model, part)
            self.looked = self.trainer.alternate(f"{self.name}, look {number + 1}", objective, ROUNDS)
            model = self.looked.model
            made = self.step(f"look {number + 1}", found.values, model, linear, changed=True)
            before, found = found.residual, found if made is None else made
            done = (close and found.change < NEAR) or (number + 1 >= LOOKS and not found.residual < LOWERS * before)
            if made is None or done or self.trainer.ended():
                break
        return found

    def sees(self, found: Iterate) -> bool:
        """Whether looks ended at a function that also predicts values which it is not given."""
        if self.looked is None or not found.change < SOME_WAY:
            return False
        candidate = Candidate("look", self.looked)
        return candidate.left_out < FAILED

    def converge(self, model: Model, start: Values, phase: str = "iteration") -> Iterate:
        """Iterations that condition a trained model, until the solution stays as it is."""
        found, before = Iterate(start, None, np.inf, np.inf), np.inf
        for number in range(MOST):
            data = self.linear_as_trained(found.values, model)
            if (made := self.step(f"{phase} {number + 1}", found.values, model, data, changed=number == 0)) is None:
                return found._replace(change=np.inf)
            found = made
            # Rounding ends the quadratic convergence at some level: then changes fall no more.
            stalled = found.change < FAR and found.change > 0.3 * before
            before = found.change
            if found.change < CONVERGED or stalled or self.trainer.stopped():
                break
        return found

    def linear_as_trained(self, values: Values, model: Model) -> tuple[Observation, ...]:
        """The data linearised at values of their rows, as the model was trained on them."""
        return _as_trained(linear_at(self.data, values), model)

    def weighted_as(self, trained: Posterior) -> None:
        """Take the weights that training gave to values which may be far off."""
        by_name = {item.name: item for item in trained.observations if item.weights is not None}
        each: list[np.ndarray | None] = []
        for item in self.data:
            if (found := by_name.get(item.name)) is None:
                each.append(None)
                continue
            weights = np.ones(len(item))
            held = item.of_values & trained.model.kernel.zero_at(np.asarray(item.points))
            weights[~held] = np.asarray(found.weights)
            each.append(weights)
        self.data = with_weights(self.data, each)

    def _show(self, item: Iteration, model: Model) -> None:
        """An iteration in the progress display, as a step of its own. Who has ended the run is not asked again."""
        if self.trainer.stopped():
            return
        number, noise = len(self.history), {name: float(level) for name, level in model.noise().items()}
        text = (
            f"{self.name}, {item.phase}: residual {item.residual:.1e}, step {item.step:.3g}, change {item.change:.1e}"
        )
        self.trainer.monitor.report(text, number, number, item.objective, item.change, noise)

    def polished(self, found: Iterate, fresh: Sequence[Observation]) -> Iterate:
        """The same with smaller tolerances of exact values, as long as fresh residuals fall.

        Training needs tolerances to be smooth; once it is over, they only keep `u` from fitting its equations.
        """
        exact = exact_levels(self.data)
        least = self.misfit_of(found, fresh)
        for _ in range(LOWERINGS):
            assert found.posterior is not None
            model = found.posterior.model
            noise = {k: v + np.log(LOWER) if k in exact else v for k, v in model.log_noise.items()}
            trial = self.converge(model.with_noise(noise), found.values, "tolerance")
            if trial.posterior is None or not trial.change < FAR:
                break
            if not (score := self.misfit_of(trial, fresh)) < FALLS * least:
                break
            found, least = trial, score
        return found

    def misfit_of(self, found: Iterate, fresh: Sequence[Observation]) -> float:
        """The residuals of fresh values together."""
        assert found.posterior is not None
        values = values_of(found.posterior, fresh)
        return misfit(fresh, values, sizes(fresh, values))

    def moved(self, old: Values, new: Values) -> float:
        """How far the solution moved, relative to its size."""
        return change(self.data, old, new, sizes(self.data, new))

    def step(
        self, phase: str, old: Values, model: Model, linear: Sequence[Observation], changed: bool = False
    ) -> Iterate | None:
        """From the old values towards those of the posterior of linear data, as far as all residuals together fall.

        `changed` says that the model is another than that of the old values.
        There is no step where a matrix has no factorisation, or residuals are not finite.
        """
        try:
            posterior = condition(model, linear, solver=self.solver)
        except ArithmeticError:
            return None
        new, length = values_of(posterior, self.data), 1.0
        while not bounded(self.data, new) and length > SHORTEST:
            length /= 2
            new = moved(old, new, 0.5)
        if not bounded(self.data, new):
            return None
        scale = sizes(self.data, new)
        values, residual = new, misfit(self.data, new, scale)
        # Values have noise, and exact ones a tolerance: the linearisation itself leaves residuals.
        expected = mean_square_root(self.data, linear_residuals(self.data, old, new), scale)
        allowed = max(misfit(self.data, old, scale), NEGLIGIBLE, AS_EXPECTED * expected)
        if changed:
            # The old values were those of another kernel, which this one cannot follow: what is left over after a step
            # of Newton's method is of second order.
            allowed = max(allowed, min(change(self.data, old, new, scale) ** 2, SECOND_ORDER))
        while not residual < allowed and length > SHORTEST:
            length /= 2
            values = moved(old, values, 0.5)
            residual = misfit(self.data, values, scale)
        found = Iterate(values, posterior, residual, change(self.data, old, new, scale))
        self.history.append(Iteration(phase, residual, length, found.change, float(posterior.objective)))
        self._show(self.history[-1], model)
        # What is returned if iterations do not end is the posterior, which has made the whole step.
        whole = misfit(self.data, new, scale)
        if self.best is None or whole <= self.best.residual:
            self.best = found._replace(residual=whole)
        return found


def _as_trained(data: Sequence[Observation], model: Model) -> tuple[Observation, ...]:
    """The data as the model was trained on them: without levels of noise and without values that it does not have."""
    known = lambda item: item.noise_name is None or item.noise_name in model.log_noise
    exact = lambda o: Observation(o.operator, o.points, o.values, "exact", o.name)
    return tuple(item if known(item) else exact(item) for item in not_built_in(model.kernel, data))
