"""One GPU: the paper's seven problems, assembly, and a step; `large.py` has many values. Run by `make bench-gpu`.

Each fit is a process of its own and is measured twice: with nothing compiled before, and with what that left in the
cache.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

from accuracy import in_a_process
from timing import Measurements

ROWS = ("poisson-10", "poisson-50", "heat-10", "heat-50", "adr-10", "adr-50", "parametric-heat")


def rows(found: Measurements, names: list[str], limit: float = 60.0) -> None:
    """Seconds of the fits, and of the processes from their start to their end."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
        for title in ("compiling", "with the cache of that"):
            begin = time.monotonic()
            total = sum(add_row(found, title, in_a_process(name, "dkl", "default", 0)) for name in names)
            wall = time.monotonic() - begin
            found.add(f"together, {title}", total, f"{total:.0f} s; {wall:.0f} s with imports", at_most=limit)
        del os.environ["JAX_COMPILATION_CACHE_DIR"]


def add_row(found: Measurements, title: str, row: dict) -> float:
    if "failed" in row:
        found.add(f"{row['problem']}, {title}", float("inf"), f"failed: {row['failed'][-200:]}", at_most=0)
        return float("inf")
    over = max(row["error_u"] / row["limit_u"], row["error_f"] / row["limit_f"])
    shown = f"{row['seconds']:.1f} s ({row['compile_seconds']:.1f} s compiling), errors {row['error_u']:.1e} of u, "
    found.add(f"{row['problem']}, {title}", row["seconds"], shown + f"{row['error_f']:.1e} of f")
    if over > 1:
        found.add(f"{row['problem']}, error over its limit", over, f"{over:.2g}", at_most=1)
    return row["seconds"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=ROWS, help="problems, by name; none for none")
    options = parser.parse_args()
    missed = 0
    # A process that uses the device takes most of its memory, which belongs to the fits here.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import core

    del os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"]
    if options.only:
        found = Measurements("gpu-rows")
        rows(found, options.only)
        missed |= found.finish()
    found = Measurements("gpu-core")
    core.assembly(found, 50, (50, 100, 500), at_least=100, n=500)
    core.assembly(found, 50, (50, 100), n=2000)
    core.step_over_floor(found, 2000)
    return missed | found.finish()


if __name__ == "__main__":
    sys.exit(main())
