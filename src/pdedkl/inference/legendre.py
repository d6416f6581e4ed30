"""Legendre polynomials that are orthonormal on an interval: coefficients of them add up to variances (Parseval)."""

from __future__ import annotations

from functools import reduce

import numpy as np
from jaxtyping import Float


def values(degrees: int, x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape k"]:
    """`√(2k+1) P_k(x)` for `k` below `degrees`: `½ ∫ p_j p_k dx` over `[-1, 1]` is one for `j = k`, otherwise zero."""
    return np.polynomial.legendre.legvander(x, degrees - 1) * np.sqrt(2 * np.arange(degrees) + 1)


def transform(count: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """The `count` nodes of Gauss on `[-1, 1]`, and the matrix that takes values there to coefficients.

    With as many nodes as degrees both directions are exact, and the mean square of the values is kept.
    """
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, values(count, nodes).T * (weights / 2)


def product(parts: list[np.ndarray]) -> np.ndarray:
    """The Kronecker product: the last factor changes fastest, as in `meshgrid(…, indexing="ij")`."""
    return reduce(np.kron, parts, np.ones((1, 1)))
