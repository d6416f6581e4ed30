"""Derivatives along vectors, and the unit vectors of coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Coordinates


def along(u: Callable[[Array], Array], v: Any) -> Callable[[Array], Array]:
    """`v·∇u`, by forward differentiation."""
    return lambda q: jax.jvp(u, (q,), (jnp.asarray(v, dtype=q.dtype),))[1]


def unit(index: int, dim: int) -> np.ndarray:
    e = np.zeros(dim)
    e[index] = 1.0
    return e


def units(x: Coordinates) -> Float[Array, "k d"]:
    return jnp.asarray(np.stack([unit(index, x.dim) for index in x.indices]))
