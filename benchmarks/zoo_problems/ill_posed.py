"""Problems whose data do not determine the solution. Error bars have to say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import PLACES, Case, Field, of_data, of_problem, on_rows, uniform


def unposed(title: str, problem: pk.Problem, exact: Field, seed: int) -> Case:
    return of_problem(title, problem, exact, seed, posed=False)


def box(d: int) -> tuple[pk.Domain, Any]:
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    return domain, domain.coordinates("x")


def heat(d: int, seed: int) -> Case:
    """The initial condition was forgotten: `u = 0` fits all data."""
    domain = pk.Domain(x=[(0.0, 1.0)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    u = lambda q: jnp.prod(jnp.sin(jnp.pi * x(q))) * jnp.exp(-0.1 * d * jnp.pi**2 * t(q))
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    points = pk.Points(boundary=40, source=100) if d == 1 else pk.Points(boundary=80, source=150)
    problem = pk.Problem(domain, pk.D(t) - 0.1 * pk.Laplacian(x), 0.0, conditions, points=points)
    return unposed(f"u_t = 0.1 Δu in {d}-D, zero walls, no initial condition", problem, on_rows(u), seed)


def heat_backwards(seed: int) -> Case:
    """The final values are known and the initial ones are wanted."""
    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")

    def u(q: Any) -> Any:
        mode = lambda n: jnp.sin(n * jnp.pi * x(q)) * jnp.exp(-0.1 * (n * jnp.pi) ** 2 * t(q))
        return mode(1) - 0.7 * mode(3)

    conditions = [pk.Dirichlet(on=domain.boundary(x), value=0.0), pk.Dirichlet(on=domain.final(t), value=u)]
    operator = pk.D(t) - 0.1 * pk.D(x, x)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=40, initial=50, source=100))
    return unposed("u_t = 0.1 u_xx, zero walls, final values in place of initial ones", problem, on_rows(u), seed)


def insulated(d: int, seed: int) -> Case:
    """Only derivatives are known, so that any constant may be added. The true level is 5."""
    domain, x = box(d)
    wave = lambda q: jnp.sum(jnp.cos(jnp.pi * x(q)))
    conditions = [pk.Neumann(on=domain.boundary(x), value=0.0)]
    source = lambda q: jnp.pi**2 * wave(q)
    points = {2: pk.Points(80, 0, 120), 5: pk.Points(150, 0, 150), 10: pk.Points(200, 0, 200)}[d]
    problem = pk.Problem(domain, -pk.Laplacian(x), source, conditions, points=points)
    return unposed(f"−Δu = f in {d}-D, ∂u/∂n = 0 on all faces", problem, on_rows(lambda q: 5 + wave(q)), seed)


def growing(q: Any) -> Any:
    """A harmonic function that is small on one side of the square and large on the other."""
    return jnp.sin(jnp.pi * q[0]) * jnp.cosh(jnp.pi * q[1]) / 5 + jnp.cos(2 * q[0]) * jnp.exp(2 * q[1]) / 5


def cauchy(seed: int) -> Case:
    """All is known on one side, nothing on the others. Small errors grow with the distance."""
    domain, x = box(2)
    side = domain.face(x[1], "lower")
    conditions = [
        pk.Dirichlet(on=side, value=lambda q: (jnp.sin(jnp.pi * q[0]) + jnp.cos(2 * q[0])) / 5),
        pk.Neumann(on=side, value=lambda q: -2 * jnp.cos(2 * q[0]) / 5),
    ]
    problem = pk.Problem(domain, pk.Laplacian(x), 0.0, conditions, points=pk.Points(boundary=80, source=150))
    return unposed("Δu = 0 in 2-D, u and ∂u/∂n on one side only", problem, on_rows(growing), seed)


def cauchy_data(seed: int) -> Case:
    """The same from measurements, on a bare domain."""
    domain, x = box(2)
    rng = np.random.default_rng(seed)
    side, inside = uniform(domain, 50, rng), uniform(domain, 150, rng)
    side[:, 1] = 0.0
    noise = 1e-3 * rng.normal(size=(2, 50))
    exact = on_rows(growing)
    slope = 2 * np.cos(2 * side[:, 0]) / 5
    data = [
        pk.Observation(pk.identity, side, exact(side) + noise[0], noise=1e-3),
        pk.Observation(pk.D(x[1]), side, slope + noise[1], noise=1e-3),
        pk.Observation(pk.Laplacian(x), inside, np.zeros(150), noise="exact"),
    ]
    places = uniform(domain, PLACES, np.random.default_rng([seed, 1]))
    zero = lambda q: np.zeros(len(q))
    title = "Δu = 0 in 2-D, u and ∂u/∂y measured on one side, noise 0.001"
    return of_data(title, domain, data, places, exact, pk.Laplacian(x), zero, posed=False)


def open_face(seed: int) -> Case:
    """Nothing is known on one of four sides."""
    domain, x = box(2)
    u = lambda q: jnp.sin(jnp.pi * x(q)[1]) * jnp.sinh(jnp.pi * x(q)[0]) / jnp.sinh(jnp.pi) + x(q)[1]
    conditions = [
        pk.Dirichlet(on=domain.face(x[0], "lower"), value=lambda q: x(q)[1]),
        pk.Dirichlet(on=domain.boundary(x[1]), value=lambda q: x(q)[1]),
    ]
    problem = pk.Problem(domain, pk.Laplacian(x), 0.0, conditions, points=pk.Points(boundary=80, source=120))
    return unposed("Δu = 0 in 2-D, u given on three of four sides", problem, on_rows(u), seed)


def wave(seed: int) -> Case:
    """The initial velocity was forgotten."""
    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")

    def u(q: Any) -> Any:
        rising = jnp.sin(2 * jnp.pi * x(q)) * jnp.sin(2 * jnp.pi * t(q))
        return jnp.sin(jnp.pi * x(q)) * jnp.cos(jnp.pi * t(q)) + 0.7 * rising

    conditions = [
        pk.Dirichlet(on=domain.boundary(x), value=0.0),
        pk.Initial(t, value=lambda q: jnp.sin(jnp.pi * x(q))),
    ]
    operator = pk.D(t, t) - pk.D(x, x)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=40, initial=40, source=120))
    return unposed("u_tt = u_xx, zero walls, no initial velocity", problem, on_rows(u), seed)


def oscillator(seed: int) -> Case:
    """An equation of second order with one condition."""
    domain = pk.Domain(t=(0.0, 3.0))
    t = domain.coordinates("t")
    conditions = [pk.Initial(t, value=1.0)]
    operator = pk.D(t, t) + 4.0
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(initial=1, source=60))
    exact = lambda q: np.cos(2 * q[:, 0]) + np.sin(2 * q[:, 0])
    return unposed("u'' + 4 u = 0, u(0) = 1, no initial velocity", problem, exact, seed)


def hanging_rod(seed: int) -> Case:
    """A condition at one end only."""
    domain = pk.Domain(x=(0.0, 1.0))
    x = domain.coordinates("x")
    conditions = [pk.Dirichlet(on=domain.face(x, "lower"), value=0.0)]
    source = lambda q: jnp.pi**2 * jnp.sin(jnp.pi * x(q))
    problem = pk.Problem(domain, -pk.D(x, x), source, conditions, points=pk.Points(boundary=1, source=60))
    exact = lambda q: np.sin(np.pi * q[:, 0]) + 2 * q[:, 0]
    return unposed("−u'' = f, u(0) = 0, nothing at the other end", problem, exact, seed)


CASES: dict[str, Callable[[int], Case]] = {
    "heat-no-initial-1": lambda seed: heat(1, seed),
    "heat-no-initial-2": lambda seed: heat(2, seed),
    "heat-backwards": heat_backwards,
    "neumann-only-2": lambda seed: insulated(2, seed),
    "neumann-only-5": lambda seed: insulated(5, seed),
    "neumann-only-10": lambda seed: insulated(10, seed),
    "cauchy": cauchy,
    "cauchy-data": cauchy_data,
    "open-face": open_face,
    "wave-no-velocity": wave,
    "oscillator-no-velocity": oscillator,
    "rod-one-end": hanging_rod,
}
