"""Solutions that grow from one end: on a part of the interval first, then on more of it.

Given at `t = 0` alone, a linearised equation may have solutions that grow like `e^{λt}`. Newton's method from afar then
ends at functions that fulfil the equation at its points and jump between them, away from what grows; left-out values
are not predicted. On a short interval nothing grows much. What is found there, extended by the kernel, is near enough
on a longer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..domain import Domain
from ..inference.linearising import Values, values_of
from ..observations import Observation, taken
from ..operators.rows import names_in
from .newton import Iterate, Iteration, Newton

# The part of the interval that is tried first, and the shortest by which a solution is extended.
FIRST, SHORTEST_PART = 1 / 4, 1 / 32
# Points this near to a face, relative to the width of the domain, are on it.
ON_A_FACE = 1e-9


class End(NamedTuple):
    """The face at which a solution begins: a coordinate, and 1 for its lower end, −1 for its upper one."""

    axis: int
    sign: int


def open_end(domain: Domain, data: Sequence[Observation]) -> End | None:
    """Where a solution begins: at a face with conditions, if nothing is given on the opposite one."""
    lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
    highest = max(item.operator.order for item in data)
    points = [np.asarray(item.points) for item in data if item.operator.order < highest]
    if not points:
        return None
    unit = (np.concatenate(points) - lower) / (upper - lower)
    at = np.stack([np.abs(unit) < ON_A_FACE, np.abs(unit - 1) < ON_A_FACE])
    # On an edge of two faces it is not known which of them is meant.
    alone = at & (np.sum(at, axis=(0, 2)) == 1)[None, :, None]
    one_sided = np.flatnonzero(np.logical_xor(*np.any(alone, axis=1)))
    return End(int(one_sided[0]), 1 if np.any(alone[0, :, one_sided[0]]) else -1) if len(one_sided) else None


def marched(
    make: Callable[[Sequence[Observation], str], Newton], data: Sequence[Observation], values: Values, end: End
) -> tuple[Iterate | None, list[Iteration]]:
    """The looks at all data, after those at the data near the end; `None` where they fail.

    `make` makes Newton's method for a part of the data, and a name for it.
    """
    domain, history = make(data, "").domain, []
    low, high = float(domain.lower[end.axis]), float(domain.upper[end.axis])
    name, names = domain.coordinate_names[end.axis], names_in([item.operator for item in data])
    reached, width = 0.0, FIRST
    while width >= SHORTEST_PART:
        share = min(reached + width, 1.0)
        limit = low + share * (high - low) if end.sign > 0 else high - share * (high - low)
        inside = [np.flatnonzero(end.sign * (np.asarray(o.points)[:, end.axis] - limit) <= 0) for o in data]
        some = [i for i, part in enumerate(inside) if len(part)]
        newton = make([taken(data[i], inside[i]) for i in some], f"{name} {'≤' if end.sign > 0 else '≥'} {limit:.4g}")
        found = None
        if names_in([item.operator for item in newton.data]) == names:
            found = newton.looks([values[i][inside[i]] for i in some])
            history += newton.history
        if newton.trainer.ended():
            return None, history
        if found is None or found.posterior is None or not newton.sees(found):
            width /= 2
            continue
        if share == 1.0:
            return found, history
        values = values_of(found.posterior, data)
        reached, width = share, 2 * width
    return None, history
