"""Layers, fronts, kinks, jumps and corners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import Case, constant, of_problem, on_rows
from .reference import harmonic, square_poisson
from .shapes import L_CORNERS, in_l_shape, polygon, shape


def rod() -> tuple[pk.Domain, Any]:
    domain = pk.Domain(x=(0.0, 1.0))
    return domain, domain.coordinates("x")


def layer(seed: int) -> Case:
    """Convection against a wall: a layer of width 0.01."""
    thin = 0.01
    domain, x = rod()
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    operator = pk.D(x) - thin * pk.D(x, x)
    problem = pk.Problem(domain, operator, 1.0, conditions, points=pk.Points(boundary=2, source=100))
    exact = lambda q: q[:, 0] - (np.exp((q[:, 0] - 1) / thin) - np.exp(-1 / thin)) / (1 - np.exp(-1 / thin))
    return of_problem("u' − 0.01 u'' = 1, u(0) = u(1) = 0", problem, exact, seed, wanted=1e-2)


def corner_layer(seed: int) -> Case:
    """Layers along two sides of a square: the product of two solutions in one dimension."""
    thin = 0.05
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    one = lambda y: y - (jnp.exp((y - 1) / thin) - jnp.exp(-1 / thin)) / (1 - jnp.exp(-1 / thin))
    u = lambda q: one(x(q)[0]) * one(x(q)[1])
    source = lambda q: one(x(q)[0]) + one(x(q)[1])
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    operator = pk.Directional(x, [1.0, 1.0]) - thin * pk.Laplacian(x)
    problem = pk.Problem(domain, operator, source, conditions, points=pk.Points(boundary=100, source=300))
    title = "u_x + u_y − 0.05 Δu = f in 2-D, layers along two sides"
    return of_problem(title, problem, on_rows(u), seed, wanted=1e-2)


def front(seed: int) -> Case:
    """A steep front that is carried along and spreads: the average of moved copies of it, by the trapezoidal rule."""
    steep, speed, spread = 0.03, 0.5, 0.005
    domain = pk.Domain(x=(-1.0, 2.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    conditions = [
        pk.Initial(t, value=lambda q: jnp.tanh(x(q) / steep)),
        pk.Dirichlet(on=domain.face(x, "lower"), value=-1.0),
        pk.Dirichlet(on=domain.face(x, "upper"), value=1.0),
    ]
    operator = pk.D(t) + speed * pk.D(x) - spread * pk.D(x, x)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=40, initial=80, source=200))
    z = np.linspace(-8.5, 8.5, 801)
    weights = np.exp(-(z**2) / 2) / np.sum(np.exp(-(z**2) / 2))

    def exact(q: np.ndarray) -> np.ndarray:
        at = q[:, 0] - speed * q[:, 1]
        return np.tanh((at[:, None] + np.sqrt(2 * spread * q[:, 1])[:, None] * z) / steep) @ weights

    title = "u_t + 0.5 u_x = 0.005 u_xx from tanh(x / 0.03)"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-10)


def kink_source(seed: int) -> Case:
    domain, x = rod()
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    source = lambda q: jnp.abs(x(q) - 0.5)
    problem = pk.Problem(domain, -pk.D(x, x), source, conditions, points=pk.Points(boundary=2, source=60))
    exact = lambda q: (1 / 8 - abs(q[:, 0] - 0.5) ** 3) / 6
    return of_problem("−u'' = |x − 0.5|, u(0) = u(1) = 0", problem, exact, seed, wanted=1e-3)


def step_source(seed: int) -> Case:
    """A load on the right part only."""
    edge = 0.6
    domain, x = rod()
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    source = lambda q: jnp.where(x(q) > edge, 1.0, 0.0)
    problem = pk.Problem(domain, -pk.D(x, x), source, conditions, points=pk.Points(boundary=2, source=60))
    exact = lambda q: (1 - edge) ** 2 / 2 * q[:, 0] - np.maximum(q[:, 0] - edge, 0) ** 2 / 2
    return of_problem("−u'' = 1 for x > 0.6 and 0 elsewhere, u(0) = u(1) = 0", problem, exact, seed, wanted=1e-2)


def interface(seed: int) -> Case:
    """Two materials. The equation beside the interface does not say that the flux is continuous across it."""
    left, right = 1.0, 10.0
    domain, x = rod()
    operator = -pk.Divergence(x, lambda q: jnp.where(x(q) < 0.5, left, right))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    problem = pk.Problem(domain, operator, 1.0, conditions, points=pk.Points(boundary=2, source=80))
    flux = (0.125 / left + 0.375 / right) / (0.5 / left + 0.5 / right)

    def exact(q: np.ndarray) -> np.ndarray:
        y, whole = q[:, 0], lambda s: flux * s - s**2 / 2
        return np.where(y < 0.5, whole(y) / left, whole(0.5) / left + (whole(y) - whole(0.5)) / right)

    title = "−(a u')' = 1, a jumps from 1 to 10 at 0.5"
    return of_problem(title, problem, exact, seed, posed=False)


def narrow_source(seed: int) -> Case:
    """A heated spot, with a width of a twentieth of the square. Truth by Chebyshev collocation."""
    wide = 0.05
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    source = lambda q: 100 * jnp.exp(-((x(q)[0] - 0.4) ** 2 + (x(q)[1] - 0.6) ** 2) / (2 * wide**2))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=80, source=300))
    bump = lambda y: np.exp(-(y**2) / (2 * wide**2))
    spot = square_poisson(lambda y: bump(y - 0.4), lambda y: bump(y - 0.6))
    exact = lambda q: 100 * spot(q)
    title = "−Δu = f in 2-D, f a narrow Gaussian of width 0.05, zero walls"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-10)


def loaded_l_shape(seed: int) -> Case:
    """A membrane with a re-entrant corner. Truth by rational functions with poles near the corners."""
    corners = L_CORNERS[:, 0] + 1j * L_CORNERS[:, 1]
    rest = harmonic(corners, lambda z: abs(z) ** 2 / 4, [50, 20, 20, 20, 20, 20])

    def exact(q: np.ndarray) -> np.ndarray:
        z = q[:, 0] + 1j * q[:, 1]
        return rest(z) - abs(z) ** 2 / 4

    title = "−Δu = 1 in an L, u = 0 on its boundary"
    wall = lambda rng: polygon(L_CORNERS, 120, rng)
    return shape(title, in_l_shape, wall, exact, constant(1.0), 200, seed, zero_walls=True, wanted=3e-2, accuracy=3e-7)


CASES: dict[str, Callable[[int], Case]] = {
    "layer-1": layer,
    "layer-2": corner_layer,
    "front": front,
    "kink-source": kink_source,
    "step-source": step_source,
    "interface": interface,
    "narrow-source": narrow_source,
    "loaded-l-shape": loaded_l_shape,
}
