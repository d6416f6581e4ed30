"""Domains that are neither boxes nor balls: users bring their own points, in the box around the region."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pdedkl as pk

from .common import PLACES, Case, Field, constant, of_data, uniform

Region = Callable[[np.ndarray], np.ndarray]


def inside(domain: pk.Domain, region: Region, n: int, rng: np.random.Generator) -> np.ndarray:
    """`n` random points of a region in the box."""
    found = uniform(domain, 40 * n, rng)
    return found[region(found)][:n]


def circle(centre: float, radius: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Evenly spaced points on a circle, from a random one on."""
    angle = 2 * np.pi * (np.arange(n) + rng.uniform()) / n
    return np.stack([centre + radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def polygon(corners: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Evenly spaced points on the edges of a polygon, from a random one on."""
    closed = np.concatenate([corners, corners[:1]])
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(closed, axis=0), axis=1))])
    at = length[-1] * (np.arange(n) + rng.uniform()) / n
    return np.stack([np.interp(at, length, closed[:, i]) for i in (0, 1)], axis=1)


def shape(
    title: str,
    region: Region,
    wall: Callable[[np.random.Generator], np.ndarray],
    exact: Field,
    source: Field,
    n: int,
    seed: int,
    *,
    zero_walls: bool = False,
    noise: Any = "learned",
    **more: Any,
) -> Case:
    """`−Δu = f` in a region, from values of `u` on its boundary and `n` values of `f` inside.

    Where the walls are zero a user writes zeros, not a formula that is zero up to rounding.
    """
    domain = pk.Domain(x=[(-1.0, 1.0)] * 2)
    operator = -pk.Laplacian(domain.coordinates("x"))
    rng = np.random.default_rng(seed)
    edge, interior = wall(rng), inside(domain, region, n, rng)
    data = [
        pk.Observation(pk.identity, edge, np.zeros(len(edge)) if zero_walls else exact(edge), noise=noise),
        pk.Observation(operator, interior, source(interior), noise=noise),
    ]
    places = inside(domain, region, PLACES, np.random.default_rng([seed, 1]))
    return of_data(title, domain, data, places, exact, operator, source, **more)


INNER = 0.4


def in_ring(q: np.ndarray) -> np.ndarray:
    r = np.hypot(*q.T)
    return (r > INNER) & (r < 1)


def ring_edge(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([circle(0.0, INNER, 30, rng), circle(0.0, 1.0, 50, rng)])


def annulus(noise: str, seed: int) -> Case:
    def exact(q: np.ndarray) -> np.ndarray:
        r = np.hypot(*q.T)
        return (1 - r**2) / 4 - (1 - INNER**2) / 4 * np.log(r) / np.log(INNER)

    title = f"−Δu = 1 in the annulus 0.4 < r < 1, u = 0 on both circles, noise {noise}"
    return shape(title, in_ring, ring_edge, exact, constant(1.0), 150, seed, zero_walls=True, noise=noise, wanted=1e-3)


def annulus_source(seed: int) -> Case:
    """`u = sin(k (r − 0.4)) cos 2φ`, zero on both circles."""
    k = np.pi / (1 - INNER)

    def parts(q: np.ndarray) -> tuple[np.ndarray, ...]:
        r, angle = np.hypot(*q.T), np.arctan2(q[:, 1], q[:, 0])
        return r, np.cos(2 * angle), np.sin(k * (r - INNER)), np.cos(k * (r - INNER))

    def exact(q: np.ndarray) -> np.ndarray:
        _, wave, sine, _ = parts(q)
        return sine * wave

    def source(q: np.ndarray) -> np.ndarray:
        r, wave, sine, cosine = parts(q)
        return (k**2 * sine - k * cosine / r + 4 * sine / r**2) * wave

    title = "−Δu = f(r, φ) in the annulus 0.4 < r < 1, u = 0 on both circles"
    return shape(title, in_ring, ring_edge, exact, source, 150, seed, zero_walls=True, wanted=1e-3)


def off_centre_hole(seed: int) -> Case:
    """Both circles are level lines of `log |z − p| / |z − 1/p|`."""
    c, radius = 0.3, 0.25
    s = (1 + c**2 - radius**2) / c
    p = (s - np.sqrt(s**2 - 4)) / 2

    def level(q: np.ndarray) -> np.ndarray:
        z = q[:, 0] + 1j * q[:, 1]
        return np.log(abs(z - p) / abs(z - 1 / p))

    outer, inner = level(np.array([[1.0, 0.0], [c + radius, 0.0]]))

    def exact(q: np.ndarray) -> np.ndarray:
        return (level(q) - outer) / (inner - outer)

    region = lambda q: (np.hypot(*q.T) < 1) & (np.hypot(q[:, 0] - c, q[:, 1]) > radius)
    wall = lambda rng: np.concatenate([circle(c, radius, 30, rng), circle(0.0, 1.0, 50, rng)])
    title = "Δu = 0 in a disc with a hole off its centre, u = 0 outside and u = 1 at the hole"
    return shape(title, region, wall, exact, constant(0.0), 150, seed, wanted=1e-3)


def sector(seed: int) -> Case:
    """`u = r³ sin 3φ`, zero on both straight edges."""

    def exact(q: np.ndarray) -> np.ndarray:
        z = q[:, 0] + 1j * q[:, 1]
        return np.imag(z**3)

    def region(q: np.ndarray) -> np.ndarray:
        angle = np.arctan2(q[:, 1], q[:, 0])
        return (np.hypot(*q.T) < 1) & (angle > 0) & (angle < np.pi / 3)

    def wall(rng: np.random.Generator) -> np.ndarray:
        r, angle = rng.uniform(size=40), rng.uniform(0, np.pi / 3, 20)
        edges = np.stack([r, np.zeros(40)], axis=1)
        edges[20:] = r[20:, None] * np.array([np.cos(np.pi / 3), np.sin(np.pi / 3)])
        return np.concatenate([edges, np.stack([np.cos(angle), np.sin(angle)], axis=1)])

    title = "Δu = 0 in a sector of 60°, u = 0 on the straight edges and sin 3φ on the arc"
    return shape(title, region, wall, exact, constant(0.0), 80, seed, wanted=1e-3)


def ellipse(seed: int) -> Case:
    a, b = 1.0, 0.5

    def exact(q: np.ndarray) -> np.ndarray:
        return (1 - (q[:, 0] / a) ** 2 - (q[:, 1] / b) ** 2) / (2 * (a**-2 + b**-2))

    region = lambda q: exact(q) > 0
    wall = lambda rng: circle(0.0, 1.0, 60, rng) * [a, b]
    title = "−Δu = 1 in an ellipse with half-axes 1 and 0.5, u = 0 on it"
    return shape(title, region, wall, exact, constant(1.0), 100, seed, zero_walls=True, wanted=1e-3)


L_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [0.0, -1.0]])


def in_l_shape(q: np.ndarray) -> np.ndarray:
    return (q[:, 0] < 0) | (q[:, 1] > 0)


def l_shape(seed: int) -> Case:
    """The angle runs from 0 on one edge at the corner to 3π/2 on the other; its cut lies outside."""

    def exact(q: np.ndarray) -> np.ndarray:
        angle = np.arctan2(q[:, 1], q[:, 0])
        angle = np.where(angle < -np.pi / 4, angle + 2 * np.pi, angle)
        return np.hypot(*q.T) ** (2 / 3) * np.sin(2 * angle / 3)

    wall = lambda rng: polygon(L_CORNERS, 120, rng)
    title = "Δu = 0 in an L, u = r^⅔ sin ⅔φ on its boundary"
    return shape(title, in_l_shape, wall, exact, constant(0.0), 150, seed, wanted=3e-2)


CASES: dict[str, Callable[[int], Case]] = {
    "annulus": partial(annulus, "learned"),
    "annulus-exact": partial(annulus, "exact"),
    "annulus-source": annulus_source,
    "off-centre-hole": off_centre_hole,
    "sector": sector,
    "ellipse": ellipse,
    "l-shape": l_shape,
}
