"""Mixed conditions: Dirichlet, Neumann, Robin and periodic faces, in one to five dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import Case, of_problem, on_rows

WANTED = 1e-4


def box(d: int) -> tuple[pk.Domain, Any]:
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    return domain, domain.coordinates("x")


def rod(seed: int) -> Case:
    domain = pk.Domain(x=(0.0, 1.0))
    x = domain.coordinates("x")
    conditions = [
        pk.Dirichlet(on=domain.face(x, "lower"), value=1.0),
        pk.Neumann(on=domain.face(x, "upper"), value=0.0),
    ]
    source = lambda q: jnp.exp(x(q))
    problem = pk.Problem(domain, -pk.D(x, x), source, conditions, points=pk.Points(boundary=2, source=60))
    exact = lambda q: 2 - np.exp(q[:, 0]) + np.e * q[:, 0]
    return of_problem("−u'' = e^x, u(0) = 1, u'(1) = 0", problem, exact, seed, wanted=WANTED)


def cooled_rod(seed: int) -> Case:
    """Robin at both ends."""
    domain = pk.Domain(x=(0.0, 1.0))
    x = domain.coordinates("x")
    u = lambda q: jnp.sin(3 * x(q)) + x(q)
    conditions = [
        pk.Robin(on=domain.face(x, "lower"), a=1.0, b=1.0, value=-4.0),
        pk.Robin(on=domain.face(x, "upper"), a=2.0, b=1.0, value=2 * np.sin(3.0) + 2 + 3 * np.cos(3.0) + 1),
    ]
    operator = pk.identity - pk.D(x, x)
    source = lambda q: 10 * jnp.sin(3 * x(q)) + x(q)
    problem = pk.Problem(domain, operator, source, conditions, points=pk.Points(boundary=2, source=60))
    return of_problem("u − u'' = f with Robin conditions at both ends", problem, on_rows(u), seed, wanted=WANTED)


def square(seed: int) -> Case:
    """Held at the left and right, insulated below and above."""
    domain, x = box(2)
    u = lambda q: jnp.exp(x(q)[0]) * jnp.cos(jnp.pi * x(q)[1])
    conditions = [
        pk.Dirichlet(on=domain.boundary(x[0]), value=u),
        pk.Neumann(on=domain.boundary(x[1]), value=0.0),
    ]
    source = lambda q: (jnp.pi**2 - 1) * u(q)
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=80, source=100))
    title = "−Δu = f in 2-D, u given on two sides, ∂u/∂n = 0 on the others"
    return of_problem(title, problem, on_rows(u), seed, wanted=WANTED)


def robin_square(seed: int) -> Case:
    domain, x = box(2)
    u = lambda q: jnp.sin(2 * x(q)[0] + x(q)[1])
    slope = lambda q: jnp.cos(2 * x(q)[0] + x(q)[1])
    conditions = [
        pk.Robin(on=domain.face(x[0], "lower"), a=2.0, b=1.0, value=lambda q: 2 * u(q) - 2 * slope(q)),
        pk.Robin(on=domain.face(x[0], "upper"), a=2.0, b=1.0, value=lambda q: 2 * u(q) + 2 * slope(q)),
        pk.Robin(on=domain.face(x[1], "lower"), a=2.0, b=1.0, value=lambda q: 2 * u(q) - slope(q)),
        pk.Robin(on=domain.face(x[1], "upper"), a=2.0, b=1.0, value=lambda q: 2 * u(q) + slope(q)),
    ]
    source = lambda q: 5 * u(q)
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=80, source=100))
    return of_problem("−Δu = f in 2-D, 2 u + ∂u/∂n given on all sides", problem, on_rows(u), seed, wanted=WANTED)


def cube(seed: int) -> Case:
    """One kind of condition for each pair of faces, on a cooling body."""
    domain = pk.Domain(x=[(0.0, 1.0)] * 3, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")

    def u(q: Any) -> Any:
        return jnp.exp(-t(q)) * jnp.sin(x(q)[0] + 0.5) * jnp.cos(jnp.pi * x(q)[1]) * (1 + x(q)[2])

    conditions = [
        pk.Initial(t, value=u),
        pk.Dirichlet(on=domain.boundary(x[0]), value=u),
        pk.Neumann(on=domain.boundary(x[1]), value=0.0),
        pk.Robin(on=domain.face(x[2], "lower"), a=1.0, b=1.0, value=0.0),
        pk.Robin(on=domain.face(x[2], "upper"), a=1.0, b=2.0, value=lambda q: 2 * u(q)),
    ]
    operator = pk.D(t) - 0.1 * pk.Laplacian(x)
    source = lambda q: (-1 + 0.1 * (1 + jnp.pi**2)) * u(q)
    points = pk.Points(boundary=160, initial=60, source=200)
    problem = pk.Problem(domain, operator, source, conditions, points=points)
    title = "u_t = 0.1 Δu + f in 3-D, Dirichlet, Neumann and Robin faces"
    return of_problem(title, problem, on_rows(u), seed, wanted=WANTED)


def five(seed: int) -> Case:
    domain, x = box(5)
    u = lambda q: jnp.exp(x(q)[0]) + jnp.sum(jnp.cos(jnp.pi * x(q)[1:]))
    conditions = [
        pk.Dirichlet(on=domain.boundary(x[0]), value=u),
        pk.Neumann(on=domain.boundary(x[1:]), value=0.0),
    ]
    source = lambda q: -jnp.exp(x(q)[0]) + jnp.pi**2 * jnp.sum(jnp.cos(jnp.pi * x(q)[1:]))
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=200, source=200))
    title = "−Δu = f in 5-D, u given on two faces, ∂u/∂n = 0 on eight"
    return of_problem(title, problem, on_rows(u), seed, wanted=WANTED)


def periodic_rod(seed: int) -> Case:
    domain = pk.Domain(x=(0.0, 1.0))
    x = domain.coordinates("x")
    u = lambda q: jnp.sin(2 * jnp.pi * x(q)) + 0.3 * jnp.cos(4 * jnp.pi * x(q))
    conditions = [pk.Periodic(x), pk.Periodic(x, derivative=True)]
    source = lambda q: (
        (1 + 4 * jnp.pi**2) * jnp.sin(2 * jnp.pi * x(q)) + 0.3 * (1 + 16 * jnp.pi**2) * jnp.cos(4 * jnp.pi * x(q))
    )
    operator = pk.identity - pk.D(x, x)
    problem = pk.Problem(domain, operator, source, conditions, points=pk.Points(boundary=2, source=60))
    return of_problem("u − u'' = f, periodic", problem, on_rows(u), seed, wanted=WANTED)


def periodic_transport(seed: int) -> Case:
    domain = pk.Domain(x=(0.0, 2 * np.pi), t=(0.0, 2.0))
    x, t = domain.coordinates("x", "t")
    operator = pk.D(t) + pk.D(x) - 0.05 * pk.D(x, x)
    conditions = [pk.Initial(t, value=lambda q: jnp.sin(x(q))), pk.Periodic(x), pk.Periodic(x, derivative=True)]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=40, initial=40, source=120))
    exact = lambda q: np.exp(-0.05 * q[:, 1]) * np.sin(q[:, 0] - q[:, 1])
    return of_problem("u_t + u_x = 0.05 u_xx, periodic in x", problem, exact, seed, wanted=WANTED)


def periodic_channel(seed: int) -> Case:
    """Periodic along a channel of square cross-section, zero on its walls."""
    domain, x = box(3)
    u = lambda q: jnp.cos(2 * jnp.pi * x(q)[0]) * jnp.sin(jnp.pi * x(q)[1]) * jnp.sin(jnp.pi * x(q)[2])
    conditions = [
        pk.Periodic(x[0]),
        pk.Periodic(x[0], derivative=True),
        pk.Dirichlet(on=domain.boundary(x[1:]), value=0.0),
    ]
    source = lambda q: 6 * jnp.pi**2 * u(q)
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=150, source=200))
    title = "−Δu = f in 3-D, periodic in one direction, zero walls in the others"
    return of_problem(title, problem, on_rows(u), seed, wanted=WANTED)


def insulated(condition: Callable[[], pk.Sensors | pk.Dirichlet], title: str, seed: int) -> Case:
    """The level is fixed by a single value."""
    domain, x = box(2)
    u = lambda q: 2 + jnp.cos(jnp.pi * x(q)[0]) * jnp.cos(2 * jnp.pi * x(q)[1])
    source = lambda q: 5 * jnp.pi**2 * (u(q) - 2)
    conditions = [pk.Neumann(on=domain.boundary(x), value=0.0), condition()]
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=pk.Points(boundary=80, source=120))
    return of_problem(title, problem, on_rows(u), seed, wanted=WANTED)


def one_sensor(seed: int) -> Case:
    title = "−Δu = f in 2-D, ∂u/∂n = 0 on all sides, one sensor"
    return insulated(lambda: pk.Sensors([[0.0, 0.0]], [3.0]), title, seed)


def one_value(seed: int) -> Case:
    title = "−Δu = f in 2-D, ∂u/∂n = 0 on all sides, u = 3 at one corner"
    return insulated(lambda: pk.Dirichlet(on=[[0.0, 0.0]], value=3.0), title, seed)


CASES: dict[str, Callable[[int], Case]] = {
    "mixed-1": rod,
    "mixed-2": square,
    "mixed-3": cube,
    "mixed-5": five,
    "robin-1": cooled_rod,
    "robin-2": robin_square,
    "periodic-1": periodic_rod,
    "periodic-2": periodic_transport,
    "periodic-3": periodic_channel,
    "neumann-sensor": one_sensor,
    "neumann-value": one_value,
}
