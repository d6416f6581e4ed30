"""Solve a problem in a folder: sample, train, measure, write. Killed at any moment, it goes on where it was."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence
from typing import Any

from .. import fit, load
from ..inference import Posterior
from ..problems import Problem
from ..reports import Results, evaluate, pictures, save, write_report
from ..saving import FunctionsNotSaved, functions_of
from ..training import Callback
from .folder import CHECKPOINT, METRICS, MODEL, Folder
from .inputs import data_of, problem_of
from .measure import measured


def solve(folder: Folder, *, callbacks: Sequence[Callback] = (), progress: bool | None = None) -> dict[str, Any]:
    """Run what the folder's configuration asks for, and return its metrics."""
    config = folder.config()
    problem = problem_of(config, folder.path)
    data = data_of(config, problem, folder.path)
    posterior = fit(
        problem,
        data,
        recipe=config.recipe,
        model=config.model,
        seed=config.seed,
        latent_dim=config.latent_dim,
        accuracy=config.accuracy,
        checkpoint=folder / CHECKPOINT,
        callbacks=callbacks,
        progress=progress,
    )
    with warnings.catch_warnings():
        # The problem itself is in the folder: its functions are found again.
        warnings.simplefilter("ignore", FunctionsNotSaved)
        posterior.save(folder / MODEL)
    folder.write("history.csv", _history(posterior))
    results = evaluate(posterior, problem, seed=config.seed)
    metrics = measured(posterior, problem, config, results)
    report(folder, posterior, problem, metrics, results)
    if posterior.training.stopped is None:
        folder.write_json(METRICS, metrics)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return metrics


def opened(folder: Folder) -> tuple[Problem, Posterior]:
    """The problem and the posterior of a finished run."""
    folder.metrics()
    config = folder.config()
    problem = problem_of(config, folder.path)
    return problem, load(folder / MODEL, functions=functions_of(data_of(config, problem, folder.path)))


def report(
    folder: Folder, posterior: Posterior, problem: Problem, metrics: dict[str, Any], results: Results | None = None
) -> None:
    """Figures and page, made anew."""
    config = folder.config()
    results = results or evaluate(posterior, problem, seed=config.seed)
    settings = {name: value for name, value in vars(config).items() if value not in (None, ())}
    shown = pictures(posterior, problem, results, config.seed)
    for picture in shown:
        save(picture.figure, folder / "figures", picture.name)
    write_report(
        folder / "report.html", posterior, problem, metrics, settings, results=results, shown=shown, seed=config.seed
    )


def _history(posterior: Posterior) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = sorted({name for step in posterior.training.history for name in step.noise})
    writer.writerow(["phase", "step", "seconds", "objective", "gradient", *(f"noise of {name}" for name in names)])
    for step in posterior.training.history:
        noise = [step.noise.get(name, "") for name in names]
        writer.writerow([step.phase, step.step, f"{step.seconds:.3f}", step.objective, step.gradient, *noise])
    return out.getvalue()
