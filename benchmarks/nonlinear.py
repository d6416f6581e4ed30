"""Nonlinear equations and systems, with default settings; `make nonlinear`.

Each cell is one `fit` in a process of its own, with the numbers of points that the problem has. Called again, it goes
on.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cells import answer, arguments, chosen, finished, measured

KEPT = Path(__file__).parent / "results" / "nonlinear.json"
GOOD = (0.88, 0.99)
PLACES = 1000


@dataclass(frozen=True)
class Case:
    """A problem with a known solution, and the relative error that is wanted for each field that has one.

    **Arguments:**

    - `title`: the equations in one line.
    - `problem`: the problem, with its numbers of points.
    - `truth`: for each field, the solution as a function from an array of shape `(n, d)` to `n` values.
    - `wanted`: the errors to reach, by field.
    - `source`: a published error.
    """

    title: str
    problem: Any
    truth: dict[str, Callable[[Any], Any]]
    wanted: dict[str, float]
    source: str = ""


def cubic() -> Case:
    """The example of Chen, Hosseini, Owhadi and Stuart."""
    import jax.numpy as jnp

    import pdedkl as pk

    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x, u = domain.coordinates("x"), pk.fields("u")
    pi = jnp.pi
    wave = lambda q, k: jnp.sin(k * pi * q[0]) * jnp.sin(k * pi * q[1])
    exact = lambda q: wave(q, 1) + 2 * wave(q, 4)
    source = lambda q: 2 * pi**2 * wave(q, 1) + 64 * pi**2 * wave(q, 4) + exact(q) ** 3
    problem = pk.Problem(
        domain,
        equations=[-(pk.Laplacian(x) @ u) + u**3 == source],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=0.0)],
        exact={u: exact},
        points=pk.Points(boundary=124, source=900),
    )
    truth = {"u": lambda q: problem.truth(q, u)}
    return Case("−Δu + u³ = f in the unit square, two frequencies", problem, truth, {"u": 1e-6}, "1.7e-4")


def burgers() -> Case:
    """From `−sin πx`, by the transform of Cole and Hopf and Gauss–Hermite quadrature."""
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    nu = 0.02
    domain = pk.Domain(x=(-1.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    u = pk.fields("u")
    problem = pk.Problem(
        domain,
        equations=[pk.D(t) @ u + u * (pk.D(x) @ u) - nu * (pk.D(x, x) @ u) == 0],
        conditions=[
            pk.Dirichlet(u, on=domain.boundary(x), value=0.0),
            pk.Initial(u, t, value=lambda q: -jnp.sin(jnp.pi * q[0])),
        ],
        points=pk.Points(boundary=100, initial=100, source=1000),
    )
    nodes, weights = np.polynomial.hermite.hermgauss(120)

    def exact(q: Any) -> Any:
        away = q[:, :1] - np.sqrt(4 * nu * q[:, 1:]) * nodes
        density = weights * np.exp(-np.cos(np.pi * away) / (2 * np.pi * nu))
        return -np.sum(density * np.sin(np.pi * away), axis=1) / np.sum(density, axis=1)

    return Case("Burgers, ν = 0.02", problem, {"u": exact}, {"u": 1e-3}, "4.0e-3")


def kovasznay() -> Case:
    """Flow behind a grid at a Reynolds number of 20."""
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    nu = 1 / 20
    rate = 0.5 / nu - np.sqrt(0.25 / nu**2 + 4 * np.pi**2)
    domain = pk.Domain(x=[(-0.5, 1.0), (-0.5, 1.5)])
    x = domain.coordinates("x")
    u, v, p = pk.fields("u", "v", "p")
    D, laplacian = pk.D, pk.Laplacian(x)
    exact = {
        u: lambda q: 1 - jnp.exp(rate * q[0]) * jnp.cos(2 * jnp.pi * q[1]),
        v: lambda q: rate / (2 * jnp.pi) * jnp.exp(rate * q[0]) * jnp.sin(2 * jnp.pi * q[1]),
        p: lambda q: 0.5 * (1 - jnp.exp(2 * rate * q[0])),
    }
    corner = domain.lower[None]
    problem = pk.Problem(
        domain,
        equations=[
            u * (D(x[0]) @ u) + v * (D(x[1]) @ u) + D(x[0]) @ p - nu * (laplacian @ u) == 0,
            u * (D(x[0]) @ v) + v * (D(x[1]) @ v) + D(x[1]) @ p - nu * (laplacian @ v) == 0,
            D(x[0]) @ u + D(x[1]) @ v == 0,
        ],
        conditions=[
            *(pk.Dirichlet(field, on=domain.boundary(x), value=exact[field]) for field in (u, v)),
            pk.Dirichlet(p, on=corner, value=[float(exact[p](corner[0]))]),
        ],
        exact=exact,
        points=pk.Points(boundary=80, source=200),
    )
    truth = {name: (lambda q, f=f: problem.truth(q, f)) for name, f in (("u", u), ("v", v), ("p", p))}
    return Case("Kovasznay flow, Re = 20", problem, truth, {"u": 1e-5, "v": 1e-5}, "about 1e-3 (PINNs)")


def sine_gordon() -> Case:
    """A function of one direction in ten dimensions."""
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    d = 10
    row = np.random.default_rng(2041).normal(size=d)
    row *= 2 / np.linalg.norm(row)
    domain = pk.Domain(x=[(-1.0, 1.0)] * d)
    x, u = domain.coordinates("x"), pk.fields("u")
    exact = lambda q: jnp.sin(jnp.dot(row, q)) + 0.5 * jnp.cos(2 * jnp.dot(row, q))
    second = lambda q: -4 * jnp.sin(jnp.dot(row, q)) - 8 * jnp.cos(2 * jnp.dot(row, q))
    problem = pk.Problem(
        domain,
        equations=[pk.Laplacian(x) @ u + pk.sin(u) == (lambda q: second(q) + jnp.sin(exact(q)))],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=exact)],
        exact={u: exact},
        points=pk.Points(boundary=300, source=300),
    )
    return Case(
        "Δu + sin u = f, two frequencies of one direction, d = 10",
        problem,
        {"u": lambda q: problem.truth(q, u)},
        {"u": 1e-5},
    )


def predator_and_prey() -> Case:
    """Predator and prey over a short time: Lotka–Volterra, against a Runge–Kutta method of order eight."""
    import numpy as np
    from scipy.integrate import solve_ivp

    import pdedkl as pk

    domain = pk.Domain(t=(0.0, 3.0))
    (t,) = domain.coordinates()
    u, v = pk.fields("u", "v")
    problem = pk.Problem(
        domain,
        equations=[pk.D(t) @ u - u + u * v == 0, pk.D(t) @ v + v - u * v == 0],
        conditions=[pk.Initial(u, t, value=1.5), pk.Initial(v, t, value=0.8)],
        points=pk.Points(initial=1, source=60),
    )
    move = lambda _, y: [y[0] - y[0] * y[1], -y[1] + y[0] * y[1]]
    flow = solve_ivp(move, (0, 3), [1.5, 0.8], method="DOP853", rtol=1e-12, atol=1e-12, dense_output=True).sol
    truth = {"u": lambda q: np.asarray(flow(q[:, 0])[0]), "v": lambda q: np.asarray(flow(q[:, 0])[1])}
    return Case("predator and prey, t ≤ 3", problem, truth, {"u": 1e-5, "v": 1e-5})


CASES: dict[str, Callable[[], Case]] = {
    "cubic": cubic,
    "burgers": burgers,
    "kovasznay": kovasznay,
    "sine-gordon-10": sine_gordon,
    "predator-prey": predator_and_prey,
}


def one(name: str, seed: int) -> dict:
    """A single cell."""
    import numpy as np

    import pdedkl as pk
    from pdedkl import metrics

    case = CASES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pk.fit(case.problem, case.problem.sample(seed=seed), seed=seed, progress=False)
    places = case.problem.interior(PLACES, seed)
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
        "kernel": posterior.training.kernel,
        "seconds": posterior.training.seconds,
    }


def _as_tuple(found: Any) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def shown(row: dict) -> str:
    fields = ", ".join(f"{k} {v['error']:.1e} covers {v['coverage']:.3f}" for k, v in row["fields"].items())
    return f"{row['name']:16}{fields}; {row['verdict']}, {row['iterations']} iterations, {row['seconds']:.0f} s"


def page(rows: list[dict]) -> str:
    """The table of the documentation: medians over seeds, a line for each field."""
    seeds = len({row["seed"] for row in rows})
    lines = [
        "# Nonlinear equations and systems",
        "",
        f"Written by `make nonlinear`: `fit` with default settings, {seeds} seed{'s' if seeds > 1 else ''}, medians.",
        "",
        "| problem | values | field | error | wanted | published | covers | z | verdict | iterations | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in CASES:
        mine = [row for row in rows if row["name"] == name]
        for field in mine[0]["fields"] if mine else ():
            middle = {key: median(row["fields"][field][key] for row in mine) for key in ("error", "coverage", "z")}
            wanted = mine[0]["wanted"].get(field)
            text = "" if wanted is None else f"{wanted:.0e}" + ("" if middle["error"] <= wanted else ", **missed**")
            lines.append(
                f"| {name}: {mine[0]['title']} | {mine[0]['values']} | {field} | {middle['error']:.1e} | {text} "
                f"| {mine[0]['source']} | {middle['coverage']:.1%} | {middle['z']:.2g} | {mine[0]['verdict']} "
                f"| {median(row['iterations'] for row in mine):.0f} | {median(row['seconds'] for row in mine):.0f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = arguments(__doc__, KEPT)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    cells = [(name, seed) for seed in options.seeds for name in chosen(list(CASES), options.only)]
    rows = measured(__file__, ("name", "seed"), cells, options, shown, cold=False)
    good = [row for row in rows if "failed" not in row]
    text = page(good)
    return finished(text, len(good) < len(rows), options)


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
