"""From observations to a trained posterior."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..cache import cached
from ..checking.check import check, judged_by_the_data
from ..checking.determined import undetermined, widened
from ..compilation import make_room
from ..domain import Domain
from ..inference import Posterior, condition
from ..inference.built_in import not_built_in
from ..inference.conditioning import MATRICES
from ..inference.estimates import prior_spreads, with_estimates
from ..inference.iterative import chosen_solver
from ..inference.linearising import is_nonlinear, with_numbers_as_fields
from ..inference.memory import fits, most_that_fit
from ..kernels import Kernel, Profile
from ..means import ConstantMean, Mean, NetworkMean, ZeroMean
from ..model import ENGINES
from ..observations import Learned, Observation, check_in_domain, check_observations
from ..precision import require_float64
from ..scales import about, constant_part, data_scales, signal_variance, with_tolerance, without_rounding
from .arguments import check_accuracy, check_choice, check_mean, check_profile, check_seconds, check_start
from .curvature import settled
from .curvature import widened as numbers_widened
from .freed import trained_again
from .interactions import sets_of
from .journal import Journal, digest_of, fingerprint, recorded
from .judging import Options
from .monitor import Callback, Monitor, display
from .nonlinear import Steps, solved
from .paper import Paper
from .phases import Trainer
from .recipes import Default
from .records import FitWarning, Training
from .robust import robust_weights, with_weights
from .starts import kept, subsample, with_field
from .validation import Validation
from .walls import zero_walls

MODELS = ("dkl", "linear", "gp")
RECIPES = ("default", "paper")

# Matrices of n × n that are alive at once in a Gauss–Newton step.
MATRICES_OF_TRAINING = 6
# Number of values to train on where the matrices of all values do not fit into memory. It is enough to learn kernel and
# noise, in reasonable time.
TRAINED_VALUES = 4000

# Seconds that are kept for what follows training.
RESERVE = 5.0

# Left-out errors above this, if they are not noise, deserve a warning.
POOR = 0.1

# Number of fresh values, of the source and of each kind of condition, that error bars are calibrated with.
CALIBRATING_POINTS = 500


@cached()
def fit(
    problem: Any,
    data: Sequence[Observation] | Observation,
    *,
    recipe: str = "default",
    model: str = "dkl",
    seed: int = 0,
    latent_dim: int | None = None,
    groups: int | None = None,
    prior_strength: float | None = None,
    accuracy: float | None = None,
    seconds: float | None = None,
    profile: Profile | None = None,
    mean: Mean | None = None,
    start: Any = None,
    continuation: Mapping[str, Sequence[float]] | None = None,
    engine: str = "closed-form",
    solver: str = "auto",
    trained_values: int | None = None,
    validation: Sequence[Observation] | Observation | None = None,
    calibrate: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 2.0,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
) -> Posterior:
    """Train a model on observations of operators of `u`, and condition it on them.

    The default recipe tries kernels from simple to rich, the plain one first, and keeps the one with the best evidence
    among those with small errors. Fresh values of the problem's source and conditions show these errors, and then give
    the factors by which error bars are multiplied. Where there are no fresh values, left-out values of the data do.
    The posterior is conditioned on the given observations only. If the values of `u` vary little about a large
    constant, this constant becomes the prior mean. Ctrl-C, or the end of the time, ends the run after the current step
    and keeps the best model so far.

    `posterior.verdict` says how far the result can be trusted. Where that is not "calibrated", a `FitWarning` says why.
    If the problem does not determine `u`, its error bars are at least as wide as what is left open.

    **Arguments:**

    - `problem`: the `Problem`, or the `Domain` if there is none.
    - `data`: an `Observation` or a list of them, such as `problem.sample()`.
    - `recipe`: `"default"`, or `"paper"` for the paper's own training.
    - `model`: `"dkl"` for a network, `"linear"` for a learned linear map, `"gp"` for the inputs themselves.
    - `seed`: the seed of everything random.
    - `latent_dim`: the number of latent coordinates; chosen by evidence if it is not given.
    - `groups`: the number of groups of latent coordinates; chosen by evidence if it is not given.
    - `prior_strength`: the strength of the prior on the weights of a network; 0.1 if it is not given.
    - `accuracy`: a relative error, such as `1e-2`. Training ends as soon as the left-out error of the data is below it,
      and the error of the validation data too. Noise counts as error.
    - `seconds`: the time that the fit may take. When it is up, the best model so far is returned.
    - `profile`: the roughness of the kernel, such as `Matern52()`; chosen by evidence if it is not given.
    - `mean`: a prior mean, such as `FunctionMean(guess)`. The kernel is then trained on what it leaves of the data.
    - `start`: a posterior of the same problem, or a kernel. This kernel is trained on, and no other is tried, except
      for sums of functions of the directions of a given kernel. With more data this is faster than to begin anew. For
      nonlinear equations, where Newton's method starts: a posterior, a function of the point, or one for each field by
      its name; by default zero, or the mean of the given values.
    - `continuation`: for nonlinear equations, values of a `Number` to solve for first: `{"nu": [0.1, 0.03]}`.
    - `engine`: `"closed-form"`, or `"autodiff"` for operators of order three and more, which is slower.
    - `solver`: as for `condition`. `"auto"` decides by the total memory of the machine, not by its free memory.
    - `trained_values`: how many values kernel and noise are learned from; the posterior is conditioned on all values.
      By default it is all of them, or 4000 where the matrices of training are too large for the machine. A checkpoint
      keeps this number and the solver.
    - `validation`: fresh values, such as `problem.fresh(200)`, that choose the kernel and the strength of the prior in
      place of the evidence. They are not conditioned on.
    - `calibrate`: whether to multiply error bars; by default the default recipe does and the paper's does not.
    - `checkpoint`: a file in which the run is stored as it goes on. If the process is killed, call `fit` again with the
      same arguments: the run continues and ends with exactly the same parameters. For nonlinear equations there are
      files beside it whose names begin with this one.
    - `checkpoint_every`: seconds between two writes of that file.
    - `callbacks`: functions that are called with every `Step`; one that returns `True` ends the run.
    - `progress`: whether to show progress; by default it is shown in a terminal.

    **Returns:** a calibrated `Posterior`; `posterior.training` says how it was made, `posterior.verdict` how far to
    trust it.

    !!! example
        ```python
        posterior = pk.fit(problem, problem.sample(), accuracy=1e-2, progress=False)
        u = posterior.predict(points)
        ```
    """
    require_float64()
    domain = problem if isinstance(problem, Domain) else getattr(problem, "domain", None)
    if not isinstance(domain, Domain):
        raise TypeError(f"fit(problem, data) needs a problem or a Domain first: got {type(problem).__name__}.")
    given = check_observations(data)
    check_choice("recipe", recipe, RECIPES)
    check_choice("model", model, MODELS)
    for name, value in (("latent_dim", latent_dim), ("groups", groups), ("trained_values", trained_values)):
        if value is not None and not (isinstance(value, int) and value >= 1):
            raise ValueError(f"`{name}` needs a positive whole number, or None to have it chosen: got {value!r}.")
    if prior_strength is not None and not 0 <= prior_strength < float("inf"):
        raise ValueError(f"`prior_strength` needs a finite number that is not negative: got {prior_strength!r}.")
    check_accuracy(accuracy, recipe)
    check_seconds(seconds)
    check_profile(profile, recipe)
    check_mean(mean, recipe)
    begin = time.monotonic()
    check_choice("engine", engine, ENGINES)
    if given[0].points.shape[1] != domain.dim:
        raise ValueError(
            f"The observations have {given[0].points.shape[1]} coordinates and the domain has {domain.dim}: "
            "observe at points of that domain, all its coordinates in their order."
        )
    check_in_domain(domain, given)
    if is_nonlinear(given):
        given = with_numbers_as_fields(given)
        if validation is not None or mean is not None:
            raise ValueError("Nonlinear equations take no `validation` and no `mean`: leave them out.")
        chosen: dict[str, Any] = {
            "recipe": recipe,
            "model": model,
            "seed": seed,
            "latent_dim": latent_dim,
            "groups": groups,
            "prior_strength": prior_strength,
            "accuracy": accuracy,
            "profile": profile,
            "engine": engine,
            "solver": solver,
            "trained_values": trained_values,
        }
        steps = Steps(start, continuation, seconds, callbacks, calibrate is not False, seed, solver, progress)
        box = (domain.layout, domain.lower.tolist(), domain.upper.tolist())
        key = "" if checkpoint is None else fingerprint(given, **chosen, box=box, continuation=continuation)
        steps = steps._replace(checkpoint=checkpoint, checkpoint_every=checkpoint_every, fingerprint=key)
        posterior = solved(partial(fit, **chosen, progress=False), problem, domain, given, steps)
        say_how_it_ended(posterior, bool(getattr(problem, "unknown_functions", ())))
        return posterior
    if continuation:
        raise ValueError("`continuation` is for nonlinear equations, and this one is linear: leave it out.")
    check_start(start, recipe, domain)
    if mean is None and isinstance(start, Posterior) and not isinstance(start.model.mean, ZeroMean | ConstantMean):
        # Its kernel was trained on what its mean leaves.
        mean = start.model.mean
    if mean is None:
        constant = constant_part(given) if recipe == "default" else 0.0
        mean = ConstantMean(jnp.asarray(constant)) if constant else ZeroMean()
    found = without_rounding(about(given, mean))
    found = with_tolerance(found) if recipe == "default" else found
    fresh = () if validation is None else about(check_observations(validation, beside=given), mean)
    check_in_domain(domain, fresh)
    chooser = Validation(fresh, found) if fresh else None
    options = Options(model, seed, latent_dim, prior_strength, groups, accuracy, chooser, engine, profile)
    box = (domain.layout, domain.lower.tolist(), domain.upper.tolist())
    plan = _plan(sum(map(len, found)), solver, trained_values, recorded(checkpoint))
    part = subsample(found, plan["trained_values"], seed)
    on_walls = isinstance(mean, ZeroMean) or (isinstance(mean, NetworkMean) and mean.multiplier is not None)
    of_walls = recipe == "default" and on_walls
    walls = zero_walls(problem, found) if of_walls else None
    known_zeros = None if walls is None else (walls.faces, walls.spheres)
    key = fingerprint(
        (*part, *fresh),
        recipe=recipe,
        options=options,
        box=box,
        fresh=len(fresh),
        plan=plan,
        walls=known_zeros,
        start=None if start is None else digest_of(start if isinstance(start, Kernel) else start.model),
    )
    functions = getattr(problem, "unknown_functions", ())
    make_room()
    journal = Journal(checkpoint, key, checkpoint_every, plan)
    with display(progress) as shown:
        left = None if seconds is None else max(seconds - (time.monotonic() - begin) - reserve(seconds), 0.0)
        monitor = Monitor(callbacks=(*callbacks, *shown), past=journal.past, allowed=left)
        journal.log = monitor.log
        trainer = Trainer(journal, monitor)
        with monitor.interruptible():
            if any(isinstance(item.noise, Learned) and item.noise.robust for item in part):
                parts = kept(found, plan["trained_values"], seed)
                weights = robust_weights(domain, found, parts, options, trainer)
                given, found = with_weights(given, weights), with_weights(found, weights)
                part = subsample(found, plan["trained_values"], seed)
            run: Any = Paper(domain, part, options, trainer)
            if recipe == "default":
                of_zero_mean = isinstance(mean, ZeroMean)
                run = Default(domain, part, options, trainer, walls, problem if of_zero_mean else None, start)
            best, covariance = run.run(), None
            if recipe == "default" and functions and not trainer.ended():
                again = trained_again(trainer, "unknown functions", best.trained.model, part, functions)
                best = best if again is None else replace(best, trained=again)
            if recipe == "default" and best.trained.objective.unknown and not trainer.ended():
                found_numbers = settled(best.trained, trainer.stopped)
                best = replace(best, trained=found_numbers.trained)
                unknown = found_numbers.trained.objective.unknown
                covariance = numbers_widened(found_numbers, prior_spreads(unknown), trainer.stopped)
    trained = with_field(best.trained.model, getattr(problem, "fields", ()))
    if not isinstance(mean, ZeroMean):
        trained = eqx.tree_at(lambda m: m.mean, trained, mean)
    open_questions = undetermined(problem, given)
    if open_questions:
        trained = widened(trained, domain, signal_variance(found))
    given = not_built_in(trained.kernel, given)
    levels = {item.noise_name for item in given}
    trained = eqx.tree_at(lambda m: m.log_noise, trained, {k: v for k, v in trained.log_noise.items() if k in levels})
    whole = plan["trained_values"] == sum(map(len, found))
    posterior = with_estimates(condition(trained, given, solver=plan["solver"]), covariance if whole else None)
    if recipe == "default" if calibrate is None else calibrate:
        new_values = getattr(problem, "fresh", None)
        known = new_values(CALIBRATING_POINTS, seed=seed, purpose="calibration") if new_values else ()
        known = not_built_in(trained.kernel, known)
        # Fresh values of an equation say nothing of an unknown function in it.
        narrow = not open_questions and not functions
        posterior = posterior.calibrated(known, narrow=narrow)
    if hasattr(problem, "fresh"):
        posterior = replace(posterior, verdict=check(posterior, problem, seed=seed, open_questions=open_questions))
    else:
        posterior = replace(posterior, verdict=judged_by_the_data(posterior, open_questions))
    log = monitor.log()
    report = Training(
        recipe=recipe,
        model=model,
        seed=seed,
        kernel=best.name,
        objective=best.objective,
        candidates=tuple((c.name, c.objective) for c in run.candidates),
        left_out=best.left_out,
        validated=None if best.validated is None else best.validated.error,
        rejected=trainer.rejected,
        stopped=monitor.stopped,
        seconds=log.seconds,
        trace_seconds=log.trace_seconds,
        compile_seconds=log.compile_seconds,
        history=log.history,
        trained_values=plan["trained_values"],
        solver=plan["solver"],
        sets=sets_of(trained.kernel),
    )
    posterior = replace(posterior, training=report)
    say_how_it_ended(posterior, bool(functions))
    return posterior


def say_how_it_ended(posterior: Posterior, unknown: bool = False) -> None:
    """Warn if the result is not what its error bars say, or if it is poor; with what to do.

    Where a function is `unknown`, values of the equation are not predicted from each other.
    """
    verdict, left_out = posterior.verdict, posterior.training.left_out
    texts = [verdict.headline(), *verdict.reasons, verdict.advice] if not verdict.calibrated else list(verdict.reasons)
    noise = noise_of_measurements(posterior)
    if left_out > POOR and not left_out < 2 * noise and not unknown:
        texts.append(f"Values that are left out are predicted with an error of {left_out:.0%} only: add points.")
    if texts:
        warnings.warn(" ".join(text for text in texts if text), FitWarning, stacklevel=4)


def noise_of_measurements(posterior: Posterior) -> float:
    """The largest noise of the data, relative to the size of its values."""
    scales = data_scales(posterior.observations)
    sizes = [
        float(np.sqrt(np.mean(np.asarray(item.noise_variance(posterior.model.log_noise)))))
        / scales[item.noise_name or item.name]
        for item in posterior.observations
    ]
    return max(sizes)


def reserve(seconds: float) -> float:
    """What is kept of the allowed time for conditioning, calibration and the verdict."""
    return min(RESERVE, 0.2 * seconds)


def _plan(n: int, solver: str, trained_values: int | None, earlier: dict[str, Any]) -> dict[str, Any]:
    """The number of values to train on, and the solver: as asked for, as in the checkpoint, or by the total memory."""
    if trained_values is None:
        trained_values = earlier.get("trained_values") or (
            n if fits(n, MATRICES_OF_TRAINING) else min(TRAINED_VALUES, most_that_fit(MATRICES_OF_TRAINING))
        )
        if trained_values < n:
            warnings.warn(
                f"{n} values are too many to train on in the memory of this machine: kernel and noise are learned from "
                f"{trained_values} of them, drawn at random, and the posterior is conditioned on all. "
                "`trained_values` sets their number.",
                stacklevel=4,
            )
    if solver == "auto" and "solver" in earlier:
        solver = earlier["solver"]
    return {"solver": chosen_solver(solver, n, MATRICES, None), "trained_values": min(trained_values, n)}
