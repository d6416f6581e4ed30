"""Systems of several fields, linear and nonlinear, with their exact solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from equations_case import Case


def _of(problem: Any, **fields: Any) -> dict[str, Callable[[Any], Any]]:
    """The exact solution of each field, for arrays of points."""
    return {name: (lambda q, f=f: problem.truth(q, f)) for name, f in fields.items()}


def kovasznay() -> Case:
    """Flow behind a grid at a Reynolds number of 20."""
    import jax.numpy as jnp
    import numpy as np

    import pdedkl as pk

    nu = 1 / 20
    rate = 0.5 / nu - np.sqrt(0.25 / nu**2 + 4 * np.pi**2)
    domain = pk.Domain(x=[(-0.5, 1.0), (-0.5, 1.5)])
    x = domain.coordinates("x")
    u, v, p = pk.fields("u", "v", "p")
    D, laplacian = pk.D, pk.Laplacian(x)
    exact = {
        u: lambda q: 1 - jnp.exp(rate * q[0]) * jnp.cos(2 * jnp.pi * q[1]),
        v: lambda q: rate / (2 * jnp.pi) * jnp.exp(rate * q[0]) * jnp.sin(2 * jnp.pi * q[1]),
        p: lambda q: 0.5 * (1 - jnp.exp(2 * rate * q[0])),
    }
    corner = domain.lower[None]
    problem = pk.Problem(
        domain,
        equations=[
            u * (D(x[0]) @ u) + v * (D(x[1]) @ u) + D(x[0]) @ p - nu * (laplacian @ u) == 0,
            u * (D(x[0]) @ v) + v * (D(x[1]) @ v) + D(x[1]) @ p - nu * (laplacian @ v) == 0,
            D(x[0]) @ u + D(x[1]) @ v == 0,
        ],
        conditions=[
            *(pk.Dirichlet(field, on=domain.boundary(x), value=exact[field]) for field in (u, v)),
            pk.Dirichlet(p, on=corner, value=[float(exact[p](corner[0]))]),
        ],
        exact=exact,
        points=pk.Points(boundary=80, source=200),
    )
    return Case(
        "Kovasznay flow, Re = 20", problem, _of(problem, u=u, v=v, p=p), {"u": 1e-5, "v": 1e-5}, "about 1e-3 (PINNs)"
    )


def stokes() -> Case:
    """Slow flow in the unit square with a stream function that is no polynomial; the pressure is given at a corner."""
    import jax
    import jax.numpy as jnp

    import pdedkl as pk

    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    u, v, p = pk.fields("u", "v", "p")
    D, laplacian = pk.D, pk.Laplacian(x)
    stream = lambda q: jnp.sin(2 * q[0] + q[1]) * jnp.exp(-q[1]) + 0.5 * jnp.cos(3 * q[0] * q[1])
    exact = {
        u: lambda q: jax.grad(stream)(q)[1],
        v: lambda q: -jax.grad(stream)(q)[0],
        p: lambda q: jnp.sin(3 * q[0]) * jnp.cos(2 * q[1]),
    }
    force = lambda field, i: lambda q: -laplacian(exact[field])(q) + jax.grad(exact[p])(q)[i]
    corner = domain.lower[None]
    problem = pk.Problem(
        domain,
        equations=[
            D(x[0]) @ p - laplacian @ u == force(u, 0),
            D(x[1]) @ p - laplacian @ v == force(v, 1),
            D(x[0]) @ u + D(x[1]) @ v == 0,
        ],
        conditions=[
            *(pk.Dirichlet(field, on=domain.boundary(x), value=exact[field]) for field in (u, v)),
            pk.Dirichlet(p, on=corner, value=[float(exact[p](corner[0]))]),
        ],
        exact=exact,
        points=pk.Points(boundary=80, source=200),
    )
    return Case("Stokes flow", problem, _of(problem, u=u, v=v, p=p), {"u": 1e-5, "v": 1e-5})


def elasticity() -> Case:
    """Plane strain of a square that is held on three sides and pulled on the fourth."""
    import jax
    import jax.numpy as jnp

    import pdedkl as pk

    lam, mu = 1.2, 0.8
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    u, v = pk.fields("u", "v")
    D = pk.D
    exact = {
        u: lambda q: jnp.sin(2 * q[0]) * jnp.cos(q[1]) + 0.3 * q[0] * q[1],
        v: lambda q: jnp.exp(-q[0]) * jnp.sin(2 * q[1]),
    }
    # Stresses as rows; the equations are their divergences.
    along = (lam + 2 * mu) * (D(x[0]) @ u) + lam * (D(x[1]) @ v)
    across = lam * (D(x[0]) @ u) + (lam + 2 * mu) * (D(x[1]) @ v)
    shear = mu * (D(x[1]) @ u + D(x[0]) @ v)
    at = lambda i, j, f: lambda q: jax.grad(exact[f])(q)[j] if i is None else jax.hessian(exact[f])(q)[i, j]
    first = lambda q: (lam + 2 * mu) * at(0, 0, u)(q) + mu * at(1, 1, u)(q) + (lam + mu) * at(0, 1, v)(q)
    second = lambda q: (lam + 2 * mu) * at(1, 1, v)(q) + mu * at(0, 0, v)(q) + (lam + mu) * at(0, 1, u)(q)
    right = domain.face(x[0], "upper")
    held = [domain.face(x[0], "lower"), domain.face(x[1], "lower"), domain.face(x[1], "upper")]
    problem = pk.Problem(
        domain,
        equations=[D(x[0]) @ along + D(x[1]) @ shear == first, D(x[0]) @ shear + D(x[1]) @ across == second],
        conditions=[
            *(pk.Dirichlet(field, on=side, value=exact[field]) for field in (u, v) for side in held),
            pk.Dirichlet(
                along,
                on=right,
                value=lambda q: (lam + 2 * mu) * at(None, 0, u)(q) + lam * at(None, 1, v)(q),
            ),
            pk.Dirichlet(shear, on=right, value=lambda q: mu * (at(None, 1, u)(q) + at(None, 0, v)(q))),
        ],
        exact=exact,
        points=pk.Points(boundary=80, source=200),
    )
    return Case("plane elasticity with traction", problem, _of(problem, u=u, v=v), {"u": 1e-5, "v": 1e-5})


def maxwell() -> Case:
    """The TE mode of a square cavity with conducting walls."""
    import jax.numpy as jnp

    import pdedkl as pk

    domain = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    ex, ey, hz = pk.fields("ex", "ey", "hz")
    D, pi = pk.D, jnp.pi
    omega = pi * jnp.sqrt(2.0)
    exact = {
        ex: lambda q: -(pi / omega) * jnp.cos(pi * q[0]) * jnp.sin(pi * q[1]) * jnp.sin(omega * q[2]),
        ey: lambda q: (pi / omega) * jnp.sin(pi * q[0]) * jnp.cos(pi * q[1]) * jnp.sin(omega * q[2]),
        hz: lambda q: jnp.cos(pi * q[0]) * jnp.cos(pi * q[1]) * jnp.cos(omega * q[2]),
    }
    walls = [(ex, x[1]), (ey, x[0])]
    problem = pk.Problem(
        domain,
        equations=[
            D(t) @ ex - D(x[1]) @ hz == 0,
            D(t) @ ey + D(x[0]) @ hz == 0,
            D(t) @ hz - D(x[1]) @ ex + D(x[0]) @ ey == 0,
        ],
        conditions=[
            *(
                pk.Dirichlet(f, on=domain.face(axis, side), value=0.0)
                for f, axis in walls
                for side in ("lower", "upper")
            ),
            *(pk.Initial(f, t, value=exact[f]) for f in (ex, ey, hz)),
        ],
        exact=exact,
        points=pk.Points(boundary=100, initial=120, source=350),
    )
    wanted = dict.fromkeys(("ex", "ey", "hz"), 1e-5)
    return Case("Maxwell's equations, TE mode in a cavity", problem, _of(problem, ex=ex, ey=ey, hz=hz), wanted)


def two_species() -> Case:
    """Reaction and diffusion of two species, a manufactured solution."""
    import jax
    import jax.numpy as jnp

    import pdedkl as pk

    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    u, v = pk.fields("u", "v")
    D = pk.D
    exact = {
        u: lambda q: 1 + 0.5 * jnp.cos(2 * q[0]) * jnp.exp(-q[1]),
        v: lambda q: 0.8 + 0.4 * jnp.sin(3 * q[0] + q[1]),
    }
    slope = lambda f, i: lambda q: jax.grad(exact[f])(q)[i]
    second = lambda f: lambda q: jax.hessian(exact[f])(q)[0, 0]
    gain = lambda q: slope(u, 1)(q) - 0.1 * second(u)(q) - exact[u](q) ** 2 * exact[v](q) + exact[u](q)
    loss = lambda q: slope(v, 1)(q) - 0.05 * second(v)(q) + exact[u](q) ** 2 * exact[v](q)
    problem = pk.Problem(
        domain,
        equations=[
            D(t) @ u - 0.1 * (D(x, x) @ u) - u**2 * v + u == gain,
            D(t) @ v - 0.05 * (D(x, x) @ v) + u**2 * v == loss,
        ],
        conditions=[
            *(pk.Dirichlet(f, on=domain.boundary(x), value=exact[f]) for f in (u, v)),
            *(pk.Initial(f, t, value=exact[f]) for f in (u, v)),
        ],
        exact=exact,
        points=pk.Points(boundary=60, initial=40, source=200),
    )
    return Case("reaction and diffusion of two species", problem, _of(problem, u=u, v=v), {"u": 1e-5, "v": 1e-5})


def predator_and_prey() -> Case:
    """Predator and prey over a short time: Lotka–Volterra, against a Runge–Kutta method of order eight."""
    import numpy as np
    from scipy.integrate import solve_ivp

    import pdedkl as pk

    domain = pk.Domain(t=(0.0, 3.0))
    (t,) = domain.coordinates()
    u, v = pk.fields("u", "v")
    problem = pk.Problem(
        domain,
        equations=[pk.D(t) @ u - u + u * v == 0, pk.D(t) @ v + v - u * v == 0],
        conditions=[pk.Initial(u, t, value=1.5), pk.Initial(v, t, value=0.8)],
        points=pk.Points(initial=1, source=60),
    )
    move = lambda _, y: [y[0] - y[0] * y[1], -y[1] + y[0] * y[1]]
    flow = solve_ivp(move, (0, 3), [1.5, 0.8], method="DOP853", rtol=1e-12, atol=1e-12, dense_output=True).sol
    truth = {"u": lambda q: np.asarray(flow(q[:, 0])[0]), "v": lambda q: np.asarray(flow(q[:, 0])[1])}
    return Case("predator and prey, t ≤ 3", problem, truth, {"u": 1e-5, "v": 1e-5})


def lorenz() -> Case:
    """Lorenz' equations over a short time, against a Runge–Kutta method of order eight."""
    import numpy as np
    from scipy.integrate import solve_ivp

    import pdedkl as pk

    domain = pk.Domain(t=(0.0, 0.5))
    (t,) = domain.coordinates()
    u, v, w = pk.fields("u", "v", "w")
    problem = pk.Problem(
        domain,
        equations=[
            pk.D(t) @ u - 10 * (v - u) == 0,
            pk.D(t) @ v - u * (28 - w) + v == 0,
            pk.D(t) @ w - u * v + 8 / 3 * w == 0,
        ],
        conditions=[pk.Initial(f, t, value=1.0) for f in (u, v, w)],
        points=pk.Points(initial=1, source=60),
    )
    move = lambda _, y: [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]
    flow = solve_ivp(move, (0, 0.5), [1.0] * 3, method="DOP853", rtol=1e-12, atol=1e-12, dense_output=True).sol
    truth = {name: (lambda q, i=i: np.asarray(flow(q[:, 0])[i])) for i, name in enumerate("uvw")}
    return Case("Lorenz' equations, t ≤ 0.5", problem, truth, dict.fromkeys("uvw", 1e-5))


SYSTEMS: dict[str, Callable[[], Case]] = {
    "kovasznay": kovasznay,
    "stokes": stokes,
    "elasticity": elasticity,
    "maxwell": maxwell,
    "two-species": two_species,
    "predator-prey": predator_and_prey,
    "lorenz": lorenz,
}
