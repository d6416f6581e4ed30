"""Parts of a domain (its interior, faces and spheres), and points spread evenly over them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammainc, gammaln, logsumexp, ndtri

if TYPE_CHECKING:
    from .domain import Coordinates, Domain

# Points this close to a face or sphere, relative to the size of the domain, lie on it.
ON_THE_REGION = 1e-9


@dataclasses.dataclass(frozen=True)
class Piece:
    """A face, `indices = (i,)` with its side; or the sphere of the ball that `indices` range over."""

    indices: tuple[int, ...]
    side: str | None = None


@dataclasses.dataclass(frozen=True, repr=False)
class Region:
    """A union of faces and spheres of a domain, or its interior where `pieces` is empty.

    On a face, all other coordinates have their whole range, time and parameters included. `budget` says which of the
    three numbers of points it is sampled from: boundary, initial or source.
    """

    domain: Domain
    pieces: tuple[Piece, ...]
    name: str
    budget: str = "boundary"

    @property
    def log_areas(self) -> np.ndarray:
        """The log area of each piece: `volume / width` for a face, `volume · k / r` for a sphere in `ℝᵏ`."""
        widths = self.domain.upper - self.domain.lower
        balls = [self.domain.ball_at(p.indices[0]) for p in self.pieces]
        ratio = [len(p.indices) / b.radius if b else 1.0 / widths[p.indices[0]] for p, b in zip(self.pieces, balls)]
        return self.domain.log_volume + np.log(ratio)

    @property
    def log_area(self) -> float:
        return float(logsumexp(self.log_areas)) if self.pieces else self.domain.log_volume

    @property
    def cube_dim(self) -> int:
        """How many numbers in [0, 1] determine a point. The first one chooses the piece."""
        return self.domain.dim + 1

    @property
    def finite(self) -> bool:
        """Whether the region is one or two points: a boundary in one dimension."""
        return bool(self.pieces) and self.domain.dim == 1

    def from_cube(self, cube: np.ndarray) -> np.ndarray:
        """Map points of the unit cube to the region. Uniform or evenly spread points stay uniform or evenly spread."""
        points = self.domain.from_cube(cube[:, 1:])
        if not self.pieces:
            return points
        shares = np.exp(self.log_areas - self.log_area)
        chosen = np.minimum(np.searchsorted(np.cumsum(shares), cube[:, 0], side="right"), len(self.pieces) - 1)
        lower, upper = self.domain.lower, self.domain.upper
        order = np.argsort(chosen, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(chosen[order])) + 1):
            if len(rows):  # the rows of one piece
                piece = self.pieces[chosen[rows[0]]]
                points[rows] = self._onto(piece, points[rows], lower if piece.side == "lower" else upper)
        return points

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Which of these points lie on the region, up to rounding; all points of the domain lie in its interior."""
        width = self.domain.upper - self.domain.lower
        found = np.full(len(points), not self.pieces)
        for piece in self.pieces:
            index = np.asarray(piece.indices)
            ball = self.domain.ball_at(piece.indices[0])
            if ball is None:
                end = (self.domain.lower if piece.side == "lower" else self.domain.upper)[index]
                off = np.max(np.abs(points[:, index] - end) / width[index], axis=1)
            else:
                off = np.abs(np.linalg.norm(points[:, index] - np.asarray(ball.center), axis=1) / ball.radius - 1)
            found |= off < ON_THE_REGION
        return found

    def each_once(self) -> np.ndarray:
        """In one dimension, the points that the region consists of."""
        ends = {"lower": [self.domain.lower], "upper": [self.domain.upper]}
        return np.array([end for p in self.pieces for end in ends.get(p.side or "", [*ends["lower"], *ends["upper"]])])

    def coordinates(self) -> Coordinates:
        """All coordinates of the groups whose faces belong to the region. Normals are vectors in these coordinates."""
        touched = {i for piece in self.pieces for i in piece.indices}
        groups = [x for x in map(self.domain.coordinates, self.domain.names) if touched & set(x.indices)]
        if len(groups) == 1:
            return groups[0]
        indices = tuple(i for x in groups for i in x.indices)
        return type(groups[0])(",".join(x.name for x in groups), indices, self.domain.layout)

    def _onto(self, piece: Piece, points: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Points moved onto a face, by setting its coordinate to `end`, or onto a sphere."""
        index = np.asarray(piece.indices)
        ball = self.domain.ball_at(piece.indices[0])
        if ball is None:
            points[:, index] = end[index]
            return points
        points[:, index] = np.asarray(ball.center) + ball.radius * _unit(points[:, index] - np.asarray(ball.center))
        return points

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Region {self.name}>"


def uniform_in_ball(cube: np.ndarray) -> np.ndarray:
    """`F(|z|)^{1/k} z/|z|` with `z` normal and `F` the distribution of its length: uniform in the unit ball.

    It uses one number for each dimension of the ball, so that evenly spread points of the cube stay evenly spread.
    """
    k = cube.shape[1]
    z = ndtri(np.clip(cube, 1e-300, 1 - 1e-16))
    radius = gammainc(k / 2, np.sum(z**2, axis=1) / 2) ** (1 / k)
    return radius[:, None] * _unit(z)


def log_volume_of_ball(k: int, radius: float) -> float:
    return float(0.5 * k * np.log(np.pi) - gammaln(0.5 * k + 1) + k * np.log(radius))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Each row divided by its length; a row of zeros, which has no direction, becomes the first unit vector."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    first = np.eye(1, vectors.shape[1])
    return np.where(length > 0, vectors / np.where(length > 0, length, 1.0), first)
