"""The evidence, with a custom derivative rule.

With `K = L Lᵀ` and `α = K⁻¹ r` the negative log evidence is `½ rᵀα + Σ log L_ii + (n/2) log 2π`, and its derivative
with respect to `K` is `W = ½ (K⁻¹ − α αᵀ)`. Differentiating the factorisation would keep every intermediate matrix
alive; instead `W` is pulled back through the assembly chunk by chunk, and a step needs a few `n × n` matrices in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float

from ..means import observed_mean
from ..model import Model
from ..observations import Observation, check_observations
from ..operators import Operator
from ..operators.offset import linear_part, offset_at
from ..precision import require_float64
from .cholesky import factorise, half_solve, inverse, solve
from .engines import Engine, engine_of
from .estimated import estimate, pull_back_tiles
from .gram import assemble, pull_back
from .iterative import chosen_solver, plain_mesh
from .solver import Gram

# Matrices of n × n that are alive at once in one evidence-and-gradient evaluation.
MATRICES_PER_STEP = 4


class EvidenceInfo(NamedTuple):
    """`jitter` is relative to each row's variance; zero unless the Cholesky factorisation needed it."""

    jitter: Float[Array, ""]


def negative_log_evidence(
    model: Model,
    observations: Sequence[Observation] | Observation,
    *,
    given: int = 0,
    solver: str = "auto",
    mesh: Mesh | None = None,
) -> tuple[Float[Array, ""], EvidenceInfo]:
    """`−log p(y)`, the training objective, and how it was computed. With `given`, `−log p(y | y₀)`.

    It is differentiable in reverse mode with respect to the model: `eqx.filter_grad(…, has_aux=True)`.

    **Arguments:**

    - `model`: the `Model`.
    - `observations`: an `Observation` or a list of them.
    - `given`: how many of the observations, from the first on, are given: `y₀`. Their own density does not count.
    - `solver`: `"dense"`, by a Cholesky factorisation; `"iterative"`, without the Gram matrix, where a small part of
      the log-determinant is an estimate; `"auto"`, `"dense"` if it fits into memory, else `"iterative"`.
    - `mesh`: devices of JAX that share the rows of the matrix, in iterative solves.

    **Returns:** the value, and an `EvidenceInfo` with the jitter that the factorisation needed.

    !!! example
        ```python
        value, info = pk.negative_log_evidence(pk.Model(pk.ard(domain), data), data)
        ```
    """
    require_float64()
    if not isinstance(model, Model):
        raise TypeError(f"The evidence needs a Model: got {type(model).__name__}. Build Model(kernel, observations).")
    found = check_observations(observations)
    model.check(found)
    chosen = chosen_solver(solver, sum(map(len, found)), MATRICES_PER_STEP, mesh)
    system = linear_system(model, found)
    arrays, static = eqx.partition(system.parameters, eqx.is_array)
    rows = sum(map(len, found[:given]))
    if chosen == "dense":
        fixed = _Static(system.engine, static, plain_mesh(mesh), rows)
        value, jitter = _evidence(fixed, arrays, system.sections, system.noise, system.residual)
        return value, EvidenceInfo(jitter)
    fixed = _Static(system.engine, static, plain_mesh(mesh), 0)
    value, jitter = _estimated_evidence(fixed, arrays, system.sections, system.noise, system.residual)
    if given:
        first = system.sections[:given], system.noise[:rows], system.residual[:rows]
        value -= _estimated_evidence(fixed, arrays, *first)[0]
    return value, EvidenceInfo(jitter)


class LinearSystem(NamedTuple):
    """Everything that the Gram matrix and the right-hand side are computed from."""

    engine: Engine
    parameters: Any
    sections: tuple[Any, ...]
    noise: Float[Array, " n"]
    residual: Float[Array, " n"]


def linear_system(model: Model, observations: Sequence[Observation]) -> LinearSystem:
    engine = engine_of(model.engine)
    operators = [model.bound(item.operator) for item in observations]
    pairs = list(zip(operators, observations))
    return LinearSystem(
        engine=engine,
        parameters=engine.parameters(model.kernel),
        sections=tuple(engine.rows(model.kernel, operator, item.points) for operator, item in pairs),
        noise=jnp.concatenate([item.noise_variance(model.log_noise) for item in observations]),
        residual=jnp.concatenate([item.values - _expected(model, op, item.points) for op, item in pairs]),
    )


def _expected(model: Model, operator: Operator, points: Array) -> Array:
    """The prior mean of a row, with what it knows besides `u`."""
    return observed_mean(model.mean, linear_part(operator), points) + offset_at(operator, jnp.asarray(points))


class _Static(eqx.Module):
    """What a block needs besides arrays; and how many rows are given."""

    engine: Engine
    parameters: Any
    mesh: Mesh | None
    given: int

    def block(self, arrays: Any, left: Any, right: Any) -> Float[Array, "m n"]:
        return self.engine.block(eqx.combine(arrays, self.parameters), left, right)

    def pull_back_variances(self, arrays: Any, sections: tuple[Any, ...], weight: Array) -> tuple[Any, Any]:
        """The gradient of `Σ_i w_i K_ii` with respect to parameters and rows."""
        variances = lambda arrays, sections: self.gram(arrays, sections, jnp.zeros_like(weight)).diagonal()
        return jax.vjp(variances, arrays, sections)[1](weight)

    def gram(self, arrays: Any, sections: tuple[Any, ...], noise: Array) -> Gram:
        return Gram(self.engine, eqx.combine(arrays, self.parameters), sections, noise)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _evidence(
    static: _Static, parameters: Any, sections: tuple[Any, ...], noise: Array, residual: Array
) -> tuple[Array, Array]:
    factor, jitter = factorise(assemble(partial(static.block, parameters), sections), noise)
    return value_given(factor, residual, static.given, residual.shape[0] - static.given), jitter


class Derivatives(NamedTuple):
    """`−log p(y | y₀)`, and its derivatives with respect to the matrix, the noise and the residual.

    `left_out` are the values minus their predictions from all others. `before` and `after` are the variances of each
    value, noise included: of the prior, and given all others.
    """

    value: Float[Array, ""]
    weights: Float[Array, "n n"]
    of_noise: Float[Array, " n"]
    of_residual: Float[Array, " n"]
    left_out: Float[Array, " n"]
    before: Float[Array, " n"]
    after: Float[Array, " n"]


def value_given(factor: Array, residual: Array, first: int, count: Array | int) -> Float[Array, ""]:
    """`−log p(y | y₀)`, where `y₀` are the first values, and `count` others are there.

    The first rows of `L` are the factor of the first block of `K`, and the first entries of `L⁻¹ r` belong to it alone.
    So what is left of both sums is the density of the other values, given these.
    """
    half = half_solve(factor, residual[:, None])[first:, 0]
    size = jnp.sum(jnp.log(jnp.diagonal(factor)[first:]))
    return 0.5 * jnp.dot(half, half) + size + 0.5 * count * jnp.log(2 * jnp.pi)


def derivatives(factor: Array, jitter: Array, residual: Array, first: int, count: Array | int) -> Derivatives:
    """The derivatives of the evidence, from the factor of the matrix."""
    alpha = solve(factor, residual)
    precision = inverse(factor)
    before, after = jnp.sum(factor**2, axis=1), 1 / jnp.diagonal(precision)
    left_out = alpha * after
    signed = [(1.0, alpha)]
    of_residual = alpha
    if first:
        # The same for the given values alone, with the opposite sign.
        corner = factor[:first, :first]
        precision = precision.at[:first, :first].add(-inverse(corner))
        alone = jnp.zeros_like(alpha).at[:first].set(solve(corner, residual[:first]))
        signed.append((-1.0, alone))
        of_residual = alpha - alone
    weights = 0.5 * (precision - sum(sign * a[:, None] * a for sign, a in signed))
    on_diagonal = jnp.diagonal(weights)
    # The jitter is a multiple of the diagonal of K, so it contributes to the gradient.
    diagonal = jnp.arange(residual.shape[0])
    weights = weights + jnp.where(diagonal[:, None] == diagonal, jitter * on_diagonal, 0.0)
    value = value_given(factor, residual, first, count)
    return Derivatives(value, weights, on_diagonal, of_residual, left_out, before, after)


def value_from(factor: Array, alpha: Array, residual: Array) -> Float[Array, ""]:
    n = residual.shape[0]
    log_determinant = jnp.sum(jnp.log(jnp.diagonal(factor)))
    return 0.5 * jnp.dot(residual, alpha) + log_determinant + 0.5 * n * jnp.log(2 * jnp.pi)


def _evidence_forward(static: _Static, parameters: Any, sections: tuple[Any, ...], noise: Array, residual: Array):
    """Value and gradient together: nothing of size n × n is kept for the backward pass."""
    factor, jitter = factorise(assemble(partial(static.block, parameters), sections), noise)
    found = derivatives(factor, jitter, residual, static.given, residual.shape[0] - static.given)
    rows = lambda start, size: jax.lax.dynamic_slice_in_dim(found.weights, start, size)
    parameter_gradient, section_gradients = pull_back(static.block, parameters, sections, rows)
    return (found.value, jitter), (parameter_gradient, section_gradients, found.of_noise, found.of_residual)


def _evidence_backward(static: _Static, gradients: tuple, cotangent: tuple[Array, Array]):
    scale, _ = cotangent
    return jax.tree.map(lambda leaf: scale * leaf, gradients)


_evidence.defvjp(_evidence_forward, _evidence_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _estimated_evidence(
    static: _Static, parameters: Any, sections: tuple[Any, ...], noise: Array, residual: Array
) -> tuple[Array, Array]:
    found = estimate(static.gram(parameters, sections, noise), residual, static.mesh)
    return found.value, found.jitter


def _estimated_forward(static: _Static, parameters: Any, sections: tuple[Any, ...], noise: Array, residual: Array):
    found = estimate(static.gram(parameters, sections, noise), residual, static.mesh)
    of_tiles = pull_back_tiles(static.block, parameters, sections, found.left, found.right, static.mesh)
    of_diagonal = static.pull_back_variances(parameters, sections, found.diagonal)
    gradients = (*jax.tree.map(jnp.add, of_tiles, of_diagonal), found.on_diagonal, found.alpha)
    return (found.value, found.jitter), gradients


_estimated_evidence.defvjp(_estimated_forward, _evidence_backward)
