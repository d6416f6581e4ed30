"""Base kernels as profiles: `k = φ(s)` with `s = |z − z'|²/2`, and the derivatives of `φ` that operators need."""

from __future__ import annotations

import abc
import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Two points with a smaller squared distance are the same up to rounding.
SAME_POINT = 1e-24
# A positive number that has a square root and is too small to change a sum.
SMALLEST = 1e-300


class Profile(eqx.Module):
    """A correlation `φ(s)` of half a squared distance `s`, with `φ(0) = 1`, decreasing.

    **Arguments:** none. This is the base class; `docs/extending.md` shows how to add a profile.

    !!! example
        ```python
        profile: pk.Profile = pk.Matern52()
        assert profile(jnp.zeros(())) == 1.0
        ```
    """

    @property
    @abc.abstractmethod
    def smoothness(self) -> float:
        """How often its process is differentiable in mean square: the highest order of an operator."""

    @abc.abstractmethod
    def derivatives(self, s: Float[Array, "*shape"], count: int) -> list[Array]:
        """`φ, φ', …, φ^(count)` at `s`.

        A derivative that is infinite at `s = 0` is given as zero there: formulas multiply it by a higher power of the
        distance.

        **Arguments:**

        - `s`: half a squared distance; an array of any shape.
        - `count`: the highest derivative.

        **Returns:** a list of `count + 1` arrays.

        !!! example
            ```python
            value, slope = pk.SquaredExponential().derivatives(jnp.asarray(0.5), 1)
            assert slope == -value
            ```
        """

    def __call__(self, s: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """`φ(s)`, differentiable as often as operators need, also at `s = 0`."""
        return self.derivatives(s, 0)[0]


class SquaredExponential(Profile):
    """`φ = e^{-s}`: infinitely smooth.

    **Arguments:** none.

    !!! example
        ```python
        kernel = pk.ard(domain, pk.SquaredExponential())
        ```
    """

    @property
    def smoothness(self) -> float:
        return math.inf

    def derivatives(self, s: Array, count: int) -> list[Array]:
        value = jnp.exp(-s)
        return [value if k % 2 == 0 else -value for k in range(count + 1)]


class RationalQuadratic(Profile):
    """`φ = (1 + s/α)^{-α}`: a mixture of length scales, infinitely smooth.

    **Arguments:**

    - `alpha`: a positive number; the larger, the closer to `SquaredExponential`. It is learned.

    !!! example
        ```python
        kernel = pk.ard(domain, pk.RationalQuadratic(alpha=2.0))
        ```
    """

    log_alpha: Float[Array, ""]

    def __init__(self, alpha: float = 1.0) -> None:
        if not (isinstance(alpha, int | float | np.number) and np.isfinite(alpha) and alpha > 0):
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


class Matern(Profile):
    """Matérn with `ν = p + 1/2`: `φ(s) = ψ_p(2ν s) / ψ_p(0)`, where `ψ_p(x²/2) = √(2/π) x^ν K_ν(x)`.

    `ψ_p` is a polynomial times `e^{-x}`, and `ψ_p' = −ψ_{p−1}`, so every derivative is one of these functions.
    """

    p: int = eqx.field(static=True)

    def __repr__(self) -> str:
        return f"Matern{2 * self.p + 1}2()"

    def __check_init__(self) -> None:
        if self.p not in (2, 3, 4):
            raise ValueError(f"Matern takes p = 2, 3 or 4 (ν = 5/2, 7/2, 9/2): got p = {self.p}.")

    @property
    def smoothness(self) -> float:
        return self.p

    def derivatives(self, s: Array, count: int) -> list[Array]:
        rate = 2 * self.p + 1.0
        return [(-rate) ** k / _psi_at_zero(self.p) * _psi(self.p - k, rate * s) for k in range(count + 1)]


def Matern52() -> Matern:
    """Matérn with `ν = 5/2`: takes operators up to order two.

    **Arguments:** none.

    **Returns:** a profile.

    !!! example
        ```python
        kernel = pk.ard(domain, pk.Matern52())
        ```
    """
    return Matern(2)


def Matern72() -> Matern:
    """Matérn with `ν = 7/2`: takes operators up to order three.

    **Arguments:** none.

    **Returns:** a profile.

    !!! example
        ```python
        kernel = pk.ard(domain, pk.Matern72())
        ```
    """
    return Matern(3)


def Matern92() -> Matern:
    """Matérn with `ν = 9/2`: takes operators up to order four.

    **Arguments:** none.

    **Returns:** a profile.

    !!! example
        ```python
        kernel = pk.ard(domain, pk.Matern92())
        ```
    """
    return Matern(4)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _psi(p: int, w: Array) -> Array:
    """`ψ_p` at `w = x²/2`. If `p < 0` it is infinite at `w = 0`, and is set to zero for points that are the same.

    Its derivative is given as a rule, since differentiating the square root in `x` cancels badly for close points. The
    code never tests `w == 0`: a compiler may compute `w` twice with different rounding, and get two answers.
    """
    x = jnp.sqrt(2 * jnp.maximum(w, SMALLEST if p >= 0 else SAME_POINT))
    if p >= 0:
        return jnp.exp(-x) * _bessel_polynomial(p, x)
    return jnp.where(w > SAME_POINT, jnp.exp(-x) * _bessel_polynomial(-p - 1, x) / x ** (-2 * p - 1), 0.0)


@_psi.defjvp
def _psi_derivative(p: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (w,), (change,) = primals, tangents
    return _psi(p, w), -_psi(p - 1, w) * change


def _bessel_polynomial(p: int, x: Array) -> Array:
    """The reverse Bessel polynomial `Σ_k (2p−k)! / (2^{p−k} k! (p−k)!) x^k`, for `p ≥ 0`."""
    f = math.factorial
    total = jnp.zeros_like(x)
    for k in range(p, -1, -1):
        total = total * x + f(2 * p - k) // (2 ** (p - k) * f(k) * f(p - k))
    return total


def _psi_at_zero(p: int) -> float:
    return float(math.prod(range(1, 2 * p, 2)))
