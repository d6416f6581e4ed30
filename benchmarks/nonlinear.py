"""Nonlinear equations and systems, with default settings; `make nonlinear` and `make systems`.

Each cell is one `fit` in a process of its own, with the numbers of points that the problem has. Called again, it goes
on.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from cells import answer, arguments, chosen, finished, measured
from equations_case import Case
from equations_nonlinear import NONLINEAR
from equations_systems import SYSTEMS

KEPT = Path(__file__).parent / "results" / "nonlinear.json"
GOOD = (0.88, 0.99)
PLACES = 1000
# So many linearisations are few.
FEW = 10
TABLES: dict[str, dict[str, Callable[[], Case]]] = {"nonlinear": NONLINEAR, "systems": SYSTEMS}
TITLES = {"nonlinear": "Nonlinear equations", "systems": "Systems of several fields"}
CASES = {**NONLINEAR, **SYSTEMS}


def one(name: str, seed: int) -> dict:
    """A single cell."""
    import numpy as np

    import pdedkl as pk
    from pdedkl import metrics

    case = CASES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = case.problem.sample(seed=seed) if case.data is None else case.data(seed)
        posterior = pk.fit(case.problem, data, seed=seed, progress=False, **case.options)
    places = case.problem.interior(PLACES, seed) if case.places is None else case.places(seed)
    fields = dict(zip(case.truth, _as_tuple(pk.fields(*case.truth))))
    found = {}
    for field, of in case.truth.items():
        mean = posterior.predict(places, fields[field])
        truth = of(places)
        found[field] = {
            "error": float(np.linalg.norm(mean.mean - truth) / np.linalg.norm(truth)),
            "coverage": metrics.coverage(mean.mean, mean.std, truth)["0.95"],
            "z": metrics.z_rms(mean.mean, mean.std, truth),
        }
    return {
        "title": case.title,
        "wanted": case.wanted,
        "source": case.source,
        "values": sum(map(len, posterior.observations)),
        "fields": found,
        "verdict": posterior.verdict.status,
        "iterations": len(posterior.training.iterations),
        "steps": [[i.phase, i.residual, i.step, i.change] for i in posterior.training.iterations],
        "reasons": list(posterior.verdict.reasons),
        "kernel": posterior.training.kernel,
        "seconds": posterior.training.seconds,
    }


def _as_tuple(found: Any) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def shown(row: dict) -> str:
    fields = ", ".join(f"{k} {v['error']:.1e} covers {v['coverage']:.3f}" for k, v in row["fields"].items())
    return f"{row['name']:16}{fields}; {row['verdict']}, {row['iterations']} iterations, {row['seconds']:.0f} s"


def page(rows: list[dict], table: str) -> str:
    """The table of the documentation: medians over seeds, a line for each field."""
    rows = [row for row in rows if row["name"] in TABLES[table]]
    covered = [GOOD[0] <= field["coverage"] <= GOOD[1] for row in rows for field in row["fields"].values()]
    few = [row["iterations"] <= FEW for row in rows]
    share = lambda found: f"{sum(found)} of {len(found)}"
    lines = [
        f"# {TITLES[table]}",
        "",
        f"Written by `make {table}`: `fit` with default settings, medians over seeds.",
        f"95 % intervals cover {GOOD[0]:.0%} to {GOOD[1]:.0%} of the places for {share(covered)} fields; at most {FEW} "
        f"linearisations in {share(few)} fits.",
        "",
        "| problem | seeds | values | field | error | wanted | published | covers | z | verdict | iterations | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in TABLES[table]:
        mine = [row for row in rows if row["name"] == name]
        for field in mine[0]["fields"] if mine else ():
            middle = {key: median(row["fields"][field][key] for row in mine) for key in ("error", "coverage", "z")}
            wanted = mine[0]["wanted"].get(field)
            text = "" if wanted is None else f"{wanted:.0e}" + ("" if middle["error"] <= wanted else ", **missed**")
            lines.append(
                f"| {name}: {mine[0]['title']} | {len(mine)} | {mine[0]['values']} | {field} | {middle['error']:.1e} "
                f"| {text} | {mine[0]['source']} | {middle['coverage']:.1%} | {middle['z']:.2g} | {mine[0]['verdict']} "
                f"| {median(row['iterations'] for row in mine):.0f} | {median(row['seconds'] for row in mine):.0f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = arguments(__doc__, KEPT)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--table", choices=tuple(TABLES), default="nonlinear")
    options = parser.parse_args()
    cells = [(name, seed) for seed in options.seeds for name in chosen(list(TABLES[options.table]), options.only)]
    rows = measured(__file__, ("name", "seed"), cells, options, shown, cold=False)
    good = [row for row in rows if "failed" not in row]
    text = page(good, options.table)
    return finished(text, len(good) < len(rows), options)


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
