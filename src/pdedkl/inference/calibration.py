"""Factors for standard deviations, from values that a posterior was not conditioned on.

The error bars of a trained posterior are often too narrow, and sometimes too wide. The size of `z = (y − m)/s` at fresh
values shows by how much, and multiplying `s` by this size is right on average. Values of `u` and of its source need
different factors: a source that is known at every data point may be predicted ten times better than claimed while most
of the error of `u` comes from noise on the boundary. So there is one factor for each order of derivatives that was
compared. An order in between takes the geometric mean of the factors of its neighbours, but no less than the factor of
the order below: what causes the error of `u` also causes the error of its slopes.

Fresh values of `u` exist only on the boundary and at the initial time, but error bars are wanted inside. If errors are
normal with `c²` times the claimed covariance, the error at a fresh value predicts the error at another point by

    E[z(q)² | z_j] = ρ² z_j² + (1 − ρ²) c²,

with the posterior correlation `ρ` of the two. So each point inside gives a vote of weight `ρ²` to the fresh value that
it is most correlated with, and spreads the rest of its vote over all fresh values. If the mean of `ρ²` is nearly zero,
`u` inside depends on the source alone, and then fresh values of `u` do not lower the factor of `u` below that of the
source.

Multiplying the covariance of `A u` with `B u` by the factors of both keeps it positive definite; means do not change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ndtri

from ..operators import Operator

# A normal variable is within `WIDTH` standard deviations of its mean with probability 0.95.
WIDTH = float(ndtri(0.975))
# Limits of a factor: values that agree to the last bit show that error bars are too wide, not that they should be zero.
SMALLEST, LARGEST = 1e-3, 1e6
# Below this mean of `ρ²`, the factor of `u` is mixed with the factor of the source (docs/studies.md).
TELLING = 0.05


class Calibration(eqx.Module):
    """`factors[k]` multiplies standard deviations of operators of order `orders[k]`; `source` says how it was found."""

    factors: Float[Array, " k"]
    orders: tuple[int, ...] = eqx.field(static=True)
    source: str = eqx.field(static=True)

    def factor(self, operator: Operator) -> Float[Array, ""]:
        """The factor of the operator's order, or one computed from the factors of the orders below and above it."""
        above = bisect_right(self.orders, operator.order)
        below = self.factors[max(above - 1, 0)]
        if above in (0, len(self.orders)) or operator.order == self.orders[above - 1]:
            return below
        return jnp.maximum(below, jnp.sqrt(below * self.factors[above]))

    def _in_words(self) -> str:
        """The factors in words."""
        factors = [f"{float(f):.2g} (order {k})" for f, k in zip(self.factors, self.orders)]
        return f"times {', '.join(factors)}, from {self.source}"


class Compared(NamedTuple):
    """Errors `y − m` of operators of one order, with their claimed `variance`.

    `noise` is the variance of the noise of `y`, and `weight` says how much each error counts. `told` is the mean of
    `ρ²` over the points inside.
    """

    order: int
    errors: np.ndarray
    variance: np.ndarray
    noise: np.ndarray
    weight: np.ndarray
    told: float = 1.0


def calibration_of(fresh: Sequence[Compared], left_out: Sequence[Compared], source: str) -> Calibration:
    """The factors that make `z` standard normal, one for each order.

    Left-out values never narrow an error bar, since training has seen them. Values with noise do not either: errors no
    larger than the noise say nothing about smaller errors.
    """
    least = {item.order: 1.0 for item in left_out} | {item.order: SMALLEST for item in fresh}
    least |= {item.order: 1.0 for item in fresh if np.any(item.noise > 0)}
    factors = []
    for order in (orders := tuple(sorted(least))):
        same = [item for item in (*fresh, *left_out) if item.order == order]
        columns = (np.concatenate([item[k] for item in same]) for k in (1, 2, 3, 4))
        factors.append(max(factor_of(*columns), least[order]))
    for k, order in list(enumerate(orders[:-1]))[::-1]:
        heard = min(max(item.told for item in (*fresh, *left_out) if item.order == order) / TELLING, 1.0)
        if heard < 1:
            above = max(factors[k], factors[k + 1])
            factors[k] = float(np.sqrt(heard * factors[k] ** 2 + (1 - heard) * above**2))
    return Calibration(jnp.asarray(factors), orders, source)


def votes(correlation: Float[np.ndarray, "m n"]) -> Float[np.ndarray, " n"]:
    """How much each of `n` fresh values counts for `m` points inside, on average 1; see above."""
    most_alike, alike = np.argmax(np.abs(correlation), axis=1), alikeness(correlation)
    count, fresh = correlation.shape
    given = np.bincount(most_alike, weights=alike, minlength=fresh)
    return given * fresh / count + (1 - np.mean(alike))


def alikeness(correlation: Float[np.ndarray, "m n"]) -> Float[np.ndarray, " m"]:
    """`ρ²` of each point with the fresh value that it is most correlated with."""
    return np.minimum(np.max(np.abs(correlation), axis=1) ** 2, 1.0)


def factor_of(errors: np.ndarray, variance: np.ndarray, noise: np.ndarray, weight: np.ndarray) -> float:
    """The `c` for which `z = e / √(c² v + noise)` has spread 1, by bisection: the spread falls as `c` grows."""
    low, high = np.log(SMALLEST), np.log(LARGEST)
    for _ in range(60):
        middle = 0.5 * (low + high)
        total = np.exp(2 * middle) * variance + noise
        z = np.divide(errors, np.sqrt(total), out=np.where(errors == 0, 0.0, np.inf), where=total > 0)
        low, high = (middle, high) if spread(z, weight) > 1 else (low, middle)
    return float(np.exp(0.5 * (low + high)))


def spread(z: np.ndarray, weight: np.ndarray) -> float:
    """The standard deviation of the normal distribution about zero that has the same 95 % quantile of `|z|`.

    The quantile may be far from the root mean square: if all `|z|` are alike, as for a constant error, or if a few
    corners hold nearly all of the squared error. So the result is kept within a quarter of the root mean square.
    """
    size, order = np.abs(z), np.argsort(np.abs(z))
    reached = np.cumsum(weight[order]) / np.sum(weight)
    quantile = size[order[np.searchsorted(reached, 0.95)]] / WIDTH
    root_mean_square = np.sqrt(np.average(size**2, weights=weight))
    return float(np.clip(quantile, root_mean_square / 1.25, root_mean_square / 0.75))
