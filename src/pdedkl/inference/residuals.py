"""What residuals at fresh values tell about `u` elsewhere.

Let `r = y − m` be the residuals of rows `Z` that a posterior was not conditioned on, and `C` its covariance. Given
them, the error of `u` at a point `a` is normal with

    mean  C(a, Z) C(Z, Z)⁻¹ r,      variance  C(a, a) − C(a, Z) C(Z, Z)⁻¹ C(Z, a).

So fresh values of a source and of conditions show how far `u` is off inside, where it is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import solve_triangular

from ..compilation import compiled_quickly
from ..observations import Observation
from ..operators import Operator, identity
from .comparing import JITTER, factorised
from .rows import ROUNDING, TestRows, whitened


class ErrorInside(NamedTuple):
    """The error of `u` at places, as residuals show it: its mean, and the variance `left`.

    `claimed` is the variance that the posterior gives.
    """

    mean: Float[np.ndarray, " m"]
    left: Float[np.ndarray, " m"]
    claimed: Float[np.ndarray, " m"]


def error_inside(posterior: Any, fresh: Sequence[Observation], places: np.ndarray) -> ErrorInside:
    """The error of `u` at places, from the residuals of fresh values."""
    operators, points = map(tuple, zip(*((item.operator, item.points) for item in fresh)))
    covariance, prior = map(np.asarray, _jointly(posterior, (*operators, identity), (*points, jnp.asarray(places))))
    count = sum(map(len, fresh))
    own = np.diagonal(covariance)
    spare = JITTER * np.maximum(own, 0.0) + ROUNDING * prior
    factor = factorised(covariance[:count, :count], spare[:count])
    residuals = [np.asarray(item.values) - posterior.predict(item.points, item.operator).mean for item in fresh]
    v = solve_triangular(factor, covariance[:count, count:], lower=True)
    w = solve_triangular(factor, np.concatenate(residuals), lower=True)
    claimed = posterior.predict(places).variance
    return ErrorInside(v.T @ w, np.maximum(claimed - np.sum(v**2, axis=0), spare[count:]), claimed)


@compiled_quickly
def _jointly(
    posterior: Any, operators: tuple[Operator, ...], points: tuple[Float[Array, "_ d"], ...]
) -> tuple[Array, Array]:
    """The posterior covariance of all rows, calibrated if the posterior is, and their prior variances."""
    engine, model = posterior.engine, posterior.model
    parameters = engine.parameters(model.kernel)
    rows = tuple(engine.rows(model.kernel, model.bound(op), q) for op, q in zip(operators, points))
    blocks = [jnp.concatenate([engine.block(parameters, data, part) for data in posterior.sections]) for part in rows]
    with_data, count = jnp.concatenate(blocks, axis=1), range(len(rows))
    upper = {(i, j): engine.block(parameters, rows[i], rows[j]) for i in count for j in count if i <= j}
    prior = jnp.block([[upper[i, j] if i <= j else upper[j, i].T for j in count] for i in count])
    covariance = prior - posterior.solver.cross(posterior.gram, with_data, with_data)
    if (calibration := posterior.calibration) is not None:
        tests = [TestRows(parameters, part, block.T) for part, block in zip(rows, blocks)]
        v = jnp.concatenate([whitened(posterior, test) for test in tests], axis=1)
        covariance = calibration.factors[-1] ** 2 * covariance + (v.T * calibration.weights()) @ v
    return covariance, jnp.diagonal(prior)
