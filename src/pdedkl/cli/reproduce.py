"""The command that reproduces the paper's table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import SCHEDULER, app, console, held, mistakes, tell
from .encoding import clean


@app.command()
def reproduce(
    only: Annotated[
        list[str] | None, typer.Option(metavar="ROW", help="A row of the table, such as poisson-10.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each cell; the table has their median.")] = 3,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Runs at a time, each in a process.")] = 1,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of runs and tables; it continues there.")] = Path(
        "runs/reproduce"
    ),
) -> None:
    """Make the paper's table of errors: PDE-GP, a linear map, PDE-DKL as in the paper, and ours."""
    from ..jobs import open_pool
    from ..locks import locked
    from ..runs.reproduce import ROWS, Reproduction
    from .tables import show

    with mistakes():
        if unknown := [name for name in only or [] if name not in ROWS]:
            raise ValueError(f"There is no row {', '.join(unknown)}: choose from {', '.join(ROWS)}.")
        pool = open_pool(workers, scheduler)
    rows = {name: row for name, row in ROWS.items() if not only or name in only}
    work = Reproduction(out, rows, seeds)
    with held(locked(out)), pool:
        work.run(pool, lambda text: tell(text, style="dim"))
    show(console(), work.header(), list(work.lines()), caption=work.caption())
    typer.echo(clean(f"{out / 'table.md'}, {out / 'table.csv'}, {out / 'table.html'}"))
