"""The paper's table of errors, with its empty cells, and our own columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from .. import __version__
from ..files import write_atomically
from ..jobs import Job, Pool
from .folder import METRICS, Config, Folder, RunError


@dataclass(frozen=True)
class Row:
    """One problem of the table, with the paper's (error of u, error of f) for PDE-GP and PDE-DKL."""

    problem: str
    dim: int | None
    gp: tuple[float, float] | None
    dkl: tuple[float, float]


@dataclass(frozen=True)
class Method:
    """One of our columns, and the settings of its runs."""

    title: str
    model: str = "dkl"
    recipe: str = "default"


METHODS = {
    "gp": Method("PDE-GP", model="gp"),
    "linear": Method("learned linear map", model="linear"),
    "paper": Method("PDE-DKL as in the paper", recipe="paper"),
    "default": Method("pdedkl"),
}

ADR = "advection-diffusion-reaction"
ROWS = {
    "parametric-heat": Row("parametric-heat", None, (4.15e-2, 1.26e-2), (7.2e-3, 8.2e-3)),
    "poisson-10": Row("poisson", 10, (6.21e-2, 6.38e-2), (9.0e-3, 1.06e-2)),
    "poisson-50": Row("poisson", 50, None, (3.38e-2, 4.27e-2)),
    "heat-10": Row("heat", 10, (7.8e-3, 3.94e-2), (2.9e-3, 2.07e-2)),
    "heat-50": Row("heat", 50, None, (1.49e-2, 2.72e-2)),
    f"{ADR}-10": Row(ADR, 10, (2.12e-2, 9.10e-2), (7.1e-3, 2.63e-2)),
    f"{ADR}-50": Row(ADR, 50, None, (2.30e-2, 3.01e-2)),
}

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The paper's table of errors</title>
<style>
  :root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
  body {{ max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
  table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }}
  th, td {{ padding: 0.35rem 0.8rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; }}
  td:last-child {{ font-weight: 600; }}
</style>
<h1>The paper's table of errors</h1>
<table>
{rows}
</table>
<p>{caption}</p>
</html>
"""

SHARED = "with a scheduler, --out needs a folder that this machine and all workers share."

Errors = dict[tuple[str, str], tuple[float, float] | None]


class Reproduction:
    """The runs of the table, each in its own folder, in the order of the rows. Finished runs are not repeated."""

    def __init__(self, out: Path, rows: dict[str, Row], seeds: int) -> None:
        self.out, self.rows, self.seeds = out, rows, seeds

    def run(self, pool: Pool, say: Callable[[str], None]) -> None:
        self.write()
        jobs = []
        for name, row in self.rows.items():
            for method, folder, config in self._runs(name, row):
                if not Folder(folder).finished:
                    title = f"{name}, {METHODS[method].title}, seed {config.seed}"
                    jobs.append(Job(title, Cell(title, folder.resolve(), config)))
        if jobs:
            say(f"{len(jobs)} runs to make")
        for done, (job, _) in enumerate(pool.run(solve_cell, jobs), start=1):
            if not Folder(job.argument.folder).finished:
                raise RunError(f"{job.name} was solved on a machine where {self.out} is another folder: {SHARED}")
            say(f"{done}/{len(jobs)}  {job.name}")
            self.write()

    def write(self) -> None:
        """Write the table with the results so far, as Markdown, CSV and HTML."""
        self.out.mkdir(parents=True, exist_ok=True)
        for name, text in (("table.md", self.markdown()), ("table.csv", self.csv()), ("table.html", self.html())):
            write_atomically(self.out / name, text.encode())

    def errors(self) -> Errors:
        """The median over seeds of the errors of `u` and `f`; `None` where a seed is missing."""
        out: Errors = {}
        for name, row in self.rows.items():
            for method in METHODS:
                folders = [Folder(folder) for other, folder, _ in self._runs(name, row) if other == method]
                found = [_errors(folder) for folder in folders if folder.finished]
                whole = len(found) == len(folders)
                out[name, method] = (median(u for u, _ in found), median(f for _, f in found)) if whole else None
        return out

    def header(self) -> list[str]:
        return ["problem", "PDE-GP (paper)", "PDE-DKL (paper)", *(method.title for method in METHODS.values())]

    def lines(self) -> Iterator[list[str]]:
        errors = self.errors()
        for name, row in self.rows.items():
            printed = [row.gp, row.dkl]
            yield [name, *(cell(pair) for pair in (*printed, *(errors[name, method] for method in METHODS)))]

    def markdown(self) -> str:
        head = self.header()
        lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *self.lines())]
        return "\n".join(lines) + f"\n\n{self.caption()}\n"

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["problem", "method", "error_u", "error_f"])
        for (name, method), pair in self.errors().items():
            writer.writerow([name, METHODS[method].title, *(pair or ("", ""))])
        return out.getvalue()

    def html(self) -> str:
        row = lambda tag, cells: "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in cells) + "</tr>"
        rows = "\n".join([row("th", self.header()), *(row("td", line) for line in self.lines())])
        return PAGE.format(rows=rows, caption=escape(self.caption()))

    def caption(self) -> str:
        seeds = "one seed" if self.seeds == 1 else f"the median of {self.seeds} seeds"
        return (
            f"Relative L2 errors of u / of f on 1,000 fresh points, {seeds}. All our columns use the same points. The "
            "paper does not state its numbers of points, and has no errors for PDE-GP in 50 dimensions."
        )

    def _runs(self, name: str, row: Row) -> Iterator[tuple[str, Path, Config]]:
        for method, entry in METHODS.items():
            for seed in range(self.seeds):
                folder = self.out / name / f"{method}-{seed}"
                yield method, folder, Config(row.problem, row.dim, entry.model, entry.recipe, seed, version=__version__)


@dataclass(frozen=True)
class Cell:
    """One run of the table, as it is sent to a worker."""

    title: str
    folder: Path
    config: Config


def solve_cell(asked: Cell) -> None:
    """Solve in the cell's folder, or continue there if the run was killed. The results are files only."""
    import jax

    from ..cache import use_compilation_cache
    from .solve import solve

    folder, out = Folder(asked.folder), asked.folder.parents[1]
    if not out.is_dir():
        raise RunError(f"A worker has no folder {out}: {SHARED}")
    use_compilation_cache()
    try:
        with folder.locked():
            if not folder.started:
                folder.begin(asked.config)
            elif _asked(folder.config()) != _asked(asked.config):
                raise RunError(f"{folder.path} holds another run: remove it, or use another --out.")
            solve(folder, progress=False)
    except Exception as error:  # any error: say which of the runs failed
        raise RunError(f"{asked.title} failed: {type(error).__name__}: {error}") from error
    finally:
        jax.clear_caches()  # so that time and memory of a run do not depend on earlier runs
    if not folder.finished:
        raise KeyboardInterrupt


def _asked(config: Config) -> tuple[Any, ...]:
    return config.problem, config.dim, config.model, config.recipe, config.seed


def _errors(folder: Folder) -> tuple[float, float]:
    found = folder.read_json(METRICS)
    pair = found.get("error_u"), found.get("error_f")
    if not all(isinstance(value, int | float) for value in pair):
        raise RunError(f"{folder / METRICS} lacks the errors of u and f: restore it, or remove that folder.")
    return float(pair[0]), float(pair[1])


def cell(pair: Any) -> str:
    return "–" if pair is None else f"{pair[0]:.1e} / {pair[1]:.1e}"
