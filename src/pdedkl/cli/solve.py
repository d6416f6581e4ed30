"""Commands that compute: solve, resume, search."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .app import SCHEDULER, app, console, mistakes


class Model(StrEnum):
    dkl = "dkl"
    linear = "linear"
    gp = "gp"


class Recipe(StrEnum):
    default = "default"
    paper = "paper"


class Sampler(StrEnum):
    uniform = "uniform"
    latin_hypercube = "latin-hypercube"
    sobol = "sobol"
    halton = "halton"


PROBLEM = typer.Argument(help="A built-in problem (see: pdedkl problems), or a Python file that defines `problem`.")
DIM = typer.Option(min=1, help="Dimension of space, for built-in problems.")
BOUNDARY = typer.Option(min=0, help="Points on the boundary.")
INITIAL = typer.Option(min=0, help="Points at the initial time.")
SOURCE = typer.Option(min=0, help="Points of the source.")
NOISE = typer.Option(min=0.0, help="Noise on the values of u, relative to their standard deviation.")
DATA = typer.Option(help="A table of measured values: columns x[0], x[1], …, t (as in Python), u, and noise if known.")
OUT = typer.Option(help="The folder of the run; by default runs/PROBLEM-… .")
ACCURACY = typer.Option(help="Stop once values follow from each other with this relative error, such as 1e-2.")
FORCE = typer.Option("--force", help="Replace the run that the folder holds.")
JSON = typer.Option("--json", help="Print metrics.json on standard output, and all else on standard error.")


@app.command()
def solve(
    problem: Annotated[str, PROBLEM],
    dim: Annotated[int | None, DIM] = None,
    model: Annotated[Model, typer.Option(help="Deep kernel, linear map, or Gaussian process.")] = Model.dkl,
    recipe: Annotated[Recipe, typer.Option(help="How to train: ours, or as in the paper.")] = Recipe.default,
    boundary: Annotated[int | None, BOUNDARY] = None,
    initial: Annotated[int | None, INITIAL] = None,
    source: Annotated[int | None, SOURCE] = None,
    noise: Annotated[float, NOISE] = 0.0,
    sampler: Annotated[Sampler, typer.Option(help="How points are placed.")] = Sampler.uniform,
    data: Annotated[list[Path] | None, DATA] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    latent_dim: Annotated[int | None, typer.Option(min=1, help="Latent coordinates; chosen by default.")] = None,
    accuracy: Annotated[float | None, ACCURACY] = None,
    out: Annotated[Path | None, OUT] = None,
    force: Annotated[bool, FORCE] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Sample a problem, train, validate, and write a report."""
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
        boundary=boundary,
        initial=initial,
        source=source,
        noise=noise,
        sampler=sampler.value,
        data=tuple(map(str, data or [])),
        version=__version__,
    )
    folder = Folder(out or Path("runs") / _name(config))
    with mistakes():
        _check(config)
        folder.begin(config, force=force)
    _run(folder, json)


@app.command()
def resume(folder: Annotated[Path, typer.Argument(help="The folder of a run.")], json: Annotated[bool, JSON] = False):
    """Go on with a run that was stopped or killed; its result is the same as if it had not been."""
    from ..runs.folder import Folder

    found = Folder(folder)
    with mistakes():
        config = found.config()
        if found.finished:
            console(error=True).print(f"{folder} is finished already.")
            _show(found, found.metrics(), json)
            return
        _check(config, found.path)
    _run(found, json)


@app.command()
def search(
    problem: Annotated[str, PROBLEM],
    dim: Annotated[int | None, DIM] = None,
    latent_dims: Annotated[str, typer.Option(help="Which to choose from, as 1-20 or 1,2,4,8.")] = "1-20",
    initial_evaluations: Annotated[int, typer.Option(min=1, help="Random values to begin with.")] = 4,
    evaluations: Annotated[int, typer.Option(min=1, help="Values to train in all.")] = 10,
    acquisition: Annotated[str, typer.Option(help="ei, ucb or pi.")] = "ei",
    workers: Annotated[int, typer.Option(min=1, help="Values to train at a time, each in a process.")] = 1,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    model: Annotated[Model, typer.Option()] = Model.dkl,
    recipe: Annotated[Recipe, typer.Option()] = Recipe.default,
    boundary: Annotated[int | None, BOUNDARY] = None,
    initial: Annotated[int | None, INITIAL] = None,
    source: Annotated[int | None, SOURCE] = None,
    noise: Annotated[float, NOISE] = 0.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of its state, table and plot.")] = None,
) -> None:
    """Find the latent dimension by Bayesian optimisation of the training objective."""
    from ..jobs import open_pool
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
        folder.mkdir(parents=True, exist_ok=True)
    from .. import search as run

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
    result.plot(folder / "search.png")
    typer.echo(result.table())
    typer.echo(f"best latent dimension: {result.best['latent_dim']}; {folder / 'search.png'}")


def _check(config: Any, folder: Path = Path()) -> Any:
    """Build problem and data once before anything is written, so that mistakes cost nothing."""
    console(error=True).print("[dim]reading the problem …")
    from ..cache import use_compilation_cache
    from ..runs.inputs import data_of, problem_of
    from ..training.fit import check_accuracy

    check_accuracy(config.accuracy, config.recipe)
    use_compilation_cache()
    problem = problem_of(config, folder)
    return problem, data_of(config, problem, folder)


def _run(folder: Any, json: bool) -> None:
    from ..runs.solve import solve as run

    metrics = run(folder, progress=True)
    if not folder.finished:
        console(error=True).print(f"Stopped; go on with: pdedkl resume {folder.path}")
        raise typer.Exit(130)
    _show(folder, metrics, json)


def _show(folder: Any, metrics: dict, json: bool) -> None:
    from .tables import of_check, of_run

    if json:
        typer.echo((folder / "metrics.json").read_text(encoding="utf-8"), nl=False)
    found = [of_run(metrics), *([of_check(metrics["check"])] if metrics.get("check") else [])]
    console(error=json).print(*found, f"Report: {folder / 'report.html'}", sep="\n")


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
