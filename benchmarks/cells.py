"""Cells of a table: each is measured in a process of its own and kept as it ends.

Called again, a benchmark goes on where it was. A process measures with `answer`, which must come first in its script:

    if __name__ == "__main__":
        answer(one)
        sys.exit(main())
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from typing import Any

Row = dict[str, Any]
CHILD = "--child"


def arguments(text: str | None, out: Path, jobs: int = 1) -> argparse.ArgumentParser:
    """The options that all tables of cells have."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--only", nargs="*", help="problems, by name or by the beginning of it")
    parser.add_argument("--jobs", type=int, default=jobs, help="fits at a time, each on cores of its own")
    parser.add_argument("--out", type=Path, default=out, help="the file in which cells are kept")
    parser.add_argument("--again", action="store_true", help="measure the chosen cells again")
    parser.add_argument("--page", type=Path, help="write the page of the documentation")
    return parser


def chosen(names: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """The names that begin with one of those asked for, or all."""
    return [name for name in names if not only or any(name.startswith(start) for start in only)]


def answer(one: Callable[..., Row]) -> None:
    """In a process that measures one cell: measure it, print it, and end."""
    if sys.argv[1:2] == [CHILD]:
        os.sched_setaffinity(0, json.loads(sys.argv[3]))
        print(json.dumps(one(*json.loads(sys.argv[2]))))
        sys.exit(0)


def measured(
    script: str,
    keys: Sequence[str],
    cells: Sequence[tuple],
    options: argparse.Namespace,
    shown: Callable[[Row], str],
    cold: bool = True,
) -> list[Row]:
    """The rows of all cells that are kept, those of `cells` measured where they are missing or failed.

    **Arguments:**

    - `script`: the file whose function `one` measures a cell.
    - `keys`: the names of the numbers and texts that tell cells apart.
    - `cells`: their values, in the order of the table.
    - `options`: those of `arguments`.
    - `shown`: a row as a line of text.
    - `cold`: whether to compile everything anew. It counts where seconds are measured.

    **Returns:** the rows. One with the key `failed` holds the end of what its process wrote.
    """
    key = lambda row: tuple(row[name] for name in keys)
    out: Path = options.out
    rows: list[Row] = json.loads(out.read_text()) if out.exists() else []
    if options.again:
        rows = [row for row in rows if key(row) not in cells]
    known = {key(row) for row in rows if "failed" not in row}
    free: Queue[list[int]] = Queue()
    cores = sorted(os.sched_getaffinity(0))
    for job in range(options.jobs):
        free.put(cores[job :: options.jobs] or cores)
    out.parent.mkdir(parents=True, exist_ok=True)
    order = {cell: number for number, cell in enumerate(cells)}
    with ThreadPoolExecutor(options.jobs) as pool:
        environment = dict(os.environ) | ({"PDEDKL_CACHE": "off"} if cold else {})
        one = lambda cell: _in_a_process(script, keys, cell, free, environment)
        waiting = [pool.submit(one, cell) for cell in cells if cell not in known]
        for done in as_completed(waiting):
            row = done.result()
            rows = [other for other in rows if key(other) != key(row)] + [row]
            rows.sort(key=lambda row: order.get(key(row), len(order)))
            # What a failed process wrote names files of this machine.
            kept = [row for row in rows if "failed" not in row]
            out.write_text(json.dumps(kept, indent=0) + "\n")
            failed = f"{key(row)} FAILED {row['failed'][-300:]}" if "failed" in row else ""
            print(failed or shown(row), file=sys.stderr, flush=True)
    return rows


def finished(text: str, failed: bool, options: argparse.Namespace) -> int:
    """Print the table, write its page if one is wanted, and give the exit status."""
    print(text)
    if options.page is not None:
        options.page.write_text(text)
    return int(failed)


def _in_a_process(
    script: str, keys: Sequence[str], cell: tuple, free: Queue[list[int]], environment: dict[str, str]
) -> Row:
    """One cell on cores of its own: fits that share cores slow each other down many times over."""
    cores = free.get()
    command = [sys.executable, script, CHILD, json.dumps(cell), json.dumps(cores)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    free.put(cores)
    if done.returncode:
        return dict(zip(keys, cell)) | {"failed": done.stderr[-2000:]}
    return dict(zip(keys, cell)) | json.loads(done.stdout.splitlines()[-1])
