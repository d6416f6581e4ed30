"""The evidence and its derivative without the Gram matrix.

In units of the noise, with a preconditioner `M = U Σ² Uᵀ + I` that is nearly the matrix `S = D^-½ K D^-½ + I`,

    log|S| = log|M| + tr log(M^-½ S M^-½)    and    S⁻¹ = M⁻¹ + (S⁻¹ − M⁻¹).

The first terms are exact, and nearly the whole. The second terms are estimated from vectors `z` of random signs, for
which `E z zᵀ = I`: the logarithm by Lanczos quadrature, and `S⁻¹ − M⁻¹ = E d pᵀ`, where `d` is the change that
conjugate gradients for `M^½ z` add to their start `p = M^-½ z`. So the uncertainty is a fraction of the small second
terms, and not of the whole trace or of the directions in which `K` is large. The signs are the same in every call: a
function that changes from call to call could not be minimised.

The derivative with respect to `K` is `½ (K⁻¹ − α αᵀ)`, here a diagonal plus a product `A Bᵀ` of tall matrices. It is
pulled back tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float

from .gram import apart, offsets, row_count
from .iterative import TOLERANCE, Iterative, everywhere, preconditioned, ratio, tiled
from .solver import Gram

PROBES = 8
# Gauss quadrature gives an upper bound: with too few steps the logarithm is too large.
LANCZOS_STEPS = 40
# Relative tolerance of the solves with random vectors: their results are estimates, and need no more digits.
PROBE_TOLERANCE = 1e-3


class Estimate(NamedTuple):
    """The negative log evidence, and `½ (K⁻¹ − α αᵀ)` as `diag(diagonal) + left @ right.T`."""

    value: Float[Array, ""]
    jitter: Float[Array, ""]
    alpha: Float[Array, " n"]
    diagonal: Float[Array, " n"]
    left: Float[Array, "n k"]
    right: Float[Array, "n k"]

    @property
    def on_diagonal(self) -> Float[Array, " n"]:
        return self.diagonal + jnp.sum(self.left * self.right, axis=1)


def estimate(gram: Gram, residual: Float[Array, " n"], mesh: Mesh | None = None) -> Estimate:
    n = residual.shape[0]
    solver, complete, jitter = preconditioned(gram, mesh)
    scale, made = solver.scale, solver.preconditioner
    tolerance = jnp.asarray([TOLERANCE] + [PROBE_TOLERANCE] * PROBES)
    columns = jnp.concatenate([(scale * residual)[:, None], made.power(0.5, signs(n))], axis=1)
    found = solver.solve_scaled(gram, columns, tolerance)
    alpha = scale * (found.start + found.change)[:, 0]
    value = 0.5 * (jnp.dot(residual, alpha) + log_determinant(gram, solver, complete) + n * jnp.log(2 * jnp.pi))
    # S⁻¹ ≈ I − U Σ² (1 + Σ²)⁻¹ Uᵀ + mean of ½ (d pᵀ + p dᵀ)
    U, shrink = scale[:, None] * made.basis, made.singular**2 / (1 + made.singular**2)
    p, d = (scale[:, None] * part[:, 1:] for part in (found.start, found.change))
    left = 0.5 * jnp.concatenate([-shrink * U, -alpha[:, None], d / (2 * PROBES), p / (2 * PROBES)], axis=1)
    right = jnp.concatenate([U, alpha[:, None], p, d], axis=1)
    return Estimate(value, jitter, alpha, 0.5 * scale**2, left, right)


def log_determinant(gram: Gram, solver: Iterative, complete: Array) -> Float[Array, ""]:
    """`log|K|`, noise included. A complete preconditioner leaves less than a millionth per value, taken as zero."""
    rest = jax.lax.cond(complete, lambda: jnp.zeros(()), lambda: _log_of_the_rest(gram, solver))
    return solver.log_determinant() + rest


def signs(n: int) -> Float[Array, "n p"]:
    return jax.random.rademacher(jax.random.key(0), (n, PROBES), float)


def _log_of_the_rest(gram: Gram, solver: Iterative) -> Float[Array, ""]:
    """`tr log(M^-½ S M^-½)`: the mean over `z` of `n Σ_k w_k log θ_k`, with the eigenvalues `θ_k` of a Lanczos matrix.

    `S − M` is positive semidefinite, so eigenvalues are below 1 only by rounding.
    """
    half = partial(solver.preconditioner.power, -0.5)
    z = signs(solver.scale.shape[0])
    steps = min(LANCZOS_STEPS, z.shape[0])

    def step(state: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        before, v, beta = state
        w = half(solver.times(gram, half(v))) - beta * before
        alpha = jnp.sum(v * w, axis=0)
        w = w - alpha * v
        beta = jnp.linalg.norm(w, axis=0)
        return (v, ratio(w, beta), beta), (alpha, beta)

    start = (jnp.zeros_like(z), z / jnp.sqrt(z.shape[0]), jnp.zeros(PROBES))
    _, (alphas, betas) = jax.lax.scan(step, start, None, length=steps)

    def quadrature(alpha: Array, beta: Array) -> Array:
        eigenvalues, vectors = jnp.linalg.eigh(jnp.diag(alpha) + jnp.diag(beta, 1) + jnp.diag(beta, -1))
        return jnp.sum(vectors[0] ** 2 * jnp.log(jnp.maximum(eigenvalues, 1.0)))

    return z.shape[0] * jnp.mean(jax.vmap(quadrature, in_axes=1)(alphas, betas[:-1]))


def pull_back_tiles(
    block: Callable[[Any, Any, Any], Array],
    parameters: Any,
    sections: tuple[Any, ...],
    left: Float[Array, "n k"],
    right: Float[Array, "n k"],
    mesh: Mesh | None = None,
) -> tuple[Any, tuple[Any, ...]]:
    """The gradient of `Σ_ij (A Bᵀ)_ij K_ij` with respect to parameters and rows, for a symmetric `A Bᵀ`.

    As in `gram.pull_back`, only rows on the left are differentiated, and counted twice.
    """
    starts = list(pairwise(offsets(sections)))
    columns = [(tiled(rows, 1), tiled(right[i:j], 1, fill=0.0)) for rows, (i, j) in zip(sections, starts)]

    def some_rows(tiles: Any, columns: Any) -> tuple[Any, Any]:
        def one(total: Any, tile: Any) -> tuple[Any, Any]:
            rows, a = tile

            def pull(others: Any, weight: Array) -> tuple[Any, Any]:
                return jax.vjp(lambda parameters, rows: block(parameters, rows, others), parameters, rows)[1](weight)

            def add(state: Any, tile: Any) -> tuple[Any, None]:
                k, others, b = tile
                return jax.tree.map(jnp.add, state, apart(k, pull, others, a @ b.T)), None

            state = (total, jax.tree.map(jnp.zeros_like, rows))
            for others, b in columns:
                state, _ = jax.lax.scan(add, state, (jnp.arange(row_count(others)), others, b))
            return state

        total, found = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, parameters), tiles)
        return (total if mesh is None else jax.lax.psum(total, mesh.axis_names)), found

    parameter_gradient, section_gradients = jax.tree.map(jnp.zeros_like, parameters), []
    task, devices = some_rows, 1
    if mesh is not None:
        row, whole, devices = PartitionSpec(mesh.axis_names), PartitionSpec(), mesh.size
        task = jax.shard_map(some_rows, mesh=mesh, in_specs=(row, whole), out_specs=(whole, row), check_vma=False)
    for rows, (i, j) in zip(sections, starts):
        part, found = task((tiled(rows, devices), tiled(left[i:j], devices, fill=0.0)), columns)
        parameter_gradient = jax.tree.map(jnp.add, parameter_gradient, part)
        whole_rows = lambda leaf, n=j - i: 2 * leaf.reshape(-1, *leaf.shape[2:])[:n]
        section_gradients.append(jax.tree.map(whole_rows, found))
    return everywhere((parameter_gradient, tuple(section_gradients)), mesh)
