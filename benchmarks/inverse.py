"""Unknown numbers from measurements, with default settings: errors, intervals, time; `make inverse`.

Two tables. In the first each cell is one `fit`, in a process of its own, beside the same fit with the numbers known.
In the second a cell is ten data sets of one small problem, with new sensors and new noise: do 95 % intervals hold the
truth 19 times of 20, by Laplace's approximation and by profiles? Called again, it goes on.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cells import answer, arguments, chosen, finished, measured

KEPT = Path(__file__).parent / "results" / "inverse.json"
# Data sets of one cell, and cells of one problem.
SETS, CELLS = 10, 5
PLACES = 500
# The coverage of 95 % intervals over 50 data sets that chance allows.
GOOD = (0.88, 1.0)


@dataclass(frozen=True)
class Case:
    """A problem with unknown numbers.

    **Arguments:**

    - `title`: the equation and the data in one line.
    - `problem`: the problem with unknown numbers and, as `known`, the same with their true values.
    - `data`: what `fit` gets.
    - `truth`: the true values by name.
    - `wanted`: the relative error of each number to reach.
    - `exact`: the solution, from an array of points to values.
    """

    title: str
    problem: Any
    known: Any
    data: Callable[[Any], Any]
    truth: dict[str, float]
    wanted: float
    exact: Callable[[Any], Any]


def heat_exact(seed: int) -> Case:
    """20 values of `u` and 20 of the source, exact."""
    import numpy as np

    import pdedkl as pk

    true, domain = 0.1, pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    exact = lambda q: np.exp(-q[:, 1]) * np.sin(2 * np.pi * q[:, 0])
    source = lambda q: (4 * np.pi**2 * true - 1) * exact(q)
    rng = np.random.default_rng(seed)
    at, inside = rng.uniform(size=(20, 2)), rng.uniform(size=(20, 2))

    def data(alpha: Any) -> list:
        operator = pk.D(t) - alpha * pk.D(x, x)
        return [
            pk.Observation(pk.identity, at, exact(at), "exact", name="u"),
            pk.Observation(operator, inside, source(inside), "exact", name="f"),
        ]

    unknown = pk.Parameter("alpha", 1.0, positive=True)
    return Case(
        "u_t − α u_xx = f, 20 + 20 exact values",
        domain,
        domain,
        lambda which: data(unknown if which == "unknown" else true),
        {"alpha": true},
        1e-3,
        exact,
    )


def puff(seed: int) -> Case:
    """A cloud that moves and spreads in the plane, seen by 200 sensors."""
    import numpy as np

    import pdedkl as pk

    true = {"nu": 0.02, "vx": 0.4, "vy": 0.2}
    domain = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")

    def exact(q: Any) -> Any:
        width = 0.06 + 4 * true["nu"] * q[:, 2]
        away = (q[:, 0] - 0.3 - true["vx"] * q[:, 2]) ** 2 + (q[:, 1] - 0.4 - true["vy"] * q[:, 2]) ** 2
        return 0.06 / width * np.exp(-away / width)

    rng = np.random.default_rng(seed)
    at = rng.uniform(size=(200, 3))
    values = exact(at) + 0.05 * np.std(exact(at)) * rng.normal(size=200)

    def problem(nu: Any, vx: Any, vy: Any) -> Any:
        operator = pk.D(t) + pk.Directional(x, [vx, vy]) - nu * pk.Laplacian(x)
        return pk.Problem(domain, operator, 0.0, [pk.Sensors(at, values)], points=pk.Points(source=200))

    unknown = problem(pk.Parameter("nu", 0.1, positive=True), pk.Parameter("vx", 0.0), pk.Parameter("vy", 0.0))
    return Case(
        "u_t + v·∇u = ν Δu in the plane, 200 sensors with 5 % noise",
        unknown,
        problem(*true.values()),
        lambda which: (unknown if which == "unknown" else problem(*true.values())).sample(seed=seed),
        true,
        0.05,
        exact,
    )


def reaction(seed: int) -> Case:
    """Diffusivity and reaction rate of a steady state in ten dimensions."""
    import numpy as np

    import pdedkl as pk

    true, d = {"diffusivity": 0.5, "rate": 2.0}, 10
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    x = domain.coordinates("x")
    wave = np.linspace(0.5, 1.5, d)
    exact = lambda q: np.sin(q @ wave) + 0.5 * np.sum(q**2, axis=1) / d
    rng = np.random.default_rng(seed)
    at, inside = rng.uniform(size=(200, d)), rng.uniform(size=(200, d))
    laplacian = -np.sum(wave**2) * np.sin(inside @ wave) + 1.0
    source = -true["diffusivity"] * laplacian + true["rate"] * exact(inside)
    values = exact(at) + 0.02 * np.std(exact(at)) * rng.normal(size=200)

    def data(diffusivity: Any, rate: Any) -> list:
        operator = rate * pk.identity - diffusivity * pk.Laplacian(x)
        return [
            pk.Observation(pk.identity, at, values, name="sensors"),
            pk.Observation(operator, inside, source, "exact", name="f"),
        ]

    unknown = [pk.Parameter(name, 1.0, positive=True) for name in true]
    return Case(
        "k u − a Δu = f, d = 10, 200 sensors with 2 % noise",
        domain,
        domain,
        lambda which: data(*(unknown if which == "unknown" else true.values())),
        true,
        0.05,
        exact,
    )


def transport(seed: int) -> Case:
    """A pulse on a line, seen by 60 sensors."""
    import numpy as np

    import pdedkl as pk

    true = {"nu": 0.02, "v": 0.5}
    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")

    def exact(q: Any) -> Any:
        width = 0.06 + 4 * true["nu"] * q[:, 1]
        return np.sqrt(0.06 / width) * np.exp(-((q[:, 0] - 0.25 - true["v"] * q[:, 1]) ** 2) / width)

    rng = np.random.default_rng(seed)
    at = rng.uniform(size=(60, 2))
    values = exact(at) + 0.05 * np.std(exact(at)) * rng.normal(size=60)

    def problem(nu: Any, v: Any) -> Any:
        operator = pk.D(t) + v * pk.D(x) - nu * pk.D(x, x)
        return pk.Problem(domain, operator, 0.0, [pk.Sensors(at, values)], points=pk.Points(source=80))

    unknown = problem(pk.Parameter("nu", 0.1, positive=True), pk.Parameter("v", 1.0))
    return Case(
        "u_t + v u_x = ν u_xx, 60 sensors with 5 % noise",
        unknown,
        problem(*true.values()),
        lambda which: (unknown if which == "unknown" else problem(*true.values())).sample(seed=seed),
        true,
        0.05,
        exact,
    )


def spring(seed: int) -> Case:
    """An oscillator with friction: stiffness and friction from 25 noisy positions."""
    import numpy as np

    import pdedkl as pk

    true = {"friction": 0.4, "stiffness": 4.0}
    domain = pk.Domain(t=(0.0, 4.0))
    t = domain.coordinates("t")
    rate, turn = 0.5 * true["friction"], np.sqrt(true["stiffness"] - 0.25 * true["friction"] ** 2)
    exact = lambda q: np.exp(-rate * q[:, 0]) * np.cos(turn * q[:, 0])
    rng = np.random.default_rng(seed)
    at = rng.uniform(0.0, 4.0, size=(25, 1))
    values = exact(at) + 0.05 * rng.normal(size=25)
    inside = np.linspace(0.0, 4.0, 40)[:, None]

    def data(friction: Any, stiffness: Any) -> list:
        operator = pk.D(t, t) + friction * pk.D(t) + stiffness * pk.identity
        return [
            pk.Observation(pk.identity, at, values, name="positions"),
            pk.Observation(operator, inside, np.zeros(40), "exact", name="equation"),
        ]

    unknown = [pk.Parameter(name, 1.0, positive=True) for name in true]
    return Case(
        "u″ + c u′ + k u = 0, 25 positions with noise 0.05",
        domain,
        domain,
        lambda which: data(*(unknown if which == "unknown" else true.values())),
        true,
        0.05,
        exact,
    )


FITS: dict[str, Callable[[int], Case]] = {"heat-exact": heat_exact, "puff": puff, "reaction-10": reaction}
SMALL: dict[str, Callable[[int], Case]] = {"spring": spring, "transport": transport}


def one(kind: str, name: str, seed: int) -> dict:
    return fitted(FITS[name](seed), seed) if kind == "fit" else many(name, seed)


def fitted(case: Case, seed: int) -> dict:
    """One fit with default settings, and the same with the numbers known."""
    import numpy as np

    import pdedkl as pk

    found: dict[str, Any] = {"title": case.title, "wanted": case.wanted}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posteriors = {}
        for which, problem in (("known", case.known), ("unknown", case.problem)):
            posteriors[which] = pk.fit(problem, case.data(which), seed=seed, progress=False)
            training = posteriors[which].training
            # What was compiled for the first fit serves the second: only the rest of the time compares.
            found[f"seconds_{which}"] = training.seconds - training.compile_seconds - training.trace_seconds
    posterior = posteriors["unknown"]
    domain = getattr(case.problem, "domain", case.problem)
    places = np.random.default_rng([seed, 1]).uniform(domain.lower, domain.upper, (PLACES, domain.dim))
    u, truth = posterior.predict(places), case.exact(places)
    found |= {
        "numbers": {name: _of(one, case.truth[name]) for name, one in posterior.parameters.items()},
        "error_u": float(np.linalg.norm(u.mean - truth) / np.linalg.norm(truth)),
        "coverage_u": float(np.mean(np.abs(u.mean - truth) <= 1.96 * u.std)),
        "kernel": posterior.training.kernel,
        "verdict": posterior.verdict.status,
    }
    return found


def many(name: str, cell: int) -> dict:
    """Ten data sets of one problem."""
    import pdedkl as pk

    sets = []
    begin = time.monotonic()
    for seed in range(SETS * cell, SETS * (cell + 1)):
        case = SMALL[name](seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = pk.fit(case.problem, case.data("unknown"), model="gp", seed=seed, progress=False)
        ways = {"laplace": posterior.parameters, "profile": posterior.parameters.posterior("profile")}
        sets.append({way: {k: _of(v, case.truth[k]) for k, v in found.items()} for way, found in ways.items()})
    return {"title": case.title, "sets": sets, "seconds": time.monotonic() - begin}


def _of(estimate: Any, truth: float) -> dict:
    low, high = estimate.interval(0.95)
    return {"truth": truth, "estimate": estimate.estimate, "std": estimate.std, "lower": low, "upper": high}


def inside(number: dict) -> bool:
    return number["lower"] <= number["truth"] <= number["upper"]


def shown(row: dict) -> str:
    if row["kind"] == "fit":
        numbers = ", ".join(f"{k} {v['estimate']:.4g} ± {v['std']:.1g}" for k, v in row["numbers"].items())
        return f"{row['name']:16}{numbers}; {row['seconds_unknown']:.0f} s, known {row['seconds_known']:.0f} s"
    found = {way: [inside(n) for one in row["sets"] for n in one[way].values()] for way in ("laplace", "profile")}
    return f"{row['name']:16}{ {way: sum(hits) / len(hits) for way, hits in found.items()} }, {row['seconds']:.0f} s"


def page(rows: list[dict]) -> str:
    """The tables of the documentation."""
    lines = [
        "# Unknown numbers",
        "",
        "Written by `make inverse`. Each line of the first table is one `fit` with default settings. The last column",
        "is its time over that of the same fit with the numbers known, both without compiling.",
        "",
        "| problem | seed | number | truth | estimate | 95 % interval | error | wanted | error of u | covers | kernel "
        "| times |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in [row for row in rows if row["kind"] == "fit"]:
        for name, found in row["numbers"].items():
            error = abs(found["estimate"] / found["truth"] - 1)
            wanted = f"{row['wanted']:.1%}" + ("" if error <= row["wanted"] else ", **missed**")
            outside = "" if inside(found) else ", **outside**"
            times = row["seconds_unknown"] / row["seconds_known"]
            lines.append(
                f"| {row['name']}: {row['title']} | {row['seed']} | {name} | {found['truth']:g} "
                f"| {found['estimate']:.5g} | {found['lower']:.4g} to {found['upper']:.4g}{outside} | {error:.2%} "
                f"| {wanted} | {row['error_u']:.1e} | {row['coverage_u']:.1%} | {row['kernel']} | {times:.1f} |"
            )
    lines += [
        "",
        f"Coverage of 95 % intervals over data sets with new sensors and new noise, plain kernel; {GOOD[0]:.0%} to "
        f"{GOOD[1]:.0%} are what chance allows over 50. `z` is the error over the standard deviation.",
        "",
        "| problem | number | data sets | Laplace covers | profile covers | root mean square z | median error |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in SMALL:
        mine = [row for row in rows if row["kind"] == "coverage" and row["name"] == name]
        sets = [one for row in mine for one in row["sets"]]
        for number in sets[0]["laplace"] if sets else ():
            share = {way: sum(inside(one[way][number]) for one in sets) / len(sets) for way in ("laplace", "profile")}
            texts = [f"{s:.0%}" + ("" if GOOD[0] <= s <= GOOD[1] else ", **missed**") for s in share.values()]
            each = [one["laplace"][number] for one in sets]
            z = (sum(((n["estimate"] - n["truth"]) / n["std"]) ** 2 for n in each) / len(each)) ** 0.5
            errors = sorted(abs(n["estimate"] / n["truth"] - 1) for n in each)
            lines.append(
                f"| {name}: {mine[0]['title']} | {number} | {len(sets)} | {texts[0]} | {texts[1]} | {z:.2f} "
                f"| {errors[len(errors) // 2]:.1%} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = arguments(__doc__, KEPT)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    options = parser.parse_args()
    cells = [("coverage", name, cell) for cell in range(CELLS) for name in chosen(list(SMALL), options.only)]
    cells += [("fit", name, seed) for seed in options.seeds for name in chosen(list(FITS), options.only)]
    rows = measured(__file__, ("kind", "name", "seed"), cells, options, shown, cold=False)
    good = [row for row in rows if "failed" not in row]
    return finished(page(good), len(good) < len(rows), options)


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
