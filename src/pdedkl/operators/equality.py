"""Equality of operators, by comparing their trees. Different operators may print the same text."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def same(left: Any, right: Any) -> bool:
    """Whether two operators have the same classes, coordinates, numbers and functions.

    Python functions are compared by identity. Two lambdas with the same text are two functions.
    """
    structures: list[Any] = [jax.tree.structure(left), jax.tree.structure(right)]
    if structures[0] != structures[1]:
        return False
    return all(map(_same_leaf, jax.tree.leaves(left), jax.tree.leaves(right)))


def _same_leaf(left: Any, right: Any) -> bool:
    if isinstance(left, jax.core.Tracer) or isinstance(right, jax.core.Tracer):
        return jnp.shape(left) == jnp.shape(right)  # traced values have no numbers to compare yet
    if hasattr(left, "shape") and hasattr(right, "shape"):
        a, b = np.asarray(left), np.asarray(right)
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    # Python creates a new bound method at each access; two of the same object are equal but not identical.
    return left is right or (callable(left) and bool(left == right)) or (type(left) is type(right) and left == right)
