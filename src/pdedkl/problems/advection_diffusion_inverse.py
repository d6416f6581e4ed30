"""`∂u/∂t + v·∇u − νΔu = 0` in the plane with unknown `v` and `ν`, from sensors in a cloud that moves and spreads."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..operators import D, Directional, Laplacian, Parameter
from .catalogue import BUILT_IN
from .conditions import Sensors
from .problem import Points, Problem

# What the sensors were computed with: `nu`, `vx`, `vy`.
TRUE = {"nu": 0.02, "vx": 0.4, "vy": 0.2}
SENSORS, NOISE = 200, 0.05


def advection_diffusion_inverse() -> Problem:
    """`u = w₀/w e^{−|x − x₀ − v t|²/w}` with the width `w = w₀ + 4νt`, at 200 sensors with 5 % noise."""
    domain = Domain(x=[(0, 1)] * 2, t=(0, 1))
    x, t = domain.coordinates("x", "t")
    nu, vx, vy = Parameter("nu", 0.1, positive=True), Parameter("vx", 0.0), Parameter("vy", 0.0)

    def exact(q):
        width = 0.06 + 4 * TRUE["nu"] * t(q)
        away = x(q) - jnp.asarray([0.3, 0.4]) - t(q) * jnp.asarray([TRUE["vx"], TRUE["vy"]])
        return 0.06 / width * jnp.exp(-jnp.sum(away**2) / width)

    rng = np.random.default_rng(0)
    at = rng.uniform(size=(SENSORS, 3))
    values = np.asarray([float(exact(q)) for q in at])
    entry = BUILT_IN["advection-diffusion-inverse"]
    return Problem(
        domain=domain,
        operator=D(t) + Directional(x, [vx, vy]) - nu * Laplacian(x),
        source=0.0,
        conditions=[Sensors(at, values + NOISE * np.std(values) * rng.normal(size=SENSORS))],
        exact=exact,
        name=entry.name,
        points=Points(source=200),
        equation=entry.equation,
        mathml=entry.mathml,
    )
