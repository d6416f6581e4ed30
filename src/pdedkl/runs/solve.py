"""Solve a problem in a folder: sample, train, measure, write. A run that is killed at any moment can be continued."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .. import fit, load
from .. import solve as solve_problem
from ..equations import Nonlinear
from ..inference import Posterior
from ..operators import Operator, same
from ..problems import Problem
from ..reports import Picture, Results, evaluate, pictures, save, write_report
from ..saving import FunctionsNotSaved, describe, functions_of
from ..training import Callback
from .folder import CHECKPOINT, HISTORY, METRICS, MODEL, REPORT, Folder, RunError
from .inputs import data_of, problem_of, profile_of, tables_of
from .measure import measured


class Solved(NamedTuple):
    """The results of a run, from which its report is made."""

    posterior: Posterior
    problem: Problem
    metrics: dict[str, Any]
    results: Results


class Predictor(NamedTuple):
    """A posterior, the names of its coordinates in a table, and the operator of `f = A u`.

    Several fields, and nonlinear equations, have none.
    """

    posterior: Posterior
    columns: list[str]
    operator: Operator | None


def solve(
    folder: Folder,
    *,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    trust: bool = False,
    saved: Callable[[Posterior], None] = lambda posterior: None,
    conclude: Callable[[Folder, Solved], None] | None = None,
) -> dict[str, Any]:
    """Run what the folder's configuration asks for, and return its metrics.

    `saved` is called with the posterior as soon as the model file is written. `conclude` is called last, after model
    and metrics are written; by default it writes the report. If training was stopped, the metrics say why, the model
    is the best so far, and the checkpoint is kept.
    """
    config = folder.config()
    problem = problem_of(config, folder, trust)
    common: dict[str, Any] = {
        "seed": config.seed,
        "accuracy": config.accuracy,
        "seconds": config.seconds,
        "checkpoint": folder / CHECKPOINT,
        "callbacks": callbacks,
        "progress": progress,
    }
    if config.free:
        posterior = solve_problem(problem, data=tables_of(config, problem, folder, trust), **common)
    else:
        posterior = fit(
            problem,
            data_of(config, problem, folder, trust),
            recipe=config.recipe,
            model=config.model,
            latent_dim=config.latent_dim,
            profile=profile_of(config),
            engine=config.engine,
            **common,
        )
    with warnings.catch_warnings():
        # No warning is needed: loading finds the functions in the problem file of the folder.
        warnings.simplefilter("ignore", FunctionsNotSaved)
        posterior.save(folder / MODEL, extra=_extra(posterior, problem))
    saved(posterior)
    folder.write(HISTORY, _history(posterior))
    results = evaluate(posterior, problem, seed=config.seed)
    metrics = measured(posterior, problem, config, results) | {"stopped": posterior.training.stopped}
    (folder / REPORT).unlink(missing_ok=True)  # it shows other numbers
    folder.write_json(METRICS, metrics)
    if posterior.training.stopped is None:
        folder.forget()
    (conclude or _conclude)(folder, Solved(posterior, problem, metrics, results))
    return metrics


def opened(folder: Folder, trust: bool = False) -> Solved:
    """The results of a run, read from its folder."""
    metrics, config = folder.metrics(), folder.config()
    problem, posterior = _loaded(folder, trust)
    return Solved(posterior, problem, metrics, evaluate(posterior, problem, seed=config.seed))


def predictor(folder: Folder, trust: bool = False) -> Predictor:
    """Everything that predictions need, from the model file.

    The problem file is run only if the model has Python functions, or if its file is from an older version.
    """
    folder.config()
    _check_model(folder)
    header = describe(folder / MODEL)
    if not header.get("functions"):
        posterior = load(folder / MODEL)
        if (found := _from_extra(header.get("extra"), posterior)) is not None:
            return found
    problem, posterior = _loaded(folder, trust)
    linear = len(problem.fields) < 2 and not isinstance(problem.operator, Nonlinear)
    return Predictor(posterior, list(problem.domain.coordinate_names), problem.operator if linear else None)


def report(folder: Folder, solved: Solved) -> list[str]:
    """Write figures and page again. Returns the parts that could not be made, each with the reason."""
    posterior, problem, metrics, results = solved
    config = folder.config()
    failed: list[str] = []
    settings = {name: value for name, value in vars(config).items() if value not in (None, ())}

    def give_up(name: str, error: Exception) -> None:
        failed.append(f"{name} ({type(error).__name__}: {error})")

    shown = pictures(posterior, problem, results, config.seed, give_up)
    drawn: list[Picture] = []
    for picture in shown:
        try:
            _, svg = save(picture.figure, folder.figures(), picture.name)
            drawn.append(replace(picture, drawn=svg.read_bytes()))
        except Exception as error:  # any error in drawing or writing: still make the other pictures
            give_up(picture.name, error)
    try:
        write_report(
            folder / REPORT, posterior, problem, metrics, settings, results=results, shown=drawn, seed=config.seed
        )
    except Exception as error:
        give_up(REPORT, error)
    return failed


def _conclude(folder: Folder, solved: Solved) -> None:
    if failed := report(folder, solved):
        warnings.warn(f"The report in {folder.path} lacks {'; '.join(failed)}.", stacklevel=3)


def _loaded(folder: Folder, trust: bool) -> tuple[Problem, Posterior]:
    """The problem and the model. The user's problem file is run, because the model may need functions from it."""
    config = folder.config()
    _check_model(folder)
    problem = problem_of(config, folder, trust)
    wanted = describe(folder / MODEL).get("functions")
    # Error bars were calibrated with all conditions: one without data may have functions too.
    calibrating = problem.fresh(1, seed=config.seed, purpose="calibration") if wanted else ()
    known = functions_of((*data_of(config, problem, folder, trust), *calibrating))
    return problem, load(folder / MODEL, functions={name: fn for name, fn in known.items() if name in (wanted or ())})


def _check_model(folder: Folder) -> None:
    if not (folder / MODEL).is_file():
        raise RunError(f"{folder.path} has no model yet: pdedkl resume {folder.path}.")


def _extra(posterior: Posterior, problem: Problem) -> dict[str, Any]:
    """What a prediction needs besides the posterior: names of columns, and which observation has the operator `A`."""
    operators = [] if len(problem.fields) > 1 else [item.operator for item in posterior.observations]
    source = next((i for i, one in enumerate(operators) if same(one, problem.operator)), None)
    return {"columns": list(problem.domain.coordinate_names), "source": source}


def _from_extra(extra: Any, posterior: Posterior) -> Predictor | None:
    """The predictor that a model file describes; `None` if it describes none, as in older versions."""
    found = extra if isinstance(extra, dict) else {}
    names, source = found.get("columns"), found.get("source")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    if len(set(names)) != len(names) or len(names) != posterior.model.kernel.dim:
        return None
    if source is None and posterior.model.kernel.fields:
        return Predictor(posterior, names, None)
    if not isinstance(source, int) or isinstance(source, bool) or not 0 <= source < len(posterior.observations):
        return None
    return Predictor(posterior, names, posterior.observations[source].operator)


def _history(posterior: Posterior) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = sorted({name for step in posterior.training.history for name in step.noise})
    writer.writerow(["phase", "step", "seconds", "objective", "gradient", *(f"noise of {name}" for name in names)])
    for step in posterior.training.history:
        noise = [step.noise.get(name, "") for name in names]
        writer.writerow([step.phase, step.step, f"{step.seconds:.3f}", step.objective, step.gradient, *noise])
    return out.getvalue()
