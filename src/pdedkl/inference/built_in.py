"""Values that hold under a kernel whatever the data are: they are neither conditioned on nor compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels import Kernel
from ..observations import Observation, taken
from ..operators import Vanishing


def not_built_in(kernel: Kernel, data: Sequence[Observation]) -> tuple[Observation, ...]:
    """The observations without the values that hold exactly under this kernel."""
    return not_held(kernel, data)


def not_held(by: Kernel | Vanishing, data: Sequence[Observation]) -> tuple[Observation, ...]:
    """The observations without the values of `u` that are zero by a kernel or by a function that vanishes on walls."""
    found = []
    for item in data:
        held = by.zero_at(np.asarray(item.points)) if item.of_values else np.zeros(len(item), dtype=bool)
        if not np.any(held):
            found.append(item)
        elif not np.all(held):
            found.append(taken(item, np.flatnonzero(~held)))
    return tuple(found)
