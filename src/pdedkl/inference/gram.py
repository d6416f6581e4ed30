"""Gram matrices, assembled in chunks of rows, and cotangents pulled back through the same chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Pairs per chunk. On a CPU the planes of a chunk should stay in the cache; a GPU needs large chunks.
PAIRS_PER_CHUNK = {"cpu": 1 << 16, "gpu": 1 << 22}


def row_count(rows: Any) -> int:
    return jax.tree.leaves(rows)[0].shape[0]


def offsets(sections: Sequence[Any]) -> list[int]:
    out = [0]
    for rows in sections:
        out.append(out[-1] + row_count(rows))
    return out


def assemble(block: Callable[[Any, Any], Array], sections: Sequence[Any]) -> Float[Array, "n n"]:
    """The covariances `block(left, right)` of all rows of all sections; only the upper block triangle is filled."""
    starts = offsets(sections)
    n = starts[-1]
    gram = jnp.zeros((n, n))
    for a, rows in enumerate(sections):
        size, count = _chunks(row_count(rows), n)

        def fill(k: Array, gram: Array, a=a, rows=rows, size=size) -> Array:
            start = _chunk_start(k, size, row_count(rows))
            left = _slice(rows, start, size)
            for right, column in zip(sections[a:], starts[a:]):
                part = apart(k, block, left, right)
                gram = jax.lax.dynamic_update_slice(gram, part, (starts[a] + start, column))
            return gram

        gram = _loop(count, fill, gram)
    return gram


def pull_back(
    block: Callable[[Any, Any, Any], Array],
    parameters: Any,
    sections: tuple[Any, ...],
    weights: Callable[[Array, int], Float[Array, "m n"]],
) -> tuple[Any, tuple[Any, ...]]:
    """The gradient of `Σ_ij W_ij K_ij` with respect to parameters and rows, for a symmetric `W`.

    `weights(i, m)` gives rows `i … i + m` of `W`. Since `K` is symmetric too, a row contributes the same on the right
    as on the left: only the left is differentiated, and counted twice.
    """
    starts = offsets(sections)
    n = starts[-1]
    parameter_gradient = jax.tree.map(jnp.zeros_like, parameters)
    section_gradients = []
    for a, rows in enumerate(sections):
        size, count = _chunks(row_count(rows), n)

        def step(k: Array, state: tuple[Any, Any], a=a, rows=rows, size=size) -> tuple[Any, Any]:
            parameter_sum, row_sum = state
            start = _chunk_start(k, size, row_count(rows))
            # The last chunk overlaps the one before it: rows that were counted there are masked here.
            fresh = (start + jnp.arange(size) >= k * size)[:, None]
            weight = jnp.where(fresh, weights(starts[a] + start, size), 0.0)
            strip = [weight[:, i:j] for i, j in pairwise(starts)]

            def strips(parameters: Any, left: Any) -> list[Array]:
                return [block(parameters, left, right) for right in sections]

            def pull(left: Any, strip: list[Array]) -> tuple[Any, Any]:
                return jax.vjp(strips, parameters, left)[1](strip)

            parameter_part, row_part = apart(k, pull, _slice(rows, start, size), strip)
            parameter_sum = jax.tree.map(jnp.add, parameter_sum, parameter_part)
            row_sum = jax.tree.map(lambda total, part: _add_at(total, 2 * part, start), row_sum, row_part)
            return parameter_sum, row_sum

        start = (parameter_gradient, jax.tree.map(jnp.zeros_like, rows))
        parameter_gradient, row_gradient = _loop(count, step, start)
        section_gradients.append(row_gradient)
    return parameter_gradient, tuple(section_gradients)


def _chunks(rows: int, columns: int) -> tuple[int, int]:
    """Rows per chunk and number of chunks, balanced."""
    pairs = PAIRS_PER_CHUNK.get(jax.default_backend(), PAIRS_PER_CHUNK["gpu"])
    count = -(-rows * columns // pairs)
    size = -(-rows // count)
    return size, -(-rows // size)


def _chunk_start(k: Array, size: int, rows: int) -> Array:
    return jnp.minimum(k * size, rows - size)


def _slice(rows: Any, start: Array, size: int) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, size), rows)


def _add_at(total: Array, part: Array, start: Array) -> Array:
    old = jax.lax.dynamic_slice_in_dim(total, start, part.shape[0])
    return jax.lax.dynamic_update_slice_in_dim(total, old + part, start, axis=0)


def apart(k: Array, function: Callable, *arguments: Any) -> Any:
    """`function(*arguments)` in step `k` of a loop, compiled as a separate computation.

    Otherwise XLA fuses the slices and the update of a loop with all computations between them. On a CPU such a fusion
    runs on one thread, several times slower. XLA does not fuse across the branch of a conditional.
    """
    if jax.default_backend() != "cpu":
        return function(*arguments)
    once = jax.jit(lambda *each: function(*each))  # traced once; a bound method of a module cannot be hashed
    out = jax.eval_shape(once, *arguments)
    nothing = lambda *_: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), out)
    return jax.lax.cond(k >= 0, once, nothing, *arguments)


def _loop(count: int, body: Callable, state: Any) -> Any:
    return body(jnp.asarray(0), state) if count == 1 else jax.lax.fori_loop(0, count, body, state)
