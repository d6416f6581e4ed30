"""Kolmogorov's equations: expectations (backward) and densities (forward) of random motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import Case, Field, of_problem, on_faces, on_rows
from .reference import Well

CUBIC = Well(0.5, lambda x: x**4 / 4, lambda x: x**3, lambda x: 3 * x**2, reach=3.8)
DOUBLE = Well(0.25, lambda x: x**4 / 4 - x**2 / 2, lambda x: x**3 - x, lambda x: 3 * x**2 - 1, reach=3.4)


def backward(d: int, s: float, drift: Callable[[Any], Any]) -> tuple[pk.Domain, Any, Any, pk.Operator]:
    """`u_t = s Δu + Σ b(x_i) ∂u/∂x_i` in `[−2, 2]^d`."""
    domain = pk.Domain(x=[(-2.0, 2.0)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    return domain, x, t, pk.D(t) - s * pk.Laplacian(x) - pk.Directional(x, lambda q: drift(x(q)))


def of_each(one: Callable[[np.ndarray, np.ndarray], np.ndarray], d: int, combine: Any) -> Field:
    """The product or the sum of the same solution in each coordinate."""
    return lambda q: combine([one(q[:, i], q[:, d]) for i in range(d)], axis=0)


def inner(d: int, half: float) -> tuple[np.ndarray, np.ndarray]:
    return np.append(np.full(d, -half), 0.0), np.append(np.full(d, half), 1.0)


def cubic(walls: int, seed: int) -> Case:
    """The drift points inwards, so that without walls `u` is determined away from the faces."""
    d = 4
    domain, x, t, operator = backward(d, 0.5, lambda y: -(y**3))
    exact = of_each(CUBIC.expected(lambda y: np.exp(-(y**2))), d, np.prod)
    conditions: list[Any] = [pk.Initial(t, value=lambda q: jnp.exp(-jnp.sum(x(q) ** 2)))]
    if walls:
        faces = on_faces(domain, range(d), walls, np.random.default_rng([seed, 2]))
        conditions.append(pk.Dirichlet(on=faces, value=exact(faces)))
    points = pk.Points(initial=150 - walls // 2, source=250 - walls // 2)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=points)
    within = None if walls else inner(d, 1.5)
    title = f"Kolmogorov backward, drift −x³, d = 4, start e^{{−|x|²}}, {'with' if walls else 'no'} walls"
    return of_problem(title, problem, exact, seed, within=within, wanted=5e-2, accuracy=1e-11)


def double_well(seed: int) -> Case:
    d = 4
    domain, x, t, operator = backward(d, 0.25, lambda y: y - y**3)
    exact = of_each(DOUBLE.expected(np.cos), d, np.sum)
    conditions = [pk.Initial(t, value=lambda q: jnp.sum(jnp.cos(x(q))))]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(initial=150, source=250))
    title = "Kolmogorov backward, drift x − x³, d = 4, start Σ cos x_i, no walls"
    return of_problem(title, problem, exact, seed, within=inner(d, 1.5), wanted=5e-2, accuracy=1e-11)


def fokker_planck_well(d: int, seed: int) -> Case:
    """`p_t = s Δp + ∇·(p ∇V)` with `V = Σ x⁴/4 − x²/2`. The walls are so far away that `p` is zero there."""
    s = 0.5
    domain = pk.Domain(x=[(-3.0, 3.0)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    force = lambda q: x(q) ** 3 - x(q)
    stretch = pk.Coefficient(lambda q: jnp.sum(3 * x(q) ** 2 - 1), name="ΔV")
    operator = pk.D(t) - s * pk.Laplacian(x) - pk.Directional(x, force) - stretch * pk.identity
    start = lambda y: np.exp(-10 * (y - 0.5) ** 2)
    conditions = [
        pk.Initial(t, value=lambda q: jnp.exp(-10 * jnp.sum((x(q) - 0.5) ** 2))),
        pk.Dirichlet(on=domain.boundary(x), value=0.0),
    ]
    points = pk.Points(boundary=40, initial=60, source=150) if d == 1 else pk.Points(80, 120, 400)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=points)
    well = Well(s, DOUBLE.potential, DOUBLE.slope, DOUBLE.curvature, reach=3.8)
    title = f"Fokker–Planck in a double well, d = {d}"
    return of_problem(title, problem, of_each(well.density(start), d, np.prod), seed, wanted=1e-2, accuracy=1e-11)


def ornstein_uhlenbeck(seed: int) -> Case:
    """`dX = −X dt + dW`, the expectation of `cos(k·X)`."""
    d = 3
    k = np.array([1.0, -0.7, 0.5])
    domain, x, t, operator = backward(d, 0.5, lambda y: -y)

    def formula(q: Any) -> Any:
        return jnp.cos(jnp.exp(-t(q)) * jnp.dot(k, x(q))) * jnp.exp(-np.sum(k**2) * (1 - jnp.exp(-2 * t(q))) / 4)

    conditions = [
        pk.Initial(t, value=lambda q: jnp.cos(jnp.dot(k, x(q)))),
        pk.Dirichlet(on=domain.boundary(x), value=formula),
    ]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=80, initial=80, source=160))
    title = "Kolmogorov backward of an Ornstein–Uhlenbeck process, d = 3, start cos k·x"
    return of_problem(title, problem, on_rows(formula), seed, wanted=1e-3)


CASES: dict[str, Callable[[int], Case]] = {
    "kolmogorov-cubic": lambda seed: cubic(0, seed),
    "kolmogorov-cubic-walls": lambda seed: cubic(120, seed),
    "kolmogorov-well": double_well,
    "fokker-planck-well-1": lambda seed: fokker_planck_well(1, seed),
    "fokker-planck-well-2": lambda seed: fokker_planck_well(2, seed),
    "ornstein-uhlenbeck": ornstein_uhlenbeck,
}
