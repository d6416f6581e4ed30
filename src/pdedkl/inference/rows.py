"""The compiled part of a prediction: test points against the data of a posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled, compiled_quickly
from ..means import observed_mean
from ..operators import Operator
from .calibration import Probes
from .cholesky import half_solve

# The rounding error of a number, relative to its size.
EPSILON = float(np.finfo(float).eps)
# A variance is a difference of two numbers of the size of the prior variance, so it has a few of their rounding errors.
ROUNDING = 16 * EPSILON

Points = Float[np.ndarray, "m d"] | Float[Array, "m d"]
OtherPoints = Float[np.ndarray, "n d"] | Float[Array, "n d"]


class TestRows(NamedTuple):
    parameters: Any
    rows: Any
    with_data: Float[Array, "m n"]


class Predicted(NamedTuple):
    """Mean and variance of test rows, before calibration.

    `variance` may be negative because of rounding, by less than `rounding`. `of_mean` is the variance of the rounding
    error of the mean. `whitened` are the covariances with the probes of the calibration, `v` in `calibration.py`.
    """

    mean: Float[Array, " m"]
    variance: Float[Array, " m"]
    rounding: Float[Array, " m"]
    of_mean: Float[Array, " m"]
    whitened: Float[Array, "z m"]


def test_rows(posterior: Any, operator: Operator, points: Any) -> TestRows:
    engine, kernel = posterior.engine, posterior.model.kernel
    parameters = engine.parameters(kernel)
    rows = engine.rows(kernel, posterior.model.bound(operator), points)
    blocks = [engine.block(parameters, rows, data) for data in posterior.sections]
    return TestRows(parameters, rows, jnp.concatenate(blocks, axis=1))


def predicted(posterior: Any, operator: Operator, points: Points) -> Predicted:
    test = test_rows(posterior, operator, points)
    prior_mean = observed_mean(posterior.model.mean, posterior.model.bound(operator), jnp.asarray(points))
    prior = posterior.engine.diagonal(test.parameters, test.rows)
    return Predicted(
        mean=prior_mean + test.with_data @ posterior.alpha,
        variance=prior - posterior.solver.explained(posterior.gram, test.with_data.T),
        rounding=ROUNDING * jnp.abs(prior),
        # Each of the terms of the mean is rounded, and they may be far larger than their sum.
        of_mean=(EPSILON * (jnp.abs(test.with_data) @ jnp.abs(posterior.alpha))) ** 2,
        whitened=whitened(posterior, test),
    )


predict_batch, predict_few = compiled(predicted), compiled_quickly(predicted)


def whitened(posterior: Any, test: TestRows) -> Float[Array, "z m"]:
    """`L⁻¹ c` for the posterior covariances `c` of test rows with the probes; no rows if there are no probes."""
    calibration = posterior.calibration
    probes: Probes | None = None if calibration is None else calibration.probes
    if probes is None:
        return jnp.zeros((0, test.with_data.shape[0]))
    with_probes = [posterior.engine.block(test.parameters, test.rows, rows) for rows in probe_rows(posterior, probes)]
    return half_solve(probes.factor, (jnp.concatenate(with_probes, axis=1) - test.with_data @ probes.solved).T)


def probe_rows(posterior: Any, probes: Probes) -> list[Any]:
    """The probes as the engine needs them."""
    model, engine = posterior.model, posterior.engine
    return [engine.rows(model.kernel, model.bound(op), q) for op, q in zip(probes.operators, probes.points)]


def jointly(
    posterior: Any, operator: Operator, points: Points, other_operator: Operator, other_points: OtherPoints
) -> Float[Array, "m n"]:
    """The posterior covariance of two sets of rows, calibrated if the posterior is."""
    left = test_rows(posterior, operator, points)
    right = test_rows(posterior, other_operator, other_points)
    prior = posterior.engine.block(left.parameters, left.rows, right.rows)
    plain = prior - posterior.solver.cross(posterior.gram, left.with_data.T, right.with_data.T)
    calibration = posterior.calibration
    if calibration is None:
        return plain
    weights = calibration.weights()
    of_probes = (whitened(posterior, left).T * weights) @ whitened(posterior, right)
    return calibration.factors[-1] ** 2 * plain + of_probes


covariance, covariance_of_few = compiled(jointly), compiled_quickly(jointly)
