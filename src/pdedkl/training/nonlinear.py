"""Nonlinear equations by Newton's method (`newton.py`), from the statement of a problem to its posterior.

1. *Looks.* A plain kernel is trained a little on each linearisation, until iterates change by little. Where an equation
   has a number that makes it harder, it is first solved with easier values of it (continuation).
2. *Training.* The recipe of `fit` on the linearisation that was found, as on linear data.
3. *Conditioning.* The trained model is conditioned on ever new linearisations until they stay as they are.
4. *Tolerances.* Those of exact values are lowered as long as fresh residuals fall.

The second and third are repeated while training moves the solution. At convergence the evidence of the linear rows is
the Laplace approximation of that of the nonlinear ones, and the error bars are those of the last linearisation.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..checking.around import Around
from ..checking.check import check, judged_by_the_data
from ..checking.determined import undetermined
from ..domain import Domain
from ..ending import OUT_OF_TIME
from ..equations import with_numbers
from ..equations.nonlinear import as_fields, is_number_field, numbers_of
from ..equations.numbers import numbers_in
from ..inference import Posterior
from ..inference.built_in import not_built_in
from ..inference.linearising import (
    Values,
    bounded,
    has_slopes,
    linear_at,
    misfit,
    sizes,
    values_of,
    values_of_functions,
    zeros,
)
from ..kernels import Kernel
from ..observations import Observation
from ..operators.rows import names_in
from ..scales import with_tolerance
from .freed import trained_again
from .journal import Journal, digest_of
from .marching import marched, open_end
from .measured import from_measurements
from .monitor import Callback, Monitor, display
from .newton import FAR, Iteration, Newton
from .phases import Trainer

# How often the model is trained.
TRAININGS = 2
# The model is trained again if conditioning moved the solution by more than this.
MOVED = 1e-3
# Fresh values of each kind for the calibration, and those that choose tolerances.
FRESH, FRESH_TO_CHOOSE = 500, 200


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
    checkpoint: str | Path | None = None
    checkpoint_every: float = 2.0
    fingerprint: str = ""


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
    names, functions = names_in([item.operator for item in data]), getattr(problem, "unknown_functions", ())
    functions = functions or tuple(name for name in names if is_number_field(name))
    values = _started(steps.start, with_tolerance(data), names)
    # Looks are phases of this journal, and each training has a file of its own. What is between them is computed anew.
    journal = Journal(steps.checkpoint, digest_of((steps.fingerprint, values)), steps.checkpoint_every)
    monitor = Monitor(callbacks=tuple(steps.callbacks), past=journal.past, allowed=steps.seconds)
    journal.log = monitor.log
    trainer = Trainer(journal, monitor)
    make = partial(Newton, domain, trainer=trainer, solver=steps.solver, fields=getattr(problem, "fields", ()))
    newton, before_this_process = make(data), journal.past.seconds
    history: list[Iteration] = []
    with monitor.interruptible():
        if steps.start is None and functions:
            measured = from_measurements(domain, newton.data, names, trainer)
            values = values if measured is None else measured
        for numbers in stages(data, steps.continuation):
            name = ", ".join(f"{key} = {value:g}" for key, value in numbers.items())
            easier = make(with_numbers(tuple(data), numbers), name=name)
            found = easier.looks(values)
            history += easier.history
            # The rows themselves may contain the number.
            values = found.values if found.posterior is None else values_of(found.posterior, newton.data)
        found = newton.looks(values)
        if (end := open_end(domain, newton.data)) and not newton.sees(found) and not trainer.ended():
            part = lambda some, name: make(some, name=name)
            other, steps_there = marched(part, newton.data, values, end)
            history += steps_there
            found = found if other is None else other
    for number in range(TRAININGS):
        linear, before = linear_at(data, found.values), found.values
        file = None if trainer.ended() else _file_of_training(journal.path, number + 1, linear)
        left = None if steps.seconds is None else max(steps.seconds - (time.monotonic() - begin), 1.0)
        with warnings.catch_warnings():
            # The verdict on a linearisation is not that on the solution.
            warnings.simplefilter("ignore")
            stated = problem if isinstance(problem, Domain) else Around(problem, linear)
            called = time.monotonic()
            trained = fit_linear(
                stated,
                linear,
                calibrate=False,
                seconds=left,
                callbacks=steps.callbacks,
                checkpoint=file,
                checkpoint_every=steps.checkpoint_every,
            )
            before_this_process += max(trained.training.seconds - (time.monotonic() - called), 0.0)
        # Whoever ends this training means all of it.
        if (why := trained.training.stopped) not in (None, OUT_OF_TIME):
            monitor.stopped = why
        newton.weighted_as(trained)
        found = newton.converge(trained.model, before)
        if newton.moved(before, found.values) < MOVED or trainer.ended() or (left is not None and left <= 1.0):
            break
    for _ in range(TRAININGS if functions else 0):
        assert found.posterior is not None
        before, model = found.values, found.posterior.model
        linear = newton.linear_as_trained(before, model)
        if (again := trained_again(trainer, "unknown functions", model, linear, functions)) is None:
            break
        found = newton.converge(again.model, before)
        if found.posterior is None or newton.moved(before, found.values) < MOVED or trainer.ended():
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
        seconds=before_this_process + time.monotonic() - begin,
        stopped=monitor.stopped,
    )
    model = found.posterior.model.with_numbers(numbers_of([item.operator for item in data]))
    return judged(replace(found.posterior, model=model, training=training), problem, steps)


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
        # Fresh residuals say nothing of an unknown function: `u` follows it so that the equation holds.
        narrow = not open_questions and not around.unknown_functions
        posterior = posterior.calibrated(fresh, narrow=narrow)
    return replace(posterior, verdict=check(posterior, around, seed=steps.seed, open_questions=open_questions))


def _file_of_training(checkpoint: Path | None, number: int, linear: Sequence[Observation]) -> Path | None:
    """The checkpoint of one training. Another linearisation is another run."""
    if checkpoint is None:
        return None
    values = [np.asarray(item.values) for item in linear]
    return checkpoint.with_name(f"{checkpoint.name}.training-{number}-{digest_of(values)[:12]}")


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
