"""Grids: points from values along some coordinates, and the values along each coordinate from points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .shown import listed

# Values of one coordinate that differ by less than this, relative to its range and size, count as equal.
SAME = 1e-12
# More points than this would fill the memory, and are probably a mistake.
MOST_POINTS = 100_000_000


def index_of(wanted: Any, names: Sequence[str]) -> tuple[int, ...]:
    """The positions of a coordinate or group, given by name (`"x[0]"`, `"x"`, `"t"`) or as `Coordinates`."""
    name = str(getattr(wanted, "name", wanted))
    if name in names:
        return (list(names).index(name),)
    if indices := getattr(wanted, "indices", ()):
        if getattr(wanted, "dim", None) == len(names):
            return tuple(indices)
    elif found := tuple(k for k, other in enumerate(names) if other.startswith(f"{name}[")):
        return found
    raise ValueError(f"There is no coordinate {name!r}: choose from {listed(list(names), 8)}.")


def fixed_point(at: Any, names: Sequence[str], default: np.ndarray) -> np.ndarray:
    """A point: `at` itself if it is a whole point, or the default with the coordinates that `at` names changed."""
    point = np.array(default, dtype=float)
    if at is None:
        return point
    if isinstance(at, Mapping):
        for name, value in at.items():
            for index in index_of(name, names):
                point[index] = _number(value, f"`at` needs a finite number for {name}")
        return point
    given = np.asarray(at, dtype=float)
    if given.shape != point.shape or not np.all(np.isfinite(given)):
        raise ValueError(
            f"`at` needs a dictionary such as {{{names[-1]!r}: 0.5}}, or a point with {len(names)} finite "
            f"coordinates: got shape {given.shape}."
        )
    return given


def grid_points(axes: Mapping[int, np.ndarray], origin: np.ndarray) -> np.ndarray:
    """All combinations of the values along `axes`, last axis fastest. `origin` gives the other coordinates."""
    sizes = [len(values) for values in axes.values()]
    if (total := int(np.prod(sizes, dtype=object))) > MOST_POINTS:
        raise ValueError(f"This grid has {total} points: take fewer values, or fewer coordinates.")
    points = np.tile(np.asarray(origin, dtype=float), (total, 1))
    for index, values in zip(axes, np.meshgrid(*axes.values(), indexing="ij")):
        points[:, index] = values.ravel()
    return points


def axes_of(points: np.ndarray, names: Sequence[str]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The values along each coordinate of a full grid, and for each cell of the grid the row of its point.

    Coordinates with a single value are not axes: they have an array of one value and do not count in the shape.
    """
    values, places = zip(*(_distinct(column) for column in points.T))
    shape = tuple(len(found) for found in values if len(found) > 1)
    kept = [place for found, place in zip(values, places) if len(found) > 1]
    cells = np.ravel_multi_index(kept, shape) if kept else np.zeros(len(points), dtype=int)
    total = int(np.prod(shape, dtype=object))
    if total != len(points) or len(np.unique(cells)) != total:
        sizes = listed([f"{len(found)} of {name}" for name, found in zip(names, values)], 6)
        raise ValueError(
            f"These {len(points)} points are not a grid. A grid has one point for every combination of the values of "
            f"its coordinates, and there are {sizes}. Make one with domain.grid({{{names[0]!r}: 50}}), or use "
            "to_pandas()."
        )
    rows = np.empty(total, dtype=int)
    rows[cells] = np.arange(len(points))
    return dict(zip(names, values)), rows.reshape(shape)


def _distinct(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values in order, and for each entry the index of its value. Rounding errors are ignored."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    tolerance = SAME * max(float(np.ptp(column)), float(np.max(np.abs(column))))
    new = np.concatenate([[True], np.diff(ordered) > tolerance])
    place = np.empty(len(column), dtype=int)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place


def _number(value: Any, wanted: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = float("nan")
    if not np.isfinite(found):
        raise ValueError(f"{wanted}: got {value!r}.")
    return found
