"""One small problem for all training tests, always with the same shapes: `−Δu = 3 sin(x₁ + x₂ + x₃)`."""

from __future__ import annotations

import jax
import numpy as np

import pdedkl as pk
from pdedkl.training.objective import trainable

DIM, POINTS = 3, 30
DOMAIN = pk.Domain(x=[(0.0, 1.0)] * DIM)
OPERATOR = -pk.Laplacian(DOMAIN.coordinates("x"))


def solution(points: np.ndarray) -> np.ndarray:
    return np.sin(points.sum(axis=1))


def inside(seed: int, count: int = POINTS) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=(count, DIM))


def boundary(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(POINTS, DIM))
    points[np.arange(POINTS), rng.integers(DIM, size=POINTS)] = rng.integers(2, size=POINTS)
    return points


ON_BOUNDARY, INSIDE, ELSEWHERE = boundary(0), inside(1), inside(2, 100)


def observations(u=None, f=None, on_boundary=ON_BOUNDARY, inside=INSIDE) -> list[pk.Observation]:
    """Values of `u` and of `f` at the usual points; those of the problem itself unless others are given."""
    u = solution(on_boundary) if u is None else u
    f = DIM * solution(inside) if f is None else f
    return [pk.Observation(pk.identity, on_boundary, u, name="u"), pk.Observation(OPERATOR, inside, f, name="f")]


def error(posterior: pk.Posterior, scale: float = 1.0) -> float:
    truth = scale * solution(ELSEWHERE)
    return float(np.linalg.norm(posterior.predict(ELSEWHERE).mean - truth) / np.linalg.norm(truth))


def parameters(posterior: pk.Posterior) -> np.ndarray:
    """All trained numbers, in one vector."""
    model = posterior.model
    leaves = zip(jax.tree.leaves(model), jax.tree.leaves(trainable(model)), strict=True)
    return np.concatenate([np.ravel(leaf) for leaf, moves in leaves if moves])
