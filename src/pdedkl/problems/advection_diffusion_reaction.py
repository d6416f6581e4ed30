"""`∂u/∂t − Δu + Σᵢ ∂u/∂xᵢ + u = f` on the unit cube; the paper's third family."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..operators import D, Directional, Laplacian, identity
from ..sampling import check_dim
from .catalogue import BUILT_IN
from .conditions import Dirichlet, Initial
from .problem import Problem, points_in_time


def advection_diffusion_reaction(dim: int = 10) -> Problem:
    """`u = e^{-t} sin(mean x)`, for which `f = u/d + e^{-t} cos(mean x)`."""
    domain = Domain(x=[(0, 1)] * check_dim(dim), t=(0, 1))
    x, t = domain.coordinates("x", "t")

    def exact(q):
        return jnp.exp(-t(q)) * jnp.sin(jnp.mean(x(q)))

    entry = BUILT_IN["advection-diffusion-reaction"]
    return Problem(
        domain=domain,
        operator=D(t) - Laplacian(x) + Directional(x, np.ones(dim)) + identity,
        source=lambda q: exact(q) / dim + jnp.exp(-t(q)) * jnp.cos(jnp.mean(x(q))),
        conditions=[Dirichlet(on=domain.boundary(x), value=exact), Initial(t, value=exact)],
        exact=exact,
        name=entry.name,
        points=points_in_time(dim),
        equation=entry.equation,
        mathml=entry.mathml,
    )
