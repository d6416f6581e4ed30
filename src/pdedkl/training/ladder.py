"""Where unknown numbers start: on a ladder of values about those that were given.

The evidence of the first kernel is computed with one number after the other on the rungs of its ladder, the others
held. Its noise is large then, so that its evidence changes slowly from rung to rung and shows the way from far away.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..operators import Parameter
from ..operators.priors import width_of
from .objective import Objective, value_and_gradient

# The rungs of a logarithm, and of a number without bounds in units of its size.
OF_LOGARITHMS = np.log(10.0) * np.asarray([-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0])
OF_NUMBERS = np.asarray([-10.0, -3.0, -1.0, -0.5, -0.2, 0.2, 0.5, 1.0, 3.0, 10.0])
# The rungs where a prior is known, in its standard deviations.
OF_PRIORS = np.asarray([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
SWEEPS = 2


def climbed(objective: Objective, stopped: Callable[[], bool] = lambda: False) -> np.ndarray:
    """The start of an objective, with the numbers on the best rungs; the start itself if none is better."""
    x, names = objective.start(), sorted(objective.unknown)
    first = len(x) - len(names)
    best = float(value_and_gradient(objective, x)[0])
    best = best if np.isfinite(best) else np.inf
    for _ in range(SWEEPS if len(names) > 1 else 1):
        before = best
        for i, name in enumerate(names, start=first):
            middle = x[i]
            for rung in rungs(objective.unknown[name]):
                if stopped():
                    return x
                trial = x.copy()
                trial[i] = middle + rung
                value = float(value_and_gradient(objective, trial)[0])
                if value < best:
                    best, x = value, trial
        if not best < before - 1.0:
            break
    return x


def rungs(parameter: Parameter) -> np.ndarray:
    """Steps of the learned number from where it starts."""
    if parameter.prior is not None:
        return OF_PRIORS * parameter.prior._spread(parameter.support)
    if parameter.support.free:
        return OF_NUMBERS * float(width_of(float(parameter.raw))) / 10.0
    return OF_LOGARITHMS
