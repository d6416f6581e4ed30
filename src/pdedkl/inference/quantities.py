"""Quantities of interest: one number that depends on `u`, with its standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..equations import Linear, Term, as_operator
from ..operators.integrals import place_of
from ..shown import Written
from .prediction import Prediction


@dataclass(frozen=True)
class Quantity(Written):
    """One number that depends on `u`: `posterior.quantity(pk.Integral(region) @ u)`.

    **Arguments:**

    - `what`: what it is, as text.
    - `mean`: its posterior mean.
    - `std`: its posterior standard deviation.
    - `prediction`: the prediction that it was made from.

    !!! example
        ```python
        total = posterior.quantity(pk.Integral(domain.interior))
        low, high = total.interval(0.95)
        ```
    """

    what: str
    mean: float
    std: float
    prediction: Prediction

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval in which it lies with this probability.

        **Arguments:**

        - `level`: a probability between 0 and 1.

        **Returns:** its two ends.

        !!! example
            ```python
            low, high = posterior.quantity(pk.Integral(domain.interior)).interval()
            ```
        """
        low, high = self.prediction.interval(level)
        return float(low[0]), float(high[0])

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.what}: {self.mean:.6g} ± {self.std:.2g}, 95 % from {low:.6g} to {high:.6g}"


def quantity_of(posterior: Any, operator: Any, at: Any) -> Quantity:
    """The quantity of `Posterior.quantity`."""
    linear = not isinstance(operator, Term) or isinstance(operator, Linear)
    found = as_operator(operator) if linear else operator
    point = place_of(found) if at is None and linear else None
    if at is None and point is None:
        raise ValueError(
            f"{operator} has another value at each point: give one, at=[…] with all coordinates, or an Integral over "
            "all coordinates."
        )
    given = np.asarray(point if at is None else at, dtype=float).ravel()
    predicted = posterior.predict(given[None, :], found)
    return Quantity(predicted.what, float(predicted.mean[0]), float(np.sqrt(predicted.variance[0])), predicted)
