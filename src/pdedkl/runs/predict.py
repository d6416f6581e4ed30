"""Predictions for a table of points that may be larger than memory, in blocks of rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from ..files import filling
from ..inference.rows import values_of_fields
from ..tables import blocks
from .folder import RunError
from .solve import Predictor

ROWS_PER_BLOCK = 4096


def predict_table(predictor: Predictor, points: Path, out: Path) -> int:
    """Write coordinates, `u`, `u_std`, `f` and `f_std` for each row, and return how many there were.

    Of several fields it is each of them, without `f`.
    """
    posterior, names, operator = predictor
    fields = posterior.model.kernel.fields
    wanted = list(zip(fields if len(fields) > 1 else ("u",), values_of_fields(posterior), strict=True))
    wanted += [] if operator is None else [("f", operator)]
    if out.exists() and out.samefile(points):
        raise RunError(f"{out} holds the points themselves: name another file with -o.")
    count = 0
    with filling(out) as target:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*names, *(head for name, _ in wanted for head in (name, f"{name}_std"))])
        for block in blocks(points, names, ROWS_PER_BLOCK):
            found = [posterior.predict(block, row) for _, row in wanted]
            rows = np.column_stack([block, *(column for part in found for column in (part.mean, part.std))])
            writer.writerows([[repr(float(value)) for value in row] for row in rows])
            target.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
            count += len(block)
        if count == 0:
            raise RunError(f"{points} has no rows below its header: nothing to predict.")
    return count
