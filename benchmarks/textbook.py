"""Equations as they stand in textbooks, fitted with default settings: zero boundaries, waves, layers, physical units.

Each is solved from a few dozen to a few hundred points, one after the other in this process. Truth is known at 1,000
new points inside. Run by `make textbook`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from timing import Measurements

import pdedkl as pk
from pdedkl import metrics

Made = tuple[pk.Problem, str]


def disc() -> Made:
    domain = pk.Domain(x=pk.Ball([0.0, 0.0], 1.0))
    x = domain.coordinates("x")
    wall = pk.Dirichlet(on=domain.boundary(x), value=0.0)
    exact = lambda q: (1 - jnp.sum(q**2)) / 4
    points = pk.Points(boundary=40, source=60)
    return pk.Problem(domain, -pk.Laplacian(x), 1.0, [wall], exact, points=points), "−Δu = 1 in a disc, u = 0"


def sines(d: int, boundary: int, source: int) -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    x = domain.coordinates("x")
    exact = lambda q: jnp.prod(jnp.sin(jnp.pi * q))
    wall = pk.Dirichlet(on=domain.boundary(x), value=exact)
    points = pk.Points(boundary=boundary, source=source)
    problem = pk.Problem(domain, -pk.Laplacian(x), lambda q: d * jnp.pi**2 * exact(q), [wall], exact, points=points)
    return problem, f"−Δu = f, u = Π sin πx_i, d = {d}, boundary values are rounding"


def bubble() -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    exact = lambda q: 16 * jnp.prod(q * (1 - q))
    wall = pk.Dirichlet(on=domain.boundary(x), value=0.0)
    points = pk.Points(boundary=60, source=80)
    problem = pk.Problem(domain, -pk.Laplacian(x), lambda q: 32 * jnp.sum(q * (1 - q)), [wall], exact, points=points)
    return problem, "−Δu = f, u = 16 x(1−x) y(1−y), u = 0 on the boundary"


def wave() -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)], t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    exact = lambda q: jnp.sin(jnp.pi * q[0]) * jnp.cos(jnp.pi * q[1])
    conditions = [
        pk.Dirichlet(on=domain.boundary(x), value=0.0),
        pk.Initial(t, value=exact),
        pk.Initial(t, value=0.0, operator=pk.D(t)),
    ]
    points = pk.Points(boundary=40, initial=40, source=100)
    return pk.Problem(domain, pk.D(t, t) - pk.Laplacian(x), 0.0, conditions, exact, points=points), "u_tt = u_xx"


def heat(d: int, diffusivity: float, boundary: int, initial: int, source: int) -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    exact = lambda q: jnp.prod(jnp.sin(jnp.pi * q[:d])) * jnp.exp(-d * diffusivity * jnp.pi**2 * q[d])
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=exact), pk.Initial(t, value=exact)]
    points = pk.Points(boundary=boundary, initial=initial, source=source)
    operator = pk.D(t) - diffusivity * pk.Laplacian(x)
    return pk.Problem(domain, operator, 0.0, conditions, exact, points=points), f"u_t = {diffusivity} Δu, d = {d}"


def kelvin() -> Made:
    width, diffusivity = 0.1, 1e-6
    domain = pk.Domain(x=[(0.0, width)], t=(0.0, 3600.0))
    x, t = domain.coordinates("x", "t")
    k = np.pi / width
    exact = lambda q: 300 + 50 * jnp.sin(k * q[0]) * jnp.exp(-diffusivity * k**2 * q[1])
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=300.0), pk.Initial(t, value=exact)]
    points = pk.Points(boundary=30, initial=30, source=100)
    operator = pk.D(t) - diffusivity * pk.Laplacian(x)
    return pk.Problem(domain, operator, 0.0, conditions, exact, points=points), "a rod of 10 cm for an hour, in kelvin"


def helmholtz() -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    exact = lambda q: jnp.sin(4 * q[0] + 1) * jnp.cos(3 * q[1])
    wall = pk.Dirichlet(on=domain.boundary(x), value=exact)
    points = pk.Points(boundary=60, source=80)
    operator = pk.Laplacian(x) + 9.0
    return pk.Problem(domain, operator, lambda q: -16 * exact(q), [wall], exact, points=points), "Δu + 9u = f"


def neumann() -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    exact = lambda q: jnp.cos(jnp.pi * q[0]) * jnp.cos(jnp.pi * q[1])
    wall = pk.Neumann(on=domain.boundary(x), value=0.0)
    points = pk.Points(boundary=60, source=80)
    source = lambda q: (2 * jnp.pi**2 + 1) * exact(q)
    return pk.Problem(domain, 1.0 - pk.Laplacian(x), source, [wall], exact, points=points), "u − Δu = f, ∂u/∂n = 0"


def black_scholes() -> Made:
    d, r, s = 5, 0.05, 0.2
    domain = pk.Domain(x=[(0.5, 1.5)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    operator = pk.D(t) - r
    for i in range(d):
        price = pk.Coefficient(lambda q, i=i: q[i])
        variance = pk.Coefficient(lambda q, i=i: 0.5 * s**2 * q[i] ** 2)
        operator = operator + r * (price * pk.D(x[i])) + variance * pk.D(x[i], x[i])
    exact = lambda q: jnp.sum(q[:d] ** 2) * jnp.exp((r + s**2) * (1 - q[d]))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=exact), pk.Dirichlet(on=domain.final(t), value=exact)]
    points = pk.Points(boundary=120, initial=80, source=200)
    return pk.Problem(
        domain, operator, 0.0, conditions, exact, points=points
    ), "Black–Scholes, five assets, payoff Σ x_i²"


def fokker_planck() -> Made:
    domain = pk.Domain(x=[(-2.0, 2.0)] * 2, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    operator = pk.D(t) - pk.Laplacian(x) - 2.0
    for i in range(2):
        operator = operator - pk.Coefficient(lambda q, i=i: q[i]) * pk.D(x[i])

    def exact(q):
        variance = 1 - 0.6 * jnp.exp(-2 * q[2])
        return jnp.exp(-jnp.sum(q[:2] ** 2) / (2 * variance)) / variance

    conditions = [pk.Dirichlet(on=domain.boundary(x), value=exact), pk.Initial(t, value=exact)]
    points = pk.Points(boundary=100, initial=80, source=200)
    return pk.Problem(
        domain, operator, 0.0, conditions, exact, points=points
    ), "Fokker–Planck of an Ornstein–Uhlenbeck process"


def layer() -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)])
    x = domain.coordinates("x")
    thin = 0.05
    exact = lambda q: q[0] - (jnp.exp((q[0] - 1) / thin) - jnp.exp(-1 / thin)) / (1 - jnp.exp(-1 / thin))
    wall = pk.Dirichlet(on=domain.boundary(x), value=0.0)
    points = pk.Points(boundary=2, source=60)
    operator = pk.D(x[0]) - thin * pk.Laplacian(x)
    return pk.Problem(domain, operator, 1.0, [wall], exact, points=points), "a boundary layer, u' − 0.05 u'' = 1"


def laplace() -> Made:
    domain = pk.Domain(x=[(0.0, 1.0)] * 3)
    x = domain.coordinates("x")
    exact = lambda q: jnp.exp(q[0]) * jnp.sin(q[1]) + q[2] * q[0]
    wall = pk.Dirichlet(on=domain.boundary(x), value=exact)
    points = pk.Points(boundary=100, source=100)
    return pk.Problem(domain, pk.Laplacian(x), 0.0, [wall], exact, points=points), "Δu = 0, d = 3"


def oscillator() -> Made:
    domain = pk.Domain(x=[(-1.0, 1.0)] * 5)
    x = domain.coordinates("x")
    exact = lambda q: jnp.exp(-jnp.sum(q**2) / 2)
    well = pk.Coefficient(lambda q: jnp.sum(q**2))
    wall = pk.Dirichlet(on=domain.boundary(x), value=exact)
    points = pk.Points(boundary=200, source=200)
    operator = well * pk.identity - pk.Laplacian(x)
    return pk.Problem(domain, operator, lambda q: 5 * exact(q), [wall], exact, points=points), "−Δu + |x|² u = f, d = 5"


PROBLEMS: dict[str, Callable[[], Made]] = {
    "disc": disc,
    "sines-2": lambda: sines(2, 60, 80),
    "sines-4": lambda: sines(4, 200, 400),
    "bubble": bubble,
    "wave": wave,
    "heat-1": lambda: heat(1, 0.1, 30, 30, 100),
    "heat-3": lambda: heat(3, 0.03, 100, 100, 200),
    "kelvin": kelvin,
    "helmholtz": helmholtz,
    "neumann": neumann,
    "black-scholes": black_scholes,
    "fokker-planck": fokker_planck,
    "layer": layer,
    "laplace": laplace,
    "oscillator": oscillator,
}


def measure(found: Measurements, name: str, seed: int) -> None:
    problem, title = PROBLEMS[name]()
    problem.verify().raise_if_wrong()
    posterior = pk.fit(problem, problem.sample(seed=seed), seed=seed, progress=False)
    places = problem.interior(1000, seed)
    truth, predicted = problem.truth(places), posterior.predict(places)
    # Temperatures in kelvin vary about a constant; digits of that are no achievement.
    size = np.sqrt(np.mean(truth**2)) if np.sqrt(np.mean(truth**2)) < 5 * np.std(truth) else np.std(truth)
    error = float(np.sqrt(np.mean((predicted.mean - truth) ** 2)) / size)
    arrays = predicted.mean, predicted.std, truth
    verdict = "calibrated" if posterior.check(problem, seed=seed).calibrated else "not calibrated"
    shown = (
        f"error {error:.1e}, 95 % interval covers {metrics.coverage(*arrays)['0.95']:.1%}, "
        f"z {metrics.z_rms(*arrays):.2g}, check says {verdict}; "
        f"{posterior.training.kernel}, {posterior.training.seconds:.0f} s"
    )
    found.add(f"{name}: {title}, seed {seed}", error, shown)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS), choices=PROBLEMS, help="problems, by name")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    # Compiling is counted, so nothing may be compiled before.
    os.environ["PDEDKL_CACHE"] = "off"
    found = Measurements("textbook")
    for name in options.only:
        for seed in range(options.seeds):
            measure(found, name, seed)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
