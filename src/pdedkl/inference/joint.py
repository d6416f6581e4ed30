"""The joint posterior of rows of several operators, before calibration, as arrays for NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled_quickly
from ..means import observed_mean
from ..operators import Operator, same
from .rows import ROUNDING

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


def joint(posterior: Any, rows: Rows) -> Joint:
    """The joint posterior of rows, given as operators and their points.

    Rows of one operator are computed together.
    """
    kinds: list[tuple[Operator, list[int]]] = []
    for number, (operator, _) in enumerate(rows):
        members = next((members for other, members in kinds if same(other, operator)), None)
        if members is None:
            kinds.append((operator, [number]))
        else:
            members.append(number)
    starts = np.cumsum([0, *(len(points) for _, points in rows)])
    order = np.concatenate([np.arange(starts[i], starts[i + 1]) for _, members in kinds for i in members])
    points = tuple(jnp.concatenate([jnp.asarray(rows[i][1]) for i in members]) for _, members in kinds)
    found = _joint(posterior, tuple(operator for operator, _ in kinds), points)
    return Joint(*map(np.asarray, found)).of(np.argsort(order))


@compiled_quickly
def _joint(
    posterior: Any, operators: tuple[Operator, ...], points: tuple[Float[Array, "_ d"], ...]
) -> tuple[Array, ...]:
    engine, model = posterior.engine, posterior.model
    parameters = engine.parameters(model.kernel)
    bound = [model.bound(operator) for operator in operators]
    rows = tuple(engine.rows(model.kernel, operator, q) for operator, q in zip(bound, points))
    with_data = jnp.concatenate(
        [jnp.concatenate([engine.block(parameters, data, part) for part in rows], 1) for data in posterior.sections]
    )
    count = range(len(rows))
    upper = {(i, j): engine.block(parameters, rows[i], rows[j]) for i in count for j in count if i <= j}
    prior = jnp.block([[upper[i, j] if i <= j else upper[j, i].T for j in count] for i in count])
    explained = posterior.solver.cross(posterior.gram, with_data, with_data)
    solved = posterior.solver.solve(posterior.gram, with_data)
    mean = jnp.concatenate([observed_mean(model.mean, operator, q) for operator, q in zip(bound, points)])
    return mean + with_data.T @ posterior.alpha, prior - explained, jnp.diagonal(prior), solved


def _factorised(covariance: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """Rounding may make the matrix indefinite."""
    for rung in range(60):
        try:
            return np.linalg.cholesky(covariance + np.diag(10 ** (rung / 2) * spare))
        except np.linalg.LinAlgError:
            continue
    raise ArithmeticError("The posterior covariance has no finite values: check length scales and variances.")
