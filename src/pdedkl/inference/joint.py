"""The joint posterior of rows of several operators, before calibration, as arrays for NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled_quickly
from ..operators import Operator
from . import rows
from .cholesky import half_solve, solve
from .rows import ROUNDING
from .staged import between, cross_of, matrix_of

# Jitter of a posterior covariance: this fraction of the variances, and at least their rounding errors.
JITTER = 1e-6

Rows = Sequence[tuple[Operator, Any]]


class Joint(NamedTuple):
    """The mean and the covariance of rows given the data, their prior variances, and `K⁻¹ K(data, rows)`."""

    mean: Float[np.ndarray, " m"]
    covariance: Float[np.ndarray, "m m"]
    prior: Float[np.ndarray, " m"]
    solved: Float[np.ndarray, "n m"]

    @property
    def spare(self) -> Float[np.ndarray, " m"]:
        """The jitter that rounding calls for."""
        return JITTER * np.maximum(np.diagonal(self.covariance), 0.0) + ROUNDING * self.prior

    def of(self, part: np.ndarray) -> Joint:
        """The same for some of the rows."""
        return Joint(self.mean[part], self.covariance[np.ix_(part, part)], self.prior[part], self.solved[:, part])

    def factor(self, part: np.ndarray) -> Float[np.ndarray, "k k"]:
        """The Cholesky factor of the covariance of some rows, with as little of the jitter as works."""
        return _factorised(self.covariance[np.ix_(part, part)], self.spare[part])


def joint(posterior: Any, wanted: Rows) -> Joint:
    """The joint posterior of rows, given as operators and their points."""
    found, data = rows.test_rows(posterior, *wanted), rows.data_of(posterior).rows
    prior = matrix_of(found.parts, found.layout)
    with_data = between(between(np.asarray(cross_of(found.parts, data.parts)), found.layout).T, data.layout)
    explained, solved = map(np.asarray, _explained(posterior.solver.factor, with_data))
    mean = np.concatenate([rows.prior_mean(posterior, operator, points) for operator, points in wanted])
    return Joint(mean + with_data.T @ np.asarray(posterior.alpha), prior - explained, np.diagonal(prior), solved)


@compiled_quickly
def _explained(factor: Float[Array, "n n"], with_data: Float[Array, "n m"]) -> tuple[Array, Array]:
    half = half_solve(factor, with_data)
    return half.T @ half, solve(factor, with_data)


def _factorised(covariance: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """Rounding may make the matrix indefinite."""
    for rung in range(60):
        try:
            return np.linalg.cholesky(covariance + np.diag(10 ** (rung / 2) * spare))
        except np.linalg.LinAlgError:
            continue
    raise ArithmeticError("The posterior covariance has no finite values: check length scales and variances.")
