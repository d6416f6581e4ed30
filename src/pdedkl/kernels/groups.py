"""Sums over groups of latent coordinates of one size, group by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..embeddings import LatentJet
from .covariance import covariances
from .profiles import Profile


def sum_over_groups(
    profile: Profile, variance: Float[Array, " g"], left: LatentJet, right: LatentJet
) -> Float[Array, "m n"]:
    """`Σ_g σ_g² φ(|z_g − z'_g|²/2)` between rows, as their groups see them: the groups are the leading axis."""
    if variance.shape[0] == 1:
        return _of_group(profile, variance[0], *jax.tree.map(lambda leaf: leaf[0], (left, right)))
    return _loop(profile, variance, left, right)


def _of_group(profile: Profile, variance: Array, left: LatentJet, right: LatentJet) -> Array:
    return variance * covariances(profile, left, right)


def _unless_empty(function: Callable, variance: Array, *arguments: Any) -> Any:
    """Zeros in place of `function(*arguments)` for a group without variance, which is only there to fill up."""
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, *arguments))
    return jax.lax.cond(variance > 0, function, lambda *_: zeros, *arguments)


@jax.custom_vjp
def _loop(profile: Profile, variance: Array, left: LatentJet, right: LatentJet) -> Array:
    """One loop, so that fifty one-dimensional groups compile as fast as one."""

    def add(total: Array, item: tuple) -> tuple[Array, None]:
        return total + _unless_empty(_of_group, item[0], profile, *item), None

    return jax.lax.scan(add, jnp.zeros((left.z.shape[1], right.z.shape[1])), (variance, left, right))[0]


def _forward(*arguments: Any) -> tuple[Array, Any]:
    return _loop(*arguments), arguments


def _backward(arguments: Any, cotangent: Array) -> tuple[Any, ...]:
    """Group by group. Nothing is kept from the forward pass: that would be several planes over all pairs and groups."""
    profile, *items = arguments

    def pull(total: Any, item: tuple) -> tuple[Any, tuple]:
        back = lambda *a: jax.vjp(_of_group, *a)[1](cotangent)
        of_profile, *others = _unless_empty(back, item[0], profile, *item)
        return jax.tree.map(jnp.add, total, of_profile), tuple(others)

    of_profile, others = jax.lax.scan(pull, jax.tree.map(jnp.zeros_like, profile), tuple(items))
    return of_profile, *others


_loop.defvjp(_forward, _backward)
