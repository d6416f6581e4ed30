"""Named coordinates and the boxes and balls that they range over: `q = (x, t, mu, …)`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from .compilation import library_for
from .coordinates import Ball, Coordinates, Layout
from .grids import fixed_point, grid_points, index_of
from .regions import Piece, Region, log_volume_of_ball, uniform_in_ball

# Groups with these names are time. Values at the final time follow from the equation and are not given.
TIME = ("t", "time")
# Points on a sphere count as inside up to this relative rounding error.
ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class Domain:
    """A product of boxes and balls with named groups of coordinates: `q = (x, t, …)`.

    A point is an array whose last axis runs over all coordinates, in the order in which they are named here.

    **Arguments:**

    - `**bounds`: the range of each group. A pair `(low, high)` is a single coordinate, a list of pairs is a group that
      ranges over a box, a `Ball` is a group that ranges over a ball.

    !!! example
        ```python
        domain = pk.Domain(x=[(0, 1)] * 50, t=(0, 2))
        x, t = domain.coordinates("x", "t")
        ```
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
        """The number of coordinates of a point."""
        return sum(len(bounds) for _, bounds, _ in self.groups)

    @property
    def layout(self) -> Layout:
        """The names of the groups, each with its number of coordinates."""
        return tuple((name, len(bounds)) for name, bounds, _ in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(name for name, _, _ in self.groups)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """One name for each coordinate, as it is written in Python: `x[0]`, `x[1]`, `t`."""
        return tuple(
            name if scalar else f"{name}[{i}]" for name, bounds, scalar in self.groups for i in range(len(bounds))
        )

    @property
    def lower(self) -> np.ndarray:
        """The lower end of each coordinate; for a ball, of the box around it."""
        return np.array([low for _, bounds, _ in self.groups for low, _ in bounds])

    @property
    def upper(self) -> np.ndarray:
        """The upper end of each coordinate; for a ball, of the box around it."""
        return np.array([high for _, bounds, _ in self.groups for _, high in bounds])

    def coordinates(self, *names: str) -> Any:
        """The coordinates of these groups, to write operators and functions with.

        **Arguments:**

        - `*names`: names of groups; all of them, in order, if none is given.

        **Returns:** a tuple with one `Coordinates` for each name; for a single name, the `Coordinates` itself.

        !!! example
            ```python
            x, t = domain.coordinates("x", "t")
            ```
        """
        found = tuple(self._find(name) for name in names or self.names)
        return found[0] if len(found) == 1 else found

    def ball_at(self, index: int) -> Ball | None:
        """The ball that the group of a coordinate ranges over.

        **Arguments:**

        - `index`: the place of the coordinate in a point.

        **Returns:** the `Ball`, or `None` where the group is a box.

        !!! example
            ```python
            assert domain.ball_at(0) is None
            ```
        """
        if not any(self.balls):
            return None
        ends = np.cumsum([len(bounds) for _, bounds, _ in self.groups])
        return self.balls[int(np.searchsorted(ends, index, side="right"))]

    def contains(self, points: Float[Array, "n d"]) -> Array:
        """For each point, whether it lies in the domain, its boundary included, up to rounding.

        **Arguments:**

        - `points`: an array of shape `(n, d)`.

        **Returns:** `n` truth values.

        !!! example
            ```python
            assert domain.contains(points).all()
            ```
        """
        if points.shape[-1] != self.dim:
            raise ValueError(f"The domain has {self.dim} coordinates: got points of shape {points.shape}.")
        rounding = 4 * np.finfo(float).eps * np.maximum(np.abs(self.lower), np.abs(self.upper))
        for x, ball in self._balls():
            rounding[list(x.indices)] = ROUNDING * (ball.radius + np.max(np.abs(ball.center)))
        xp = library_for(points)
        points = xp.asarray(points)
        inside = xp.all((points >= self.lower - rounding) & (points <= self.upper + rounding), axis=-1)
        for x, ball in self._balls():
            distance = xp.linalg.norm(points[..., np.asarray(x.indices)] - np.asarray(ball.center), axis=-1)
            inside &= distance <= ball.radius + rounding[x.indices[0]]
        return inside

    def boundary(self, *groups: Coordinates) -> Region:
        """All faces of these coordinates, or the sphere where they range over a ball.

        **Arguments:**

        - `*groups`: coordinates of the domain, such as `x` or `x[0]`. Time has no boundary: use `initial` and `final`.

        **Returns:** a `Region` to state conditions on.

        !!! example
            ```python
            walls = domain.boundary(x)
            condition = pk.Dirichlet(on=walls, value=0.0)
            ```
        """
        if not groups:
            raise ValueError(f"Name the coordinates whose boundary is meant, as in domain.boundary({self.names[0]}).")
        pieces: dict[Piece, None] = {}
        for x in groups:
            name = self.group_of(x)
            if name in TIME:
                raise ValueError(
                    f"The final face of {name} is not part of the boundary: use domain.initial({name}) for the initial "
                    f"time, or domain.final({name}) for a problem that runs backwards."
                )
            if self.ball_at(x.indices[0]) is not None:
                if x.indices != self._find(name).indices:
                    raise ValueError(f"{name} ranges over a ball, which has no faces: use domain.boundary({name}).")
                pieces[Piece(x.indices)] = None
            else:
                pieces |= {Piece((i,), side): None for i in x.indices for side in ("lower", "upper")}
        return Region(self, tuple(pieces), f"the boundary of {', '.join(x.name for x in groups)}")

    def face(self, x: Coordinates, side: str) -> Region:
        """The part of the boundary where one coordinate is at its lower or at its upper end.

        **Arguments:**

        - `x`: a single coordinate, such as `x[0]`.
        - `side`: `"lower"` or `"upper"`.

        **Returns:** a `Region` to state conditions on.

        !!! example
            ```python
            inlet = domain.face(x[0], "lower")
            ```
        """
        name = self.group_of(x)
        if side not in ("lower", "upper"):
            raise ValueError(f"A face is the 'lower' or the 'upper' one of its coordinate: got {side!r}.")
        if len(x) != 1:
            raise ValueError(f"A face needs one coordinate and {x} has {len(x)}: use {x}[i], or domain.boundary({x}).")
        if self.ball_at(x.indices[0]) is not None:
            raise ValueError(f"{name} ranges over a ball, which has no faces: use domain.boundary({name}).")
        end = (self.lower if side == "lower" else self.upper)[x.indices[0]]
        return Region(self, (Piece(x.indices, side),), f"the face {x} = {end:g}")

    def initial(self, t: Coordinates) -> Region:
        """The initial time, as a region.

        **Arguments:**

        - `t`: the coordinate of time.

        **Returns:** a `Region` to state conditions on.

        !!! example
            ```python
            start = domain.initial(t)
            ```
        """
        face = self.face(t, "lower")
        return dataclasses.replace(face, budget="initial")

    def final(self, t: Coordinates) -> Region:
        """The final time, as a region, for problems that run backwards.

        **Arguments:**

        - `t`: the coordinate of time.

        **Returns:** a `Region` to state conditions on.

        !!! example
            ```python
            end = domain.final(t)
            ```
        """
        face = self.face(t, "upper")
        return dataclasses.replace(face, budget="initial")

    @property
    def interior(self) -> Region:
        """The inside of the domain, where the equation holds."""
        return Region(self, (), "the interior", budget="source")

    @property
    def log_volume(self) -> float:
        """The logarithm of the volume. In many dimensions the volume itself could underflow or overflow."""
        volume = float(np.sum(np.log(self.upper - self.lower)))
        for x, ball in self._balls():
            volume += log_volume_of_ball(len(x), ball.radius) - len(x) * float(np.log(2 * ball.radius))
        return volume

    def from_cube(self, cube: np.ndarray) -> np.ndarray:
        """Map points of the unit cube into the domain. Uniform points stay uniform, and evenly spread points stay
        evenly spread.

        **Arguments:**

        - `cube`: an array of shape `(n, d)` with entries between 0 and 1.

        **Returns:** an array of the same shape.

        !!! example
            ```python
            points = domain.from_cube(np.random.default_rng(0).uniform(size=(10, domain.dim)))
            ```
        """
        points = np.clip(self.lower + (self.upper - self.lower) * cube, self.lower, self.upper)
        for x, ball in self._balls():
            index = np.asarray(x.indices)
            points[:, index] = np.asarray(ball.center) + ball.radius * uniform_in_ball(cube[:, index])
        return points

    def grid(self, counts: Mapping[Any, int], at: Any = None) -> np.ndarray:
        """The points of a regular grid over some coordinates; the other coordinates are fixed.

        The grid covers the box of the domain. For a group that ranges over a ball, `domain.contains` tells which points
        are inside.

        **Arguments:**

        - `counts`: how many values each coordinate takes, ends included: `{"x[0]": 50, "t": 20}`. A group, such as `x`,
          stands for each of its coordinates. Keys are names or `Coordinates`.
        - `at`: values of the other coordinates, `{"x[1]": 0.3}`, or a whole point; the middle of the domain by default.

        **Returns:** an array of shape `(n, d)`, in which the last coordinate changes fastest. `predict(…).to_xarray()`
        recovers its axes.

        !!! example
            ```python
            plane = domain.grid({"x[0]": 5, "t": 4}, at={"x[1]": 0.3})
            assert posterior.predict(plane).to_xarray()["mean"].shape == (5, 4)
            ```
        """
        axes: dict[int, np.ndarray] = {}
        if not isinstance(counts, Mapping) or not counts:
            example = self.coordinate_names[0]
            raise TypeError(f"grid needs a number of values for each coordinate, {{{example!r}: 50}}: got {counts!r}.")
        for wanted, count in counts.items():
            if not (isinstance(count, int | np.integer) and not isinstance(count, bool) and count >= 2):
                raise ValueError(f"A grid needs at least 2 values along {wanted}, its two ends: got {count!r}.")
            for index in index_of(wanted, self.coordinate_names):
                axes[index] = np.linspace(self.lower[index], self.upper[index], count)
        middle = 0.5 * (self.lower + self.upper)
        return grid_points(dict(sorted(axes.items())), fixed_point(at, self.coordinate_names, middle))

    def _balls(self) -> list[tuple[Coordinates, Ball]]:
        return [(self._find(name), ball) for name, ball in zip(self.names, self.balls) if ball is not None]

    def group_of(self, x: Any) -> str:
        """The name of the group that these coordinates belong to.

        **Arguments:**

        - `x`: coordinates of this domain, all of one group.

        **Returns:** the name.

        !!! example
            ```python
            assert domain.group_of(x[0]) == "x"
            ```
        """
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

    def __repr__(self) -> str:
        return f"<Domain {self}>"


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
