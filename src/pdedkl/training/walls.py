"""Conditions that hold exactly: where `u` is given as zero on faces or spheres.

There `u = μ g` with a function `μ` that is zero on these faces and nowhere else (`operators/vanishing.py`). A kernel of
such functions needs no boundary values. Only zeros can be built in this way: for other values one would need to know
`u` inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..observations import Learned, Observation
from ..operators import Vanishing, vanishing
from ..operators.base import Identity
from ..regions import Region
from ..sampling import draw
from ..scales import ROUNDING

# Points of a face at which the given function is evaluated.
PLACES = 64


def zero_walls(problem: Any, data: Sequence[Observation]) -> Vanishing | None:
    """The function `μ` for all faces on which the problem states `u = 0` exactly; `None` if there are none.

    The data need values there that are zero and no measurements: values with noise say less than `u = 0`.
    """
    size = max(float(np.max(np.abs(item.values))) for item in data)
    pieces = [
        piece
        for stated in getattr(problem, "statements", ())
        if isinstance(stated.operator, Identity) and isinstance(stated.where, Region) and stated.where.pieces
        if not stated.measured and _is_zero(stated, size) and all(map(_exact, _within(stated.where, data)))
        for piece in stated.where.pieces
    ]
    return vanishing(problem.domain, pieces) if pieces and size else None


def _is_zero(stated: Any, size: float) -> bool:
    """Whether the stated values are zero up to rounding."""
    points = draw(stated.where, PLACES, np.random.default_rng(0), "sobol")
    values = np.asarray([float(stated.value(q)) for q in points]) if callable(stated.value) else stated.value
    return bool(np.max(np.abs(values)) <= ROUNDING * size)


def _within(where: Region, data: Sequence[Observation]) -> list[Observation]:
    return [o for o in data if o.of_values and np.any(where.contains(np.asarray(o.points)))]


def _exact(item: Observation) -> bool:
    """Whether these are values of a function: their noise is a tolerance."""
    return isinstance(item.noise, Learned) and item.noise.exact
