"""Nonlinear equations of one field, with their exact solutions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from equations_case import Case


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


def eikonal(width: float) -> Case:
    """`|∇u|² − ε Δu = 1`, zero on the boundary.

    `u = −ε log v` with `ε² Δv = v`, and `v = 1` on the boundary. `v` is a sum over sines in `y`, cosines in `x`.
    """
    import numpy as np

    import pdedkl as pk

    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x, u = domain.coordinates("x"), pk.fields("u")
    D = pk.D
    problem = pk.Problem(
        domain,
        equations=[(D(x[0]) @ u) ** 2 + (D(x[1]) @ u) ** 2 - width * (pk.Laplacian(x) @ u) == 1],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=0.0)],
        points=pk.Points(boundary=84, source=400),
    )
    m = np.arange(1, 4001, 2)
    rate = np.sqrt((m * np.pi) ** 2 + 1 / width**2)
    size = 4 / (np.pi * m) / (1 + (width * m * np.pi) ** 2)

    def ratio(k: Any, s: Any) -> Any:
        """`cosh(k (s − ½)) / cosh(k / 2)` without large numbers."""
        return (np.exp(-k * s) + np.exp(-k * (1 - s))) / (1 + np.exp(-k))

    def exact(q: Any) -> Any:
        a, b = q[:, :1], q[:, 1:]
        terms = size * np.sin(np.pi * m * b) * ratio(rate, a)
        return -width * np.log(ratio(1 / width, b[:, 0]) + np.sum(terms, axis=1))

    title = f"|∇u|² − {width:g} Δu = 1 in the unit square"
    wanted, published = ({"u": 5e-3}, "2.5e-2") if width == 0.01 else ({}, "")
    return Case(title, problem, {"u": exact}, wanted, published)


def ridge(kind: str, d: int) -> Case:
    """A function of one direction in `d` dimensions, with two frequencies."""
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    row = np.random.default_rng(2041).normal(size=d)
    row *= 2 / np.linalg.norm(row)
    domain = pk.Domain(x=[(-1.0, 1.0)] * d)
    x, u = domain.coordinates("x"), pk.fields("u")
    exact = lambda q: jnp.sin(jnp.dot(row, q)) + 0.5 * jnp.cos(2 * jnp.dot(row, q))
    second = lambda q: -4 * jnp.sin(jnp.dot(row, q)) - 8 * jnp.cos(2 * jnp.dot(row, q))
    if kind == "sine-gordon":
        term, of_u, name = pk.sin(u), jnp.sin, "Δu + sin u = f"
    else:
        term, of_u, name = u - u**3, lambda v: v - v**3, "Δu + u − u³ = f"
    half = 300 if d <= 10 else 500
    problem = pk.Problem(
        domain,
        equations=[pk.Laplacian(x) @ u + term == (lambda q: second(q) + of_u(exact(q)))],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=exact)],
        exact={u: exact},
        points=pk.Points(boundary=half, source=half),
    )
    title = f"{name}, two frequencies of one direction, d = {d}"
    return Case(title, problem, {"u": lambda q: problem.truth(q, u)}, {"u": 1e-5})


def two_body(d: int = 100) -> Case:
    """The solution of Hu, Shi, Karniadakis and Kawaguchi in the unit ball: each input meets its neighbour."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    weights = jnp.asarray(np.random.default_rng(0).normal(size=d - 1))
    domain = pk.Domain(x=pk.Ball([0.0] * d, 1.0))
    x, u = domain.coordinates("x"), pk.fields("u")

    def exact(q: Any) -> Any:
        a, b = q[:-1], q[1:]
        return (1 - jnp.sum(q**2)) * jnp.dot(weights, jnp.sin(a + jnp.cos(b) + b * jnp.cos(a)))

    def source(q: Any) -> Any:
        slope = jax.grad(exact)
        along = lambda v: jax.jvp(slope, (q,), (v,))[1] @ v
        return jnp.sum(jax.lax.map(along, jnp.eye(d))) + jnp.sin(exact(q))

    problem = pk.Problem(
        domain,
        equations=[pk.Laplacian(x) @ u + pk.sin(u) == source],
        conditions=[pk.Dirichlet(u, on=domain.boundary(x), value=0.0)],
        exact={u: exact},
        points=pk.Points(boundary=200, source=1000),
    )
    truth = {"u": lambda q: problem.truth(q, u)}
    return Case(f"Δu + sin u = f in the unit ball, two-body, d = {d}", problem, truth, {"u": 3.6e-3}, "3.6e-3")


def control(d: int = 100) -> Case:
    """Hamilton–Jacobi–Bellman as E, Han and Jentzen state it; what is wanted is `u` at the origin at time zero.

    By the transform of Cole and Hopf `e^-u` is an expectation, here an integral over one variable.
    """
    import jax.numpy as jnp
    import numpy as np
    from scipy.integrate import quad

    import pdedkl as pk

    # Brownian motion from the origin ends at a distance of about √(2d).
    far = float(np.ceil(1.5 * np.sqrt(2 * d)))
    domain = pk.Domain(x=pk.Ball([0.0] * d, far), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    u = pk.fields("u")
    slopes = sum(((pk.D(x[i]) @ u) ** 2 for i in range(1, d)), (pk.D(x[0]) @ u) ** 2)
    end = lambda q: jnp.log(0.5 * (1 + jnp.sum(q[:-1] ** 2)))
    problem = pk.Problem(
        domain,
        equations=[pk.D(t) @ u + pk.Laplacian(x) @ u - slopes == 0],
        conditions=[pk.Dirichlet(u, on=domain.final(t), value=end)],
        points=pk.Points(initial=200, source=400),
    )

    def exact(q: Any) -> Any:
        def at(square: float, time: float) -> float:
            spread = 4 * (1 - time)
            f = lambda s: 2 * np.exp(-s - 0.5 * d * np.log1p(spread * s) - s * square / (1 + spread * s))
            return float(-np.log(quad(f, 0, np.inf, epsabs=0, epsrel=1e-10, limit=200)[0]))

        return np.asarray([at(float(np.sum(p[:-1] ** 2)), float(p[-1])) for p in q])

    origin = np.zeros((1, d + 1))
    return Case(
        f"u_t + Δu − |∇u|² = 0, d = {d}, at the origin",
        problem,
        {"u": exact},
        {"u": 1e-2},
        "1.7e-3",
        places=lambda seed: origin,
    )


NONLINEAR: dict[str, Callable[[], Case]] = {
    "cubic": cubic,
    "burgers": burgers,
    "eikonal-0.1": partial(eikonal, 0.1),
    "eikonal-0.01": partial(eikonal, 0.01),
    **{f"{kind}-{d}": partial(ridge, kind, d) for d in (10, 20, 50) for kind in ("allen-cahn", "sine-gordon")},
    "two-body-100": two_body,
    "hjb-100": control,
}
