"""Gauss–Newton steps for the weights of an embedding.

The posterior mean is `m(q) = Σ_j α_j cov(A u(q), A_j u(q_j))`. Hold the function on the latent space fixed, and move
only the latent point `h(q; w)` at which it is evaluated: `m` changes by `J Δw`. So the data are, to first order,

    y = A g + J Δw + ε,    g ~ GP(0, k),    Δw ~ N(0, λ S),

with the prior variances `S` of the weights. That is a Gaussian process with the Gram matrix `K + λ J S Jᵀ`: one more
factorisation gives the step `Δw = λ S Jᵀ (K + λ J S Jᵀ + Σ)⁻¹ y` *jointly* with the best new function `g`, whatever the
number of weights. The evidence of the same matrix chooses the trust `λ` in this step. As the noise `σ` falls, the
objective becomes a valley whose walls steepen like `1/σ²`. Gradient methods are slow in such a valley; this step moves
along it.

The same matrix with `λ = 1/γ`, the prior itself, gives Laplace's approximation of the evidence with the weights
integrated out. It is the objective at its minimum plus a price, `½ log |I + J S Jᵀ K⁻¹ / γ|`. The price is zero for
weights that do not change the fit to the data, and positive for weights that the data determine. Only with this price
can kernels with different numbers of weights, and priors of different strengths, be compared. The price uses the
curvature of a linearised model: for a weight that only stretches an axis, which a length scale can undo, it is about
two nats too high.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled, compiled_quickly
from ..inference.cholesky import factorise, solve
from ..inference.evidence import LinearSystem, linear_system, value_from
from ..inference.gram import assemble, offsets
from .objective import Objective, Vector

# Trust in the linearisation: `λ tr(J S Jᵀ) / tr K`.
TRUST = np.logspace(-8, 0, 9)

POINTS_PER_CHUNK = 64

# For at most this number of values, an optimised compilation takes longer than it saves in a few dozen steps.
FEW_VALUES = 500


class Proposals(NamedTuple):
    """For each `λ` the negative log evidence of the linearised model and the step of the weights.

    `price` is `½ log |I + J S Jᵀ K⁻¹ / γ|`, and zero where the weights have no prior.
    """

    evidences: Float[Array, " t"]
    steps: Float[Array, "t w"]
    price: Float[Array, ""]


def proposals(objective: Objective, x: Vector) -> Proposals:
    few = sum(map(len, objective.observations)) <= FEW_VALUES
    return (_proposals_of_few if few else _optimised_proposals)(objective, x)


def price_of_weights(objective: Objective, x: Vector) -> float:
    """What to add to the objective at its minimum so that the weights are integrated out."""
    return float(proposals(objective, x).price) if objective.weight_count else 0.0


def _proposals(objective: Objective, x: Vector) -> Proposals:
    system = linear_system(objective.model(x), objective.observations)
    block = partial(system.engine.block, system.parameters)
    upper = assemble(block, system.sections)
    gram = jnp.triu(upper) + jnp.triu(upper, 1).T
    factor, _ = factorise(gram, system.noise)
    jacobian = _jacobian(objective, x, system, solve(factor, system.residual))
    tangent = jacobian @ jacobian.T

    def one(trust: Array) -> tuple[Array, Array, Array]:
        factor, _ = factorise(gram + trust * tangent, system.noise)
        alpha = solve(factor, system.residual)
        size = jnp.sum(jnp.log(jnp.diagonal(factor)))
        return value_from(factor, alpha, system.residual), trust * (jacobian.T @ alpha), size

    size, strength = jnp.trace(tangent), objective.prior_strength
    trusts = TRUST * jnp.trace(gram) / jnp.where(size > 0, size, 1.0)
    prior = jnp.where(strength > 0, 1.0 / jnp.where(strength > 0, strength, 1.0), 0.0)
    evidences, steps, sizes = jax.lax.map(one, jnp.append(trusts, prior))
    price = sizes[-1] - jnp.sum(jnp.log(jnp.diagonal(factor)))
    return Proposals(evidences[:-1], steps[:-1], price)


_optimised_proposals, _proposals_of_few = compiled(_proposals), compiled_quickly(_proposals)


def _jacobian(objective: Objective, x: Vector, system: LinearSystem, alpha: Array) -> Float[Array, "n w"]:
    """`J S^½`, since the weights in `x` are already in units of their prior standard deviation.

    A row of the mean depends only on its own jet. So one pass over all pairs gives the derivative with respect to every
    jet, and one pass over the points carries it through the embeddings.
    """
    count = objective.weight_count
    starts = offsets(system.sections)
    blocks = []
    for item, rows in zip(objective.observations, system.sections):

        def mean_of(rows: Any) -> Array:
            parts = [
                jnp.sum(system.engine.block(system.parameters, rows, other) @ alpha[i:j])
                for other, i, j in zip(system.sections, starts, starts[1:])
            ]
            return sum(parts[1:], parts[0])

        def one(point_and_slope: tuple[Array, Any], item=item) -> Array:
            q, slope = point_and_slope

            def moved(w: Array) -> Array:
                model = objective.model(jnp.concatenate([w, x[count:]]))
                jet = system.engine.rows(model.kernel, model.bound(item.operator), q[None])
                terms = jax.tree.map(lambda a, b: jnp.sum(a[0] * b), jet, slope)
                return jax.tree.reduce(jnp.add, terms)

            return jax.grad(moved)(x[:count])

        slopes = jax.grad(mean_of)(rows)
        blocks.append(jax.lax.map(one, (item.points, slopes), batch_size=POINTS_PER_CHUNK))
    return jnp.concatenate(blocks)
