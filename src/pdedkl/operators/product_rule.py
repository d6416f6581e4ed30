"""The product rule for operators: `A (m u)` and `b·∇ (c u + b'·∇u)` as symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .symbol import Symbol

if TYPE_CHECKING:
    from .base import Operator


def differentiate_multiple(outer: Symbol, operator: Operator, factor: Callable[[Array], Array], q: Array) -> Symbol:
    """`A (m u) = (m A − m c) u + 2 (a ∇m)·∇u + (A m) u`: the whole zeroth-order part is `A m`."""
    m, slope = jax.value_and_grad(factor)(q)
    rest = operator(factor)(q)
    product = outer.scaled(m)
    cross = Symbol(b=2.0 * outer.diffusion_times(slope)) if outer.second_order else Symbol()
    without_c = eqx.tree_at(lambda s: s.c, product, None, is_leaf=lambda leaf: leaf is None)
    return without_c + cross + Symbol(c=rest)


def along_first_order(b: Array | None, inner: Operator, q: Array) -> Symbol:
    """`b·∇ (c' u + b'·∇u) = (b·∇c') u + (c' b + (b·∇)b')·∇u + Σ b_i b'_j ∂_i∂_j u`."""
    if b is None:
        return Symbol()
    value, change = jax.jvp(lambda p: first_order_parts(inner, p), (q,), (b,))
    (c, b_inner), (c_change, b_change) = value, change
    return Symbol(
        c=c_change,
        b=c * b + b_change,
        # b b'ᵀ, symmetrised, as a difference of two squares.
        directions=jnp.stack([b + b_inner, b - b_inner]),
        weights=jnp.asarray([0.25, -0.25]),
    )


def first_order_parts(operator: Operator, q: Array) -> tuple[Array, Array]:
    symbol = operator.symbol(q)
    c = jnp.zeros(()) if symbol.c is None else symbol.c
    b = jnp.zeros_like(q) if symbol.b is None else symbol.b
    return c, b
