"""Base kernels as profiles: `k = φ(s)` with `s = |z − z'|²/2`, and the derivatives of `φ` that operators need."""

from __future__ import annotations

import abc
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Profile(eqx.Module):
    """A correlation `φ(s)`, `φ(0) = 1`, decreasing.

    `smoothness` is how often its process is differentiable in mean square: the highest order of an operator that may
    act on it.
    """

    @property
    @abc.abstractmethod
    def smoothness(self) -> float: ...

    @abc.abstractmethod
    def derivatives(self, s: Float[Array, "*shape"], count: int) -> list[Array]:
        """`φ, φ', …, φ^(count)` at `s`.

        A derivative that is infinite at `s = 0` is given as zero there: it is only ever multiplied by higher powers of
        the distance.
        """

    @abc.abstractmethod
    def __call__(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """`φ(s)`, written so that nested differentiation is right at `s = 0` too."""


class SquaredExponential(Profile):
    """`φ = e^{-s}`: infinitely smooth."""

    @property
    def smoothness(self) -> float:
        return math.inf

    def derivatives(self, s: Array, count: int) -> list[Array]:
        value = jnp.exp(-s)
        return [value if k % 2 == 0 else -value for k in range(count + 1)]

    def __call__(self, s: Array) -> Array:
        return jnp.exp(-s)


class RationalQuadratic(Profile):
    """`φ = (1 + s/α)^{-α}`: a mixture of length scales, infinitely smooth."""

    log_alpha: Float[Array, ""]

    def __init__(self, alpha: float = 1.0) -> None:
        if not (np.isfinite(alpha) and alpha > 0):
            raise ValueError(f"RationalQuadratic needs a positive alpha: got {alpha!r}.")
        self.log_alpha = jnp.log(jnp.asarray(alpha, dtype=float))

    @property
    def smoothness(self) -> float:
        return math.inf

    def derivatives(self, s: Array, count: int) -> list[Array]:
        alpha = jnp.exp(self.log_alpha)
        base = 1 + s / alpha
        out = [base**-alpha]
        for k in range(count):
            out.append(-(alpha + k) / (alpha * base) * out[-1])
        return out

    def __call__(self, s: Array) -> Array:
        alpha = jnp.exp(self.log_alpha)
        return (1 + s / alpha) ** -alpha


class Matern(Profile):
    """Matérn with `ν = p + 1/2`: `φ(s) = ψ_p(√(2ν)·r) / ψ_p(0)` with `r = √(2s)`.

    `ψ_p(x) = √(2/π) x^ν K_ν(x)` is a polynomial times `e^{-x}` and `dψ_p/d(x²/2) = −ψ_{p−1}`, so that every derivative
    is again one of these functions; `ψ_{-1} = e^{-x}/x` and `ψ_{-2} = (1 + x) e^{-x}/x³` are infinite at zero.
    """

    p: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.p not in (2, 3, 4):
            raise ValueError(f"Matern takes p = 2, 3 or 4 (ν = 5/2, 7/2, 9/2): got p = {self.p}.")

    @property
    def smoothness(self) -> float:
        return self.p

    def derivatives(self, s: Array, count: int) -> list[Array]:
        rate = 2 * self.p + 1.0
        positive = s > 0
        x = jnp.sqrt(2 * rate * jnp.where(positive, s, 1.0))
        decay = jnp.exp(-x)
        out = []
        for k in range(count + 1):
            index = self.p - k
            psi = _bessel_polynomial(index, x) * decay
            at_zero = _psi_at_zero(index) if index >= 0 else 0.0
            out.append((-rate) ** k / _psi_at_zero(self.p) * jnp.where(positive, psi, at_zero))
        return out

    def __call__(self, s: Array) -> Array:
        rate = 2 * self.p + 1.0
        positive = s > 0
        x = jnp.sqrt(2 * rate * jnp.where(positive, s, 1.0))
        away = _bessel_polynomial(self.p, x) * jnp.exp(-x)
        # The even part of the Taylor series, in s: all derivatives at zero that exist come from it.
        near = sum((-rate * s) ** k / math.factorial(k) * _psi_at_zero(self.p - k) for k in range(self.p + 1))
        return jnp.where(positive, away, near) / _psi_at_zero(self.p)


def Matern52() -> Matern:
    """Matérn 5/2: carries operators up to order two."""
    return Matern(2)


def Matern72() -> Matern:
    """Matérn 7/2: carries operators up to order three."""
    return Matern(3)


def Matern92() -> Matern:
    """Matérn 9/2: carries operators up to order four."""
    return Matern(4)


def _bessel_polynomial(p: int, x: Array) -> Array:
    """`ψ_p(x) e^x`; reverse Bessel polynomials for `p ≥ 0`, and the two functions below them."""
    if p < 0:
        return {-1: 1 / x, -2: (1 + x) / x**3}[p]
    coefficients = [math.factorial(2 * p - k) // (2 ** (p - k) * math.factorial(k) * math.factorial(p - k))
                    for k in range(p + 1)]  # fmt: skip
    return sum((c * x**k for k, c in enumerate(coefficients)), jnp.zeros_like(x))


def _psi_at_zero(p: int) -> float:
    return float(math.prod(range(1, 2 * p, 2)))
