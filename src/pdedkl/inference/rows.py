"""Predictions: the rows of test points against the data of a posterior, in stages (`staged.py`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import array_of, compiled, compiled_quickly
from ..means import ZeroMean, observed_mean
from ..operators import Operator, identity
from ..operators.offset import has_offset, linear_part, offset_at
from ..operators.rows import value_of
from .calibration import Probes
from .cholesky import half_solve
from .estimates import slopes_at
from .parts import Layout, Part, joined
from .solver import Factorised
from .staged import cross_of, rows_at, summed, terms_of, variances_of

# The rounding error of a number, relative to its size.
EPSILON = float(np.finfo(float).eps)
# A variance is a difference of two numbers of the size of the prior variance, so it has a few of their rounding errors.
ROUNDING = 16 * EPSILON

# For at most this number of entries, an optimised compilation takes longer than it saves.
FEW_ENTRIES = 1 << 20


class Joined(NamedTuple):
    """Rows of some operators, as parts of the kernel."""

    sections: tuple[Any, ...]
    parts: tuple[Part, ...]
    layout: Layout


class Data(NamedTuple):
    """What predictions compare test rows with: the rows of the data, and the probes of the calibration."""

    rows: Joined
    probes: Joined | None


class Predicted(NamedTuple):
    """Mean and variance of test rows, before calibration.

    `variance` may be negative because of rounding, by less than `rounding`. `of_mean` is the variance of the rounding
    error of the mean. `whitened` are the covariances with the probes of the calibration, `v` in `calibration.py`.
    `following` is `k(B, D) K⁻¹ J`, how rows follow learned numbers through the data (`estimates.py`).
    """

    mean: Float[Array, " m"]
    variance: Float[Array, " m"]
    rounding: Float[Array, " m"]
    of_mean: Float[Array, " m"]
    whitened: Float[Array, "z m"]
    following: Float[Array, "p m"]


def data_of(posterior: Any) -> Data:
    calibration = posterior.calibration
    probes: Probes | None = None if calibration is None else calibration.probes
    rows = _joined(posterior, posterior.sections)
    return Data(rows, None if probes is None else _joined(posterior, tuple(probe_rows(posterior, probes))))


def values_of_fields(posterior: Any) -> list[Operator]:
    """The values of each field; of `u` where there is one."""
    kernel = posterior.model.kernel
    return [value_of(name) for name in kernel.functions] if len(kernel.fields) > 1 else [identity]


def test_rows(posterior: Any, *rows: tuple[Operator, Any]) -> Joined:
    """The rows of operators, each at its own points."""
    return _joined(posterior, tuple(_rows(posterior, operator, points) for operator, points in rows))


def probe_rows(posterior: Any, probes: Probes) -> list[Any]:
    """The probes as the engine needs them."""
    return [_rows(posterior, operator, points) for operator, points in zip(probes.operators, probes.points)]


def _rows(posterior: Any, operator: Operator, points: Any) -> Any:
    return rows_at(posterior.engine, posterior.model.kernel, posterior.model.bound(operator), points)


def _joined(posterior: Any, sections: tuple[Any, ...]) -> Joined:
    parts, layout = joined(posterior.engine, posterior.engine.parameters(posterior.model.kernel), sections)
    return Joined(sections, parts, layout)


def prior_mean(posterior: Any, operator: Operator, points: Any) -> np.ndarray:
    """The prior mean of a row, with what it knows besides `u`."""
    model = posterior.model
    known = np.zeros(len(points))
    if has_offset(operator):
        known = np.asarray(_offset_at(model.bound(operator), jnp.asarray(points)))
    if isinstance(model.mean, ZeroMean):
        return known
    return known + np.asarray(_mean_at(model.mean, linear_part(model.bound(operator)), jnp.asarray(points)))


_mean_at, _offset_at = compiled_quickly(observed_mean), compiled_quickly(offset_at)


def prior_variance(posterior: Any, rows: Joined) -> np.ndarray:
    """The prior variance of each row of a single operator."""
    parameters = posterior.engine.parameters(posterior.model.kernel)
    return variances_of(rows.parts, rows.layout, posterior.engine, parameters, rows.sections[0])


class Side(NamedTuple):
    """Covariances of test rows with the data and with the probes, still between joined jets, and where rows are."""

    with_data: Float[Array | np.ndarray, "_ _"]
    of_data: Float[Array, "n _"]
    with_probes: Float[Array | np.ndarray, "_ _"] | None
    of_probes: Float[Array, "z _"] | None
    place: Float[Array, "m _"]

    def data(self) -> Float[Array, "m n"]:
        return _between(self.with_data, self.place, self.of_data)


def _between(gram: Any, left: Array, right: Array) -> Array:
    return summed(summed(gram, left).T, right).T


def side_of(data: Data, rows: Joined) -> Side:
    with_data = cross_of(rows.parts, data.rows.parts)
    place, of_data = terms_of(rows.layout), terms_of(data.rows.layout)
    if data.probes is None:
        return Side(with_data, of_data, None, None, place)
    return Side(with_data, of_data, cross_of(rows.parts, data.probes.parts), terms_of(data.probes.layout), place)


def predict(posterior: Any, data: Data, operator: Operator, points: np.ndarray) -> Predicted:
    """Mean and variance of `A u` at the points."""
    rows = test_rows(posterior, (operator, points))
    few = len(points) * posterior.alpha.shape[0] <= FEW_ENTRIES
    found = (_predicted_quickly if few else _predicted)(
        posterior.solver,
        _gram(posterior),
        posterior.alpha,
        _probes(posterior),
        side_of(data, rows),
        prior_variance(posterior, rows),
        _numbers(posterior),
    )
    return found._replace(mean=np.asarray(found.mean) + prior_mean(posterior, operator, points))


def _gram(posterior: Any) -> Any:
    """The factorisation needs nothing of the matrix, so its program does not depend on the rows."""
    return None if isinstance(posterior.solver, Factorised) else posterior.gram


def _probes(posterior: Any) -> tuple[Array, Array] | None:
    calibration = posterior.calibration
    probes: Probes | None = None if calibration is None else calibration.probes
    return None if probes is None else (probes.solved, probes.factor)


def _numbers(posterior: Any) -> Array | None:
    return None if posterior.estimates is None else posterior.estimates.solved


def _of_batch(
    solver: Any,
    gram: Any,
    alpha: Array,
    probes: tuple[Array, Array] | None,
    side: Side,
    prior: Array,
    numbers: Array | None,
) -> Predicted:
    with_data = side.data()
    return Predicted(
        mean=with_data @ alpha,
        variance=prior - solver.explained(gram, with_data.T),
        rounding=ROUNDING * jnp.abs(prior),
        # Each of the terms of the mean is rounded, and they may be far larger than their sum.
        of_mean=(EPSILON * (jnp.abs(with_data) @ jnp.abs(alpha))) ** 2,
        whitened=_whitened(probes, side, with_data),
        following=jnp.zeros((0, len(prior))) if numbers is None else (with_data @ numbers).T,
    )


_predicted, _predicted_quickly = compiled(_of_batch), compiled_quickly(_of_batch)


def _whitened(probes: tuple[Array, Array] | None, side: Side, with_data: Array) -> Float[Array, "z m"]:
    """`L⁻¹ c` for the posterior covariances `c` of test rows with the probes; no rows if there are no probes."""
    if probes is None:
        return jnp.zeros((0, with_data.shape[0]))
    assert side.with_probes is not None and side.of_probes is not None
    solved, factor = probes
    with_probes = _between(side.with_probes, side.place, side.of_probes)
    return half_solve(factor, (with_probes - with_data @ solved).T)


def covariance(
    posterior: Any, operator: Operator, points: np.ndarray, other_operator: Operator, other_points: np.ndarray
) -> np.ndarray:
    """The posterior covariance of two sets of rows, calibrated if the posterior is."""
    data = data_of(posterior)
    left, right = test_rows(posterior, (operator, points)), test_rows(posterior, (other_operator, other_points))
    few = max(len(points), len(other_points)) * posterior.alpha.shape[0] <= FEW_ENTRIES
    calibration = posterior.calibration
    scaling = None if calibration is None else (array_of(np.asarray(calibration.factors)[-1]), calibration.weights())
    found = (_jointly_quickly if few else _jointly)(
        posterior.solver,
        _gram(posterior),
        _probes(posterior),
        side_of(data, left),
        side_of(data, right),
        cross_of(left.parts, right.parts),
        scaling,
        _numbers(posterior),
    )
    covariance, of_left, of_right = map(np.asarray, found)
    if posterior.estimates is None:
        return covariance
    slopes = slopes_at(posterior, operator, points), slopes_at(posterior, other_operator, other_points)
    roots = [(own - through) @ posterior.estimates.root for own, through in zip(slopes, (of_left, of_right))]
    return covariance + roots[0] @ roots[1].T


def _of_two(
    solver: Any,
    gram: Any,
    probes: tuple[Array, Array] | None,
    left: Side,
    right: Side,
    prior: Array,
    scaling: Any,
    numbers: Array | None,
) -> tuple[Array, Array, Array]:
    """The covariance for numbers that are known, and how both sides follow learned ones through the data."""
    of_left, of_right = left.data(), right.data()
    follow = lambda side: jnp.zeros((len(side), 0)) if numbers is None else side @ numbers
    following = follow(of_left), follow(of_right)
    plain = _between(prior, left.place, right.place) - solver.cross(gram, of_left.T, of_right.T)
    if scaling is None:
        return plain, *following
    factor, weights = scaling
    by_cause = (_whitened(probes, left, of_left).T * weights) @ _whitened(probes, right, of_right)
    return factor**2 * plain + by_cause, *following


_jointly, _jointly_quickly = compiled(_of_two), compiled_quickly(_of_two)
