"""Relative errors on fresh points, from fixed data, for every problem, model and seed; run by `make accuracy`.

Each fit is a process of its own with the compilation cache that the command line uses, so the seconds are what a user
waits: the first seed compiles what is not in the cache yet, the others load it. Shares of compiling (or loading) and of
tracing are those of the run of median length. Nothing beyond the given points is used, not even for choosing. Cells are
kept in benchmarks/results/accuracy.json as they end: called again, it goes on. The exit status is 1 where a limit is
missed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from cells import answer, arguments, measured

KEPT = Path(__file__).parent / "results" / "accuracy.json"
KEYS = ("problem", "model", "recipe", "seed")
MODELS = ("dkl", "linear", "gp")
SECONDS = 120.0

HEAD = """# Accuracy

Written by `make accuracy`: relative L2 errors of `u` / of `f` on 1,000 fresh points, from the points given (boundary +
initial + source) and nothing else, default settings, medians over seeds. Each fit is a process of its own on the number
of cores in the last column; on a machine with more cores several fits run at a time, which makes them slower. The
95 % intervals of `u` cover the share given, for each seed, without fresh values to calibrate with.
"""


def one(name: str, model: str, recipe: str, seed: int) -> dict:
    """Fit one case and measure it; runs in the child process."""
    import os

    import numpy as np
    from problems import CASES

    import pdedkl as pk

    case = CASES[name]().for_the_paper() if recipe == "paper" else CASES[name]()
    data, test = case.sample(seed)
    posterior = pk.fit(case.domain, data, recipe=recipe, model=model, seed=seed)
    truth = {"u": case.u(test), "f": case.f(test)}
    found = {"u": posterior.predict(test), "f": posterior.predict(test, case.operator)}
    training = posterior.training
    of_u = data[0]
    line = np.column_stack([np.ones(len(of_u)), of_u.points])
    slope, *_ = np.linalg.lstsq(line, np.asarray(of_u.values), rcond=None)
    straight = np.column_stack([np.ones(len(test)), test]) @ slope

    def error(values, reference):
        return float(np.linalg.norm(values - reference) / np.linalg.norm(reference))

    def covered(kind):
        lower, upper = found[kind].interval(0.95)
        return float(np.mean((lower <= truth[kind]) & (truth[kind] <= upper)))

    return {
        "points": case.points,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": training.kernel,
        "error_u": error(found["u"].mean, truth["u"]),
        "error_f": error(found["f"].mean, truth["f"]),
        "coverage_u": covered("u"),
        "coverage_f": covered("f"),
        "constant_u": error(np.full(len(test), np.mean(of_u.values)), truth["u"]),
        "line_u": error(straight, truth["u"]),
        "limit_u": case.limits.u,
        "limit_f": case.limits.f,
        "paper": case.limits.paper,
        "seconds": training.seconds,
        "compile_seconds": training.compile_seconds,
        "trace_seconds": training.trace_seconds,
        "rejected": training.rejected,
        "jitter": float(posterior.jitter),
    }


def table(results: list[dict], recipe: str) -> tuple[str, int]:
    head = f"{'problem':<17}{'points':<17}{'model':<8}{'e_u':>9}{'e_f':>9}{'limits':>17}{'cover':>7}"
    lines = [head + f"{'slowest':>9}{'median':>8}{'compile':>9}{'trace':>7}  kernel, baselines of u"]
    missed = 0
    for name in dict.fromkeys(r["problem"] for r in results):
        for model in dict.fromkeys(r["model"] for r in results):
            rows = [r for r in results if r["problem"] == name and r["model"] == model]
            good = [r for r in rows if "failed" not in r]
            if len(good) < len(rows) or not good:
                lines.append(f"{name:<17}{'':<17}{model:<8}  FAILED: {rows[0].get('failed', '')[-200:]}")
                missed += 1
                continue
            middle = {key: median(r[key] for r in good) for key in ("error_u", "error_f", "coverage_u")}
            slowest = max(r["seconds"] for r in good)
            usual = sorted(good, key=lambda r: r["seconds"])[len(good) // 2]
            compiling, tracing = (usual[key] / usual["seconds"] for key in ("compile_seconds", "trace_seconds"))
            limit_u, limit_f = good[0]["limit_u"], good[0]["limit_f"]
            if recipe == "paper" and good[0]["paper"]:
                limit_u, limit_f = (2 * value for value in good[0]["paper"])
            held = model == "dkl" and (recipe == "default" or good[0]["paper"])
            over = held and (middle["error_u"] > limit_u or middle["error_f"] > limit_f)
            over = over or (held and recipe == "default" and slowest > SECONDS)
            missed += bool(over)
            notes = ", ".join(sorted({r["kernel"] for r in good}))
            if model == "dkl":
                notes += f"; constant {good[0]['constant_u']:.1e}, line {good[0]['line_u']:.1e}"
            lines.append(
                f"{name:<17}{good[0]['points']:<17}{model:<8}{middle['error_u']:>9.1e}{middle['error_f']:>9.1e}"
                f"{limit_u:>9.0e}{limit_f:>8.0e}{middle['coverage_u']:>7.2f}{slowest:>7.0f} s{usual['seconds']:>6.0f} s"
                f"{compiling:>9.0%}{tracing:>7.0%}  {notes}{'  MISSED' if over else ''}"
            )
    return "\n".join(lines), missed


def page(results: list[dict]) -> str:
    """Median errors of `u` / of `f`, a column for each model; seconds are those of the slowest `dkl` run."""
    models = [model for model in MODELS[::-1] if any(r["model"] == model for r in results)]
    lines = [
        HEAD,
        "| problem | points | " + " | ".join(models) + " | covers u | seeds | slowest, of it compiling | cores |",
        "|---" * (len(models) + 6) + "|",
    ]
    for name in dict.fromkeys(r["problem"] for r in results):
        rows = [r for r in results if r["problem"] == name]
        cells = []
        for model in models:
            found = [r for r in rows if r["model"] == model]
            pair = (median(r[key] for r in found) for key in ("error_u", "error_f")) if found else ()
            cells.append(" / ".join(f"{value:.1e}" for value in pair))
        ours = [r for r in rows if r["model"] == "dkl"]
        if ours:
            slowest = max(ours, key=lambda r: r["seconds"])
            covers = ", ".join(f"{r['coverage_u']:.0%}" for r in ours)
            time = f"{slowest['seconds']:.0f} s, {slowest['compile_seconds']:.0f} s"
            cells += [covers, str(len(ours)), time, str(slowest["cores"])]
        lines.append(f"| {name} | {rows[0]['points']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def shown(row: dict) -> str:
    what = f"{row['problem']:<17}{row['model']:<8}{row['seed']:<3}"
    return f"{what}u {row['error_u']:.1e} f {row['error_f']:.1e} {row['seconds']:4.0f} s {row['kernel']}"


def main() -> int:
    parser = arguments(__doc__, KEPT)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    from problems import CASES

    names = [name for name in CASES if not options.only or name in options.only]
    cells = [(n, m, options.recipe, s) for n in names for m in options.models for s in range(options.seeds)]
    rows = [r for r in measured(__file__, KEYS, cells, options, shown, cold=False) if r["recipe"] == options.recipe]
    text, missed = table(rows, options.recipe)
    print(text)
    if options.page is not None:
        options.page.write_text(page([r for r in rows if "failed" not in r]))
    return int(missed > 0)


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
