"""How good a prediction is: accuracy, calibration, and the predictors that any model has to beat.

All functions take the predicted mean `m_i`, the standard deviation `s_i` and the truth `y_i` at `n` points. A standard
deviation of zero claims that the mean is exact: it covers the truth if `m_i = y_i`, and is infinitely wrong otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf, ndtri

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)

Predictor = Callable[[np.ndarray], np.ndarray]


class Error(NamedTuple):
    """An error, and whether it is relative to the size of the truth. It is not relative if the truth is zero."""

    value: float
    relative: bool


def relative_l2(mean: Any, truth: Any) -> Error:
    """`|m − y| / |y|`, or the root mean square of `m`, marked as not relative, where `y = 0` everywhere."""
    m, y = _read(mean, truth)
    size = np.linalg.norm(y)
    if size == 0:
        return Error(float(np.sqrt(np.mean(m**2))), False)
    return Error(float(np.linalg.norm(m - y) / size), True)


def coverage(mean: Any, std: Any, truth: Any, levels: tuple[float, ...] = LEVELS) -> dict[str, float]:
    """The part of the points whose central interval of each level holds the truth; `{"0.95": …}`."""
    if wrong := [level for level in levels if not 0 < level < 1]:
        raise ValueError(f"`levels` are probabilities between 0 and 1: got {wrong}.")
    m, s, y = _read(mean, std, truth)
    miss = np.abs(y - m)
    return {f"{level:g}": float(np.mean(miss <= ndtri(0.5 + 0.5 * level) * s)) for level in levels}


def calibration_error(mean: Any, std: Any, truth: Any, levels: tuple[float, ...] = LEVELS) -> float:
    """The expected calibration error: `|coverage − level|`, mean over the levels."""
    found = coverage(mean, std, truth, levels)
    return float(np.mean([abs(found[f"{level:g}"] - level) for level in levels]))


def z_histogram(mean: Any, std: Any, truth: Any, edges: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The part of the points with `z` between neighbouring edges (−4 to 4 by default), and the edges.

    Points with `z` outside the edges are not counted, so the parts may sum to less than 1.
    """
    edges = np.linspace(-4.0, 4.0, 33) if edges is None else np.asarray(edges, dtype=float)
    counts, _ = np.histogram(_z(*_read(mean, std, truth)), edges)
    return counts / len(np.asarray(mean)), edges


def bootstrap(
    measure: Callable[..., float],
    mean: Any,
    std: Any,
    truth: Any,
    *,
    level: float = 0.95,
    draws: int = 500,
    seed: int = 0,
) -> tuple[float, float]:
    """The central interval of a measure over points drawn again from the given ones, with replacement.

    Errors of neighbouring points are correlated, so the interval is narrower than the spread over new problems.
    """
    arrays = _read(mean, std, truth)
    picks = np.random.default_rng(seed).integers(len(arrays[0]), size=(draws, len(arrays[0])))
    found = [measure(*(array[pick] for array in arrays)) for pick in picks]
    low, high = np.quantile(found, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return float(low), float(high)


def z_rms(mean: Any, std: Any, truth: Any) -> float:
    """The root mean square of `z = (y − m) / s`: 1 if calibrated, above 1 if overconfident. `z = 0` if `m = y`."""
    return float(np.sqrt(np.mean(_z(*_read(mean, std, truth)) ** 2)))


def nlpd(mean: Any, std: Any, truth: Any) -> float:
    """`−log N(y; m, s²)`, mean over the points: lower is better.

    It is `+∞` if one point has `s = 0` and `m ≠ y`, whatever the other points are.
    """
    m, s, y = _read(mean, std, truth)
    z = _z(m, s, y)
    if np.any(np.isinf(z)):
        return math.inf
    with np.errstate(divide="ignore"):
        return float(np.mean(0.5 * z**2 + np.log(s) + 0.5 * math.log(2 * math.pi)))


def crps(mean: Any, std: Any, truth: Any) -> float:
    """`∫ (Φ((x − m)/s) − 1[x ≥ y])² dx`, mean over the points, in the units of `y`; `|y − m|` where `s = 0`.

    For a Gaussian it is `s (z (2Φ(z) − 1) + 2φ(z) − 1/√π)`.
    """
    m, s, y = _read(mean, std, truth)
    z = np.divide(y - m, s, out=np.zeros_like(s), where=s > 0)
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    closed = s * (z * erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))
    return float(np.mean(np.where(s > 0, closed, np.abs(y - m))))


def sharpness(mean: Any, std: Any, truth: Any) -> float:
    """The mean width of 95 % intervals over the root mean square error; about 4 if calibrated. NaN for 0/0."""
    m, s, y = _read(mean, std, truth)
    width, error = 2 * float(ndtri(0.975)) * float(np.mean(s)), float(np.sqrt(np.mean((m - y) ** 2)))
    if error == 0:
        return math.nan if width == 0 else math.inf
    return width / error


def best_constant(points: Any, values: Any) -> Predictor:
    """The constant nearest to the given values of `u` in least squares: their mean."""
    y = np.asarray(values, dtype=float)
    _check_data(points, y)
    level = float(np.mean(y))
    return lambda q: np.full(len(q), level)


def best_line(points: Any, values: Any) -> Predictor:
    """The affine function nearest to the given values of `u` in least squares; of several, that of smallest slope."""
    y = np.asarray(values, dtype=float)
    _check_data(points, y)
    q = np.asarray(points, dtype=float)
    centre = q.mean(axis=0)
    slope, *_ = np.linalg.lstsq(q - centre, y - y.mean(), rcond=None)
    return lambda q: y.mean() + (np.asarray(q) - centre) @ slope


def summary(mean: Any, std: Any, truth: Any, suffix: str) -> dict[str, Any]:
    """All measures above, with the names of `metrics.json`, such as `error_u`. Numbers that are not finite are `None`.

    `error_u_relative` is false where the truth is zero and `error_u` is absolute.
    """
    error = relative_l2(mean, truth)
    numbers = {name: measure(mean, std, truth) for name, measure in _MEASURES.items()}
    return {
        f"error_{suffix}": error.value,
        f"error_{suffix}_relative": error.relative,
        f"coverage_{suffix}": coverage(mean, std, truth),
        **{f"{name}_{suffix}": value if math.isfinite(value) else None for name, value in numbers.items()},
    }


_MEASURES = {"calibration_error": calibration_error, "z_rms": z_rms, "nlpd": nlpd, "crps": crps, "sharpness": sharpness}


def _z(m: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    exact = np.where(y == m, 0.0, np.inf)
    return np.divide(y - m, s, out=exact, where=s > 0)


def _read(*arrays: Any) -> tuple[np.ndarray, ...]:
    found = tuple(np.asarray(array, dtype=float) for array in arrays)
    if found[0].ndim != 1 or found[0].size == 0 or any(array.shape != found[0].shape for array in found):
        raise ValueError(
            f"Mean, standard deviation and truth need one number per point each: got shapes "
            f"{', '.join(str(array.shape) for array in found)}."
        )
    if any(not np.all(np.isfinite(array)) for array in found):
        raise ValueError("Mean, standard deviation and truth need finite numbers: leave out points without a truth.")
    if len(found) == 3 and np.any(found[1] < 0):
        raise ValueError(f"A standard deviation cannot be negative: the smallest given is {found[1].min():g}.")
    return found


def _check_data(points: Any, values: np.ndarray) -> None:
    shape = np.shape(points)
    if len(shape) != 2 or values.shape != shape[:1] or shape[0] == 0:
        raise ValueError(f"One value per point is needed, and one point at least: got {shape} and {values.shape}.")
