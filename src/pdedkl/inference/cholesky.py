"""Cholesky factors of Gram matrices, with a jitter that is reported, and inverses from them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax.linalg import cholesky, triangular_solve
from jaxtyping import Array, Float

# Jitters to try, relative to each row's variance. The first one that makes the factorisation work is used and reported.
JITTER_LADDER = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)


def factorise(gram: Float[Array, "n n"], noise: Float[Array, " n"]) -> tuple[Float[Array, "n n"], Float[Array, ""]]:
    """`L Lᵀ = K + diag(noise) + ε diag(K)`, and the relative jitter `ε` that was needed.

    Only the upper triangle of `K` is read. All of `L` is NaN if even the largest jitter fails.
    """
    ladder = jnp.asarray(JITTER_LADDER)
    diagonal = jnp.diagonal(gram)
    last = len(JITTER_LADDER) - 1

    def attempt(rung: Array) -> Array:
        # The factorisation overwrites a copy. `where` makes that copy and sets the diagonal in one pass; an update of
        # the diagonal would need another copy. LAPACK is column-major: the transpose turns the upper triangle into the
        # lower one.
        i = jnp.arange(gram.shape[0])
        shifted = jnp.where(i[:, None] == i, (diagonal * (1 + ladder[rung]) + noise)[:, None], gram)
        return cholesky(shifted.T, symmetrize_input=False).T

    def failed(state: tuple[Array, Array]) -> Array:
        rung, factor = state
        return (rung < last) & ~jnp.isfinite(jnp.sum(jnp.diagonal(factor)))

    def climb(state: tuple[Array, Array]) -> tuple[Array, Array]:
        rung, _ = state
        return rung + 1, attempt(rung + 1)

    start = jnp.asarray(0)
    rung, factor = jax.lax.while_loop(failed, climb, (start, attempt(start)))
    return factor.T, ladder[rung]


def solve(factor: Float[Array, "n n"], right: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """`K⁻¹ b` from `K = L Lᵀ`."""
    b = right if right.ndim == 2 else right[:, None]
    half = triangular_solve(factor, b, left_side=True, lower=True)
    out = triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)
    return out.reshape(right.shape)


def half_solve(factor: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """`L⁻¹ B`."""
    return triangular_solve(factor, right, left_side=True, lower=True)


def inverse(factor: Float[Array, "n n"], blocks: int | None = None) -> Float[Array, "n n"]:
    """`K⁻¹` from `K = L Lᵀ`, symmetric to the last bit.

    It is computed from the last block of rows upwards, where `P₂₂` is the part that is already known:

        P₂₁ = −P₂₂ L₂₁ L₁₁⁻¹,  P₁₁ = L₁₁⁻ᵀ (L₁₁⁻¹ − L₂₁ᵀ P₂₁)

    These are mostly matrix products, and no matrix of the size of `K` is needed besides `L` and the result. A GPU is
    faster with one block, and for a small matrix many blocks are not worth their compilation.
    """
    n = factor.shape[0]
    blocks = blocks or (min(1 + n // 250, 8) if jax.default_backend() == "cpu" else 1)
    width = -(-n // blocks)
    out = jnp.zeros((n, n))
    for start in reversed(range(0, n, width)):
        stop = min(start + width, n)
        corner, beneath = factor[start:stop, start:stop], factor[stop:, start:stop]
        right = half_solve(corner, jnp.eye(stop - start))
        if stop < n:
            below = -out[stop:, stop:] @ (beneath @ right)
            right = right - beneath.T @ below
            out = out.at[stop:, start:stop].set(below)
            out = out.at[start:stop, stop:].set(below.T)
        square = triangular_solve(corner, right, left_side=True, lower=True, transpose_a=True)
        out = out.at[start:stop, start:stop].set(0.5 * (square + square.T))
    return out


def left_out(factor: Float[Array, "n n"], alpha: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Each value minus its prediction from all others, with no refit: `α_i / (K⁻¹)_ii`.

    The variance of this difference, noise included, is `1 / (K⁻¹)_ii`.
    """
    variance = 1 / jnp.diagonal(inverse(factor))
    return alpha * variance, variance
