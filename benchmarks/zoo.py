"""Problems as people write them, all with default settings, against truths from outside the library.

Each cell is one fit in a process of its own. Cells are kept in benchmarks/results/zoo.json as they end: called again,
it goes on. Run by `make zoo`, which then writes docs/benchmarks-zoo.md.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from statistics import median

from cells import answer, arguments, chosen, measured

KEPT = Path(__file__).parent / "results" / "zoo.json"
# Where a verdict "calibrated" is right: coverage of u, or errors that are rounding. Where it must never stand: z.
COVERED, ROUNDING, WORST_Z = (0.90, 0.985), 1e-6, 3.0
# Coverage of u that counts as good in the table of all well-posed rows.
GOOD = (0.88, 0.99)

HEAD = """# The zoo

Written by `make zoo`: problems as people write them, `fit` with default settings, each in a process of its own
on one core. What the problems before have compiled is kept, as for any user. Truths are computed outside the library
(`benchmarks/zoo_problems`). The error is that of `u` at 1,000
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


def shown(row: dict) -> str:
    mark = ("ok " if right(row) else "BAD") + {True: " ok ", False: "MISS", None: "    "}[reached(row)]
    of_f = f"f {row['coverage_f']:.3f}" if "coverage_f" in row else "       "
    more = " ".join(f"{k} {v:.1%}" for k, v in row.get("coefficients", {}).items())
    return (
        f"{row['name']:24}{mark} e {row['error']:.1e} lo {row['left_out']:.0e} covers {row['coverage']:.3f} "
        f"z {row['z']:8.3g} raw {row['raw_z']:8.2g} {of_f} {row['verdict']:14} {row['seconds']:4.0f} s "
        f"({row['preparing']:3.0f}) {row['kernel']} {more}"
    )


def main() -> int:
    parser = arguments(__doc__, KEPT)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    options = parser.parse_args()
    from zoo_problems import THEMES, ZOO

    cells = [(name, seed) for seed in options.seeds for name in chosen(list(ZOO), options.only)]
    rows = measured(__file__, ("name", "seed"), cells, options, shown, cold=False)
    order = list(ZOO)
    good = [row for row in rows if "failed" not in row and row["name"] in ZOO]
    good.sort(key=lambda row: (order.index(row["name"]), row["seed"]))
    if good:
        print("\n".join(summary(good)))
    for row in rows:
        if "failed" in row:
            print(f"FAILED: {row['name']}, seed {row['seed']}: {row['failed'][-500:]}")
    if options.page is not None:
        options.page.write_text(page(good, THEMES))
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
