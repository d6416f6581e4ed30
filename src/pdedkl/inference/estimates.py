"""The uncertainty of learned numbers, and what it adds to that of `u`.

Error bars of a Gaussian process are those for the numbers `θ` as they were learned. If these change by `δ`, then to
first order the rows of the data change by `J δ` with `J = ∂(A_θ m)/∂θ` for the posterior mean `m`. So the data are
`y = A u + J δ + ε`, and a row `B_θ` of `u` follows `δ` with the slope

    w = ∂(B_θ m)/∂θ − k(B, D) K⁻¹ J,       cov(B u, B' u) = C(B, B') + w cov(θ) w'ᵀ

with the rows `D` of the data and the covariance `C` for numbers that are known. `cov(θ)` comes from the curvature of
the evidence, in which kernel and noise are integrated out too; without it, it is `(Λ⁻¹ + Jᵀ K⁻¹ J)⁻¹`, the covariance
in the same linear model, with the priors' variances `Λ`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..operators import Operator, Parameter, parameters_of
from ..operators.priors import spread_of

# The step of a number in differences, relative to its size or to one: rows are linear in most numbers.
STEP = 1e-4

CURVATURE, LINEAR = "the curvature of the evidence", "a linear model"


class Estimates(eqx.Module):
    """The covariance of learned numbers, as they are learned, and `K⁻¹ J`, in the order of the names.

    `source` says where the covariance is from.
    """

    covariance: Float[Array, "p p"]
    solved: Float[Array, "n p"]
    names: tuple[str, ...] = eqx.field(static=True)
    source: str = eqx.field(static=True)

    @property
    def root(self) -> Float[np.ndarray, "p p"]:
        """`R` with `R Rᵀ = cov(θ)`."""
        values, vectors = np.linalg.eigh(np.asarray(self.covariance))
        return vectors * np.sqrt(np.maximum(values, 0.0))


def unknowns_of(posterior: Any) -> dict[str, Parameter]:
    """The unknown numbers in the data of a posterior, as they started, by name."""
    return dict(sorted(parameters_of([item.operator for item in posterior.observations]).items()))


def prior_spreads(unknown: Mapping[str, Parameter]) -> Float[np.ndarray, " p"]:
    """The standard deviations before the data, of the numbers as they are learned, in the order of their names."""
    return np.asarray([float(spread_of(one.prior, one.support, float(one.raw))) for _, one in sorted(unknown.items())])


def with_estimates(posterior: Any, covariance: np.ndarray | None = None) -> Any:
    """The posterior with error bars that contain those of its numbers; itself if there are none."""
    unknown = unknowns_of(posterior)
    if not unknown:
        return posterior
    plain = replace(posterior, estimates=None)
    slopes = np.concatenate([slopes_at(plain, item.operator, item.points) for item in posterior.observations])
    solved = np.asarray(posterior.solver.solve(posterior.gram, jnp.asarray(slopes)))
    source = CURVATURE
    if covariance is None:
        prior = prior_spreads(unknown)
        information = slopes.T @ solved
        scaled = np.eye(len(prior)) + prior[:, None] * (0.5 * (information + information.T)) * prior
        covariance, source = prior[:, None] * np.linalg.inv(scaled) * prior, LINEAR
    made = Estimates(jnp.asarray(covariance), jnp.asarray(solved), tuple(unknown), source)
    return replace(posterior, estimates=made)


def slopes_at(posterior: Any, operator: Operator, points: Any) -> Float[np.ndarray, "m p"]:
    """`∂(A_θ m)/∂θ` at points: how rows of an operator, applied to the posterior mean, change with each number."""
    held, names = parameters_of(operator), list(unknowns_of(posterior))
    return np.stack(
        [_slope(posterior, operator, points, name) if name in held else np.zeros(len(points)) for name in names], axis=1
    )


def _slope(posterior: Any, operator: Operator, points: Any, name: str) -> np.ndarray:
    where = lambda model: model.coefficients[name]
    step = STEP * max(1.0, abs(float(where(posterior.model))))

    def mean(shift: float) -> np.ndarray:
        model = eqx.tree_at(where, posterior.model, replace_fn=lambda raw: raw + shift)
        moved = replace(posterior, model=model, calibration=None, estimates=None)
        return np.asarray(moved.predict(points, operator).mean)

    return (mean(step) - mean(-step)) / (2 * step)
