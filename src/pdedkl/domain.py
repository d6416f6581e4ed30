"""Named coordinates and the boxes and balls they live in: `q = (x, t, mu, …)`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .regions import Piece, Region, log_volume_of_ball, uniform_in_ball

# Groups of these names are time: what holds at its end follows from the equation and is not given.
TIME = ("t", "time")
# Points on a sphere are inside up to rounding.
ROUNDING = 1e-12

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


@dataclasses.dataclass(frozen=True)
class Ball:
    """`{x : |x − center| ≤ radius}`, for a group of coordinates: `Domain(x=Ball([0, 0, 0], 1))`."""

    center: tuple[float, ...]
    radius: float = 1.0

    def __post_init__(self) -> None:
        try:
            center, radius = np.asarray(self.center, dtype=float), np.asarray(self.radius, dtype=float)
        except (TypeError, ValueError):
            center, radius = np.zeros(0), np.zeros(())
        if center.ndim != 1 or len(center) == 0 or not np.all(np.isfinite(center)):
            raise ValueError(
                f"A ball needs its center as a list of finite numbers, Ball([0, 0], 1): got {self.center}."
            )
        if radius.ndim or not (np.isfinite(radius) and radius > 0):
            raise ValueError(f"A ball needs a positive radius: got {self.radius!r}.")
        object.__setattr__(self, "center", tuple(float(c) for c in center))
        object.__setattr__(self, "radius", float(radius))

    def __str__(self) -> str:
        return f"a ball of radius {self.radius:g} in {len(self.center)} dimensions"


@dataclasses.dataclass(frozen=True, init=False)
class Domain:
    """A product of boxes and balls with named groups of coordinates, `Domain(x=[(0, 1)] * 50, t=(0, 1))`.

    A pair gives a single coordinate, a list of pairs a group that is a box, a `Ball` a group that is a ball. Points are
    arrays whose last axis runs over all coordinates in the order in which they are named here. `lower` and `upper` are
    the box around it all.
    """

    groups: tuple[tuple[str, tuple[tuple[float, float], ...], bool], ...]
    balls: tuple[Ball | None, ...]

    def __init__(self, **bounds: Any) -> None:
        if not bounds:
            raise ValueError("A domain needs at least one coordinate: Domain(x=(0, 1)).")
        groups = tuple((name, *_read_bounds(name, given)) for name, given in bounds.items())
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "balls", tuple(g if isinstance(g, Ball) else None for g in bounds.values()))

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

    def ball_at(self, index: int) -> Ball | None:
        """The ball that one coordinate's group ranges over; `None` for a box."""
        if not any(self.balls):
            return None
        ends = np.cumsum([len(bounds) for _, bounds, _ in self.groups])
        return self.balls[int(np.searchsorted(ends, index, side="right"))]

    def contains(self, points: Float[Array, "n d"]) -> Array:
        """For each point, whether it lies in the domain."""
        if points.shape[-1] != self.dim:
            raise ValueError(f"The domain has {self.dim} coordinates: got points of shape {points.shape}.")
        rounding = np.zeros(self.dim)
        for x, ball in self._balls():
            rounding[list(x.indices)] = ROUNDING * (ball.radius + np.max(np.abs(ball.center)))
        inside = jnp.all((points >= self.lower - rounding) & (points <= self.upper + rounding), axis=-1)
        for x, ball in self._balls():
            distance = jnp.linalg.norm(points[..., np.asarray(x.indices)] - np.asarray(ball.center), axis=-1)
            inside &= distance <= ball.radius + rounding[x.indices[0]]
        return inside

    def boundary(self, *groups: Coordinates) -> Region:
        """All faces of these coordinates, or the sphere where they range over a ball: `domain.boundary(x)`."""
        if not groups:
            raise ValueError(f"Name the coordinates whose boundary is meant, as in domain.boundary({self.names[0]}).")
        pieces: dict[Piece, None] = {}
        for x in groups:
            name = self.group_of(x)
            if name in TIME:
                raise ValueError(
                    f"The final face of {name} is no part of the boundary: use domain.initial({name}) for where it "
                    f"begins, or domain.final({name}) for a problem that runs backwards."
                )
            if self.ball_at(x.indices[0]) is not None:
                if x.indices != self._find(name).indices:
                    raise ValueError(f"{name} ranges over a ball, which has no faces: use domain.boundary({name}).")
                pieces[Piece(x.indices)] = None
            else:
                pieces |= {Piece((i,), side): None for i in x.indices for side in ("lower", "upper")}
        return Region(self, tuple(pieces), f"the boundary of {', '.join(x.name for x in groups)}")

    def face(self, x: Coordinates, side: str) -> Region:
        """Where one coordinate is at its lower or upper end: `domain.face(x[0], "upper")`."""
        name = self.group_of(x)
        if side not in ("lower", "upper"):
            raise ValueError(f"A face is the 'lower' or the 'upper' one of its coordinate: got {side!r}.")
        if len(x) != 1:
            raise ValueError(f"A face is of one coordinate and {x} has {len(x)}: use {x}[i], or domain.boundary({x}).")
        if self.ball_at(x.indices[0]) is not None:
            raise ValueError(f"{name} ranges over a ball, which has no faces: use domain.boundary({name}).")
        end = (self.lower if side == "lower" else self.upper)[x.indices[0]]
        return Region(self, (Piece(x.indices, side),), f"the face {x} = {end:g}")

    def initial(self, t: Coordinates) -> Region:
        """Where time begins."""
        face = self.face(t, "lower")
        return dataclasses.replace(face, budget="initial")

    def final(self, t: Coordinates) -> Region:
        """Where time ends, for problems that run backwards."""
        face = self.face(t, "upper")
        return dataclasses.replace(face, budget="initial")

    @property
    def interior(self) -> Region:
        return Region(self, (), "the interior", budget="source")

    @property
    def log_volume(self) -> float:
        """The logarithm, since in many dimensions the volume itself may be no number."""
        volume = float(np.sum(np.log(self.upper - self.lower)))
        for x, ball in self._balls():
            volume += log_volume_of_ball(len(x), ball.radius) - len(x) * float(np.log(2 * ball.radius))
        return volume

    def from_cube(self, cube: np.ndarray) -> np.ndarray:
        """Points of the unit cube to points of the domain, such that uniform ones stay uniform."""
        points = np.clip(self.lower + (self.upper - self.lower) * cube, self.lower, self.upper)
        for x, ball in self._balls():
            index = np.asarray(x.indices)
            points[:, index] = np.asarray(ball.center) + ball.radius * uniform_in_ball(cube[:, index])
        return points

    def _balls(self) -> list[tuple[Coordinates, Ball]]:
        return [(self._find(name), ball) for name, ball in zip(self.names, self.balls) if ball is not None]

    def group_of(self, x: Any) -> str:
        """The name of the group that coordinates of this domain are part of."""
        if not isinstance(x, Coordinates):
            raise TypeError(
                f"Expected coordinates of the domain, as in domain.coordinates({self.names[0]!r}): got {x!r}."
            )
        if x.layout != self.layout:
            raise ValueError(
                f"{x} belongs to another domain: it is part of {x.layout}, and this domain is {self.layout}."
            )
        for name in self.names:
            if set(x.indices) <= set(self._find(name).indices):
                return name
        raise ValueError(f"Expected coordinates of one group, {' or '.join(self.names)}: {x} is part of several.")

    def _find(self, wanted: str) -> Coordinates:
        start = 0
        for name, bounds, scalar in self.groups:
            if name == wanted:
                return Coordinates(name, tuple(range(start, start + len(bounds))), self.layout, scalar)
            start += len(bounds)
        raise KeyError(f"The domain has no coordinate {wanted!r}: it has {', '.join(self.names)}.")

    def __str__(self) -> str:
        parts = zip(self.groups, self.balls)
        return " × ".join(f"{name} ∈ {ball or _describe(bounds, scalar)}" for (name, bounds, scalar), ball in parts)


def _read_bounds(name: str, given: Any) -> tuple[tuple[tuple[float, float], ...], bool]:
    if isinstance(given, Ball):
        return tuple((c - given.radius, c + given.radius) for c in given.center), False
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
