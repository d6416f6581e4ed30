"""`∂u/∂t − Δu = f` on the unit cube, `u` given on its faces and at the start; the paper's second family."""

from __future__ import annotations

import jax.numpy as jnp

from ..domain import Domain
from ..operators import D, Laplacian
from ..sampling import check_dim
from .catalogue import BUILT_IN
from .conditions import Dirichlet, Initial
from .problem import Problem, points_in_time


def heat(dim: int = 10) -> Problem:
    """`u = e^{-t} cos(mean x)`, for which `f = (1/d − 1) u`."""
    domain = Domain(x=[(0, 1)] * check_dim(dim), t=(0, 1))
    x, t = domain.coordinates("x", "t")

    def exact(q):
        return jnp.exp(-t(q)) * jnp.cos(jnp.mean(x(q)))

    entry = BUILT_IN["heat"]
    return Problem(
        domain=domain,
        operator=D(t) - Laplacian(x),
        source=lambda q: (1 / dim - 1) * exact(q),
        conditions=[Dirichlet(on=domain.boundary(x), value=exact), Initial(t, value=exact)],
        exact=exact,
        name=entry.name,
        points=points_in_time(dim),
        equation=entry.equation,
        mathml=entry.mathml,
    )
