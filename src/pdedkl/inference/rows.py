"""The compiled part of a prediction: test points against the data of a posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled, compiled_quickly
from ..means import observed_mean
from ..operators import Operator

# A variance is a difference of two numbers of the size of the prior variance, so it has a few of their rounding errors.
ROUNDING = 16 * float(np.finfo(float).eps)

Points = Float[np.ndarray, "m d"] | Float[Array, "m d"]
OtherPoints = Float[np.ndarray, "n d"] | Float[Array, "n d"]


class TestRows(NamedTuple):
    parameters: Any
    rows: Any
    with_data: Float[Array, "m n"]


def test_rows(posterior: Any, operator: Operator, points: Any) -> TestRows:
    engine, kernel = posterior.engine, posterior.model.kernel
    parameters = engine.parameters(kernel)
    rows = engine.rows(kernel, posterior.model.bound(operator), points)
    blocks = [engine.block(parameters, rows, data) for data in posterior.sections]
    return TestRows(parameters, rows, jnp.concatenate(blocks, axis=1))


def predicted(posterior: Any, operator: Operator, points: Points) -> tuple[Array, Array, Array]:
    """Mean, variance, and the rounding error of the variance."""
    test = test_rows(posterior, operator, points)
    prior_mean = observed_mean(posterior.model.mean, posterior.model.bound(operator), jnp.asarray(points))
    prior = posterior.engine.diagonal(test.parameters, test.rows)
    variance = prior - posterior.solver.explained(posterior.gram, test.with_data.T)
    return prior_mean + test.with_data @ posterior.alpha, variance, ROUNDING * jnp.abs(prior)


predict_batch, predict_few = compiled(predicted), compiled_quickly(predicted)


def jointly(
    posterior: Any, operator: Operator, points: Points, other_operator: Operator, other_points: OtherPoints
) -> Float[Array, "m n"]:
    left = test_rows(posterior, operator, points)
    right = test_rows(posterior, other_operator, other_points)
    prior = posterior.engine.block(left.parameters, left.rows, right.rows)
    return prior - posterior.solver.cross(posterior.gram, left.with_data.T, right.with_data.T)


covariance, covariance_of_few = compiled(jointly), compiled_quickly(jointly)
