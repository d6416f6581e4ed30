"""The command that makes the paper's table again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import SCHEDULER, app, console, mistakes


@app.command()
def reproduce(
    only: Annotated[list[str] | None, typer.Option(help="Rows of the table, such as poisson-10.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each cell; the table has their median.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Runs at a time, each in a process.")] = 1,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    out: Annotated[Path, typer.Option(help="Folder of runs and tables; called again, it goes on there.")] = Path(
        "runs/reproduce"
    ),
) -> None:
    """Make the paper's table of errors: PDE-GP, a linear map, PDE-DKL as in the paper, and ours."""
    from rich.table import Table

    from ..jobs import open_pool
    from ..runs.reproduce import ROWS, Reproduction

    with mistakes():
        if unknown := [name for name in only or [] if name not in ROWS]:
            raise ValueError(f"There is no row {', '.join(unknown)}: choose from {', '.join(ROWS)}.")
        pool = open_pool(workers, scheduler)
    rows = {name: row for name, row in ROWS.items() if not only or name in only}
    work = Reproduction(out, rows, seeds)
    shown = console(error=True)
    with pool:
        work.run(pool, lambda text: shown.print(f"[dim]{text}"))
    table = Table(caption=work.caption())
    for name in work.header():
        table.add_column(name)
    for line in work.lines():
        table.add_row(*line)
    console().print(table)
    typer.echo(f"{out / 'table.md'}, {out / 'table.csv'}, {out / 'table.html'}")
