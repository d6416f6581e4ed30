"""Commands around runs: problems, new, predict, report, compare."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import Annotated

import typer

from .app import app, console, mistakes
from .tables import of_runs

FOLDER = typer.Argument(help="The folder of a run.")


@app.command()
def problems() -> None:
    """List the built-in problems with their equations."""
    from rich.table import Table

    from ..problems import BUILT_IN

    table = Table(show_lines=True)
    for name in ("name", "equation", "dimensions"):
        table.add_column(name)
    for name, entry in BUILT_IN.items():
        table.add_row(name, entry.equation, "any" if entry.any_dim else str(entry.dim))
    console().print(table)


@app.command()
def new(path: Annotated[Path, typer.Argument(help="The file to write, such as my_problem.py.")]) -> None:
    """Write a commented template of a problem of your own; it runs as it stands."""
    from ..problems import template

    with mistakes():
        if path.suffix != ".py":
            raise ValueError(f"A problem is a Python file: name it {path.stem}.py.")
        if path.exists():
            raise ValueError(f"{path} exists already: name another file.")
        path.write_text(template(), encoding="utf-8")
    typer.echo(f"Wrote {path}. Run it with: pdedkl solve {path}")


@app.command()
def predict(
    folder: Annotated[Path, FOLDER],
    points: Annotated[
        Path, typer.Argument(help="A CSV file with a column for each coordinate, x[0], x[1], …, t as in Python.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The CSV file to write.")],
) -> None:
    """Predict u and f, each with its standard deviation, at the points of a table of any length."""
    from ..cache import use_compilation_cache
    from ..runs.folder import Folder
    from ..runs.predict import predict_table
    from ..runs.solve import opened

    use_compilation_cache()
    with mistakes():
        if not points.is_file():
            raise ValueError(f"There is no file {points}: check the name, and the folder it is relative to.")
        problem, posterior = opened(Folder(folder))
        count = predict_table(posterior, problem, points, out)
    typer.echo(f"{count} points: {out}")


@app.command()
def report(folder: Annotated[Path, FOLDER]) -> None:
    """Make figures and report of a run anew."""
    from ..cache import use_compilation_cache
    from ..runs.folder import Folder
    from ..runs.solve import opened
    from ..runs.solve import report as write

    use_compilation_cache()
    found = Folder(folder)
    with mistakes():
        problem, posterior = opened(found)
    write(found, posterior, problem, found.metrics())
    typer.echo(str(folder / "report.html"))


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Show runs side by side."""
    from ..runs.folder import Folder

    with mistakes():
        runs = {str(folder): Folder(folder).metrics() for folder in folders}
    if json:
        typer.echo(encoder.dumps(runs, indent=2, ensure_ascii=False))
        return
    console().print(of_runs(runs))
