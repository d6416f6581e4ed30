"""`Δu = f` on the unit cube, `u` given on its faces; the paper's first family."""

from __future__ import annotations

import jax.numpy as jnp

from ..domain import Domain
from ..operators import Laplacian
from ..sampling import check_dim
from .catalogue import BUILT_IN
from .conditions import Dirichlet
from .problem import Points, Problem


def poisson(dim: int = 10) -> Problem:
    """`u = sin(Σx) + cos(Σx)`, for which `Δu = −d u`."""
    domain = Domain(x=[(0, 1)] * check_dim(dim))
    x = domain.coordinates("x")

    def exact(q):
        return jnp.sin(jnp.sum(q)) + jnp.cos(jnp.sum(q))

    entry = BUILT_IN["poisson"]
    n = max(10 * dim, 40)
    return Problem(
        domain=domain,
        operator=Laplacian(x),
        source=lambda q: -dim * exact(q),
        conditions=[Dirichlet(on=domain.boundary(x), value=exact)],
        exact=exact,
        name=entry.name,
        points=Points(boundary=n, source=n),
        equation=entry.equation,
        mathml=entry.mathml,
    )
