"""Predictions for a table of points that may be larger than memory: one block of rows after the other."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..columns import naming_hint, stored_names
from ..inference import Posterior
from ..problems import Problem
from .folder import RunError

ROWS_PER_BLOCK = 4096


def predict_table(posterior: Posterior, problem: Problem, points: Path, out: Path) -> int:
    """Write coordinates, `u`, `u_std`, `f` and `f_std` for each row, and return how many there were."""
    names = problem.domain.coordinate_names
    if out.exists() and out.samefile(points):
        raise RunError(f"{out} holds the points themselves: name another file with -o.")
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    count = 0
    try:
        with open(points, newline="", encoding="utf-8-sig") as source, open(temporary, "w", newline="") as target:
            writer = csv.writer(target, lineterminator="\n")
            writer.writerow([*names, "u", "u_std", "f", "f_std"])
            for block in _blocks(csv.reader(source), names, points):
                u, f = posterior.predict(block), posterior.predict(block, problem.operator)
                rows = np.column_stack([block, u.mean, u.std, f.mean, f.std])
                writer.writerows([[repr(float(value)) for value in row] for row in rows])
                count += len(block)
        if count == 0:
            raise RunError(f"{points} has no rows below its header: nothing to predict.")
        os.replace(temporary, out)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _blocks(reader: Any, names: Sequence[str], path: Path) -> Iterator[np.ndarray]:
    header = [name.strip() for name in next(reader, [])]
    stored = stored_names(names, header)
    if missing := [name for name in stored if name not in header]:
        raise RunError(
            f"{path} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing[:5])}{' …' * (len(missing) > 5)}: "
            f"it needs {', '.join(names[:5])}{' …' * (len(names) > 5)}, and has {', '.join(header[:5]) or 'nothing'}."
            f"{naming_hint(missing[0], header)}"
        )
    places = [header.index(name) for name in stored]
    line = 2  # as a spreadsheet counts: the header is row 1
    while rows := list(islice(reader, ROWS_PER_BLOCK)):
        yield np.array([_numbers(row, line + i, places, stored, path) for i, row in enumerate(rows)])
        line += len(rows)


def _numbers(row: list[str], line: int, places: list[int], names: Sequence[str], path: Path) -> list[float]:
    out = []
    for place, name in zip(places, names):
        text = row[place].strip() if place < len(row) else ""
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            raise RunError(f"{path} needs a finite number in row {line}, column {name}: got {text!r}.")
        out.append(value)
    return out
