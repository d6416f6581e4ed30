"""Commands that compute: solve, resume, search."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .app import SCHEDULER, TRUST, Stopped, app, console, held, mistakes, print_json, tell
from .encoding import clean


class Model(StrEnum):
    dkl = "dkl"
    linear = "linear"
    gp = "gp"


class Recipe(StrEnum):
    default = "default"
    paper = "paper"


class Engine(StrEnum):
    closed_form = "closed-form"
    autodiff = "autodiff"


class Profile(StrEnum):
    matern_52 = "matern-5/2"
    matern_72 = "matern-7/2"
    matern_92 = "matern-9/2"
    rational_quadratic = "rational-quadratic"
    squared_exponential = "squared-exponential"


class Sampler(StrEnum):
    uniform = "uniform"
    latin_hypercube = "latin-hypercube"
    sobol = "sobol"
    halton = "halton"


PROBLEM = typer.Argument(help="A built-in problem (see: pdedkl problems), or a Python file that defines `problem`.")
FOLDER = typer.Argument(help="The folder of a run.")
DIM = typer.Option(metavar="N", min=1, help="Dimension of space, for built-in problems.")
MODEL = typer.Option(help="Deep kernel, linear map, or Gaussian process.")
RECIPE = typer.Option(help="How to train: ours, or as in the paper.")
BOUNDARY = typer.Option(metavar="N", min=0, help="Points on the boundary; by default as the problem says.")
INITIAL = typer.Option(metavar="N", min=0, help="Points at the initial time; by default as the problem says.")
SOURCE = typer.Option(metavar="N", min=0, help="Points of the source; by default as the problem says.")
NOISE = typer.Option(metavar="X", min=0.0, help="Noise on the values of u, relative to their standard deviation.")
SAMPLER = typer.Option(metavar="NAME", help=f"How points are placed: {', '.join(Sampler)}.")
DATA = typer.Option(
    metavar="FILE",
    help="A table of measured values: columns x[0], x[1], …, t (as in Python), u, and noise if it is known. "
    "May be given several times.",
)
SEED = typer.Option(metavar="N", min=0, help="The seed of all random numbers.")
LATENT_DIM = typer.Option(metavar="N", min=1, help="Latent coordinates; chosen by default.")
OUT = typer.Option(metavar="FOLDER", help="The folder of the run; by default runs/PROBLEM-… .")
ACCURACY = typer.Option(
    metavar="X",
    help="The relative error of u to reach, such as 1e-4, with as many points as it takes. With numbers of points, or "
    "with a choice of kernel: stop once values are predicted from the others with this error.",
)
TIME = typer.Option("--time", metavar="SECONDS", help="The time to take; the best model so far is kept when it is up.")
PROFILE = typer.Option(metavar="NAME", help=f"The roughness of the kernel, chosen by default: {', '.join(Profile)}.")
ENGINE = typer.Option(help="How covariances are computed; operators of order three or more need autodiff.")
FORCE = typer.Option("--force", help="Replace the run that the folder holds.")
JSON = typer.Option("--json", help="Print metrics.json on standard output, and everything else on standard error.")
COUNT = {"metavar": "N", "min": 1}


@app.command()
def solve(
    problem: Annotated[str, PROBLEM],
    dim: Annotated[int | None, DIM] = None,
    model: Annotated[Model, MODEL] = Model.dkl,
    recipe: Annotated[Recipe, RECIPE] = Recipe.default,
    boundary: Annotated[int | None, BOUNDARY] = None,
    initial: Annotated[int | None, INITIAL] = None,
    source: Annotated[int | None, SOURCE] = None,
    noise: Annotated[float, NOISE] = 0.0,
    sampler: Annotated[Sampler, SAMPLER] = Sampler.uniform,
    data: Annotated[list[Path] | None, DATA] = None,
    seed: Annotated[int, SEED] = 0,
    latent_dim: Annotated[int | None, LATENT_DIM] = None,
    accuracy: Annotated[float | None, ACCURACY] = None,
    seconds: Annotated[float | None, TIME] = None,
    profile: Annotated[Profile | None, PROFILE] = None,
    engine: Annotated[Engine, ENGINE] = Engine.closed_form,
    out: Annotated[Path | None, OUT] = None,
    force: Annotated[bool, FORCE] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Sample a problem, train, validate, and write a report.

    With --accuracy, points are drawn until the estimated error is small enough.
    """
    from .. import __version__
    from ..runs.folder import Config, Folder

    config = Config(
        problem=problem,
        dim=dim,
        model=model.value,
        recipe=recipe.value,
        seed=seed,
        latent_dim=latent_dim,
        accuracy=accuracy,
        seconds=seconds,
        profile=None if profile is None else profile.value,
        engine=engine.value,
        boundary=boundary,
        initial=initial,
        source=source,
        noise=noise,
        sampler=sampler.value,
        data=tuple(map(str, data or [])),
        version=__version__,
    )
    folder = Folder(out or Path("runs") / _name(config))
    with held(folder.locked()):
        with mistakes():
            folder.check_free(force)
            _check(config)
            folder.begin(config, force=force)
        _run(folder, json)


@app.command()
def resume(
    folder: Annotated[Path, FOLDER], trust: Annotated[bool, TRUST] = False, json: Annotated[bool, JSON] = False
) -> None:
    """Continue a run that was stopped or killed, or whose time was up, with the same time again.

    The result is the same as without the interruption.
    """
    from ..runs.folder import REPORT, Folder
    from .inspect import report

    found = Folder(folder)
    with mistakes():
        found.config()
        finished = found.trained
    if finished:
        tell(f"{folder} is finished already.")
        if not (found / REPORT).is_file():
            report(folder, trust)
        with mistakes():
            metrics = found.metrics()
        _show(found, metrics, json)
        return
    with held(found.locked()):
        with mistakes():
            _check(found.config(), found, trust)
        _run(found, json, trust)


@app.command()
def search(
    problem: Annotated[str, PROBLEM],
    dim: Annotated[int | None, DIM] = None,
    latent_dims: Annotated[str, typer.Option(metavar="LIST", help="Values to choose from: 1-20, or 1,2,4,8.")] = "1-20",
    initial_evaluations: Annotated[int, typer.Option(**COUNT, help="How many random values to begin with.")] = 4,
    evaluations: Annotated[int, typer.Option(**COUNT, help="How many values to train in total.")] = 10,
    acquisition: Annotated[str, typer.Option(metavar="NAME", help="How values are chosen: ei, ucb or pi.")] = "ei",
    workers: Annotated[int, typer.Option(**COUNT, help="Values to train at a time, each in a process.")] = 1,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    model: Annotated[Model, MODEL] = Model.dkl,
    recipe: Annotated[Recipe, RECIPE] = Recipe.default,
    boundary: Annotated[int | None, BOUNDARY] = None,
    initial: Annotated[int | None, INITIAL] = None,
    source: Annotated[int | None, SOURCE] = None,
    noise: Annotated[float, NOISE] = 0.0,
    seed: Annotated[int, SEED] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for its state and plot.")] = None,
) -> None:
    """Find the latent dimension by Bayesian optimisation of the training objective."""
    from ..jobs import open_pool
    from ..locks import locked
    from ..runs.folder import Config

    config = Config(
        problem,
        dim,
        model.value,
        recipe.value,
        seed,
        boundary=boundary,
        initial=initial,
        source=source,
        noise=noise,
    )
    folder = out or Path("runs") / f"{_name(config)}-search"
    with mistakes():
        values = _whole_numbers(latent_dims)
        if scheduler is not None:
            open_pool(workers, scheduler).close()
        found, data = _check(config)
    from .. import search as run

    with held(locked(folder)):
        try:
            result = run(
                found,
                data,
                latent_dims=values,
                initial=min(initial_evaluations, evaluations),
                evaluations=evaluations,
                acquisition=acquisition,
                workers=workers,
                scheduler=scheduler,
                state=folder / "search.json",
                seed=seed,
                recipe=recipe.value,
                model=model.value,
                progress=True,
            )
        except KeyboardInterrupt:
            tell("Stopped; the same command continues the search.")
            raise Stopped from None
        typer.echo(result.table())
        typer.echo(f"best latent dimension: {result.best['latent_dim']}")
        result.plot(folder / "search.png")
        typer.echo(clean(str(folder / "search.png")))


def _check(config: Any, folder: Any = None, trust: bool = False) -> Any:
    """Build problem and data before anything is written, so that mistakes are found early."""
    from .interrupts import postponed

    with postponed():
        tell("reading the problem …", style="dim")
        from ..cache import use_compilation_cache
        from ..runs.inputs import check_profile, data_of, problem_of
        from ..training.arguments import check_accuracy, check_seconds

    check_accuracy(config.accuracy, config.recipe)
    check_seconds(config.seconds)
    use_compilation_cache()
    problem = problem_of(config, folder, trust)
    data = data_of(config, problem, folder, trust)
    check_profile(config, problem, data)
    return problem, data


def _run(folder: Any, json: bool, trust: bool = False) -> None:
    """Train, save, and write the report. Ctrl-C ends the current part."""
    from ..ending import OUT_OF_TIME
    from ..runs.solve import solve as run
    from .interrupts import Interrupts
    from .warned import kept

    again = f"pdedkl resume {folder.path}"
    ctrl_c, failed = Interrupts(), False

    def saved(posterior: Any) -> None:
        ctrl_c.stage = "measuring"
        for text in warned:
            _tell_the_rest(text, posterior.verdict)
        if posterior.training.stopped == OUT_OF_TIME:
            tell(f"The time was up: {folder.path} has the best model so far. With more time: {again}")
        elif posterior.training.stopped is not None:
            tell(f"Stopped. {folder.path} has the best model so far: pdedkl predict works. Continue with: {again}")

    def conclude(folder: Any, solved: Any) -> None:
        nonlocal failed
        failed = _report(folder, solved, ctrl_c)

    try:
        with ctrl_c.handled(), kept("FitWarning") as warned:
            metrics = run(folder, callbacks=[ctrl_c.asked], progress=True, trust=trust, saved=saved, conclude=conclude)
    except KeyboardInterrupt:
        tell(f"Ended at once; continue with: {again}")
        raise Stopped from None
    _show(folder, metrics, json)
    if ctrl_c.skip or metrics["stopped"] not in (None, OUT_OF_TIME):
        raise Stopped
    if failed:
        raise typer.Exit(1)


def _tell_the_rest(text: str, verdict: Any) -> None:
    """Print the sentences of a warning about a fit, without those of its verdict, which is shown at the end."""
    for part in (verdict.headline(), *verdict.reasons, verdict.advice):
        text = text.replace(part, "")
    if rest := " ".join(text.split()):
        tell(f"Warning: {rest}")


def _report(folder: Any, solved: Any, ctrl_c: Any) -> bool:
    """Write the report. Returns whether some part of it could not be made; the run is kept in any case."""
    from ..runs.solve import report

    ctrl_c.stage = "report"
    try:
        if ctrl_c.skip:
            raise KeyboardInterrupt
        tell("Writing the report; Ctrl-C skips it.", style="dim")
        failed = report(folder, solved)
    except KeyboardInterrupt:
        tell(f"The report was skipped; make it with: pdedkl report {folder.path}")
        return False
    return incomplete(failed)


def incomplete(failed: list[str]) -> bool:
    """Print which parts of a report could not be made. Returns whether there are any."""
    for what in failed:
        tell(f"Not in the report, since it could not be made: {what}")
    return bool(failed)


def _show(folder: Any, metrics: dict, json: bool) -> None:
    from ..runs.folder import METRICS, REPORT
    from ..verdicts import from_json
    from .tables import show_iterations, show_parameters, show_rounds, show_run, show_verdict

    if json:
        print_json((folder / METRICS).read_text(encoding="utf-8"))
    out = console(error=json)
    show_rounds(out, metrics)
    show_iterations(out, metrics)
    show_run(out, metrics)
    show_parameters(out, metrics)
    if metrics.get("check"):
        show_verdict(out, from_json(metrics["check"]))
    if (folder / REPORT).is_file():
        out.print(clean(f"Report: {folder / REPORT}"), soft_wrap=True)


def _name(config: Any) -> str:
    dim = "" if config.dim is None else f"-{config.dim}"
    return f"{Path(config.problem).stem}{dim}-{config.model}-{config.recipe}-{config.seed}"


def _whole_numbers(text: str) -> list[int]:
    try:
        if "-" in text:
            low, high = text.split("-")
            return list(range(int(low), int(high) + 1))
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--latent-dims needs whole numbers such as 1-20 or 1,2,4,8: got {text!r}.") from None
