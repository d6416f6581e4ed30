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

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import solve_triangular

from ..compilation import compiled, compiled_quickly
from ..inference.cholesky import factorise, solve
from ..inference.evidence import linear_system
from ..inference.parts import joined, size_of
from ..inference.staged import System, filled_system, gram_of, of_rows, pulled_back
from .objective import Objective, Vector, staged_system

# Trust in the linearisation: `λ tr(J S Jᵀ) / tr K`.
TRUST = np.logspace(-8, 0, 9)

POINTS_PER_CHUNK = 64


class Proposals(NamedTuple):
    """For each `λ` the negative log evidence of the linearised model and the step of the weights.

    `price` is `½ log |I + J S Jᵀ K⁻¹ / γ|`, and zero where the weights have no prior.
    """

    evidences: Float[Array, " t"]
    steps: Float[Array, "t w"] | Float[np.ndarray, "t w"]
    price: Float[Array, ""]


def proposals(objective: Objective, x: Vector) -> Proposals:
    _, system = staged_system(objective, x)
    count = objective.weight_count
    begun = _begin(gram_of(system.parts), system)
    jacobian = jacobian_of(objective, x, system, begun)
    strength = objective.prior_strength
    found = _tried(begun, system.noise, system.residual, jacobian, strength, np.asarray(len(system.place)))
    return found._replace(steps=np.asarray(found.steps)[:, :count])


def price_of_weights(objective: Objective, x: Vector) -> float:
    """What to add to the objective at its minimum so that the weights are integrated out."""
    return float(proposals(objective, x).price) if objective.weight_count else 0.0


def widened_by_weights(objective: Objective, x: Vector, slopes: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """What the weights add to the covariance of unknown numbers `θ`: `C(K + J S Jᵀ/γ) − C(K)`.

    `slopes` are `J_θ = ∂(A_θ m)/∂θ`, a row for each value, and `C(K) = (Λ⁻¹ + J_θᵀ K⁻¹ J_θ)⁻¹` with the `prior`
    standard deviations. It is zero where there are no weights, or where they have no prior.
    """
    nothing = np.zeros((len(prior), len(prior)))
    if not objective.weight_count or not float(objective.prior_strength) > 0:
        return nothing
    _, system = staged_system(objective, x)
    begun = _begin(gram_of(system.parts), system)
    jacobian = np.asarray(jacobian_of(objective, x, system, begun))
    gram = np.asarray(begun.gram) + np.diag(np.asarray(system.noise))
    placed = np.zeros((len(gram), len(prior)))
    placed[np.asarray(system.place)] = slopes

    def covariance(of_rows: np.ndarray) -> np.ndarray:
        factor = np.asarray(factorise(jnp.asarray(of_rows), jnp.zeros(len(of_rows)))[0])
        half = solve_triangular(factor, placed, lower=True) * prior
        return prior[:, None] * np.linalg.inv(np.eye(len(prior)) + half.T @ half) * prior

    tangent = jacobian @ jacobian.T / float(objective.prior_strength)
    more = covariance(gram + tangent) - covariance(gram)
    return more if np.all(np.isfinite(more)) else nothing


class _Begun(NamedTuple):
    """The matrix of all rows, the logarithms of its factor's diagonal summed up, and `W` for the slopes of the mean."""

    gram: Float[Array, "n n"]
    size: Float[Array, ""]
    weights: Float[Array, "m m"]


@compiled
def _begin(upper: Array, system: System) -> _Begun:
    gram = jnp.triu(upper) + jnp.triu(upper, 1).T if system.terms is None else of_rows(upper, system.terms)
    factor, _ = factorise(gram, system.noise)
    alpha = solve(factor, system.residual)
    if system.owner is not None:
        alpha = alpha.at[system.owner].get(mode="fill", fill_value=0.0)
    # The slope of `Σ_j K_ij α_j` in row `i`: pulling back counts each row twice.
    weights = jnp.broadcast_to(0.5 * alpha, upper.shape)
    return _Begun(gram, jnp.sum(jnp.log(jnp.diagonal(factor))), weights)


def jacobian_of(objective: Objective, x: Vector, system: System, begun: _Begun) -> Float[Array, "n w"]:
    """The derivative of the mean in each row of the system with respect to the weights."""
    slopes = [of_rows for _, of_rows in pulled_back(system.parts, begun.weights)]
    return _jacobian(objective, x, slopes, len(system.noise))


@compiled
def _tried(begun: _Begun, noise: Array, residual: Array, jacobian: Array, strength: Array, count: Any) -> Proposals:
    """For each trust the evidence and the step; and the price of the weights."""
    tangent = jacobian @ jacobian.T

    def one(trust: Array) -> tuple[Array, Array, Array]:
        factor, _ = factorise(begun.gram + trust * tangent, noise)
        alpha = solve(factor, residual)
        size = jnp.sum(jnp.log(jnp.diagonal(factor)))
        evidence = 0.5 * (jnp.dot(residual, alpha) + count * jnp.log(2 * jnp.pi)) + size
        return evidence, trust * (jacobian.T @ alpha), size

    size = jnp.trace(tangent)
    trusts = TRUST * jnp.trace(begun.gram) / jnp.where(size > 0, size, 1.0)
    prior = jnp.where(strength > 0, 1.0 / jnp.where(strength > 0, strength, 1.0), 0.0)
    evidences, steps, sizes = jax.lax.map(one, jnp.append(trusts, prior))
    return Proposals(evidences[:-1], steps[:-1], sizes[-1] - begun.size)


@compiled_quickly
def _jacobian(objective: Objective, x: Vector, slopes: Any, size: int) -> Float[Array, "n w"]:
    """`J S^½`, since the weights in `x` are already in units of their prior standard deviation.

    A row of the mean depends only on its own jet. So one pass over all pairs gives the derivative with respect to every
    jet, and one pass over the points carries it through the embeddings. Rows and weights are filled up with zeros.
    """
    count = objective.weight_count
    whole = linear_system(objective.model(x), objective.observations)

    def sections_of(sections: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        parts, _ = joined(whole.engine, whole.parameters, sections, objective.given)
        return [part.sections for part in parts]

    (of_sections,) = jax.vjp(sections_of, whole.sections)[1](slopes)
    blocks = []
    for item, slope in zip(objective.observations, of_sections):

        def one(point_and_slope: tuple[Array, Any], item=item) -> Array:
            q, slope = point_and_slope

            def moved(w: Array) -> Array:
                model = objective.model(jnp.concatenate([w, x[count:]]))
                jet = whole.engine.rows(model.kernel, model.bound(item.operator), q[None])
                terms = jax.tree.map(lambda a, b: jnp.sum(a[0] * b), jet, slope)
                return jax.tree.reduce(jnp.add, terms)

            return jax.grad(moved)(x[:count])

        blocks.append(jax.lax.map(one, (item.points, slope), batch_size=POINTS_PER_CHUNK))
    found = jnp.pad(jnp.concatenate(blocks), ((0, 0), (0, size_of(count) - count)))
    _, order = filled_system(objective.model(x), objective.observations, objective.given)
    return jnp.zeros((size, found.shape[1])).at[order.place].set(found)
