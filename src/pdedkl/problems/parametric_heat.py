"""`∂u/∂t − ∂²u/∂x² = f` for all values of three parameters at once; the paper's fourth family."""

from __future__ import annotations

import jax.numpy as jnp

from ..domain import Domain
from ..operators import D, Laplacian
from .catalogue import BUILT_IN
from .conditions import Dirichlet, Initial
from .problem import Points, Problem


def parametric_heat() -> Problem:
    """`u = c e^{-at} sin(2πbx)` with `μ = (a, b, c)`, for which `f = (4π²b² − a) u`."""
    domain = Domain(x=(0, 1), t=(0, 1), mu=[(0.8, 1.2), (0.7, 1.3), (0.9, 1.1)])
    x, t, mu = domain.coordinates("x", "t", "mu")

    def exact(q):
        decay, frequency, amplitude = mu(q)
        return amplitude * jnp.exp(-decay * t(q)) * jnp.sin(2 * jnp.pi * frequency * x(q))

    def source(q):
        decay, frequency, _ = mu(q)
        return ((2 * jnp.pi * frequency) ** 2 - decay) * exact(q)

    entry = BUILT_IN["parametric-heat"]
    return Problem(
        domain=domain,
        operator=D(t) - Laplacian(x),
        source=source,
        conditions=[Dirichlet(on=domain.boundary(x), value=exact), Initial(t, value=exact)],
        exact=exact,
        name=entry.name,
        points=Points(boundary=100, initial=50, source=150),
        equation=entry.equation,
        mathml=entry.mathml,
    )
