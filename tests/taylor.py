"""Covariances by the arithmetic of truncated power series, in NumPy: nothing is compiled for the kernel.

Along one line through each of two points, `k(q + s v, q' + s' v')` is a power series in `s` and `s'`. Up to the second
power in each it holds all that a second-order operator needs: the value, the slope and the curvature along `v` on
either side. Base kernels are textbook formulas of the distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import oracles

import pdedkl as pk

POWERS = list(product(range(3), repeat=2))


@dataclass(frozen=True)
class Series:
    """`Σ c_ij s^i s'^j` with `i, j ≤ 2`; `c` has the powers as its first two axes."""

    c: np.ndarray

    def __add__(self, other):
        c = np.copy(self.c)
        if isinstance(other, Series):
            return Series(c + other.c)
        c[0, 0] += other
        return Series(c)

    def __mul__(self, other):
        if not isinstance(other, Series):
            return Series(self.c * other)
        c = np.zeros(np.broadcast_shapes(self.c.shape, other.c.shape))
        for (i, j), (m, n) in product(POWERS, POWERS):
            if i + m < 3 and j + n < 3:
                c[i + m, j + n] += self.c[i, j] * other.c[m, n]
        return Series(c)

    __radd__, __rmul__ = __add__, __mul__

    def composed(self, coefficients):
        """`Σ_m f_m (x − x_0)^m`, where `x_0` is the constant term: higher powers than the fourth vanish."""
        rest = Series(np.copy(self.c))
        rest.c[0, 0] = 0.0
        *others, total = coefficients
        total = Series(np.zeros_like(self.c)) + total
        for one in reversed(others):
            total = total * rest + one
        return total

    def exp(self):
        value = np.exp(self.c[0, 0])
        return self.composed([value, value, value / 2, value / 6, value / 24])

    def power(self, a):
        x, factors = self.c[0, 0], [1.0]
        for m in range(4):
            factors.append(factors[-1] * (a - m) / (m + 1))
        return self.composed([factor * x ** (a - m) for m, factor in enumerate(factors)])


# ── base kernels ──────────────────────────────────────────────────────────────────────────────────────────────────


def squared_exponential(r2):
    return (r2 * -0.5).exp()


def rational_quadratic(r2, alpha):
    return (r2 * (0.5 / alpha) + 1.0).power(-alpha)


def matern(r2, twice_nu):
    """At `r = 0`, the derivatives that exist are those of the even part of its Taylor series."""
    apart = r2.c[0, 0] > 1e-24  # rounding may part points that are the same
    c = np.copy(r2.c)
    c[0, 0] = np.where(apart, c[0, 0], 1.0)
    x = Series(c).power(0.5) * twice_nu**0.5
    away = polynomial(oracles._MATERN[twice_nu], x) * (x * -1.0).exp()
    return Series(np.where(apart, away.c, polynomial(oracles._even_series(twice_nu), r2).c))


def polynomial(coefficients, x):
    *others, highest = coefficients
    total = Series(np.zeros_like(x.c)) + highest
    for one in reversed(others):
        total = total * x + one
    return total


def base_kernel(profile):
    if isinstance(profile, pk.SquaredExponential):
        return squared_exponential
    if isinstance(profile, pk.RationalQuadratic):
        return partial(rational_quadratic, alpha=float(np.exp(profile.log_alpha)))
    return partial(matern, twice_nu=2 * profile.p + 1)


# ── kernels along lines ───────────────────────────────────────────────────────────────────────────────────────────


@oracles.quick_jit
def along_lines(component, points, directions):
    """The powers 0, 1, 2 of `s` in the scaled latent coordinates at `q + s v`."""
    low, high = component.normalisation.centre, component.normalisation.scale
    latent = lambda q: component.embedding((q - low) * high) / jnp.exp(component.log_lengthscale)

    def line(q, v):
        once = lambda p: jax.jvp(latent, (p,), (v,))
        (value, slope), (_, curvature) = jax.jvp(once, (q,), (v,))
        return jnp.stack([value, slope, curvature / 2])

    return jax.vmap(line)(points, directions)


def squared_distances(z, z_):
    """`‖z(s) − z'(s')‖²` in each coordinate, for all pairs of lines."""
    c = np.zeros((3, 3, len(z), len(z_), z.shape[-1]))
    c[0, 0] = z[:, None, 0] - z_[None, :, 0]
    for power in (1, 2):
        c[power, 0] += z[:, None, power]
        c[0, power] -= z_[None, :, power]
    difference = Series(c)
    return difference * difference


def kernel_along_lines(kernel, points, directions):
    """The series of the kernel between every two lines."""
    total = 0.0
    for component in kernel.components:
        z = np.asarray(along_lines(component, points, directions))
        members = np.zeros((len(component.base.groups), z.shape[-1]))
        for number, group in enumerate(component.base.groups):
            members[number, list(group)] = 1.0
        r2 = Series(squared_distances(z, z).c @ members.T)
        variances = np.exp(np.asarray(component.base.log_variance))
        total = total + base_kernel(component.base.profile)(r2).c @ variances
    return total


def covariances(kernel, points, rows):
    """All covariances between rows `c u + b·∇u + Σ_r s_r (v_r·∇)² u`, each at one of the points.

    `rows` holds `(number of the point, c, b, V, s)`. Lines that several rows need are there once.
    """
    lines: dict[tuple, int] = {}
    parts = []
    for number, c, b, V, s in rows:
        at = lambda v, number=number: lines.setdefault((number, *v), len(lines))
        parts.append((at(b), c, [(at(v), weight) for v, weight in zip(V, s, strict=True) if weight]))
    weights = np.zeros((len(rows), len(lines), 3))
    for row, (slope, c, curvatures) in enumerate(parts):
        weights[row, slope] += [c, 1.0, 0.0]
        for line, weight in curvatures:
            weights[row, line, 2] += 2 * weight
    keys = np.asarray(list(lines))
    series = kernel_along_lines(kernel, np.asarray(points)[keys[:, 0].astype(int)], keys[:, 1:])
    half = np.tensordot(weights, series, axes=([1, 2], [2, 0]))  # row, power of s', line'
    return np.tensordot(half, weights, axes=([1, 2], [2, 1]))
