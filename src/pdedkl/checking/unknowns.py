"""What the uncertainty of learned coefficients adds to that of `u`.

Error bars are those for the coefficients `θ` as they were learned. If these change by `δ`, then to first order the rows
of the data change by `J δ` with `J = ∂(A_θ m)/∂θ` for the posterior mean `m`. So the data are `y = A u + J δ + ε`, and

    cov(θ) = (Λ⁻¹ + Jᵀ K⁻¹ J)⁻¹,    w(a) = Jᵀ K⁻¹ k(D, a),

with a wide prior `Λ` and rows `D` of the data: `u` at a point `a` has the further variance `w(a)ᵀ cov(θ) w(a)`.
"""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve

from ..inference import Posterior
from ..inference.joint import joint
from ..inference.solver import Factorised
from ..operators import identity

# The step of a coefficient in differences, and its prior standard deviation; relative to its size, or to one.
STEP, WIDE = 1e-4, 10.0


def variance_by_coefficients(posterior: Posterior, places: np.ndarray) -> Float[np.ndarray, " m"]:
    """The variance of `u` at the places that comes from learned coefficients, zero if there are none."""
    names = sorted(posterior.model.coefficients)
    if not names or not isinstance(posterior.solver, Factorised):
        return np.zeros(len(places))
    sizes = np.asarray([max(1.0, abs(float(posterior.model.coefficients[name]))) for name in names])
    slopes = np.stack([_slope(posterior, name, STEP * size) for name, size in zip(names, sizes)], axis=1)
    solved = cho_solve((np.asarray(posterior.solver.factor), True), slopes)
    precision = slopes.T @ solved + np.diag(1 / (WIDE * sizes) ** 2)
    of_u = joint(posterior.uncalibrated(), [(identity, places)]).solved.T @ slopes
    return np.sum(of_u * np.linalg.solve(precision, of_u.T).T, axis=1)


def _slope(posterior: Posterior, name: str, step: float) -> np.ndarray:
    """How all rows of the data, applied to the posterior mean, change with one coefficient."""

    def rows(shift: float) -> np.ndarray:
        where = lambda model: model.coefficients[name]
        moved = replace(posterior, model=eqx.tree_at(where, posterior.model, replace_fn=lambda raw: raw + shift))
        return np.concatenate([moved.predict(item.points, item.operator).mean for item in posterior.observations])

    return (rows(step) - rows(-step)) / (2 * step)
