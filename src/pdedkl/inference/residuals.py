"""What residuals at fresh values tell about `u` elsewhere.

Let `r = y − m` be the residuals of rows `Z` that a posterior was not conditioned on, and `C` its covariance. Given
them, the error of `u` at a point `a` is normal with

    mean  C(a, Z) C(Z, Z)⁻¹ r,      variance  C(a, a) − C(a, Z) C(Z, Z)⁻¹ C(Z, a).

So fresh values of a source and of conditions show how far `u` is off inside, where it is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from ..observations import Observation
from ..operators import Operator, identity
from .calibration import WIDTH
from .joint import Joint, joint
from .rows import ROUNDING

# Fresh values leave `u` open if they leave more than this fraction of its variance.
OPEN = 0.5
# The part of a residual that says nothing about other rows: this fraction of its standard deviation, and a multiple of
# the rounding error of the covariance.
OWN, TIMES_ROUNDING = 1e-2, 3.0


class ErrorInside(NamedTuple):
    """The error of `u` at places, as residuals show it: its mean, and the variance `left`.

    `claimed` is the variance that the posterior gives.
    """

    mean: Float[np.ndarray, " m"]
    left: Float[np.ndarray, " m"]
    claimed: Float[np.ndarray, " m"]

    @property
    def open(self) -> bool:
        """Whether the residuals tell too little about `u`."""
        return bool(np.mean(self.left) > OPEN * np.mean(self.claimed))

    @property
    def squares(self) -> Float[np.ndarray, " m"]:
        """The expected squares of the errors."""
        return self.mean**2 + self.left

    def coverage(self) -> float:
        """The expected fraction of places whose error is within the 95 % interval."""
        width, s = WIDTH * np.sqrt(self.claimed), np.sqrt(self.left)
        return float(np.mean(ndtr((width - self.mean) / s) - ndtr((-width - self.mean) / s)))


def error_inside(
    posterior: Any, fresh: Sequence[Observation], places: np.ndarray, operator: Operator = identity
) -> ErrorInside:
    """The error of `u` at places, from the residuals of fresh values, with covariances as the posterior has them.

    What learned numbers add to the error is not seen there: `u` follows them so that the equation holds. It is left.
    """
    calibration = posterior.calibration
    probes = None if calibration is None else calibration.probes
    first = [] if probes is None else list(zip(probes.operators, probes.points))
    rows = [*first, *((item.operator, item.points) for item in fresh), (operator, places)]
    found = joint(posterior.uncalibrated(), rows)
    covariance, start = found.covariance, sum(len(points) for _, points in first)
    if calibration is not None:
        covariance = float(calibration.factors[-1]) ** 2 * covariance
    if probes is not None:
        v = solve_triangular(np.asarray(probes.factor), found.covariance[:start], lower=True)
        covariance = covariance + (v.T * np.asarray(calibration.weights())) @ v
    kept = found._replace(covariance=covariance).of(np.arange(start, len(covariance)))
    values = np.concatenate([np.asarray(item.values) for item in fresh])
    return error_given(kept, values, posterior.predict(places, operator).variance)


def error_given(rows: Joint, values: np.ndarray, claimed: np.ndarray) -> ErrorInside:
    """The error of the last rows, given the values of the first ones.

    Each residual may have a small part that says nothing about other rows: what a kernel that does not fit holds for
    almost impossible. It is at least as large as rounding, which shows in negative eigenvalues of the covariance.
    """
    n = len(values)
    size = np.sqrt(np.maximum(np.diagonal(rows.covariance)[:n], 0.0) + ROUNDING * rows.prior[:n])
    among = rows.covariance[:n, :n] + np.diag(ROUNDING * rows.prior[:n])
    eigenvalues, vectors = np.linalg.eigh(among / np.outer(size, size))
    spectrum = np.maximum(eigenvalues, 0.0) + max(OWN**2, -TIMES_ROUNDING * eigenvalues[0])
    turned = vectors.T @ ((values - rows.mean[:n]) / size)
    v = vectors.T @ (rows.covariance[:n, n:] / size[:, None]) / np.sqrt(spectrum)[:, None]
    left = np.maximum(claimed - np.sum(v**2, axis=0), rows.spare[n:])
    return ErrorInside(v.T @ (turned / np.sqrt(spectrum)), left, claimed)
