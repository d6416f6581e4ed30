"""Solving with the Gram matrix: the interface that a posterior needs, and a factorisation for matrices that fit."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .cholesky import half_solve, solve
from .engines import Engine
from .gram import offsets, row_count


class Gram(eqx.Module):
    """The matrix `K + diag(noise)`, not stored: its entries are computed when they are needed."""

    engine: Engine
    parameters: Any
    sections: tuple[Any, ...]
    noise: Float[Array, " n"]

    def block(self, left: Any, right: Any) -> Float[Array, "m n"]:
        return self.engine.block(self.parameters, left, right)

    def diagonal(self) -> Float[Array, " n"]:
        """The diagonal of `K`."""
        return jnp.concatenate([self.engine.diagonal(self.parameters, rows) for rows in self.sections])

    def column(self, index: Array) -> Float[Array, " n"]:
        """A column of `K`."""
        starts = offsets(self.sections)

        def within(rows: Any, start: int) -> Array:
            place = jnp.clip(index - start, 0, row_count(rows) - 1)
            one = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, place, 1), rows)
            return jnp.concatenate([self.block(left, one)[:, 0] for left in self.sections])

        section = jnp.searchsorted(jnp.asarray(starts[1:]), index, side="right")
        branches = [lambda rows=rows, start=start: within(rows, start) for rows, start in zip(self.sections, starts)]
        return jax.lax.switch(section, branches)


class Solver(eqx.Module):
    """`K⁻¹`, noise included, applied to columns. `gram` is the matrix, a `Gram`; a factorisation does not need it."""

    @abc.abstractmethod
    def solve(self, gram: Any, right: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        """`K⁻¹ B`."""

    @abc.abstractmethod
    def explained(self, gram: Any, right: Float[Array, "n m"]) -> Float[Array, " m"]:
        """`bᵀ K⁻¹ b` for each column: the part of the prior variance that the data remove."""

    @abc.abstractmethod
    def cross(self, gram: Any, left: Float[Array, "n l"], right: Float[Array, "n m"]) -> Float[Array, "l m"]:
        """`Aᵀ K⁻¹ B`."""


class Factorised(Solver):
    """The Cholesky factor of the whole matrix."""

    factor: Float[Array, "n n"]

    def solve(self, gram: Any, right: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        return solve(self.factor, right)

    def explained(self, gram: Any, right: Float[Array, "n m"]) -> Float[Array, " m"]:
        return jnp.sum(half_solve(self.factor, right) ** 2, axis=0)

    def cross(self, gram: Any, left: Float[Array, "n l"], right: Float[Array, "n m"]) -> Float[Array, "l m"]:
        return half_solve(self.factor, left).T @ half_solve(self.factor, right)
