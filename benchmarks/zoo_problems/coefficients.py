"""Coefficients that vary from place to place, and diffusion that depends on the direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import Case, of_problem, on_rows
from .reference import inclusion, square_diffusion


def smooth(seed: int) -> Case:
    """The source is taken from the solution by automatic differentiation, as the tutorial does."""
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    u = lambda q: jnp.sin(2 * x(q)[0]) * jnp.exp(x(q)[1])
    operator = -pk.Divergence(x, lambda q: 1 + x(q)[0] ** 2 + x(q)[1])
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=u)]
    problem = pk.Problem(domain, operator, operator(u), conditions, points=pk.Points(boundary=60, source=100))
    title = "−∇·(a ∇u) = f in 2-D, a = 1 + x² + y"
    return of_problem(title, problem, on_rows(u), seed, wanted=1e-4)


def strong(seed: int) -> Case:
    """The coefficient varies by a factor of twenty. Truth by Chebyshev collocation."""
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    operator = -pk.Divergence(x, lambda q: jnp.exp(1.5 * jnp.sin(5 * x(q)[0]) * jnp.cos(4 * x(q)[1])))
    source = lambda q: 10 * jnp.sin(jnp.pi * x(q)[0]) * jnp.sin(jnp.pi * x(q)[1])
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    problem = pk.Problem(domain, operator, source, conditions, points=pk.Points(boundary=60, source=200))
    exact = square_diffusion(
        lambda p: np.exp(1.5 * np.sin(5 * p[:, 0]) * np.cos(4 * p[:, 1])),
        lambda p: 10 * np.sin(np.pi * p[:, 0]) * np.sin(np.pi * p[:, 1]),
    )
    title = "−∇·(a ∇u) = f in 2-D, a = exp(1.5 sin 5x cos 4y), zero walls"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-9)


def high_contrast(seed: int) -> Case:
    """A conductor a hundred times better than what surrounds it. Truth by Chebyshev collocation in the radius."""
    domain = pk.Domain(x=pk.Ball([0.0, 0.0], 1.0))
    x = domain.coordinates("x")
    operator = pk.Divergence(x, lambda q: 1 + 99 / (1 + jnp.exp((jnp.sum(x(q) ** 2) - 0.25) / 0.05)))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=lambda q: x(q)[0])]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=60, source=240))
    rise = lambda r: np.exp((r**2 - 0.25) / 0.05)
    bent = inclusion(lambda r: 1 + 99 / (1 + rise(r)), lambda r: -99 * rise(r) / (1 + rise(r)) ** 2 * 2 * r / 0.05)
    exact = lambda q: q[:, 0] * bent(np.hypot(*q.T))
    title = "∇·(a ∇u) = 0 in a disc, a from 100 inside to 1 outside, u = x on the circle"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-11)


def layered_rod(seed: int) -> Case:
    """`a u' = ½ − x`, integrated by hand for `1/a = 1.01 + sin 8πx`: the coefficient varies by a factor of 200."""
    domain = pk.Domain(x=(0.0, 1.0))
    x = domain.coordinates("x")
    k = 8 * np.pi
    operator = -pk.Divergence(x, lambda q: 1 / (1.01 + jnp.sin(k * x(q))))
    flux = 0.5 - 1 / (1.01 * k)
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    problem = pk.Problem(domain, operator, 1.0, conditions, points=pk.Points(boundary=2, source=120))

    def exact(q: np.ndarray) -> np.ndarray:
        y = q[:, 0]
        whole = 1.01 * (flux * y - y**2 / 2)
        waves = flux * (1 - np.cos(k * y)) / k - (np.sin(k * y) / k**2 - y * np.cos(k * y) / k)
        return whole + waves

    title = "−(a u')' = 1, 1/a = 1.01 + sin 8πx, u(0) = u(1) = 0"
    return of_problem(title, problem, exact, seed, wanted=1e-2)


def whirl(seed: int) -> Case:
    """Heat carried round by a rotating fluid: a Gaussian pulse in a frame that turns."""
    turn, spread, width = 2.0, 0.02, 0.1
    domain = pk.Domain(x=[(-1.0, 1.0)] * 2, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    velocity = lambda q: turn * jnp.array([-x(q)[1], x(q)[0]])
    operator = pk.D(t) + pk.Directional(x, velocity) - spread * pk.Laplacian(x)

    def u(q: Any) -> Any:
        angle, size = turn * t(q), width + 4 * spread * t(q)
        centre = 0.4 * jnp.array([jnp.cos(angle), jnp.sin(angle)])
        return width / size * jnp.exp(-jnp.sum((x(q) - centre) ** 2) / size)

    conditions = [pk.Dirichlet(on=domain.boundary(x), value=u), pk.Initial(t, value=u)]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=100, initial=120, source=300))
    title = "u_t + v(x)·∇u = 0.02 Δu in 2-D, a pulse in a rotating flow"
    return of_problem(title, problem, on_rows(u), seed, wanted=1e-2)


def anisotropic(d: int, seed: int) -> Case:
    """Directions that conduct up to a thousand times better than others, turned against the axes."""
    rng = np.random.default_rng(2027)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    matrix = (rotation * np.logspace(-3, 0, d)) @ rotation.T
    way = rng.normal(size=d)
    way *= 3 / np.linalg.norm(way)
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    x = domain.coordinates("x")
    u = lambda q: jnp.sin(jnp.dot(way, x(q))) + x(q)[0] * x(q)[1]
    pull, mixed = float(way @ matrix @ way), 2 * float(matrix[0, 1])
    source = lambda q: pull * jnp.sin(jnp.dot(way, x(q))) - mixed
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=u)]
    operator = -pk.Diffusion(x, 0.5 * (matrix + matrix.T))
    points = pk.Points(boundary=60, source=100) if d == 2 else pk.Points(boundary=200, source=200)
    problem = pk.Problem(domain, operator, source, conditions, points=points)
    title = f"−a:∇∇u = f in {d}-D with a turned matrix, eigenvalues 0.001 to 1"
    return of_problem(title, problem, on_rows(u), seed, wanted=1e-3)


CASES: dict[str, Callable[[int], Case]] = {
    "divergence-smooth": smooth,
    "divergence-strong": strong,
    "high-contrast": high_contrast,
    "layered-rod": layered_rod,
    "rotating-flow": whirl,
    "anisotropic-2": lambda seed: anisotropic(2, seed),
    "anisotropic-5": lambda seed: anisotropic(5, seed),
}
