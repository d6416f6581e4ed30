"""Equations with parameters among the coordinates: one solve for all of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import Case, of_problem, on_rows
from .reference import square_poisson


def pulse(seed: int) -> Case:
    """`u_t + v·∇u = D Δu` from a Gaussian pulse, for a range of velocities `v` and diffusivities `D`."""
    domain = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 0.5), v=[(0.2, 0.8)] * 2, D=(0.01, 0.05))
    x, t, v, D = domain.coordinates("x", "t", "v", "D")
    diffusivity = pk.Coefficient(lambda q: D(q), name="D")
    operator = pk.D(t) + pk.Directional(x, lambda q: v(q)) - diffusivity * pk.Laplacian(x)
    width = 0.08

    def formula(q: Any) -> Any:
        spread = width + 4 * D(q) * t(q)
        return width / spread * jnp.exp(-jnp.sum((x(q) - 0.35 - v(q) * t(q)) ** 2) / spread)

    conditions = [pk.Dirichlet(on=domain.boundary(x), value=formula), pk.Initial(t, value=formula)]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=150, initial=150, source=300))
    title = "u_t + v·∇u = D Δu, a pulse in 2-D for all v and D, six coordinates"
    return of_problem(title, problem, on_rows(formula), seed, wanted=5e-3)


def moving_source(seed: int) -> Case:
    """The place of the source is the parameter. Truth by Chebyshev collocation."""
    width = 0.12
    domain = pk.Domain(x=[(0.0, 1.0)] * 2, mu=(0.3, 0.7))
    x, mu = domain.coordinates("x", "mu")
    source = lambda q: 50 * jnp.exp(-((x(q)[0] - mu(q)) ** 2 + (x(q)[1] - 0.5) ** 2) / (2 * width**2))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=120, source=280))
    bump = lambda y: np.exp(-(y**2) / (2 * width**2))
    spot = square_poisson(bump, lambda y: bump(y - 0.5))
    exact = lambda q: 50 * spot(q[:, :2], q[:, 2])
    title = "−Δu = f(x − μ), a Gaussian source in 2-D at any place μ"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-9)


def wavy_source(seed: int) -> Case:
    domain = pk.Domain(x=(0.0, 1.0), mu=(1.0, 6.0))
    x, mu = domain.coordinates("x", "mu")
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    source = lambda q: jnp.cos(mu(q) * x(q))
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=30, source=60))

    def exact(q: np.ndarray) -> np.ndarray:
        y, m = q.T
        return (np.cos(m * y) - 1 - y * (np.cos(m) - 1)) / m**2

    return of_problem("−u'' = cos μx, u(0) = u(1) = 0, for 1 < μ < 6", problem, exact, seed, wanted=1e-3)


def heat(seed: int) -> Case:
    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0), kappa=(0.05, 0.5))
    x, t, kappa = domain.coordinates("x", "t", "kappa")
    operator = pk.D(t) - pk.Coefficient(lambda q: kappa(q), name="κ") * pk.Laplacian(x)
    start = lambda q: jnp.sin(jnp.pi * x(q)) + 0.5 * jnp.sin(2 * jnp.pi * x(q))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0), pk.Initial(t, value=start)]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=60, initial=60, source=180))

    def exact(q: np.ndarray) -> np.ndarray:
        y, time, k = q.T
        modes = [a * np.sin(n * np.pi * y) * np.exp(-k * (n * np.pi) ** 2 * time) for n, a in ((1, 1.0), (2, 0.5))]
        return modes[0] + modes[1]

    return of_problem("u_t = κ u_xx with zero walls, for 0.05 < κ < 0.5", problem, exact, seed, wanted=1e-3)


def wave_number(seed: int) -> Case:
    """The lowest resonance of the square, `k = π √2`, is above the range."""
    domain = pk.Domain(x=[(0.0, 1.0)] * 2, k=(1.0, 4.0))
    x, k = domain.coordinates("x", "k")
    operator = pk.Laplacian(x) + pk.Coefficient(lambda q: k(q) ** 2, name="k²") * pk.identity
    way = np.array([0.8, 0.6])
    wave = lambda q: jnp.cos(k(q) * jnp.dot(way, x(q)))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=wave)]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=120, source=180))
    return of_problem("Δu + k² u = 0, a plane wave in 2-D for 1 < k < 4", problem, on_rows(wave), seed, wanted=1e-3)


CASES: dict[str, Callable[[int], Case]] = {
    "parametric-pulse": pulse,
    "parametric-source-1": wavy_source,
    "parametric-source-2": moving_source,
    "parametric-heat": heat,
    "parametric-helmholtz": wave_number,
}
