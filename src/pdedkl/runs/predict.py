"""Predictions for a table of points that may be larger than memory, in blocks of rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from ..files import filling
from ..tables import blocks
from .folder import RunError
from .solve import Predictor

ROWS_PER_BLOCK = 4096


def predict_table(predictor: Predictor, points: Path, out: Path) -> int:
    """Write coordinates, `u`, `u_std`, `f` and `f_std` for each row, and return how many there were."""
    posterior, names, operator = predictor
    if out.exists() and out.samefile(points):
        raise RunError(f"{out} holds the points themselves: name another file with -o.")
    count = 0
    with filling(out) as target:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*names, "u", "u_std", "f", "f_std"])
        for block in blocks(points, names, ROWS_PER_BLOCK):
            u, f = posterior.predict(block), posterior.predict(block, operator)
            rows = np.column_stack([block, u.mean, u.std, f.mean, f.std])
            writer.writerows([[repr(float(value)) for value in row] for row in rows])
            target.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
            count += len(block)
        if count == 0:
            raise RunError(f"{points} has no rows below its header: nothing to predict.")
    return count
