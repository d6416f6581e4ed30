"""Functions that are zero on faces and spheres, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..domain import Domain
from ..regions import ON_THE_REGION, Piece
from .coefficients import AbstractCoefficient

# A coordinate, its lower and upper end, and which of both are faces.
Face = tuple[int, float, float, tuple[str, ...]]
# The coordinates of a ball, its centre and its radius.
Sphere = tuple[tuple[int, ...], tuple[float, ...], float]


class Vanishing(AbstractCoefficient):
    """`μ(q) = Π_i μ_i(q_i) · Π_b (1 − |q_b − c_b|²/r_b²)`, zero on faces and spheres and positive inside.

    With the lower end `a` and the upper end `b` of a coordinate, `μ_i` is `4 (q_i − a)(b − q_i)/(b − a)²` if both ends
    are faces, and `(q_i − a)/(b − a)` or `(b − q_i)/(b − a)` if one is.
    """

    faces: tuple[Face, ...] = eqx.field(static=True)
    spheres: tuple[Sphere, ...] = eqx.field(static=True)

    def __call__(self, q: Float[Array, " d"]) -> Array:
        found = jnp.ones(())
        for i, lower, upper, sides in self.faces:
            from_lower, from_upper = (q[i] - lower) / (upper - lower), (upper - q[i]) / (upper - lower)
            if len(sides) == 2:
                found = found * (4 * from_lower * from_upper)
            else:
                found = found * (from_lower if sides == ("lower",) else from_upper)
        for indices, centre, radius in self.spheres:
            away = (q[np.asarray(indices)] - np.asarray(centre)) / radius
            found = found * (1 - jnp.sum(away**2))
        return found

    def zero_at(self, points: np.ndarray) -> Bool[np.ndarray, " n"]:
        """Which points lie on one of the faces or spheres."""
        found = np.zeros(len(points), dtype=bool)
        for i, lower, upper, sides in self.faces:
            for side in sides:
                end = lower if side == "lower" else upper
                found |= np.abs(points[:, i] - end) < ON_THE_REGION * (upper - lower)
        for indices, centre, radius in self.spheres:
            away = np.linalg.norm(points[:, list(indices)] - np.asarray(centre), axis=1)
            found |= np.abs(away / radius - 1) < ON_THE_REGION
        return found

    def __str__(self) -> str:
        return "μ(q)"


def vanishing(domain: Domain, pieces: Sequence[Piece]) -> Vanishing | None:
    """The function that is zero on these faces and spheres of a domain; `None` if there are none."""
    faces: dict[int, set[str]] = {}
    spheres: list[Sphere] = []
    for piece in pieces:
        ball = domain.ball_at(piece.indices[0])
        if ball is None:
            faces.setdefault(piece.indices[0], set()).add(piece.side or "lower")
        elif (piece.indices, tuple(ball.center), float(ball.radius)) not in spheres:
            spheres.append((piece.indices, tuple(ball.center), float(ball.radius)))
    ends = lambda i: (float(domain.lower[i]), float(domain.upper[i]))
    found = tuple((i, *ends(i), tuple(sorted(sides))) for i, sides in sorted(faces.items()))
    return Vanishing(found, tuple(spheres)) if found or spheres else None
