"""Equations with unknown coefficients, learned together with `u` from noisy sensors."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import Case, measured, of_problem, on_rows, uniform

MODES = ((1, 1.0), (3, 0.5))


def transport(noise: float, seed: int) -> Case:
    """A Gaussian pulse that moves and spreads, seen by 200 sensors."""
    speed, spread, width = 0.5, 0.02, 0.04
    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")

    def exact(q: np.ndarray) -> np.ndarray:
        size = width + 4 * spread * q[:, 1]
        return np.sqrt(width / size) * np.exp(-((q[:, 0] - 0.25 - speed * q[:, 1]) ** 2) / size)

    rng = np.random.default_rng(seed)
    at = uniform(domain, 200, rng)
    nu, v = pk.Parameter("nu", 0.1, positive=True), pk.Parameter("v", 1.0)
    operator = pk.D(t) + v * pk.D(x) - nu * pk.D(x, x)
    sensors = pk.Sensors(at, measured(exact(at), noise, rng))
    problem = pk.Problem(domain, operator, 0.0, [sensors], points=pk.Points(source=150))
    title = f"u_t + v u_x = ν u_xx, v and ν unknown, 200 sensors with {noise:.0%} noise"
    known = pk.D(t) + speed * pk.D(x) - spread * pk.D(x, x)
    coefficients = {"nu": spread, "v": speed}
    return of_problem(title, problem, exact, seed, operator=known, coefficients=coefficients, wanted=0.05)


def diffusivity(seed: int) -> Case:
    true = 0.15
    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")

    def exact(q: np.ndarray) -> np.ndarray:
        modes = [a * np.sin(n * np.pi * q[:, 0]) * np.exp(-true * (n * np.pi) ** 2 * q[:, 1]) for n, a in MODES]
        return modes[0] + modes[1]

    rng = np.random.default_rng(seed)
    at = uniform(domain, 100, rng)
    operator = pk.D(t) - pk.Parameter("kappa", 1.0, positive=True) * pk.Laplacian(x)
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0), pk.Sensors(at, measured(exact(at), 0.02, rng))]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=30, source=100))
    title = "u_t = κ u_xx with zero walls, κ unknown, 100 sensors with 2 % noise"
    known = pk.D(t) - true * pk.Laplacian(x)
    return of_problem(title, problem, exact, seed, operator=known, coefficients={"kappa": true}, wanted=0.05)


def reaction(seed: int) -> Case:
    """The source is known, and so are the walls."""
    true = 15.0
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    field = lambda q: jnp.sin(jnp.pi * x(q)[0]) * jnp.sin(2 * jnp.pi * x(q)[1])
    exact = on_rows(field)
    rng = np.random.default_rng(seed)
    at = uniform(domain, 100, rng)
    operator = pk.Parameter("k", 1.0, positive=True) * pk.identity - pk.Laplacian(x)
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0), pk.Sensors(at, measured(exact(at), 0.01, rng))]
    source = lambda q: (5 * jnp.pi**2 + true) * field(q)
    problem = pk.Problem(domain, operator, source, conditions, points=pk.Points(boundary=60, source=100))
    title = "−Δu + k u = f in 2-D, k unknown, 100 sensors with 1 % noise"
    known = true * pk.identity - pk.Laplacian(x)
    return of_problem(title, problem, exact, seed, operator=known, coefficients={"k": true}, wanted=0.05)


CASES: dict[str, Callable[[int], Case]] = {
    "unknown-transport": lambda seed: transport(0.02, seed),
    "unknown-transport-noisy": lambda seed: transport(0.05, seed),
    "unknown-diffusivity": diffusivity,
    "unknown-reaction": reaction,
}
