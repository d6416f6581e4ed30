"""The plain kernel, chosen by left-out values instead of the evidence.

The evidence asks how likely the data are under a kernel. Where no length scale fits, as at a corner, it may prefer one
under which an equation tells nothing between its points: the values of `u` are followed closely, and left-out values of
the equation are missed by more than their size. Left-out values are then the better guide. Length scale and noise are
chosen so that the worst of all kinds of left-out errors is least.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from ..compilation import compiled_quickly
from ..inference.evidence import linear_system
from ..inference.parts import joined
from ..inference.staged import matrix_of
from ..model import Model
from ..observations import Learned, Observation
from ..scales import data_scales, exact_levels
from .objective import NOISE_FLOOR

# Length scales to begin with, in units of the usual one, and noise relative to the prior standard deviation of a row.
FACTORS = (2.0, 1.0, 0.5, 0.3, 0.2)
NOISES = (1e-1, 1e-2, 1e-3, 1e-4)
EVALUATIONS = 60


def _gram(model: Model, observations: tuple[Observation, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of all rows without noise, and their values."""
    system = _system(model, observations)
    parts, layout = joined(system.engine, system.parameters, system.sections)
    return matrix_of(parts, layout), np.asarray(system.residual)


_system = compiled_quickly(linear_system)


def least_left_out(model: Model, observations: Sequence[Observation]) -> Model:
    """The model whose common length scale and noise make the worst kind of left-out error least.

    Its variance is the one of largest evidence, given the others.
    """
    data = tuple(observations)
    scales, exact = data_scales(data), exact_levels(data)
    ends = np.cumsum([0, *map(len, data)])
    free = [name for name in sorted(model.log_noise) if name not in exact]
    component = model.kernel.components[0]
    usual = component.log_lengthscale

    def at(shift: float) -> tuple[Model, np.ndarray, np.ndarray]:
        where = lambda m: (m.kernel.components[0].log_lengthscale, m.kernel.components[0].base.log_variance)
        moved = eqx.tree_at(where, model, (usual + shift, jnp.zeros_like(component.base.log_variance)))
        return moved, *_gram(moved, data)

    def noise(gram: np.ndarray, levels: dict[str, float]) -> np.ndarray:
        """Variances of the noise of all rows, in units in which the prior variance is one."""
        parts = []
        for item, i, j in zip(data, ends, ends[1:]):
            size = float(np.mean(np.diagonal(gram)[i:j]))
            level = levels.get(item.noise_name or "", NOISE_FLOOR) if isinstance(item.noise, Learned) else NOISE_FLOOR
            parts.append(np.full(j - i, level**2 * size))
        return np.concatenate(parts)

    def judged(gram: np.ndarray, values: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
        """The worst relative left-out error, and the variance of largest evidence."""
        try:
            precision = np.linalg.inv(gram + np.diag(variances + 1e-13 * np.diagonal(gram)))
        except np.linalg.LinAlgError:
            return np.inf, 1.0
        alpha = precision @ values
        errors = alpha / np.diagonal(precision)
        sizes = [
            float(np.sqrt(np.mean(errors[i:j] ** 2))) / scales[item.noise_name or item.name]
            for item, i, j in zip(data, ends, ends[1:])
        ]
        return max(sizes), float(values @ alpha) / len(values)

    def objective(x: np.ndarray) -> float:
        _, gram, values = at(float(x[0]))
        found = judged(gram, values, noise(gram, dict(zip(free, np.exp(x[1:])))))[0]
        return float(np.log(found)) if np.isfinite(found) and found > 0 else 1e3

    grid = []
    for shift in np.log(FACTORS):
        _, gram, values = at(float(shift))
        for level in NOISES:
            found = judged(gram, values, noise(gram, dict.fromkeys(free, level)))[0]
            grid.append((found, float(shift), level))
    _, shift, level = min(grid)
    start = np.asarray([shift, *[np.log(level)] * len(free)])
    spread = np.vstack([start, start + 0.7 * np.eye(len(start))])
    best = minimize(
        objective, start, method="Nelder-Mead", options={"maxfev": EVALUATIONS, "initial_simplex": spread}
    ).x
    moved, gram, values = at(float(best[0]))
    levels = dict(zip(free, np.exp(best[1:])))
    variances = noise(gram, levels)
    variance = max(judged(gram, values, variances)[1], np.finfo(float).tiny)
    moved = eqx.tree_at(lambda m: m.kernel.components[0].base.log_variance, moved, jnp.full(1, np.log(variance)))
    learned = {}
    for item, i in zip(data, ends):
        if item.noise_name is not None:
            learned[item.noise_name] = jnp.log(jnp.sqrt(variance * variances[i]))
    return eqx.tree_at(lambda m: m.log_noise, moved, learned) if learned else moved
