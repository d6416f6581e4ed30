"""Unknown numbers and functions from measurements: errors, intervals, time; `make inverse`.

Three tables. In the first each cell is one `fit`, in a process of its own, beside the same fit with the numbers known.
In the second a cell is ten data sets of one small problem, with new sensors and new noise: do 95 % intervals hold the
truth 19 times of 20, by Laplace's approximation and by profiles? In the third each cell is one fit of a problem with an
unknown function. Called again, it goes on.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cells import answer, arguments, chosen, finished, measured

KEPT = Path(__file__).parent / "results" / "inverse.json"
# Data sets of one cell, and cells of one problem.
SETS, CELLS = 10, 5
PLACES = 500
# The coverage of 95 % intervals over 50 data sets that chance allows.
GOOD = (0.88, 1.0)
# The coverage of 95 % intervals of an unknown function over the domain that is wanted.
HELD = (0.85, 0.99)


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


def diffusion_reaction(seed: int) -> Case:
    """A nonlinear equation with an unknown rate, of which everything measured has noise."""
    import numpy as np

    import pdedkl as pk

    true, level, domain = 0.7, 0.01, pk.Domain(x=(-0.7, 0.7))
    x, u = domain.coordinates("x"), pk.fields("u")
    exact = lambda q: np.sin(6 * q[:, 0]) ** 3
    bend = lambda q: 108 * np.sin(6 * q[:, 0]) * (2 * np.cos(6 * q[:, 0]) ** 2 - np.sin(6 * q[:, 0]) ** 2)
    rng = np.random.default_rng(seed)
    inside, at = np.linspace(-0.7, 0.7, 32)[:, None], np.linspace(-0.7, 0.7, 8)[:, None]
    source = 0.01 * bend(inside) + true * np.tanh(exact(inside)) + level * rng.normal(size=32)
    values = exact(at) + level * rng.normal(size=8)

    def data(k: Any) -> list:
        return [
            pk.Observation(u, at, values, noise=level, name="u"),
            pk.Observation(0.01 * (pk.D(x, x) @ u) + k * pk.tanh(u), inside, source, noise=level, name="f"),
        ]

    unknown = pk.Parameter("k", 1.0, positive=True)
    return Case(
        "0.01 u″ + k tanh u = f, 32 values of f and 8 of u with noise 0.01",
        domain,
        domain,
        lambda which: data(unknown if which == "unknown" else true),
        {"k": true},
        0.05,
        exact,
    )


FITS: dict[str, Callable[[int], Case]] = {
    "heat-exact": heat_exact,
    "puff": puff,
    "reaction-10": reaction,
    "tanh": diffusion_reaction,
}
SMALL: dict[str, Callable[[int], Case]] = {"spring": spring, "transport": transport}


@dataclass(frozen=True)
class Unknown:
    """A problem with an unknown function.

    **Arguments:**

    - `title`: the equation and the data in one line.
    - `problem`: the problem, with its sensors.
    - `function`: the unknown function.
    - `truth`: its values, from an array of points.
    """

    title: str
    problem: Any
    function: Any
    truth: Callable[[Any], Any]


SENSORS, LEVEL = 60, 0.02
CONDUCTIVITIES: dict[str, Callable[[Any, Any], Any]] = {
    "wave": lambda x, y: 0.7 * _sin(2 * 3.141592653589793 * x) * _sin(3.141592653589793 * (y + 0.5)),
    "bump": lambda x, y: 1.2 * _exp(-((x - 0.35) ** 2 + (y - 0.6) ** 2) / 0.05) - 0.3,
    "front": lambda x, y: 0.8 - 1.6 / (1 + _exp((x + 0.5 * y - 0.75) / 0.1)),
}


def _sin(value: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sin(value)


def _exp(value: Any) -> Any:
    import jax.numpy as jnp

    return jnp.exp(value)


def darcy(which: str, seed: int) -> Unknown:
    """A conductivity in the plane from 60 values of the potential, with a source that is known."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x, u, a = domain.coordinates("x"), pk.fields("u"), pk.unknown("a", positive=True)
    potential = lambda q: jnp.sin(jnp.pi * q[0]) * jnp.sin(jnp.pi * q[1]) * (1 + 0.5 * q[0])
    log_a = lambda q: CONDUCTIVITIES[which](q[0], q[1])
    source = lambda q: jnp.trace(jax.jacfwd(lambda p: jnp.exp(log_a(p)) * jax.grad(potential)(p))(q))
    rng = np.random.default_rng(seed)
    at = rng.uniform(size=(SENSORS, 2))
    clean = np.asarray(jax.vmap(potential)(jnp.asarray(at)))
    values = clean + LEVEL * np.std(clean) * rng.normal(size=SENSORS)
    flux = [pk.D(x[i]) @ (a * (pk.D(x[i]) @ u)) for i in range(2)]
    problem = pk.Problem(
        domain,
        equations=[flux[0] + flux[1] == source],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=0.0), pk.Sensors(u, at, values)],
        points=pk.Points(source=150, boundary=60),
    )
    truth = lambda q: np.exp(np.asarray(jax.vmap(log_a)(jnp.asarray(q))))
    return Unknown(f"∇·(a ∇u) = f, {SENSORS} sensors with {LEVEL:.0%} noise, a = {which}", problem, a, truth)


def line(seed: int) -> Unknown:
    """A conductivity on a line, where the source is constant and `u` is what the conductivity makes of it."""
    import numpy as np

    import pdedkl as pk

    domain = pk.Domain(x=(0.0, 1.0))
    x, u, a = domain.coordinates("x"), pk.fields("u"), pk.unknown("a", positive=True)
    conductivity = lambda z: np.exp(0.7 * np.sin(2 * np.pi * z) + 0.3 * z)
    grid = np.linspace(0, 1, 20001)
    both = np.stack([1 / conductivity(grid), 4 * grid / conductivity(grid)])
    sums = np.concatenate([np.zeros((2, 1)), np.cumsum(0.5 * (both[:, 1:] + both[:, :-1]) / 20000, axis=1)], axis=1)
    clean = sums[1, -1] / sums[0, -1] * sums[0] - sums[1]
    rng = np.random.default_rng(seed)
    at = rng.uniform(size=(30, 1))
    values = np.interp(at[:, 0], grid, clean) + LEVEL * np.std(clean) * rng.normal(size=30)
    problem = pk.Problem(
        domain,
        equations=[pk.D(x) @ (a * (pk.D(x) @ u)) == -4.0],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=0.0), pk.Sensors(u, at, values)],
        points=pk.Points(source=60, boundary=2),
    )
    return Unknown(f"(a u′)′ = −4, 30 sensors with {LEVEL:.0%} noise", problem, a, lambda q: conductivity(q[:, 0]))


def hidden_source(seed: int) -> Unknown:
    """A source in the plane from 60 values of the potential, which is zero on the boundary."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x, u, s = domain.coordinates("x"), pk.fields("u"), pk.unknown("s")
    waves = lambda q: jnp.sin(jnp.pi * q[0]) * jnp.sin(jnp.pi * q[1])
    potential = lambda q: waves(q) * jnp.exp(-((q[0] - 0.6) ** 2 + (q[1] - 0.4) ** 2) / 0.2)
    rng = np.random.default_rng(seed)
    at = rng.uniform(size=(SENSORS, 2))
    clean = np.asarray(jax.vmap(potential)(jnp.asarray(at)))
    values = clean + LEVEL * np.std(clean) * rng.normal(size=SENSORS)
    problem = pk.Problem(
        domain,
        equations=[pk.Laplacian(x) @ u - s == 0.0],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=0.0), pk.Sensors(u, at, values)],
        points=pk.Points(source=150, boundary=60),
    )
    truth = lambda q: np.asarray(jax.vmap(pk.Laplacian(x)(potential))(jnp.asarray(q)))
    return Unknown(f"Δu = s, {SENSORS} sensors with {LEVEL:.0%} noise", problem, s, truth)


FUNCTIONS: dict[str, Callable[[int], Unknown]] = {
    **{f"darcy-{name}": partial(darcy, name) for name in CONDUCTIVITIES},
    "darcy-line": line,
    "source": hidden_source,
}


def one(kind: str, name: str, seed: int) -> dict:
    if kind == "function":
        return found_function(FUNCTIONS[name](seed), seed)
    return fitted(FITS[name](seed), seed) if kind == "fit" else many(name, seed)


def found_function(case: Unknown, seed: int) -> dict:
    """One fit of a problem with an unknown function, plain kernels: its error, and whether its intervals hold."""
    import numpy as np

    import pdedkl as pk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pk.fit(case.problem, case.problem.sample(seed=seed), model="gp", seed=seed, progress=False)
    domain = case.problem.domain
    places = np.random.default_rng([seed, 1]).uniform(domain.lower, domain.upper, (PLACES, domain.dim))
    found, truth = posterior.predict(places, case.function), case.truth(places)
    low, high = found.interval(0.95)
    return {
        "title": case.title,
        "error": float(np.linalg.norm(found.mean - truth) / np.linalg.norm(truth)),
        "claimed": float(np.sqrt(np.mean(found.variance)) / np.sqrt(np.mean(truth**2))),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "z": float(np.sqrt(np.mean((found.mean - truth) ** 2 / found.variance))),
        "seconds": posterior.training.seconds,
        "kernel": posterior.training.kernel,
        "verdict": posterior.verdict.status,
    }


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
    if row["kind"] == "function":
        return (
            f"{row['name']:16}error {row['error']:.1%}, claimed {row['claimed']:.1%}, covers {row['coverage']:.0%}, "
            f"{row['verdict']}; {row['seconds']:.0f} s"
        )
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
    lines += [
        "",
        "Unknown functions, plain kernels: the relative error of the function over the domain, the one that is",
        "claimed, and how much of it is in its 95 % intervals (85 to 99 % wanted). On the line `u` was computed from",
        "the conductivity; in the plane `u` was chosen, and the source made to fit.",
        "",
        "| problem | seed | error | claimed | covers | root mean square z | verdict | kernel | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted((row for row in rows if row["kind"] == "function"), key=lambda row: (row["name"], row["seed"])):
        missed = "" if HELD[0] <= row["coverage"] <= HELD[1] else ", **missed**"
        lines.append(
            f"| {row['name']}: {row['title']} | {row['seed']} | {row['error']:.1%} | {row['claimed']:.1%} "
            f"| {row['coverage']:.0%}{missed} | {row['z']:.2f} | {row['verdict']} | {row['kernel']} "
            f"| {row['seconds']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = arguments(__doc__, KEPT)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    options = parser.parse_args()
    cells = [("coverage", name, cell) for cell in range(CELLS) for name in chosen(list(SMALL), options.only)]
    cells += [("function", name, seed) for seed in options.seeds for name in chosen(list(FUNCTIONS), options.only)]
    cells += [("fit", name, seed) for seed in options.seeds for name in chosen(list(FITS), options.only)]
    rows = measured(__file__, ("kind", "name", "seed"), cells, options, shown, cold=False)
    good = [row for row in rows if "failed" not in row]
    return finished(page(good), len(good) < len(rows), options)


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
