"""Reference solutions in NumPy and SciPy, made without the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lstsq

Function = Callable[[np.ndarray], np.ndarray]


def chebyshev(n: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """`n + 1` Chebyshev points from `low` to `high`, and the matrix of `d/dx` on polynomials through them."""
    x = -np.cos(np.pi * np.arange(n + 1) / n)
    weights = _weights(n + 1)
    gaps = x[:, None] - x[None, :] + np.eye(n + 1)
    d = weights[None, :] / weights[:, None] / gaps
    d -= np.diag(d.sum(axis=1))
    return low + (high - low) * (x + 1) / 2, 2 / (high - low) * d


def through(nodes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The matrix that takes values at Chebyshev points to values of their polynomial at `x`."""
    gaps = x[:, None] - nodes[None, :]
    hit = np.abs(gaps) < 1e-15 * max(abs(nodes[0]), abs(nodes[-1]))
    terms = _weights(len(nodes)) / np.where(hit, 1.0, gaps)
    return np.where(hit.any(axis=1, keepdims=True), hit, terms / terms.sum(axis=1, keepdims=True))


def _weights(n: int) -> np.ndarray:
    """Barycentric weights of Chebyshev points."""
    weights = (-1.0) ** np.arange(n)
    weights[[0, -1]] /= 2
    return weights


def square_poisson(across: Function, up: Function, n: int = 88) -> Callable[[np.ndarray, Any], np.ndarray]:
    """`−Δu = g(x − shift) h(y)` in the unit square with zero walls, as a function of points and their shifts."""
    nodes, d = chebyshev(n, 0.0, 1.0)
    values, vectors = np.linalg.eig((d @ d)[1:-1, 1:-1])
    values, vectors = values.real, vectors.real
    inside, inverse = nodes[1:-1], np.linalg.inv(vectors)
    sums = values[:, None] + values[None, :]

    def at(xy: np.ndarray, shift: Any = 0.0) -> np.ndarray:
        g = across(inside[None, :] - np.broadcast_to(shift, len(xy))[:, None]) @ inverse.T
        left, right = (through(nodes, xy[:, i])[:, 1:-1] @ vectors for i in (0, 1))
        return -np.einsum("mi,ij,mj->m", left * g, 1 / sums, right * (inverse @ up(inside)), optimize=True)

    return at


def square_diffusion(a: Function, f: Function, n: int = 40) -> Function:
    """`−∇·(a ∇u) = f` in the unit square with zero walls, by collocation in `(n − 1)²` points."""
    nodes, d = chebyshev(n, 0.0, 1.0)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    dx, dy = sparse.kron(d, sparse.eye(n + 1)).tocsr(), sparse.kron(sparse.eye(n + 1), d).tocsr()
    inside = np.flatnonzero(np.all((grid > 0) & (grid < 1), axis=1))
    at = sparse.diags(a(grid))
    operator = -sum((one[inside] @ at @ one[:, inside]).toarray() for one in (dx, dy))
    u = np.zeros(len(grid))
    u[inside] = np.linalg.solve(operator, f(grid[inside]))
    table = u.reshape(n + 1, n + 1)
    return lambda xy: np.einsum("mi,ij,mj->m", through(nodes, xy[:, 0]), table, through(nodes, xy[:, 1]), optimize=True)


def inclusion(a: Function, slope: Function, n: int = 160) -> Function:
    """`w(r)` of `u = x w(r)` for `∇·(a(r) ∇u) = 0` in the unit disc and `u = x` on the circle; `slope` is `da/dr`.

    The equation in polar coordinates, divided by `r`: `r a w'' + (3 a + r a') w' + a' w = 0`.
    """
    nodes, d = chebyshev(n, 0.0, 1.0)
    at, change = a(nodes), slope(nodes)
    operator = (nodes * at)[:, None] * (d @ d) + (3 * at + nodes * change)[:, None] * d + np.diag(change)
    operator[-1] = np.eye(n + 1)[-1]
    w = np.linalg.solve(operator, np.eye(n + 1)[-1])
    return lambda r: through(nodes, r) @ w


@dataclass(frozen=True)
class Well:
    """Motion `dX = −V'(X) dt + √(2 s) dW` in a potential `V`, with slope `V'` and curvature `V''`.

    `ψ = e^{−V/2s} v` turns both equations below into `ψ_t = s ψ'' − (V'²/4s − V''/2) ψ`. The symmetric operator is
    diagonalised in sinc functions on `[−reach, reach]`, outside of which `ψ` has to be negligible.
    """

    s: float
    potential: Function
    slope: Function
    curvature: Function
    reach: float
    n: int = 160

    def expected(self, start: Function) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """`v(x, t) = E[start(X_t) | X_0 = x]`, the solution of `v_t = s v'' − V' v'`."""
        evolve = self._evolved(start, -1)
        return lambda x, t: evolve(x, t) * np.exp(self.potential(x) / (2 * self.s))

    def density(self, start: Function) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """`p(x, t)`, the density of `X_t`: the solution of `p_t = s p'' + (V' p)'`."""
        evolve = self._evolved(start, 1)
        return lambda x, t: evolve(x, t) * np.exp(-self.potential(x) / (2 * self.s))

    def _evolved(self, start: Function, sign: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        x, h = np.linspace(-self.reach, self.reach, self.n, retstep=True)
        apart = np.subtract.outer(np.arange(self.n), np.arange(self.n))
        second = -2 * (-1.0) ** apart / (h * np.where(apart, apart, 1)) ** 2
        second[np.diag_indices(self.n)] = -(np.pi**2) / (3 * h**2)
        wall = self.slope(x) ** 2 / (4 * self.s) - self.curvature(x) / 2
        rates, modes = np.linalg.eigh(self.s * second - np.diag(wall))
        weights = modes.T @ (start(x) * np.exp(sign * self.potential(x) / (2 * self.s)))

        def at(where: np.ndarray, t: np.ndarray) -> np.ndarray:
            return np.sum((np.sinc((where[:, None] - x) / h) @ modes) * np.exp(rates * t[:, None]) * weights, axis=1)

        return at


def harmonic(corners: np.ndarray, wall: Function, poles: list[int], degree: int = 24) -> Function:
    """`Δu = 0` in a polygon with `u = wall` on it: the real part of a rational function, fitted to the boundary.

    Poles cluster at the corners, outside (Gopal and Trefethen, 2019); `poles` says how many at each. By the maximum
    principle the error is at most the misfit on the boundary. Corners are complex numbers, counter-clockwise.
    """
    before, after = corners - np.roll(corners, 1), np.roll(corners, -1) - corners
    outward = before / abs(before) - after / abs(after)
    outward = np.where(np.imag(np.conj(before) * after) > 0, outward, -outward) / abs(outward)
    distances = [np.exp(-4 * (np.sqrt(count) - np.sqrt(np.arange(1, count + 1)))) for count in poles]
    at = np.concatenate([z + way * far for z, way, far in zip(corners, outward, distances)])
    residues = np.concatenate(distances)
    middle = np.mean(corners)
    size = np.max(abs(corners - middle))

    def columns(z: np.ndarray) -> np.ndarray:
        powers = ((z - middle) / size)[:, None] ** np.arange(degree + 1)
        fractions = residues / (z[:, None] - at)
        return np.concatenate([powers.real, powers.imag[:, 1:], fractions.real, fractions.imag], axis=1)

    half = np.concatenate([np.logspace(-14, np.log10(0.5), 5 * max(poles)), np.linspace(0.02, 0.5, max(poles))])
    edge = (corners[:, None] + after[:, None] * np.concatenate([half, 1 - half])[None, :]).ravel()
    fitted = lstsq(columns(edge), wall(edge), cond=1e-14, lapack_driver="gelsy")[0]
    return lambda z: columns(z) @ fitted
