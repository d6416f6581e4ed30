"""Seconds to a given error: ours against networks, random features and a plain Gaussian process; `make bench-peers`.

Every method has the same equation, once with the points that ours has and once with as many as it likes. Each cell is
a process of its own, one after the other; called again, the race goes on where it ended. Seconds are those until the
error of `u` at test points first is as small as wanted, which only we can see. Ours cannot be looked at on the way: it
is asked for the paper's error, for one of 1e-3 and for the best that it finds, each in a fit of its own that ends by
itself. The peers' seconds leave out their tuning, which is recorded beside them, and all leave out imports; ours hold
everything else, compilation and error bars too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from task import Rows, Task

HERE = Path(__file__).parent
NAMES = ("poisson-10", "poisson-50", "heat-10", "heat-50", "adr-10", "adr-50", "parametric-heat")
METHODS = {
    "dkl": "pdedkl",
    "gp": "PDE-GP",
    "elm": "random features",
    "hessian": "PINN, DeepXDE",
    "forward": "PINN, forward Laplacian",
}
OURS, NETWORKS = ("dkl", "gp"), ("hessian", "forward")
POINTS = {"given": "as many points as ours", "pool": "as many points as it likes"}
# So many values of `u` and of `f` are there for those who like many, and to choose settings by.
POOL, FRESH = 20_000, 1000
# Of the time of a run, for each setting that a network is tried with.
TRIAL = 1 / 15


def write_task(name: str, seed: int, path: Path) -> None:
    """Sample a problem of ours into arrays."""
    from problems import CASES

    case = CASES[name]()
    symbol = case.operator.symbol(np.asarray(case.domain.lower))
    if symbol.directions is not None:
        raise ValueError(f"{name}: {case.operator} has mixed derivatives, and the peers take Σ_i a_i ∂_i² alone.")
    dim = case.domain.dim
    a = np.zeros(dim)
    a[list(symbol.axes)] = symbol.axis_weights

    def rows(case, seed: int) -> tuple[Rows, np.ndarray]:
        (of_u, of_f), test = case.sample(seed)
        return Rows(*(np.asarray(part) for o in (of_u, of_f) for part in (o.points, o.values))), test

    def some(n: int, seed: int) -> Rows:
        of_u = case.boundary + case.initial
        boundary = n * case.boundary // of_u
        found, _ = rows(replace(case, boundary=boundary, initial=n - boundary, source=n), seed)
        order = np.random.default_rng(seed).permutation(n)
        return Rows(found.u_points[order], found.u_values[order], found.f_points, found.f_values)

    given, test = rows(case, seed)
    Task(
        c=0.0 if symbol.c is None else float(symbol.c),
        b=np.zeros(dim) if symbol.b is None else np.asarray(symbol.b),
        a=a,
        lower=np.asarray(case.domain.lower),
        upper=np.asarray(case.domain.upper),
        given=given,
        pool=some(POOL, seed + 1000),
        fresh=some(FRESH, seed + 2000),
        test_points=test,
        test_values=case.u(test),
    ).save(path)


class Race:
    """The cells that have been run, in a file."""

    def __init__(self, out: Path, peers: str, seconds: float) -> None:
        self.out, self.peers, self.seconds = out, peers, seconds
        self.file = out / "race.json"
        out.mkdir(parents=True, exist_ok=True)
        stored = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.cells: list[dict] = stored.get("cells", [])
        self.machine = {key: stored.get(key, {}) for key in ("machine", "versions")}

    def cell(self, name: str, method: str, points: str, seed: int, command: list[str], **known: float) -> dict:
        """What a process writes about one method on one problem; from the file, where it is there."""
        key = {"problem": name, "method": method, "points": points, "seed": seed, "allowed": self.seconds}
        for cell in self.cells:
            if key.items() <= cell.items() and "failed" not in cell:
                return cell
        task = self.out / f"{name}-{seed}.npz"
        if not task.exists():
            write_task(name, seed, task)
        written = self.out / "cell.json"
        written.unlink(missing_ok=True)
        environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
        program, script, *rest = command
        line = [program, str(HERE / script), str(task), str(written), "--seed", str(seed), *rest]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        found = json.loads(written.read_text()) if written.exists() else {"failed": done.stderr[-2000:]}
        cell = key | known | found
        self.cells = [c for c in self.cells if not key.items() <= c.items()] + [cell]
        versions = {k: v for c in self.cells for k, v in c.get("versions", {}).items()}
        from timing import machine

        self.machine = {"machine": machine(), "versions": versions}
        self.file.write_text(json.dumps(self.machine | {"cells": self.cells}, indent=1))
        last = cell["trail"][-1] if cell.get("trail") else cell.get("setting", "failed")
        print(f"{name} {method} {points} {seed}: {last}", file=sys.stderr, flush=True)
        return cell

    def run(self, name: str, method: str, points: str, seed: int) -> dict:
        known = {}
        limit = ["--points", points, "--seconds", str(self.seconds)]
        if method in OURS:
            from problems import CASES

            wanted = [str(CASES[name]().limits.paper[0]), "1e-3"]
            command = [sys.executable, "ours.py", "--problem", name, "--model", method, "--accuracies", *wanted]
        elif method == "elm":
            command = [sys.executable, "elm.py", *limit]
        else:
            # Both networks minimise the same, so what is chosen for the faster one holds for the other.
            trial = ["--tune", "--points", points, "--seconds", str(TRIAL * self.seconds)]
            tuned = self.cell(name, "tuning", points, seed, [self.peers, "pinn.py", *trial])
            if "failed" in tuned:
                return tuned
            known = {"tuning_seconds": tuned["tuning_seconds"]}
            chosen = ["--setting", json.dumps(tuned["setting"])]
            command = [self.peers, "pinn.py", *limit, "--derivatives", method, *chosen]
        return self.cell(name, method, points, seed, command, **known)


def reached(cells: list[dict], error: float) -> float:
    """Seconds to the error, the median over seeds; infinite where it is not reached."""
    return median(min((s for s, e in cell.get("trail", ()) if e <= error), default=np.inf) for cell in cells)


def table(race: Race, names: list[str], goals: dict[str, dict[str, float]]) -> str:
    """Rows of seconds (plus those of tuning), and how many times ours without tuning.

    Where an error is not reached, the smallest one is in brackets.
    """
    lines = []
    for goal, errors in goals.items():
        for points, title in POINTS.items():
            methods = [m for m in METHODS if points == "given" or m not in OURS[1:]]
            lines += [f"Seconds to {goal}, {title}:", ""]
            lines.append(f"{'problem':<17}{'error':>8}" + "".join(f"{METHODS[m]:>26}" for m in methods))
            for name in names:
                found = {m: cells_of(race, name, m, points) for m in methods}
                ours = reached(found["dkl"], errors[name]) if found["dkl"] else np.inf
                shown = [entry(found[m], errors[name], ours, race.seconds, m) for m in methods]
                lines.append(f"{name:<17}{errors[name]:>8.0e}" + "".join(f"{text:>26}" for text in shown))
            lines.append("")
    return "\n".join(lines)


def summary(race: Race, names: list[str], errors: dict[str, float]) -> str:
    """Over the problems: how many times our seconds a tuned network takes, and where an alternative is the first."""
    lines = []
    for tuning, title in ((False, "their tuning not counted"), (True, "their tuning counted")):
        times: dict[str, list[float]] = {method: [] for method in NETWORKS}
        first = []
        for name in names:
            seconds = {m: reached_by(race, name, m, errors[name], tuning) for m in METHODS}
            for method, of_one in times.items():
                of_one.append(seconds[method] / seconds["dkl"])
            first += [name] if seconds["dkl"] < min(s for m, s in seconds.items() if m != "dkl") else []
        shown = [
            f"{METHODS[method]} takes "
            + ("longer than it has" if np.isinf(median(t)) else f"{median(t):.2g} times ours")
            for method, t in times.items()
        ]
        lines.append(
            f"Seconds to the paper's error, {title}, with the points that suit each better (median): "
            f"{'; '.join(shown)}. Ours is the first in {len(first)} of {len(names)}: {', '.join(first) or 'none'}."
        )
    return "\n".join(lines)


def reached_by(race: Race, name: str, method: str, error: float, tuning: bool) -> float:
    """Seconds with the points that suit the method better."""
    found = [np.inf]
    for points in POINTS:
        if cells := [cell for cell in cells_of(race, name, method, points) if "failed" not in cell]:
            extra = median(cell.get("tuning_seconds", 0.0) for cell in cells) if tuning else 0.0
            found.append(reached(cells, error) + extra)
    return min(found)


def page(race: Race, names: list[str], text: str, path: Path) -> None:
    """The page of the documentation; the picture is beside it."""
    known = race.machine
    command = f"benchmarks/peers/race.py --seconds {race.seconds:g} --only {' '.join(names)}"
    versions = ", ".join(f"{name} {version}" for name, version in sorted(known["versions"].items()))
    head = (
        f"# Against other methods\n\nWritten by `{command}`, which measures every method on the same machine, one "
        f"after the other: {known['machine']['cores']} cores of {known['machine']['processor']}, {versions}. "
        "`make bench-peers` gives each 300 s on all seven problems of the paper, and takes hours. Called again it goes "
        "on, so that cells may be of different days.\n\n"
        "Networks and random features are tuned by fresh values of `u` and `f`; `+` is the time that took. Ours and "
        "PDE-GP are not tuned, compile everything anew, and are asked for the paper's error, for 1e-3 and for their "
        "best, in a fit each; the fastest that has the error counts. Each method has "
        f"{race.seconds:.0f} s on each problem; an error in brackets is the smallest that it reached.\n\n"
        "![error against seconds](benchmarks-peers.png)\n\n"
    )
    path.write_text(head + "```\n" + text.rstrip() + "\n```\n")


def cells_of(race: Race, name: str, method: str, points: str) -> list[dict]:
    points = "given" if method in OURS else points
    key = {"problem": name, "method": method, "points": points, "allowed": race.seconds}
    return [cell for cell in race.cells if key.items() <= cell.items()]


def entry(cells: list[dict], error: float, ours: float, allowed: float, method: str) -> str:
    if not cells or any("failed" in cell for cell in cells):
        return "failed" if cells else "–"
    seconds = reached(cells, error)
    smallest = median(min(e for _, e in cell["trail"]) for cell in cells)
    if np.isinf(seconds):
        return f"never ({smallest:.0e})" if method in OURS else f"> {allowed:.0f} s ({smallest:.0e})"
    times = "" if method == "dkl" or np.isinf(ours) else f", {seconds / ours:.2g} x"
    tuning = median(cell.get("tuning_seconds", 0.0) for cell in cells)
    return f"{seconds:.1f}{f' + {tuning:.0f}' if tuning else ''} s{times}"


def picture(race: Race, names: list[str], errors: dict[str, float], path: Path) -> None:
    """Error against seconds; dashed with as many points as it likes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(4, len(names))
    height = -(-len(names) // columns)
    size = (4 * columns, 3.2 * height + 0.5)
    figure, axes = plt.subplots(height, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    for axis, name in zip(axes.flat, names):
        for number, (method, title) in enumerate(METHODS.items()):
            for points, style in zip(POINTS, ("-", "--")):
                if points == "pool" and method in OURS:
                    continue
                for cell in cells_of(race, name, method, points):
                    marker = "o" if len(cell.get("trail", ())) < 12 else None
                    label = title if style == "-" else None
                    seconds, error = zip(*cell["trail"]) if cell.get("trail") else ((), ())
                    axis.loglog(seconds, error, style, color=f"C{number}", marker=marker, label=label)
        axis.axhline(errors[name], color="gray", linewidth=0.8)
        axis.set(title=name, xlabel="seconds", ylabel="relative error of u")
    shown = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels())}
    wide = min(len(METHODS), 2 * columns)
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=wide, frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(NAMES), choices=NAMES, help="problems, by name")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=tuple(METHODS))
    parser.add_argument("--points", nargs="*", default=list(POINTS), choices=tuple(POINTS))
    parser.add_argument("--seconds", type=float, default=300.0, help="for each peer on each problem")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--peers", default=".venv-peers/bin/python", help="the interpreter that has DeepXDE")
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    parser.add_argument("--page", type=Path, help="write the page of the documentation")
    options = parser.parse_args()
    from problems import CASES

    race = Race(options.out, options.peers, options.seconds)
    for name in options.only:
        for method in options.methods:
            for points in ("given",) if method in OURS else options.points:
                for seed in range(options.seeds):
                    race.run(name, method, points, seed)
    limits = {name: CASES[name]().limits for name in options.only}
    paper = {name: limit.paper[0] for name, limit in limits.items()}
    goals = {"the paper's error": paper, "the error we ask of ours": {name: limit.u for name, limit in limits.items()}}
    text = table(race, options.only, goals) + "\n" + summary(race, options.only, paper)
    print(text)
    (options.out / "race.txt").write_text(text + "\n")
    picture(race, options.only, paper, options.out / "race.png")
    if options.page is not None:
        page(race, options.only, text, options.page)
        results = HERE.parent / "results" / "race.json"
        cells = [{k: v for k, v in cell.items() if k not in ("tried", "versions")} for cell in race.cells]
        lines = ",\n".join(map(json.dumps, cells))
        results.write_text(f'{{"about": {json.dumps(race.machine)},\n"cells": [\n{lines}\n]}}\n')
        picture(race, options.only, paper, options.page.with_suffix(".png"))
    return int(any("failed" in cell for cell in race.cells))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    sys.exit(main())
