"""What the data leave open of unknown functions, such as a conductivity or a source.

Fresh residuals of an equation say nothing of an unknown function in it. What says something is its own posterior: where
its standard deviation is still more than half of the prior's, the data have told little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..inference import Posterior
from ..inference.rows import prior_variance, test_rows, values_of_fields
from .parameters import IDENTIFIED

# A function is left open if its variance, over all places, is above this fraction of its prior's.
OPEN = IDENTIFIED**2
# Regions are named if they hold more than this fraction of the places, by the middle part of their extent.
NAMED, EXTENT = 0.02, (0.05, 0.95)


class LeftOpen(NamedTuple):
    """Sentences about functions that are open everywhere, and about those that are open in some places."""

    everywhere: tuple[str, ...]
    somewhere: tuple[str, ...]


def left_open(posterior: Posterior, places: np.ndarray) -> LeftOpen:
    """What the data leave open of each of several fields, at places inside."""
    everywhere, somewhere = [], []
    for operator in values_of_fields(posterior):
        prior = prior_variance(posterior, test_rows(posterior, (operator, places)))
        left = posterior.predict(places, operator).variance / np.maximum(prior, np.finfo(float).tiny)
        wide = left > OPEN
        if np.mean(left) > OPEN:
            everywhere.append(
                f"The data say little about {operator}: {np.sqrt(np.mean(left)):.0%} of the standard deviation of its "
                "prior is left. Give more measurements, or better ones, or values of it."
            )
        elif np.mean(wide) > NAMED:
            somewhere.append(
                f"The data say little about {operator} in {np.mean(wide):.0%} of the domain, "
                f"{_extent(posterior, places[wide])}: its error bars are wide there."
            )
    return LeftOpen(tuple(everywhere), tuple(somewhere))


def _extent(posterior: Posterior, places: np.ndarray) -> str:
    """Where places lie, in words."""
    low, high = np.quantile(places, EXTENT, axis=0)
    return ", ".join(f"{name} {a:.2g} to {b:.2g}" for name, a, b in zip(posterior.model.kernel.names, low, high))
