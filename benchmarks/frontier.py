"""Where kernels of few directions end, and figures that others have published; `make frontier`, `make yardsticks`.

Each cell is one `fit`, or one `solve` where points are free, with default settings, in a process of its own. Choices
come from evidence and fresh values; the truth is looked at afterwards. Called again, it goes on.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from statistics import median

from cells import answer, arguments, chosen, finished, measured

KEPT = Path(__file__).parent / "results" / "frontier.json"
GOOD = (0.88, 0.99)
TITLES = {"frontier": "Where solutions have many directions", "yardsticks": "Published figures"}
HEADS = {
    "frontier": """Written by `make frontier`: default settings, medians of {seeds} seeds, compiling counted.""",
    "yardsticks": """Written by `make yardsticks`: problems with a published figure, and ours; default settings,
medians of {seeds} seeds, compiling counted.""",
}


def one(name: str, seed: int) -> dict:
    """A single cell."""
    import numpy as np
    from frontier_problems import FRONTIER, YARDSTICKS

    import pdedkl as pk
    from pdedkl import metrics

    case = (FRONTIER | YARDSTICKS)[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.seconds is not None:
            posterior = pk.solve(case.problem, accuracy=case.wanted, seconds=case.seconds, seed=seed, progress=False)
        else:
            data = case.problem.sample(seed=seed) if case.data is None else case.data
            posterior = pk.fit(case.problem, data, seed=seed, progress=False)
    places = case.places(seed)
    u, truth = posterior.predict(places), case.values(places)
    return {
        "title": case.title,
        "wanted": case.wanted,
        "allowed": case.seconds,
        "source": case.source,
        "values": sum(map(len, posterior.observations)),
        "error": float(np.linalg.norm(u.mean - truth) / np.linalg.norm(truth)),
        "constant": float(np.std(truth) / np.sqrt(np.mean(truth**2))),
        "coverage": metrics.coverage(u.mean, u.std, truth)["0.95"],
        "z": metrics.z_rms(u.mean, u.std, truth),
        "verdict": posterior.verdict.status,
        "estimated": posterior.verdict.error_u,
        "kernel": posterior.training.kernel,
        "seconds": posterior.training.seconds,
    }


def shown(row: dict) -> str:
    mark = "ok  " if row["error"] <= row["wanted"] else "MISS"
    return (
        f"{row['name']:18}{mark} error {row['error']:.1e} wanted {row['wanted']:.1e} estimated {row['estimated']:.1e} "
        f"covers {row['coverage']:.3f} z {row['z']:.2g} {row['verdict']}, {row['values']} values, "
        f"{row['seconds']:.0f} s, {row['kernel']}"
    )


def page(table: str, rows: list[dict], names: list[str]) -> str:
    """The table of the documentation: medians over seeds, and how many rows are covered as they should be."""
    seeds = len({row["seed"] for row in rows})
    lines = [f"# {TITLES[table]}", "", HEADS[table].format(seeds=seeds), ""]
    lines += [
        "| problem | values | error of u | " + ("wanted" if table == "frontier" else "published") + " | covers u | z "
        "| verdict | s | kernel |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    covered = 0
    found = {name: mine for name in names if (mine := [row for row in rows if row["name"] == name])}
    for name, mine in found.items():
        middle = {key: median(row[key] for row in mine) for key in ("error", "coverage", "z", "seconds", "values")}
        covered += GOOD[0] <= middle["coverage"] <= GOOD[1] or middle["error"] < 1e-6
        usual = sorted(mine, key=lambda row: row["error"])[len(mine) // 2]
        wanted = f"{usual['wanted']:.1e}" + (f" ({usual['source']})" if usual["source"] else "")
        wanted += "" if middle["error"] <= usual["wanted"] else ", **missed**"
        allowed = "" if usual["allowed"] is None else f"; `solve`, {usual['allowed']:.0f} s"
        lines.append(
            f"| {name}: {usual['title'].replace('|', chr(92) + '|')}{allowed} | {middle['values']:.0f} "
            f"| {middle['error']:.1e} | {wanted} | {middle['coverage']:.1%} | {middle['z']:.2g} "
            f"| {usual['verdict']} | {middle['seconds']:.0f} | {usual['kernel']} |"
        )
    lines += ["", f"Coverage of u within 88 and 99 %, or errors below 1e-6: {covered} of {len(found)} rows."]
    if missing := [name for name in names if name not in found]:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = arguments(__doc__, KEPT)
    parser.add_argument("--table", choices=list(TITLES), default="frontier")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    from frontier_problems import FRONTIER, YARDSTICKS

    names = list({"frontier": FRONTIER, "yardsticks": YARDSTICKS}[options.table])
    cells = [(name, seed) for seed in options.seeds for name in chosen(names, options.only)]
    rows = measured(__file__, ("name", "seed"), cells, options, shown)
    good = [row for row in rows if "failed" not in row]
    text = page(options.table, good, names)
    return finished(text, len(good) < len(rows), options)


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
