"""Outward normals `n(q)`, the directions of Neumann and Robin conditions. They are data that model files can store."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Coordinates, Domain


class OutwardNormal(eqx.Module):
    """`n(q)`: the outward normal of the face or sphere nearest to `q`, among those of the coordinates `x`.

    All faces share this one function, so that the normal derivatives on all of them form one observation. `faces` are
    (coordinate, place, width, sign), `balls` are (coordinates, center, radius).
    """

    x: Coordinates = eqx.field(static=True)
    faces: tuple[tuple[int, float, float, float], ...] = eqx.field(static=True)
    balls: tuple[tuple[tuple[int, ...], tuple[float, ...], float], ...] = eqx.field(static=True)

    def __init__(self, domain: Domain, x: Coordinates) -> None:
        self.x = x
        lower, upper = domain.lower.tolist(), domain.upper.tolist()
        self.faces = tuple(
            (i, place, upper[i] - lower[i], sign)
            for i in x.indices
            if domain.ball_at(i) is None
            for place, sign in ((lower[i], -1.0), (upper[i], 1.0))
        )
        groups = [y.indices for y in map(domain.coordinates, domain.names) if set(y.indices) <= set(x.indices)]
        balls = [(indices, domain.ball_at(indices[0])) for indices in groups]
        self.balls = tuple((indices, ball.center, ball.radius) for indices, ball in balls if ball is not None)

    def distances(self, q: Float[Array, " d"]) -> Float[Array, " m"]:
        """How far `q` is from each face and sphere, relative to its size."""
        index, place, width = (np.asarray([face[k] for face in self.faces]) for k in range(3))
        flat = jnp.abs(q[index.astype(int)] - place) / width
        round_ = [jnp.abs(jnp.linalg.norm(_from(q, i, c)) - r) / r for i, c, r in self.balls]
        return jnp.concatenate([flat, jnp.asarray(round_)]) if round_ else flat

    def __call__(self, q: Float[Array, " d"]) -> Float[Array, " k"]:
        position = {index: k for k, index in enumerate(self.x.indices)}
        rows = np.zeros((len(self.faces), len(self.x)))
        for number, (index, _, _, sign) in enumerate(self.faces):
            rows[number, position[index]] = sign
        normals = jnp.asarray(rows)
        for indices, center, _ in self.balls:
            away = _from(q, indices, center)
            away /= jnp.linalg.norm(away)
            radial = jnp.zeros(len(self.x)).at[np.asarray([position[i] for i in indices])].set(away)
            normals = jnp.concatenate([normals, radial[None]])
        return normals[jnp.argmin(self.distances(q))]


class GivenNormals(eqx.Module):
    """`n(q)`, the vector given for the point nearest to `q`."""

    points: Float[Array, "n d"]
    normals: Float[Array, "n d"]

    def __call__(self, q: Float[Array, " d"]) -> Float[Array, " d"]:
        return self.normals[jnp.argmin(jnp.sum((self.points - q) ** 2, axis=1))]


def _from(q: Array, indices: tuple[int, ...], center: tuple[float, ...]) -> Array:
    return q[np.asarray(indices)] - np.asarray(center)
