"""Named coordinates and the box they live in: `q = (x, t, mu, …)`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# The names of a domain's groups and how many coordinates each has, in order: what makes two domains the same space.
Layout = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """Some of the coordinates of a point `q`, by name.

    `x(q)` picks them out of a point (a scalar where there is one coordinate), `x[i]` is one of them, `x[i:j]` several.
    """

    name: str
    indices: tuple[int, ...]
    layout: Layout
    scalar: bool = False

    @property
    def dim(self) -> int:
        """How many coordinates a point has in all."""
        return sum(size for _, size in self.layout)

    def __call__(self, q: Float[Array, " d"]) -> Array:
        if q.shape[-1] != self.dim:
            raise ValueError(f"{self.name} is part of points with {self.dim} coordinates: got shape {q.shape}.")
        return q[..., self.indices[0]] if self.scalar else q[..., np.asarray(self.indices)]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, item: int | slice) -> Coordinates:
        if self.scalar:
            raise IndexError(f"`{self.name}` is a single coordinate and has no parts to index.")
        try:
            positions = range(len(self.indices))[item]
        except IndexError:
            raise IndexError(f"`{self.name}` has {len(self)} coordinates, and {item} is not one of them.") from None
        if isinstance(positions, int):
            return Coordinates(f"{self.name}[{positions}]", (self.indices[positions],), self.layout, scalar=True)
        if len(positions) == 0:
            raise IndexError(f"This slice of `{self.name}` holds none of its {len(self)} coordinates.")
        step = "" if positions.step == 1 else f":{positions.step}"
        name = f"{self.name}[{positions.start}:{positions.stop}{step}]"
        return Coordinates(name, tuple(self.indices[i] for i in positions), self.layout)

    def __iter__(self) -> Iterator[Coordinates]:
        return iter([self] if self.scalar else [self[i] for i in range(len(self))])

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True, init=False)
class Domain:
    """A box with named groups of coordinates, `Domain(x=[(0, 1)] * 50, t=(0, 1))`.

    A pair gives a single coordinate, a list of pairs a group. Points are arrays whose last axis runs over all
    coordinates in the order in which they are named here.
    """

    groups: tuple[tuple[str, tuple[tuple[float, float], ...], bool], ...]

    def __init__(self, **bounds: Any) -> None:
        if not bounds:
            raise ValueError("A domain needs at least one coordinate: Domain(x=(0, 1)).")
        groups = tuple((name, *_read_bounds(name, given)) for name, given in bounds.items())
        object.__setattr__(self, "groups", groups)

    @property
    def dim(self) -> int:
        return sum(len(bounds) for _, bounds, _ in self.groups)

    @property
    def layout(self) -> Layout:
        return tuple((name, len(bounds)) for name, bounds, _ in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.groups)

    @property
    def lower(self) -> np.ndarray:
        return np.array([low for _, bounds, _ in self.groups for low, _ in bounds])

    @property
    def upper(self) -> np.ndarray:
        return np.array([high for _, bounds, _ in self.groups for _, high in bounds])

    def coordinates(self, *names: str) -> Any:
        """The coordinates of these names: `x, t = domain.coordinates("x", "t")`; all of them, in order, by default."""
        found = tuple(self._find(name) for name in names or self.names)
        return found[0] if len(found) == 1 else found

    def contains(self, points: Float[Array, "n d"]) -> Array:
        """For each point, whether it lies in the box."""
        if points.shape[-1] != self.dim:
            raise ValueError(f"The domain has {self.dim} coordinates: got points of shape {points.shape}.")
        return jnp.all((points >= self.lower) & (points <= self.upper), axis=-1)

    def _find(self, wanted: str) -> Coordinates:
        start = 0
        for name, bounds, scalar in self.groups:
            if name == wanted:
                return Coordinates(name, tuple(range(start, start + len(bounds))), self.layout, scalar)
            start += len(bounds)
        raise KeyError(f"The domain has no coordinate {wanted!r}: it has {', '.join(self.names)}.")

    def __str__(self) -> str:
        return " × ".join(f"{name} ∈ {_describe(bounds, scalar)}" for name, bounds, scalar in self.groups)


def _read_bounds(name: str, given: Any) -> tuple[tuple[tuple[float, float], ...], bool]:
    expected = f"`{name}` needs a pair (low, high) or a list of pairs"
    try:
        array = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}: got {given!r}.") from None
    scalar = array.ndim == 1
    rows = array[None] if scalar else array
    if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) == 0:
        raise ValueError(f"{expected}: got {given!r}.")
    for low, high in rows:
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(f"`{name}` needs finite bounds with low < high: got ({low:g}, {high:g}).")
    return tuple((float(low), float(high)) for low, high in rows), scalar


def _describe(bounds: tuple[tuple[float, float], ...], scalar: bool) -> str:
    low, high = bounds[0]
    if scalar or len(bounds) == 1:
        return f"[{low:g}, {high:g}]"
    if len(set(bounds)) == 1:
        return f"[{low:g}, {high:g}]^{len(bounds)}"
    return f"a box in {len(bounds)} dimensions"
