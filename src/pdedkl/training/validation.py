"""Choosing a model by values that training has not seen.

In a forward problem source and boundary values are known functions, so fresh values cost nothing. A trained model is
conditioned on the training data and scored by the mean negative log density of the fresh values: wrong values and wrong
error bars both raise it. The evidence can prefer a model that overfits its data; this score cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..inference import condition
from ..model import Model
from ..observations import Observation
from ..scales import data_scales
from .objective import NOISE_FLOOR


class Score(NamedTuple):
    """`density` is the mean of `−log p(y | data)`; `error` is the root mean square error, relative to the values."""

    density: float
    error: float


class Validation:
    """Observations that choose among models and are never conditioned on."""

    def __init__(self, fresh: Sequence[Observation], data: Sequence[Observation]) -> None:
        self.fresh, self.data = tuple(fresh), tuple(data)
        learned = {item.noise_name for item in data}
        for item in fresh:
            if item.noise_name is not None and item.noise_name not in learned:
                raise ValueError(
                    f"The validation data have a noise level {item.noise_name!r} to learn that the training data do "
                    "not have: use the name of a level that the training data have, or give a known noise."
                )
        self.scales = data_scales(data) | {k: v for k, v in data_scales(fresh).items() if k not in data_scales(data)}

    def score(self, model: Model) -> Score:
        posterior = condition(model, self.data)
        densities, errors = [], []
        for item in self.fresh:
            found = posterior.predict(item.points, item.operator)
            scale = self.scales[item.noise_name or item.name]
            known = np.asarray(item.noise_variance(model.log_noise))
            variance = np.maximum(found.variance + known, (NOISE_FLOOR * scale) ** 2)
            error = np.asarray(item.values) - found.mean
            densities.append(0.5 * error**2 / variance + 0.5 * np.log(2 * np.pi * variance))
            errors.append(float(np.sqrt(np.mean(error**2))) / scale)
        density = float(np.mean(np.concatenate(densities)))
        return Score(density if np.isfinite(density) else np.inf, max(errors))
