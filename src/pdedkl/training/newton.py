"""Nonlinear equations by Newton's method: linearise, condition, and linearise anew where the posterior mean is.

1. *Looks.* A plain kernel is trained a little on each linearisation, until iterates change by little. Where an equation
   has a number that makes it harder, it is first solved with easier values of it (continuation).
2. *Training.* The recipe of `fit` on the linearisation that was found, as on linear data.
3. *Conditioning.* The trained model is conditioned on ever new linearisations until they stay as they are.

4. *Tolerances.* Those of exact values are lowered as long as fresh residuals fall.

The second and third are repeated while training moves the solution. Steps are damped so that the residual `f − F(m)`
and those of the conditions fall together. At convergence the evidence of the linear rows is the Laplace approximation
of that of the nonlinear ones, and the error bars are those of the last linearisation.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..checking.around import Around
from ..checking.check import check, judged_by_the_data
from ..checking.determined import undetermined
from ..domain import Domain
from ..ending import OUT_OF_TIME
from ..equations import with_numbers
from ..equations.nonlinear import as_fields
from ..equations.numbers import numbers_in
from ..inference import Posterior, condition
from ..inference.built_in import not_built_in
from ..inference.linearising import (
    Values,
    bounded,
    change,
    has_slopes,
    linear_at,
    linear_residuals,
    mean_square_root,
    misfit,
    moved,
    sizes,
    values_of,
    values_of_functions,
    zeros,
)
from ..kernels import Kernel
from ..model import Model
from ..observations import Observation
from ..operators.rows import names_in
from ..scales import exact_levels, signal_variance, with_tolerance
from . import starts
from .journal import Journal
from .monitor import Callback, Monitor, display
from .objective import Objective
from .phases import Trainer
from .recipes import independent
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
# Iterations that only condition, and how often the model is trained.
MOST, TRAININGS = 12, 2
# The model is trained again if conditioning moved the solution by more than this.
MOVED = 1e-3
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
# Fresh values of each kind for the calibration, and those that choose tolerances.
FRESH, FRESH_TO_CHOOSE = 500, 200
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
            model = self.trainer.alternate(f"{self.name}, look {number + 1}", objective, ROUNDS).model
            made = self.step(f"look {number + 1}", found.values, model, linear, changed=True)
            before, found = found.residual, found if made is None else made
            done = (close and found.change < NEAR) or (number + 1 >= LOOKS and not found.residual < LOWERS * before)
            if made is None or done or self.trainer.ended():
                break
        return found

    def converge(self, model: Model, start: Values, phase: str = "iteration") -> Iterate:
        """Iterations that condition a trained model, until the solution stays as it is."""
        found, before = Iterate(start, None, np.inf, np.inf), np.inf
        for number in range(MOST):
            data = _as_trained(linear_at(self.data, found.values), model)
            if (made := self.step(f"{phase} {number + 1}", found.values, model, data, changed=number == 0)) is None:
                return found._replace(change=np.inf)
            found = made
            # Rounding ends the quadratic convergence at some level: then changes fall no more.
            stalled = found.change < FAR and found.change > 0.3 * before
            before = found.change
            if found.change < CONVERGED or stalled or self.trainer.stopped():
                break
        return found

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


class Steps(NamedTuple):
    """What a user may choose about the iterations."""

    start: Any = None
    continuation: Mapping[str, Sequence[float]] | None = None
    seconds: float | None = None
    callbacks: Sequence[Callback] = ()
    calibrate: bool = True
    seed: int = 0
    solver: str = "auto"
    progress: bool | None = False


def solved(
    fit_linear: Callable[..., Posterior], problem: Any, domain: Domain, data: Sequence[Observation], steps: Steps
) -> Posterior:
    """The posterior of a nonlinear problem. `fit_linear(problem, data)` trains a model on linear data."""
    with display(steps.progress) as shown:
        return _solved(fit_linear, problem, domain, data, steps._replace(callbacks=(*steps.callbacks, *shown)))


def _solved(
    fit_linear: Callable[..., Posterior], problem: Any, domain: Domain, data: Sequence[Observation], steps: Steps
) -> Posterior:
    begin = time.monotonic()
    monitor = Monitor(callbacks=tuple(steps.callbacks), allowed=steps.seconds)
    trainer = Trainer(Journal(None, ""), monitor)
    make = partial(Newton, domain, trainer=trainer, solver=steps.solver, fields=getattr(problem, "fields", ()))
    newton = make(data)
    values = _started(steps.start, newton.data, names_in([item.operator for item in data]))
    history: list[Iteration] = []
    with monitor.interruptible():
        for numbers in stages(data, steps.continuation):
            name = ", ".join(f"{key} = {value:g}" for key, value in numbers.items())
            easier = make(with_numbers(tuple(data), numbers), name=name)
            found = easier.looks(values)
            history += easier.history
            # The rows themselves may contain the number.
            values = found.values if found.posterior is None else values_of(found.posterior, newton.data)
        found = newton.looks(values)
    for _ in range(TRAININGS):
        linear, before = linear_at(data, found.values), found.values
        left = None if steps.seconds is None else max(steps.seconds - (time.monotonic() - begin), 1.0)
        with warnings.catch_warnings():
            # The verdict on a linearisation is not that on the solution.
            warnings.simplefilter("ignore")
            stated = problem if isinstance(problem, Domain) else Around(problem, linear)
            trained = fit_linear(stated, linear, calibrate=False, seconds=left, callbacks=steps.callbacks)
        # Whoever ends this training means all of it.
        if (why := trained.training.stopped) not in (None, OUT_OF_TIME):
            monitor.stopped = why
        newton.weighted_as(trained)
        found = newton.converge(trained.model, before)
        if newton.moved(before, found.values) < MOVED or trainer.ended() or (left is not None and left <= 1.0):
            break
    converged = found.change < FAR
    if converged and not isinstance(problem, Domain) and not trainer.ended():
        found = newton.polished(found, problem.fresh(FRESH_TO_CHOOSE, seed=steps.seed))
    if not converged and newton.best is not None:
        found = newton.best
    if found.posterior is None:
        raise ArithmeticError("Newton's method made no step: the linearised equations have no finite solution.")
    iterations = (*history, *newton.history)
    training = trained.training and replace(
        trained.training,
        iterations=iterations,
        converged=converged,
        seconds=time.monotonic() - begin,
        stopped=monitor.stopped,
    )
    return judged(replace(found.posterior, training=training), problem, steps)


def judged(posterior: Posterior, problem: Any, steps: Steps) -> Posterior:
    """The posterior with error bars and a verdict from fresh residuals of the equations themselves."""
    if isinstance(problem, Domain):
        open_questions = undetermined(problem, posterior.observations)
        posterior = posterior.calibrated(narrow=not open_questions) if steps.calibrate else posterior
        return replace(posterior, verdict=judged_by_the_data(posterior, open_questions))
    around = Around(problem, posterior.observations, posterior)
    open_questions = undetermined(around, posterior.observations, posterior.model.kernel.zero_at)
    if steps.calibrate:
        fresh = not_built_in(posterior.model.kernel, around.fresh(FRESH, seed=steps.seed, purpose="calibration"))
        posterior = posterior.calibrated(fresh, narrow=not open_questions)
    return replace(posterior, verdict=check(posterior, around, seed=steps.seed, open_questions=open_questions))


def stages(data: Sequence[Observation], continuation: Mapping[str, Sequence[float]] | None) -> list[dict[str, float]]:
    """The values of named numbers before their own, one after the other."""
    if not continuation:
        return []
    known = numbers_in(tuple(data))
    if unknown := [name for name in continuation if name not in known]:
        have = ", ".join(known) or "none"
        raise ValueError(
            f"`continuation` needs names of Numbers in the equations: got {unknown[0]!r}, there are {have}."
        )
    lists = {name: [float(value) for value in values] for name, values in continuation.items()}
    if len(counts := {len(values) for values in lists.values()}) > 1 or 0 in counts:
        raise ValueError("`continuation` needs as many values for each of its numbers, at least one.")
    if not all(np.all(np.isfinite(values)) for values in lists.values()):
        raise ValueError(f"`continuation` needs finite numbers: got {dict(continuation)!r}.")
    found = [dict(zip(lists, values)) for values in zip(*lists.values())]
    return [numbers for numbers in found if any(known[name] != value for name, value in numbers.items())]


def _started(start: Any, data: Sequence[Observation], names: Sequence[str]) -> Values:
    if isinstance(start, Kernel):
        raise TypeError("For nonlinear equations `start` is a posterior or a function of the point, not a kernel.")
    if start is None:
        values = _usual_start(data, names)
    elif isinstance(start, Posterior):
        values = values_of(start, data)
    else:
        values = values_of_functions(as_fields(start, names), data)
    if not all(np.all(np.isfinite(part)) for part in values):
        raise ValueError("`start` needs a function that is finite, with its derivatives, at all points of the data.")
    if not has_slopes(data, values):
        raise ValueError(
            "The equation, or its derivative with respect to the fields, has no finite value where Newton's method "
            "starts, which is u = 0 by default: give start=function of the point, or one for each field by its name."
        )
    return values


def _usual_start(data: Sequence[Observation], names: Sequence[str]) -> Values:
    """Zero, or fields that are constant, at the mean of their values: where residuals are smaller."""
    nothing = zeros(data)
    means = {}
    for name in names or (None,):
        of_it = [o for o in data if o.of_values and (name is None or names_in(o.operator) == (name,))]
        means[name] = float(np.mean(np.concatenate([np.asarray(o.values) for o in of_it]))) if of_it else 0.0
    if not any(means.values()):
        return nothing
    functions = {name: partial(_constant, mean) for name, mean in means.items()}
    constant = values_of_functions(functions if names else functions[None], data)
    if not (bounded(data, constant) and has_slopes(data, constant)):
        return nothing
    if not (bounded(data, nothing) and has_slopes(data, nothing)):
        return constant
    scale = sizes(data, constant)
    return constant if misfit(data, constant, scale) < misfit(data, nothing, scale) else nothing


def _constant(number: float, q: Any) -> Any:
    return number + 0.0 * q[0]


def _as_trained(data: Sequence[Observation], model: Model) -> tuple[Observation, ...]:
    """The data as the model was trained on them: without levels of noise and without values that it does not have."""
    known = lambda item: item.noise_name is None or item.noise_name in model.log_noise
    exact = lambda o: Observation(o.operator, o.points, o.values, "exact", o.name)
    return tuple(item if known(item) else exact(item) for item in not_built_in(model.kernel, data))
