"""One GPU: the paper's seven problems, assembly, 40,000 values with their Gram matrix and 200,000 without.

Each fit is a process of its own and is measured three times: with nothing compiled before, again with what that left in
the cache, and all at once with nothing compiled before. `make bench-gpu` writes the page of the documentation from it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

# Processes that run at once share the memory of the device.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import core
import large
from accuracy import in_a_process
from timing import Measurements

ROWS = ("poisson-10", "poisson-50", "heat-10", "heat-50", "adr-10", "adr-50", "parametric-heat")


def rows(found: Measurements, names: list[str], limit: float = 60.0) -> None:
    """Seconds of the fits, and of the processes from their start to their end."""
    for cache, times in ((1, ("compiling", "with the cache of that")), (len(names), ("all at once, compiling",))):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
            for title in times:
                begin = time.monotonic()
                with ThreadPoolExecutor(cache) as pool:
                    results = list(pool.map(lambda name: in_a_process(name, "dkl", "default", 0), names))
                wall = time.monotonic() - begin
                total = add_rows(found, title, results)
                shown = f"{wall:.0f} s" + ("" if cache > 1 else f"; the fits alone {total:.0f} s")
                found.add(f"together, {title}", wall if cache > 1 else total, shown, at_most=limit)
    del os.environ["JAX_COMPILATION_CACHE_DIR"]


def add_rows(found: Measurements, title: str, results: list[dict]) -> float:
    for row in results:
        if "failed" in row:
            found.add(f"{row['problem']}, {title}", float("inf"), f"failed: {row['failed'][-200:]}", at_most=0)
            continue
        over = max(row["error_u"] / row["limit_u"], row["error_f"] / row["limit_f"])
        shown = f"{row['seconds']:.1f} s ({row['compile_seconds']:.1f} s compiling), errors {row['error_u']:.1e} of u, "
        found.add(f"{row['problem']}, {title}", row["seconds"], shown + f"{row['error_f']:.1e} of f")
        if over > 1:
            found.add(f"{row['problem']}, error over its limit", over, f"{over:.2g}", at_most=1)
    return sum(row.get("seconds", float("inf")) for row in results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=ROWS, help="problems, by name")
    parser.add_argument("--dense", type=int, default=40_000, help="values with their Gram matrix")
    parser.add_argument("--iterative", type=int, default=200_000, help="values without")
    options = parser.parse_args()
    found = Measurements("gpu")
    rows(found, options.only)
    core.assembly(found, 50, (50, 100, 500), at_least=100, n=500)
    core.step_over_floor(found, 2000)
    model, problem = large.model_and_problem()
    for n, solver in ((options.iterative, "iterative"), (options.dense, "dense")):
        large.solved(found, model, problem, n, solver)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
