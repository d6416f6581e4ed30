"""Where Newton's method starts if there are unknown functions: at what was measured.

Where an equation has an unknown function, `∇·(a ∇u) = f` with an unknown `a`, its linearisation at `u = 0` says nothing
of `a`. So `u` starts at the posterior mean of a plain kernel given what is linear: measurements and conditions. A
function of which nothing was given starts at the constant for which the equations then hold best.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..domain import Domain
from ..equations import Nonlinear, linearised
from ..equations.nonlinear import is_number_field
from ..inference import condition
from ..inference.linearising import Values, has_slopes, values_of, values_of_functions
from ..observations import Observation
from ..operators.rows import names_in
from ..scales import signal_variance
from . import starts
from .building import independent
from .objective import Objective
from .phases import Trainer

# Rounds of training, and the number of values that the plain kernel is trained on.
ROUNDS, TRAINED = 30, 400
# Constants to try, of both signs: logarithms of positive functions are of order one to ten.
CONSTANTS = (0.1, 0.3, *range(1, 11), 12, 15, 20, 50, *(10.0**k for k in range(2, 7)))
# Unknown numbers are within so many standard deviations of their priors.
FAR = 3.0
# One that leaves more than this fraction of what zero leaves is not worth it.
BETTER = 0.9


def from_measurements(
    domain: Domain, data: Sequence[Observation], names: Sequence[str], trainer: Trainer
) -> Values | None:
    """Values of all rows where Newton's method may start; `None` if no values but zeros are given."""
    given = [item for item in data if not isinstance(item.operator, Nonlinear)]
    if not any(np.any(item.values) for item in given):
        return None
    part = starts.subsample(given, TRAINED, 0)
    kernel = independent(starts.on_inputs(domain, signal_variance(part)), names, part)
    objective = Objective(starts.model_of(kernel, part), part)
    model = trainer.alternate("Newton, measurements", objective, ROUNDS).model
    known = names_in([item.operator for item in given])
    values = values_of(condition(model, given), data)
    for name in names:
        if name not in known:
            of_one = values_of_functions({other: partial(_constant, float(other == name)) for other in names}, data)
            values = _with_constant(data, values, of_one, FAR if is_number_field(name) else np.inf)
    return values if has_slopes(data, values) else None


def _with_constant(data: Sequence[Observation], values: Values, of_one: Values, most: float) -> Values:
    """The values with a constant of at most this size added to one field, for which the equations hold best."""
    equations = [i for i, item in enumerate(data) if isinstance(item.operator, Nonlinear)]

    def rest(number: float) -> float:
        found = [_relative(data[i], values[i], values[i] + number * of_one[i]) for i in equations]
        return float(np.sqrt(np.mean(found))) if np.all(np.isfinite(found)) else np.inf

    some = [number for number in CONSTANTS if number <= most]
    tried = np.asarray(sorted({0.0, *some, *(-number for number in some)}))
    with np.errstate(all="ignore"):
        each = np.asarray([rest(number) for number in tried])
        least = int(np.argmin(each))
        low, high = tried[max(least - 1, 0)], tried[min(least + 1, len(tried) - 1)]
        found = minimize_scalar(rest, bounds=(low, high), method="bounded", options={"xatol": 1e-3 * (high - low)})
    nothing = each[tried == 0.0][0]
    best = float(found.x) if float(found.fun) < each[least] else float(tried[least])
    if not min(float(found.fun), each[least]) < BETTER * nothing:
        best = 0.0
    return [own + best * one for own, one in zip(values, of_one)]


def _relative(item: Observation, known: np.ndarray, values: np.ndarray) -> float:
    """The mean square of the residuals, relative to that of the largest term in what is known."""
    assert isinstance(item.operator, Nonlinear)
    at = linearised(item.operator, np.asarray(item.points), values)
    target = np.asarray(item.values)
    terms = np.mean((np.asarray(at.slopes) * known) ** 2, axis=0)
    largest = max(float(np.mean(target**2)), *terms.tolist(), np.finfo(float).tiny)
    return float(np.mean((target - np.asarray(at.value)) ** 2)) / largest


def _constant(number: float, q: Any) -> Any:
    return number + 0.0 * q[0]
