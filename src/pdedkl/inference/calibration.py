"""Error bars that fit values which a posterior was not conditioned on.

The error of `u` has several causes: what is not known about each condition, and what is not known about the source. The
error bars of a trained posterior are often too narrow for one cause and too wide for another: a source that is known at
every data point may be predicted ten times better than claimed, while most of the error of `u` comes from noise on the
boundary. So each cause has its own factor.

Let `C` be the posterior covariance, as a function of two rows (an operator at a point), and let `Z₁, Z₂, …` be probes:
rows of the first condition at many points, of the second, …, of the source. Conditioning on the probes of the first
cause would remove the part `C₁` of the covariance, the probes of the second cause the part `C₂` of what is left, and so
on. `C₀` is what none of them removes. With `c(a)` the covariances of a row `a` with all probes,

    v(a) = L⁻¹ c(a),   L Lᵀ = C(Z, Z),   C_g(a, b) = Σ_{i in Z_g} v_i(a) v_i(b),

and the calibrated covariance is `Σ_g s_g² C_g + s₀² C₀`, where `s₀` is the factor of the last cause. Every part is the
covariance of a Gaussian process, so their sum is one too: it is linear in both operators, and the process `A u` is `A`
applied to the process `u`. Means do not change.

The factors are those for which `z = (y − m)/s` has spread 1 at the fresh values of each cause.

Where fresh values determine the error of `u` inside (`residuals.py`), values of `u` inside are the first cause: their
factor makes 95 % of these errors fall into their intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ndtri

from ..compilation import library_for
from ..operators import Operator

# A normal variable is within `WIDTH` standard deviations of its mean with probability 0.95.
WIDTH = float(ndtri(0.975))
# Limits of a factor: values that agree to the last bit show that error bars are too wide, not that they should be zero.
SMALLEST, LARGEST = 1e-3, 1e6
# Sweeps over the causes: the factor of one changes what is left to explain for the others.
SWEEPS = 6
# If the other causes already cover the fresh values of a cause, its own part may add this much to their error bars.
UNSEEN = 0.05
# A cause that is a small part of the variance of its own fresh values is not made to explain large errors there: its
# factor is at most this multiple of the factor that its fresh values need as a whole.
MOST = 2.0
# How far the 95 % quantile of `|z|` may be from the root mean square of `z` to be taken for the spread.
SLACK = 0.25


class Probes(eqx.Module):
    """Rows that split a posterior covariance into its causes: operators, each at its own points.

    `solved` is `K⁻¹ K(data, Z)`, `factor` is the Cholesky factor of `C(Z, Z)`, and `counts` says how many probes each
    cause has.
    """

    operators: tuple[Operator, ...]
    points: tuple[Float[Array, "_ d"], ...]
    solved: Float[Array, "n z"]
    factor: Float[Array, "z z"]
    counts: tuple[int, ...] = eqx.field(static=True)


class Calibration(eqx.Module):
    """`factors[g]` multiplies the standard deviations that come from cause `g`; `source` says how it was found.

    Without probes there is one cause, the whole error.
    """

    factors: Float[Array, " causes"]
    probes: Probes | None
    causes: tuple[str, ...] = eqx.field(static=True)
    source: str = eqx.field(static=True)

    def weights(self) -> Float[Array, " z"] | Float[np.ndarray, " z"]:
        """`s_g² − s₀²` for each probe: what it adds to `s₀² C`."""
        xp = library_for(self.factors)
        squares = xp.asarray(self.factors) ** 2
        counts = () if self.probes is None else self.probes.counts
        return xp.repeat((squares - squares[-1])[: len(counts)], np.asarray(counts, dtype=int))

    def _in_words(self) -> str:
        """The factors in words."""
        factors = [f"{float(f):.2g} ({name})" for f, name in zip(self.factors, self.causes)]
        return f"times {', '.join(factors)}, from {self.source}"


class Compared(NamedTuple):
    """Errors `y − m` of rows that were not conditioned on, with the variance that was claimed there.

    `parts` has one row for each cause, and sums to the claimed variance. `noise` is the variance of the noise of `y`
    and of rounding, and `weight` says how much each error counts. `slack` is that of `spread`.
    """

    errors: Float[np.ndarray, " n"]
    parts: Float[np.ndarray, "causes n"]
    noise: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    slack: float = SLACK

    @property
    def variance(self) -> np.ndarray:
        """The claimed variance, without noise."""
        return np.sum(self.parts, axis=0)


def factors_of(compared: Sequence[Compared], least: Sequence[float]) -> np.ndarray:
    """The factor of each cause, at `least` the given one, from the errors at fresh values of that cause."""
    whole = [factor_of(c) for c in compared]
    factors = np.asarray(whole)
    for _ in range(SWEEPS if len(compared) > 1 else 1):
        for k in reversed(range(len(compared))):
            c = compared[k]
            others = c.noise + np.sum(np.delete(factors[:, None] ** 2 * c.parts, k, axis=0), axis=0)
            wanted = min(1.0, (1 - UNSEEN) * spread(_scores(c.errors, others), c.weight, c.slack))
            own = c._replace(parts=c.parts[[k]], noise=others)
            factors[k] = max(factor_of(own, wanted, MOST * whole[k]), least[k])
    # Where a factor was limited, error bars of its cause are still too narrow: then all of them are widened.
    common = max(factor_of(c._replace(parts=factors[:, None] ** 2 * c.parts)) for c in compared)
    return factors * max(common, 1.0)


def factor_of(compared: Compared, wanted: float = 1.0, largest: float = LARGEST) -> float:
    """The `c` for which `z = e / √(c² v + noise)` has the `wanted` spread, by bisection: it falls as `c` grows."""
    low, high = np.log(SMALLEST), np.log(max(largest, SMALLEST))
    variance = compared.variance
    for _ in range(60):
        middle = 0.5 * (low + high)
        z = _scores(compared.errors, np.exp(2 * middle) * variance + compared.noise)
        low, high = (middle, high) if spread(z, compared.weight, compared.slack) > wanted else (low, middle)
    return float(np.exp(0.5 * (low + high)))


def _scores(errors: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return np.divide(errors, np.sqrt(variance), out=np.where(errors == 0, 0.0, np.inf), where=variance > 0)


def spread(z: np.ndarray, weight: np.ndarray, slack: float = SLACK) -> float:
    """The standard deviation of the normal distribution about zero that has the same 95 % quantile of `|z|`.

    The quantile may be far from the root mean square: if all `|z|` are alike, as for a constant error, or if a few
    corners hold nearly all of the squared error. So the result is kept within `slack` of the root mean square.
    """
    size, order = np.abs(z), np.argsort(np.abs(z))
    reached = np.cumsum(weight[order]) / np.sum(weight)
    quantile = size[order[np.searchsorted(reached, 0.95)]] / WIDTH
    root_mean_square = np.sqrt(np.average(size**2, weights=weight))
    return float(np.clip(quantile, root_mean_square / (1 + slack), root_mean_square / (1 - slack)))


def votes(correlation: Float[np.ndarray, "m n"]) -> Float[np.ndarray, " n"]:
    """How much each of `n` fresh values counts for `u` at `m` points inside, on average 1.

    Fresh values of a condition lie on the boundary, but error bars are wanted inside. Each point inside gives a vote of
    weight `ρ²` to the fresh value with which its error is most correlated, and spreads the rest of its vote evenly.
    """
    most_alike = np.argmax(np.abs(correlation), axis=1)
    alike = np.minimum(np.max(np.abs(correlation), axis=1) ** 2, 1.0)
    count, fresh = correlation.shape
    given = np.bincount(most_alike, weights=alike, minlength=fresh)
    return given * fresh / count + (1 - np.mean(alike))


def by_cause(values: Float[np.ndarray, "z n"], counts: Sequence[int]) -> Float[np.ndarray, "causes n"]:
    """Sums of rows over the probes of each cause."""
    return np.stack([np.sum(values[i:j], axis=0) for i, j in pairwise(np.cumsum([0, *counts]))])
