"""Smooth solutions in four to ten dimensions, as a control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import Case, of_problem, on_rows


def poisson(title: str, d: int, u: Any, source: Any, points: pk.Points, seed: int, wanted: float) -> Case:
    """`−Δu = f` in the unit cube with values on its faces."""
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    x = domain.coordinates("x")
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=u)]
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=points)
    return of_problem(title, problem, on_rows(u), seed, wanted=wanted)


def ridge(seed: int) -> Case:
    d = 8
    way = np.random.default_rng(2028).normal(size=d)
    size = float(np.sum(way**2))
    u = lambda q: jnp.sin(jnp.dot(way, q))
    source = lambda q: size * u(q)
    points = pk.Points(boundary=150, source=150)
    return poisson("−Δu = f in 8-D, u = sin a·x", d, u, source, points, seed, 1e-4)


def sum_of_inputs(seed: int) -> Case:
    d = 10
    rates = np.linspace(0.5, 2.5, d)
    u = lambda q: jnp.sum(jnp.sin(rates * q))
    source = lambda q: jnp.sum(rates**2 * jnp.sin(rates * q))
    points = pk.Points(boundary=200, source=200)
    return poisson("−Δu = f in 10-D, u = Σ sin a_i x_i", d, u, source, points, seed, 1e-4)


def radial(seed: int) -> Case:
    d = 6
    u = lambda q: jnp.exp(-jnp.sum((q - 0.5) ** 2))
    source = lambda q: (2 * d - 4 * jnp.sum((q - 0.5) ** 2)) * u(q)
    points = pk.Points(boundary=200, source=200)
    return poisson("−Δu = f in 6-D, u = e^{−|x − ½|²}", d, u, source, points, seed, 1e-3)


def product(seed: int) -> Case:
    d = 4
    u = lambda q: jnp.prod(jnp.cos(q))
    source = lambda q: d * u(q)
    points = pk.Points(boundary=150, source=200)
    return poisson("−Δu = f in 4-D, u = Π cos x_i", d, u, source, points, seed, 1e-4)


def heat(seed: int) -> Case:
    d = 6
    domain = pk.Domain(x=[(0.0, 1.0)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    u = lambda q: jnp.exp(-t(q)) * jnp.sum(jnp.cos(x(q)))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=u), pk.Initial(t, value=u)]
    operator = pk.D(t) - pk.Laplacian(x)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=120, initial=60, source=180))
    return of_problem("u_t = Δu in 6-D, u = e^{−t} Σ cos x_i", problem, on_rows(u), seed, wanted=1e-4)


CASES: dict[str, Callable[[int], Case]] = {
    "ridge-8": ridge,
    "sum-10": sum_of_inputs,
    "radial-6": radial,
    "product-4": product,
    "heat-6": heat,
}
