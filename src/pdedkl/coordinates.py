"""Named coordinates of a point, and the balls that groups of them range over."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Array, Float

from .shown import plural

# The names of a domain's groups in order, each with its number of coordinates. Equal layouts mean the same space.
Layout = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, repr=False)
class Coordinates:
    """Some of the coordinates of a point `q`, by name.

    `x(q)` picks them out of a point: a number for a single coordinate, a vector for a group. `x[i]` is one of them,
    `x[i:j]` are several. Get them from `domain.coordinates()`; there is no need to make them by hand.

    **Arguments:**

    - `name`: how they are written, such as `x`, `x[0]` or `t`.
    - `indices`: their positions in a point.
    - `layout`: the names of the domain's groups, each with its number of coordinates.
    - `scalar`: whether they are a single coordinate, so that `x(q)` is a number.

    !!! example
        ```python
        x, t = domain.coordinates()
        u = lambda q: jnp.exp(-t(q)) * jnp.sin(x(q)[0])
        assert str(x[0]) == "x[0]" and len(x) == 2
        ```
    """

    name: str
    indices: tuple[int, ...]
    layout: Layout
    scalar: bool = False

    @property
    def dim(self) -> int:
        """The number of all coordinates of a point."""
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

    def __repr__(self) -> str:
        return f"<{self.name}: {plural(len(self), 'coordinate')} of {self.dim}>"


@dataclasses.dataclass(frozen=True)
class Ball:
    """`{x : |x − center| ≤ radius}`, a ball that a group of coordinates ranges over.

    **Arguments:**

    - `center`: the centre, one number for each coordinate of the group.
    - `radius`: a positive number.

    !!! example
        ```python
        ball = pk.Domain(x=pk.Ball([0, 0, 0], radius=2.0), t=(0, 1))
        ```
    """

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
