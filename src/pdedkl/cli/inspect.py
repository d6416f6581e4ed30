"""Commands that do not train: problems, new, predict, report, compare."""

from __future__ import annotations

import json as encoder
import os
from pathlib import Path
from typing import Annotated

import typer

from .app import TRUST, app, console, held, mistakes, print_json, tell
from .encoding import clean
from .solve import FOLDER, incomplete


@app.command()
def problems() -> None:
    """List the built-in problems with their equations."""
    from ..problems import BUILT_IN
    from .tables import show

    rows = [[name, entry.equation, "any" if entry.any_dim else str(entry.dim)] for name, entry in BUILT_IN.items()]
    show(console(), ("name", "equation", "dimensions"), rows)


@app.command()
def new(
    path: Annotated[Path, typer.Argument(help="The file to write, such as my_problem.py.")],
    fields: Annotated[bool, typer.Option("--fields", help="Several fields and nonlinear equations.")] = False,
) -> None:
    """Write a commented template for your own problem. It runs without changes."""
    from ..files import write_atomically
    from ..problems import template

    with mistakes():
        if path.suffix != ".py":
            raise ValueError(f"A problem is a Python file: name it {path.stem}.py.")
        if os.path.lexists(path):
            raise ValueError(f"{path} exists already: name another file.")
        write_atomically(path, template(fields).encode())
    typer.echo(clean(f"Wrote {path}. Run it with: pdedkl solve {path}"))


@app.command()
def predict(
    folder: Annotated[Path, FOLDER],
    points: Annotated[
        Path,
        typer.Argument(help="A table (CSV, Parquet or NPZ) with a column for each coordinate, x[0], x[1], …, t."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The CSV file to write.")],
    trust: Annotated[bool, TRUST] = False,
) -> None:
    """Predict u and f, each with its standard deviation, at the points of a table of any length."""
    from ..cache import use_compilation_cache
    from ..runs.folder import Folder
    from ..runs.predict import predict_table
    from ..runs.solve import predictor

    use_compilation_cache()
    with mistakes():
        if not points.exists() or points.is_dir():
            raise ValueError(f"There is no file {points}: check the name, and the folder it is relative to.")
        found = Folder(folder)
        count = predict_table(predictor(found, trust), points, out)
        if not found.finished:
            tell(f"{folder} was stopped: these are predictions of its best model so far.")
    # If `out` is not a regular file, it may be standard output, which then holds the predictions.
    typer.echo(clean(f"{count} point{'s' * (count != 1)}: {out}"), err=not out.is_file() or out.is_symlink())


@app.command()
def report(folder: Annotated[Path, FOLDER], trust: Annotated[bool, TRUST] = False) -> None:
    """Write the figures and the report of a run again."""
    from ..cache import use_compilation_cache
    from ..runs.folder import REPORT, Folder
    from ..runs.solve import opened
    from ..runs.solve import report as write

    use_compilation_cache()
    found = Folder(folder)
    with mistakes():
        found.config()
    with held(found.locked()):
        with mistakes():
            solved = opened(found, trust)
        failed = write(found, solved)
    typer.echo(clean(str(found / REPORT)))
    if incomplete(failed):
        raise typer.Exit(1)


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDERS", help="Folders of runs.")],
    json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Show runs side by side."""
    from ..runs.folder import Folder
    from .tables import show_runs

    with mistakes():
        runs = {str(folder): Folder(folder).metrics() for folder in folders}
    if json:
        print_json(encoder.dumps(runs, indent=2, ensure_ascii=False) + "\n")
        return
    show_runs(console(), runs)
