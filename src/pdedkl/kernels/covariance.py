"""The one formula: covariance of `A u` at one point with `A' u` at another, from two latent jets.

With `δ = z − z'` in units of the length scales, `k = φ(|δ|²/2)` and jets `(z, c, β, G)`, the formula needs the numbers

    s = |δ|²/2,  q = δᵀGδ,  q' = δᵀG'δ,  v = β·δ,  v' = β'·δ,  g·g' = δᵀGG'δ,  g·β' = δᵀGβ',  g'·β,  β·β',  ⟨G, G'⟩

of each pair. Their *values* come from differences, so that nothing cancels for neighbouring points. Their
*derivatives* come from the expanded products, `q = zᵀGz − 2(Gz)·z' + ⟨G, z'z'ᵀ⟩` and so on. Each term is a scalar
product of a vector of the left point with a vector of the right point. Over all pairs this is a matrix product, and its
gradient consists of matrix products too, which are fast. `benchmarks/core.py` measures what this gains over
differentiating the differences.

With many latent coordinates, the differences of all pairs need too much memory. Then the values of smooth kernels come
from products too: cancellation leaves rounding errors relative to `|z|²`, which hardly change a smooth `φ`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..embeddings.push_forward import LatentJet
from .profiles import Profile

# Above this many latent coordinates vectors are contracted by loops instead of being written out term by term.
UNROLLED = 16
# Above this many, δᵀGG'δ expands into too many products (h³) and is differentiated from the differences.
EXPANDED = 8


# An array, or `None` where a jet lacks the part.
Part = Any


class Contractions(NamedTuple):
    """The numbers of a pair, as in the module's docstring; a trailing underscore stands for the prime."""

    s: Array
    q: Part
    q_: Part
    v: Part
    v_: Part
    g_g: Part
    g_beta: Part
    g__beta: Part
    beta_beta: Part
    G_G: Part


def covariances(profile: Profile, left: LatentJet, right: LatentJet) -> Float[Array, "m n"]:
    """All covariances between `m` left and `n` right jets (leading axes)."""
    products = left.z.shape[-1] > UNROLLED and math.isinf(profile.smoothness)
    numbers = _all_pairs(from_products, left, right) if products else contractions(left, right)
    c, tau = (None if a is None else a[:, None] for a in (left.c, _trace(left)))
    return _formula(profile, left.order + right.order, numbers, c, right.c, tau, _trace(right))


def covariance(profile: Profile, left: LatentJet, right: LatentJet) -> Float[Array, ""]:
    """The covariance of one pair, differentiable any number of times in either mode."""
    numbers = from_differences(left, right)
    return _formula(profile, left.order + right.order, numbers, left.c, right.c, _trace(left), _trace(right))


def variances(profile: Profile, jets: LatentJet) -> Float[Array, " n"]:
    """The covariance of each jet with itself: nothing but the products of its own parts is left of the formula."""
    products = lambda a: None if a is None else jnp.sum(a * a, axis=tuple(range(1, a.ndim)))
    nothing = jnp.zeros(jets.z.shape[:-1])
    beta, G = (None if part is None else nothing for part in (jets.drift, jets.diffusion))
    mixed = None if beta is None or G is None else nothing
    numbers = Contractions(nothing, G, G, beta, beta, G, mixed, mixed, products(jets.drift), products(jets.diffusion))
    tau = _trace(jets)
    return _formula(profile, 2 * jets.order, numbers, jets.c, jets.c, tau, tau)


def _formula(profile: Profile, order: int, pair: Contractions, c: Part, c_: Part, tau: Part, tau_: Part) -> Array:
    s, q, q_, v, v_, g_g, g_beta, g__beta, beta_beta, G_G = pair
    f = profile.derivatives(s, order)
    terms: list[Array] = []
    if c is not None and c_ is not None:
        terms.append(c * c_ * f[0])
    if c is not None and v_ is not None:
        terms.append(-c * f[1] * v_)
    if c is not None and q_ is not None:
        terms.append(c * (f[2] * q_ + f[1] * tau_))
    if v is not None and c_ is not None:
        terms.append(c_ * f[1] * v)
    if v is not None and v_ is not None:
        terms.append(-f[2] * v * v_ - f[1] * beta_beta)
    if v is not None and q_ is not None:
        terms.append(f[3] * q_ * v + f[2] * (tau_ * v + 2 * g__beta))
    if q is not None and c_ is not None:
        terms.append(c_ * (f[2] * q + f[1] * tau))
    if q is not None and v_ is not None:
        terms.append(-f[3] * q * v_ - f[2] * (tau * v_ + 2 * g_beta))
    if q is not None and q_ is not None:
        terms.append(f[4] * q * q_ + f[3] * (tau * q_ + tau_ * q + 4 * g_g) + f[2] * (tau * tau_ + 2 * G_G))
    return sum(terms, jnp.zeros_like(s))


def from_differences(left: LatentJet, right: LatentJet) -> Contractions:
    """The numbers of one pair, without cancellation."""
    h = left.z.shape[-1]
    split: Callable = _components if h <= UNROLLED else lambda a: a
    dot: Callable = _dot_components if h <= UNROLLED else jnp.dot
    drifts, diffusions = (left.drift, right.drift), (left.diffusion, right.diffusion)
    b, b_, G, G_ = (None if a is None else split(a) for a in (*drifts, *diffusions))
    products = _or_none(jnp.vdot, *drifts), _or_none(_inner, *diffusions)
    return _numbers(dot, split(left.z - right.z), b, b_, G, G_, *products)


def all_from_differences(left: LatentJet, right: LatentJet) -> Contractions:
    """The same numbers for all pairs.

    Vectors are split into planes, one for each component, over all pairs. Sums over the few latent coordinates become
    one fused pass over these planes instead of many small products.
    """
    if left.z.shape[-1] > UNROLLED:
        return _all_pairs(from_differences, left, right)
    shape = left.z.shape[0], right.z.shape[0]
    planes = lambda a, axis: None if a is None else _planes(a, shape, axis)
    delta = tuple(map(jax.lax.sub, _planes(left.z, shape, 0), _planes(right.z, shape, 1)))
    drifts = planes(left.drift, 0), planes(right.drift, 1)
    diffusions = planes(left.diffusion, 0), planes(right.diffusion, 1)
    products = (
        _or_none(lambda a, b: _all_pairs(jnp.vdot, a, b), left.drift, right.drift),
        _or_none(lambda a, b: _all_pairs(_inner, a, b), left.diffusion, right.diffusion),
    )
    return _numbers(_dot_components, delta, *drifts, *diffusions, *products)


def _numbers(dot: Callable, delta: Any, b: Any, b_: Any, G: Any, G_: Any, beta_beta: Part, G_G: Part) -> Contractions:
    g, g_ = (None if a is None else _times_vector(a, delta) for a in (G, G_))
    return Contractions(
        s=0.5 * dot(delta, delta),
        q=_or_none(dot, delta, g),
        q_=_or_none(dot, delta, g_),
        v=_or_none(dot, b, delta),
        v_=_or_none(dot, b_, delta),
        g_g=_or_none(dot, g, g_),
        g_beta=_or_none(dot, g, b_),
        g__beta=_or_none(dot, g_, b),
        beta_beta=beta_beta,
        G_G=G_G,
    )


def from_products(left: LatentJet, right: LatentJet) -> Contractions:
    """The same numbers, as scalar products of a left and a right factor."""
    z, z_, beta, beta_, G, G_ = left.z, right.z, left.drift, right.drift, left.diffusion, right.diffusion
    Gz: Part = None if G is None else _times_vector(G, z)
    G_z_: Part = None if G_ is None else _times_vector(G_, z_)
    return Contractions(
        s=0.5 * (jnp.vdot(z, z) + jnp.vdot(z_, z_)) - jnp.vdot(z, z_),
        q=None if G is None else jnp.vdot(z, Gz) - 2 * jnp.vdot(Gz, z_) + jnp.vdot(G, _square(z_, z_, G)),
        q_=None if G_ is None else jnp.vdot(z_, G_z_) - 2 * jnp.vdot(z, G_z_) + jnp.vdot(_square(z, z, G_), G_),
        v=None if beta is None else jnp.vdot(beta, z) - jnp.vdot(beta, z_),
        v_=None if beta_ is None else jnp.vdot(z, beta_) - jnp.vdot(beta_, z_),
        g_g=_g_g_from_products(z, z_, G, G_),
        g_beta=_or_none(lambda G, b: jnp.vdot(Gz, b) - jnp.vdot(G, _square(b, z_, G)), G, beta_),
        g__beta=_or_none(lambda G_, b: jnp.vdot(_square(b, z, G_), G_) - jnp.vdot(b, G_z_), G_, beta),
        beta_beta=_or_none(jnp.vdot, beta, beta_),
        G_G=_or_none(_inner, G, G_),
    )


def _g_g_from_products(z: Array, z_: Array, G: Part, G_: Part) -> Part:
    """`δᵀGG'δ = (Gz − Gz')·(G'z − G'z')`."""
    if G is None or G_ is None:
        return None
    if G.ndim == 1 and G_.ndim == 1:
        return jnp.vdot(G * z * z, G_) - 2 * jnp.vdot(G * z, G_ * z_) + jnp.vdot(G, G_ * z_ * z_)
    if z.shape[-1] > EXPANDED:
        delta = z - z_
        return jnp.dot(_times_vector(G, delta), _times_vector(G_, delta))
    G, G_ = _full(G), _full(G_)
    Gz, G_z_ = G @ z, G_ @ z_
    cross = jnp.vdot(G[:, :, None] * z, z_[:, None, None] * G_)  # Σ z'_a G_ab G'_bc z_c
    return jnp.vdot(jnp.outer(Gz, z), G_) - jnp.vdot(Gz, G_z_) - cross + jnp.vdot(G, jnp.outer(G_z_, z_))


def _all_pairs(one_pair: Callable, left: Any, right: Any) -> Any:
    return jax.vmap(lambda jet: jax.vmap(lambda other: one_pair(jet, other))(right))(left)


@jax.custom_vjp
def contractions(left: LatentJet, right: LatentJet) -> Contractions:
    """The numbers of all pairs: values from differences, derivatives from products."""
    return all_from_differences(left, right)


def _contractions_forward(left: LatentJet, right: LatentJet):
    return all_from_differences(left, right), (left, right)


def _contractions_backward(jets: tuple[LatentJet, LatentJet], cotangent: Contractions):
    _, pull_back = jax.vjp(lambda left, right: _all_pairs(from_products, left, right), *jets)
    return pull_back(cotangent)


contractions.defvjp(_contractions_forward, _contractions_backward)


def _components(a: Array) -> tuple:
    """The entries of a vector or matrix."""
    return tuple(a) if a.ndim == 1 else tuple(tuple(row) for row in a)


def _planes(a: Array, shape: tuple[int, int], axis: int) -> Any:
    """The components of vectors or matrices along axis 0, each as a plane over all pairs."""
    if a.ndim == 1:
        return jax.lax.broadcast_in_dim(a, shape, (axis,))
    return tuple(_planes(jax.lax.index_in_dim(a, k, 1, keepdims=False), shape, axis) for k in range(a.shape[1]))


def _dot_components(a: tuple, b: tuple) -> Array:
    # Primitives: JAX traces each `jnp` function as a separate program, and there would be thousands.
    return reduce(jax.lax.add, map(jax.lax.mul, a, b))


def _times_vector(G: Any, vector: Any) -> Any:
    """`G v`, for a matrix or a diagonal, split into components or not."""
    if isinstance(G, tuple):
        return tuple(
            _dot_components(row, vector) if isinstance(row, tuple) else jax.lax.mul(row, x) for row, x in zip(G, vector)
        )
    return G * vector if G.ndim == 1 else G @ vector


def _square(a: Array, b: Array, like: Array) -> Array:
    """`a bᵀ`, or its diagonal if the matrix `like` is diagonal."""
    return a * b if like.ndim == 1 else jnp.outer(a, b)


def _inner(G: Array, G_: Array) -> Array:
    if G.ndim == G_.ndim:
        return jnp.vdot(G, G_)
    return jnp.vdot(G, jnp.diagonal(G_)) if G.ndim == 1 else jnp.vdot(jnp.diagonal(G), G_)


def _full(G: Array) -> Array:
    return jnp.diag(G) if G.ndim == 1 else G


def _or_none(function: Callable, a: Any, b: Any) -> Any:
    return None if a is None or b is None else function(a, b)


def _trace(jet: LatentJet) -> Part:
    G = jet.diffusion
    if G is None:
        return None
    return jnp.sum(G, axis=-1) if G.ndim == jet.z.ndim else jnp.trace(G, axis1=-2, axis2=-1)
