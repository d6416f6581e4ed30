"""Loops that XLA compiles well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def apart(k: Array, function: Callable, *arguments: Any) -> Any:
    """`function(*arguments)` in step `k` of a loop, compiled as a computation of its own.

    XLA would fuse the slices that a loop takes and the update it ends with into everything between them, and on a CPU
    such a fusion runs on one thread, several times slower. It does not fuse across the branch of a conditional.
    """
    if jax.default_backend() != "cpu":
        return function(*arguments)
    once = jax.jit(lambda *each: function(*each))  # traced once; a bound method of a module cannot be hashed
    out = jax.eval_shape(once, *arguments)
    nothing = lambda *_: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), out)
    return jax.lax.cond(k >= 0, once, nothing, *arguments)
