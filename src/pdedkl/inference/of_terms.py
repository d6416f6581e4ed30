"""Predictions of terms that are not linear in the fields, such as a positive function or a flux.

A term `F(q, ℓ_1, …, ℓ_k)` of rows `ℓ = L u` is a known function of normal variables. Of one row, as in
`a = exp(log_a)`, mean and variance are integrals by Gauss–Hermite quadrature, and quantiles are those of the row seen
through `F`, which is monotone. Of several rows, as in `a ∂u/∂x`, it is linearised at their means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..equations import Nonlinear, Term, compiled_term, linearised, plain
from .linearising import linear_row, means
from .prediction import Prediction, Through

# Nodes of the quadrature.
NODES = 32


def predicted(posterior: Any, term: Term, points: Any, batch_size: int | None) -> Prediction:
    """The prediction of a term that is not linear in the fields."""
    operator = plain(compiled_term(term), posterior.model.kernel.fields)
    assert isinstance(operator, Nonlinear)
    if len(operator.rows) == 1:
        row = posterior.predict(points, operator.rows[0], batch_size=batch_size)
        return _of_one(operator, row)
    q = posterior.predict(points, operator.rows[0], batch_size=batch_size).points
    at = np.stack([means(posterior, row, q) for row in operator.rows], axis=1)
    found = linearised(operator, q, at)
    row = posterior.predict(q, linear_row(operator, q, np.asarray(found.slopes)), batch_size=batch_size)
    return Prediction(np.asarray(found.value), row.variance, row.clamped, q, row.names, str(operator))


def _of_one(operator: Nonlinear, row: Prediction) -> Prediction:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / np.sum(weights)
    through = Through(operator, row.mean, row.std)
    values = np.stack([through(row.points, node) for node in nodes])
    mean = weights @ values
    variance = weights @ (values - mean) ** 2
    return Prediction(mean, variance, row.clamped, row.points, row.names, str(operator), through)
