"""Smaller tolerances of exact values, once training is over.

Values of functions have no noise. Training gives them a tolerance all the same, at least `NOISE_FLOOR` of their size:
with less, the evidence is not smooth in length scales and weights. Once these are known, the tolerance only keeps `u`
from its equation. So it is lowered as long as the evidence grows.
"""

from __future__ import annotations

import numpy as np

from ..inference.built_in import not_built_in
from .objective import value_and_gradient
from .phases import Trained

# What each step leaves of the tolerances.
LOWER = 0.3
# So many steps leave 1e-10 of the size of the values: less is rounding, and zeros that are known gain by it for ever.
STEPS = 8


def tightened(trained: Trained) -> Trained:
    """The same kernel with the tolerances of largest evidence.

    A factorisation that needs jitter is at the limit of 64-bit numbers: tolerances that call for more are not taken.

    **Arguments:**

    - `trained`: a trained kernel.

    **Returns:** a `Trained`, the given one if no smaller tolerances are better.
    """
    best, data = trained, trained.objective.observations
    if not best.objective.noise_ceiling:
        return best
    held = sum(map(len, data)) - sum(map(len, not_built_in(trained.model.kernel, data)))
    most = float(value_and_gradient(best.objective, best.x)[2])
    for _ in range(STEPS):
        objective, x = best.objective.with_tolerances(best.x, LOWER)
        value, _, jitter = value_and_gradient(objective, x)
        # Zeros that the kernel holds by itself become more likely with any smaller tolerance.
        gain = best.value - (float(value) - held * np.log(LOWER))
        if not gain > best.tolerance or float(jitter) > most:
            break
        best = Trained(objective, x, float(value))
    return best
