"""The derivative along the outward normal, as one operator for all faces."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..domain import TIME, Coordinates, Domain
from ..observations import _numbers
from ..operators import Directional
from ..operators.normals import GivenNormals, OutwardNormal
from ..regions import Piece, Region

ON_A_FACE = 1e-9  # of the domain's size


def normal_derivative(where: Region | np.ndarray, normals: Any, domain: Domain, label: str) -> Directional:
    """`n(q)·∇`, with `n` from the region, from the faces that the points lie on, or from `normals`."""
    if normals is None or isinstance(normals, Coordinates):
        region = where if isinstance(where, Region) else _faces_under(where, normals, domain, label)
        x = region.coordinates()
        return Directional(x, OutwardNormal(domain, x))
    q = Coordinates("q", tuple(range(domain.dim)), domain.layout)
    if callable(normals):
        return Directional(q, normals)
    if isinstance(where, Region):
        raise TypeError(f"The {label} is sampled: give its normals as a function of the point, or leave them out.")
    vectors = _numbers("normals", normals)
    if vectors.shape != where.shape:
        raise ValueError(
            f"The {label} needs one normal for each point, with all coordinates: shape {where.shape}, "
            f"got {vectors.shape}."
        )
    length = np.linalg.norm(vectors, axis=1)
    if np.any(wrong := np.abs(length - 1) > 1e-6):
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"The {label} needs normals of length one: normals[{row}] has length {length[row]:g}.")
    return Directional(q, GivenNormals(jnp.asarray(where), jnp.asarray(vectors)))


def _faces_under(points: np.ndarray, x: Coordinates | None, domain: Domain, label: str) -> Region:
    """The faces and spheres that the points lie on, each point on exactly one. Time counts as having no faces."""
    if x is not None:
        groups = [domain.coordinates(domain.group_of(x))]
    else:
        groups = [domain.coordinates(name) for name in domain.names if name not in TIME]
    found: list[Piece] = []
    count = np.zeros(len(points), dtype=int)
    for group in groups:
        normal = OutwardNormal(domain, group)
        near = np.asarray(jax.vmap(normal.distances)(jnp.asarray(points))) < ON_A_FACE
        count += near.sum(axis=1)
        if near.any():
            found.append(Piece(group.indices[:1], "lower"))  # the piece only identifies the group, so any piece works
    advice = "give `normals`, one vector for each point"
    if np.any(count == 0):
        row = int(np.flatnonzero(count == 0)[0])
        raise ValueError(f"The {label}: points[{row}] = {points[row].tolist()} lies on no face; {advice}.")
    if np.any(count > 1):
        row = int(np.flatnonzero(count > 1)[0])
        raise ValueError(
            f"The {label}: points[{row}] = {points[row].tolist()} lies where faces meet, so its normal is not unique; "
            f"{advice}, or normals=x to use the faces of x."
        )
    return Region(domain, tuple(found), label)
