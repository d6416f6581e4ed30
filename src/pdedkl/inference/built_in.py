"""Values that hold under a kernel whatever the data are: they are neither conditioned on nor compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels import Kernel
from ..observations import Observation, taken


def not_built_in(kernel: Kernel, data: Sequence[Observation]) -> tuple[Observation, ...]:
    """The observations without the values that hold exactly under this kernel."""
    found = []
    for item in data:
        held = kernel.zero_at(np.asarray(item.points)) if item.of_values else np.zeros(len(item), dtype=bool)
        if not np.any(held):
            found.append(item)
        elif not np.all(held):
            found.append(taken(item, np.flatnonzero(~held)))
    return tuple(found)
