"""The oracle: nested automatic differentiation, written without anything that the closed forms are made of.

Base kernels are textbook formulas of the distance, an operator is its coefficients, and the covariance of `A u` with
`A' u` is `A` in the first and `A'` in the second argument of `k(q, q')`.
"""

from __future__ import annotations

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk

# An oracle runs once, on few points: nearly all of its time is compilation, so that is what is kept short.
# The numbers are the same up to rounding.
QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}
quick_jit = partial(eqx.filter_jit, compiler_options=QUICK)


def at_points(function, points):
    """Values of a function of one point at many, as one program: eagerly, every operation would be one of its own."""
    return quick_jit(jax.vmap(function))(jnp.asarray(points))


# XLA's defaults, whatever `XLA_FLAGS` says.
OPTIMISED = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}
as_users_have_it = partial(eqx.filter_jit, compiler_options=OPTIMISED)

# ── base kernels ──────────────────────────────────────────────────────────────────────────────────────────────────


def squared_exponential(r2):
    return jnp.exp(-r2 / 2)


def rational_quadratic(r2, alpha):
    return (1 + r2 / (2 * alpha)) ** (-alpha)


# Coefficients of the polynomial in x = √(2ν) r that multiplies e^{-x}.
_MATERN = {5: [1, 1, 1 / 3], 7: [1, 1, 2 / 5, 1 / 15], 9: [1, 1, 3 / 7, 2 / 21, 1 / 105]}


def matern(r2, twice_nu):
    """Textbook Matérn. At `r = 0` the derivatives that exist are those of the even part of its Taylor series."""
    a = math.sqrt(twice_nu)
    apart = r2 > 1e-24  # rounding may part points that are the same
    x = a * jnp.sqrt(jnp.where(apart, r2, 1.0))
    away = sum(c * x**k for k, c in enumerate(_MATERN[twice_nu])) * jnp.exp(-x)
    return jnp.where(apart, away, sum(c * r2**k for k, c in enumerate(_even_series(twice_nu))))


def _even_series(twice_nu):
    """By multiplying the polynomial with the series of `e^{-x}` and keeping the even powers."""
    polynomial = _MATERN[twice_nu]
    p = (twice_nu - 1) // 2
    exponential = [(-1) ** k / math.factorial(k) for k in range(2 * p + 1)]
    product = np.convolve(polynomial, exponential)[: 2 * p + 1]
    return [product[2 * k] * twice_nu**k for k in range(p + 1)]


def base_kernel(profile):
    if isinstance(profile, pk.SquaredExponential):
        return squared_exponential
    if isinstance(profile, pk.RationalQuadratic):
        return partial(rational_quadratic, alpha=jnp.exp(profile.log_alpha))
    return partial(matern, twice_nu=2 * profile.p + 1)


def kernel_function(kernel):
    """`k(q, q')` of a whole kernel, from its parameters."""

    def value(q, q_):
        total = 0.0
        for component in kernel.components:
            base, lengthscale = base_kernel(component.base.profile), jnp.exp(component.log_lengthscale)
            low, high = component.normalisation.centre, component.normalisation.scale
            difference = (component.embedding((q - low) * high) - component.embedding((q_ - low) * high)) / lengthscale
            members = np.zeros((len(component.base.groups), len(lengthscale)))
            for number, group in enumerate(component.base.groups):
                members[number, list(group)] = 1.0
            total += jnp.dot(jnp.exp(component.base.log_variance), base(members @ difference**2))
        return total

    return value


# ── operators as coefficients ─────────────────────────────────────────────────────────────────────────────────────


def coefficients(operator, q, directions):
    """`(c, b, V, s)` of a symbol, with the second-order part padded to a fixed number of directions."""
    symbol, d = operator.symbol(q), q.shape[0]
    c = jnp.zeros(()) if symbol.c is None else symbol.c
    b = jnp.zeros(d) if symbol.b is None else symbol.b
    V, s = jnp.zeros((0, d)), jnp.zeros(0)
    if symbol.axes:
        V, s = jnp.eye(d)[np.asarray(symbol.axes)], symbol.axis_weights
    if symbol.directions is not None:
        V, s = jnp.concatenate([V, symbol.directions]), jnp.concatenate([s, symbol.weights])
    pad = directions - V.shape[0]
    assert pad >= 0, "more directions than the oracle has room for"
    return c, b, jnp.pad(V, ((0, pad), (0, 0))), jnp.pad(s, (0, pad))


def apply(parts, u):
    """`c u + b·∇u + Σ_r s_r (v_r·∇)² u`, by forward-over-forward differentiation.

    `b` is one more direction, and `u` with its two derivatives comes from one evaluation along each: what is compiled
    holds `u` once, and not once for each order.
    """
    c, b, V, s = parts
    along = jnp.concatenate([b[None], V])
    first = jnp.arange(len(along)) == 0
    weights = jnp.where(first, c, 0.0), jnp.where(first, 1.0, 0.0), jnp.where(first, 0.0, jnp.pad(s, (1, 0)))

    def at(q):
        def line(v):
            once = lambda p: jax.jvp(u, (p,), (v,))
            (value, slope), (_, curvature) = jax.jvp(once, (q,), (v,))
            return jnp.stack([value, slope, curvature])

        return jnp.vdot(jnp.stack(weights, axis=1), jax.vmap(line)(along))

    return at


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def nested(kernel_builder, kernel, left, left_points, right, right_points):
    """All covariances between rows of operators at points; compiled once for each shape."""
    k = kernel_builder(kernel)

    def pair(parts, q, parts_, q_):
        return apply(parts, lambda p: apply(parts_, lambda p_: k(p, p_))(q_))(q)

    def row(item):
        return jax.vmap(lambda parts_, q_: pair(*item, parts_, q_))(right, right_points)

    return jax.lax.map(row, (left, left_points))
