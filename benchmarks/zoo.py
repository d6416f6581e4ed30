"""Problems as people write them, all with default settings, against truths from outside the library.

Each cell is one fit in a process of its own. Cells are kept in benchmarks/results/zoo.json as they end: called again,
it goes on. Run by `make zoo`, which then writes docs/benchmarks-zoo.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from statistics import median

KEPT = Path(__file__).parent / "results" / "zoo.json"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-zoo.md"
# Where a verdict "calibrated" is right: coverage of u, or errors that are rounding. Where it must never stand: z.
COVERED, ROUNDING, WORST_Z = (0.90, 0.985), 1e-6, 3.0
# Coverage of u that counts as good in the table of all well-posed rows.
GOOD = (0.88, 0.99)

HEAD = """# The zoo

Written by `make zoo`: problems as people write them, `fit` with default settings, each in a process of its own.
Compiling counts. Truths are computed outside the library (`benchmarks/zoo_problems`). The error is that of `u` at 1,000
points inside, relative to its size (to its spread, where it varies about a large constant). A verdict is right if it is
"calibrated" where 90 to 98.5 % are covered or errors are below 1e-6, "not calibrated" where they are not, and
"undetermined" where the data do not determine `u`.
"""


def one(name: str, seed: int) -> dict:
    """A single cell. Imports are here: the process that starts the others needs none of them."""
    import numpy as np
    from zoo_problems import ZOO

    import pdedkl as pk
    from pdedkl import metrics

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        case = ZOO[name](seed)
        posterior = pk.fit(case.problem, case.data, seed=seed, progress=False)
    u, truth = posterior.predict(case.places), case.truth
    size = float(np.sqrt(np.mean(truth**2)))
    size = size if size < 5 * np.std(truth) else float(np.std(truth))
    found = {
        "name": name,
        "seed": seed,
        "title": case.title,
        "posed": case.posed,
        "wanted": case.wanted,
        "values": sum(map(len, case.data)),
        "error": float(np.sqrt(np.mean((u.mean - truth) ** 2))) / size,
        "coverage": metrics.coverage(u.mean, u.std, truth)["0.95"],
        "z": metrics.z_rms(u.mean, u.std, truth),
        "verdict": posterior.verdict.status,
        "reasons": list(posterior.verdict.reasons),
        "estimated": posterior.verdict.error_u,
        "kernel": posterior.training.kernel,
        "left_out": posterior.training.left_out,
        "seconds": posterior.training.seconds,
        "preparing": posterior.training.compile_seconds + posterior.training.trace_seconds,
        "factors": [] if posterior.calibration is None else np.asarray(posterior.calibration.factors).tolist(),
        "noise": posterior.model.noise(),
        "candidates": {key: float(value) for key, value in posterior.training.candidates},
        "loud": sum(issubclass(item.category, pk.FitWarning) for item in heard),
    }
    plain = posterior.uncalibrated().predict(case.places)
    found["raw_z"] = metrics.z_rms(plain.mean, plain.std, truth)
    if case.operator is not None and case.source is not None:
        f = posterior.predict(case.places, case.operator)
        found["coverage_f"] = metrics.coverage(f.mean, f.std, case.source)["0.95"]
        found["z_f"] = metrics.z_rms(f.mean, f.std, case.source)
    if case.coefficients:
        learned = posterior.unknowns()
        found["coefficients"] = {k: abs(learned[k] / v - 1) for k, v in case.coefficients.items()}
    return found


def right(row: dict) -> bool:
    """Whether the verdict is right."""
    if not row["posed"]:
        return row["verdict"] == "undetermined"
    holds = COVERED[0] <= row["coverage"] <= COVERED[1] or (row["error"] < ROUNDING and row["z"] <= 1.4)
    return row["verdict"] == ("calibrated" if holds else "not calibrated")


def reached(row: dict) -> bool | None:
    """Whether the wanted error was reached; `None` if none is wanted."""
    if row["wanted"] is None:
        return None
    errors = list(row["coefficients"].values()) if row.get("coefficients") else [row["error"]]
    return max(errors) <= row["wanted"]


def summary(rows: list[dict]) -> list[str]:
    """The figures over all rows, one line each."""
    posed = [row for row in rows if row["posed"]]
    good = [row for row in posed if GOOD[0] <= row["coverage"] <= GOOD[1] or row["error"] < ROUNDING]
    calm = [row["name"] for row in rows if row["verdict"] == "calibrated" and row["z"] > WORST_Z]
    wanted = [row for row in rows if row["wanted"] is not None]
    seconds = [row["seconds"] for row in rows]
    return [
        f"verdict right: {sum(map(right, rows))} of {len(rows)} ({sum(map(right, rows)) / max(len(rows), 1):.1%})",
        f'"calibrated" with a root mean square of z above 3: {len(calm)} {", ".join(calm)}'.rstrip(),
        f"coverage of u within 88 and 99 %, or errors below 1e-6, of well-posed rows: {len(good)} of {len(posed)} "
        f"({len(good) / max(len(posed), 1):.1%})",
        f"wanted error reached: {sum(bool(reached(row)) for row in wanted)} of {len(wanted)}",
        f"seconds: median {median(seconds):.0f}, longest {max(seconds):.0f}",
    ]


def table(rows: list[dict]) -> list[str]:
    lines = [
        "| problem | values | error of u | wanted | covers u | z | covers f | verdict | kernel | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        wanted = "" if row["wanted"] is None else f"{row['wanted']:.0e}{'' if reached(row) else ', **missed**'}"
        error = f"{row['error']:.1e}"
        if row.get("coefficients"):
            error += "; " + ", ".join(f"{k} {v:.1%} off" for k, v in row["coefficients"].items())
        verdict = row["verdict"] + ("" if right(row) else ", **wrong**")
        of_f = f"{row['coverage_f']:.1%}" if "coverage_f" in row else ""
        what = f"{row['name']}: {row['title']}".replace("|", "\\|")
        lines.append(
            f"| {what} | {row['values']} | {error} | {wanted} | {row['coverage']:.1%} | {row['z']:.2g} | {of_f} "
            f"| {verdict} | {row['kernel']} | {row['seconds']:.0f} |"
        )
    return lines


def page(rows: list[dict], themes: dict[str, dict]) -> str:
    parts = [HEAD, "\n".join(f"- {line}" for line in summary(rows))]
    for theme, members in themes.items():
        if chosen := [row for row in rows if row["name"] in members]:
            parts.append("\n".join([f"\n## {theme[0].upper()}{theme[1:]}\n", *table(chosen)]))
    return "\n".join(parts) + "\n"


def in_a_process(name: str, seed: int, free: Queue[list[int]]) -> dict:
    """One cell on cores of its own: fits that share cores slow each other down many times over."""
    cores = free.get()
    arguments = ["--child", name, str(seed), *map(str, cores)]
    cold = dict(os.environ) | {"PDEDKL_CACHE": "off"}
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=cold)
    free.put(cores)
    if done.returncode:
        return {"name": name, "seed": seed, "failed": done.stderr[-2000:]}
    return json.loads(done.stdout.splitlines()[-1])


def shown(row: dict) -> str:
    if "failed" in row:
        return f"{row['name']:24} FAILED {row['failed'][-300:]}"
    mark = ("ok " if right(row) else "BAD") + {True: " ok ", False: "MISS", None: "    "}[reached(row)]
    of_f = f"f {row['coverage_f']:.3f}" if "coverage_f" in row else "       "
    more = " ".join(f"{k} {v:.1%}" for k, v in row.get("coefficients", {}).items())
    return (
        f"{row['name']:24}{mark} e {row['error']:.1e} lo {row['left_out']:.0e} covers {row['coverage']:.3f} "
        f"z {row['z']:8.3g} raw {row['raw_z']:8.2g} {of_f} {row['verdict']:14} {row['seconds']:4.0f} s "
        f"({row['preparing']:3.0f}) {row['kernel']} {more}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="problems, by name or by the beginning of it")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--out", type=Path, default=KEPT, help="where cells are kept")
    parser.add_argument("--again", action="store_true", help="measure the chosen cells again")
    parser.add_argument("--page", type=Path, help="write the page of the documentation")
    options = parser.parse_args()
    from zoo_problems import THEMES, ZOO

    names = [name for name in ZOO if not options.only or any(name.startswith(start) for start in options.only)]
    rows: list[dict] = json.loads(options.out.read_text()) if options.out.exists() else []
    cells = [(name, seed) for seed in options.seeds for name in names]
    if options.again:
        rows = [row for row in rows if (row["name"], row["seed"]) not in cells]
    known = {(row["name"], row["seed"]) for row in rows if "failed" not in row}
    cores = sorted(os.sched_getaffinity(0))
    free: Queue[list[int]] = Queue()
    for job in range(options.jobs):
        free.put(cores[job :: options.jobs] or cores)
    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(in_a_process, *cell, free) for cell in cells if cell not in known]
        for done in as_completed(waiting):
            rows = [row for row in rows if (row["name"], row["seed"]) != (done.result()["name"], done.result()["seed"])]
            rows.append(done.result())
            rows.sort(key=lambda row: (list(ZOO).index(row["name"]), row["seed"]))
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(rows, indent=0) + "\n")
            print(shown(done.result()), flush=True)
    good = [row for row in rows if "failed" not in row and row["name"] in ZOO]
    if good:
        print("\n".join(summary(good)))
    for row in rows:
        if "failed" in row:
            print(f"FAILED: {row['name']}, seed {row['seed']}: {row['failed'][-500:]}")
    if options.page is not None:
        options.page.write_text(page(good, THEMES))
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--child":
        os.sched_setaffinity(0, map(int, sys.argv[4:]))
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]))))
        sys.exit(0)
    sys.exit(main())
