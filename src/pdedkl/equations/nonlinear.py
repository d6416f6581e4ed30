"""Terms as operators: `F(q, L_1 u, …, L_k u)`, and their linearisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Layout
from ..operators import Operator, same
from ..operators.base import Field, common_layout
from ..operators.rows import Row, names_in
from ..operators.symbol import Symbol
from ..operators.unknown import InFull
from .terms import Linear, Slot, Term


class Nonlinear(InFull, Operator):
    """`u ↦ F(q, L_1 u, …, L_k u)`, an operator that is not linear.

    It is applied to functions as every operator is. It has no symbol: a kernel sees its linearisations.
    """

    rows: tuple[Operator, ...]
    body: Term
    text: str = eqx.field(static=True)

    @property
    def order(self) -> int:
        return max(row.order for row in self.rows)

    @property
    def layout(self) -> Layout | None:
        return common_layout(*self.rows)

    def __call__(self, u: Any) -> Field:
        parts = [row(u) for row in self.rows]
        return lambda q: self.at(q, jnp.stack([part(q) for part in parts]))

    def at(self, q: Float[Array, " d"], values: Float[Array, " k"]) -> Float[Array, ""]:
        """`F` at a point, given the values of its rows."""
        return jnp.asarray(self.body.evaluate(q, values), dtype=float)

    def symbol(self, q: Array) -> Symbol:
        raise ValueError(
            f"{self} is not linear in its fields, and a Gaussian process is conditioned on linear rows: "
            "fit(problem, data) linearises it, again and again."
        )

    def __str__(self) -> str:
        return self.text


def compiled_term(term: Term) -> Operator:
    """The operator of a term: a row where it is linear, else a `Nonlinear`, with a slot for each of its rows."""
    if isinstance(term, Linear):
        return term.row
    rows: list[Row] = []

    def slot(part: Linear) -> Term:
        index = next((i for i, row in enumerate(rows) if same(row, part.row)), len(rows))
        if index == len(rows):
            rows.append(part.row)
        return Slot(index)

    body = term.replaced(slot)
    if not rows:
        raise ValueError(f"An equation needs an unknown field: {term} has none. Make fields with pk.fields('u').")
    return Nonlinear(tuple(rows), body, str(term))


def plain(operator: Operator, names: Sequence[str]) -> Operator:
    """The same operator for fields with these names: where there is only one, its rows are operators of `u`."""
    if unknown := [name for name in names_in(operator) if name not in names]:
        known = ", ".join(names) or "one field without a name"
        raise ValueError(f"{operator} contains the field {unknown[0]}, which is not known here: there is {known}.")
    if len(names) != 1:
        return operator
    if isinstance(operator, Row):
        return operator.operators[0]
    if isinstance(operator, Nonlinear):
        return Nonlinear(tuple(plain(row, names) for row in operator.rows), operator.body, operator.text)
    return operator


class Linearisation(eqx.Module):
    """`F(q, ℓ) + Σ_i ∂F/∂ℓ_i (L_i u − ℓ_i)` at points: the values of `F` and its slopes there."""

    value: Float[Array, " n"]
    slopes: Float[Array, "n k"]


def linearised(
    operator: Nonlinear,
    points: Float[Array, "n d"] | Float[np.ndarray, "n d"],
    values: Float[Array, "n k"] | Float[np.ndarray, "n k"],
) -> Linearisation:
    """`F` and `∂F/∂ℓ` at points where its rows have these values."""
    value, slopes = jax.vmap(jax.value_and_grad(operator.at, argnums=1))(jnp.asarray(points), jnp.asarray(values))
    return Linearisation(value, slopes)


def as_fields(exact: Any, names: Sequence[str]) -> Any:
    """Functions of the point by the names of their fields, from a mapping of fields or names to functions."""
    if not isinstance(exact, Mapping):
        return exact
    found = {key.row.names[0] if isinstance(key, Linear) else key: function for key, function in exact.items()}
    if missing := [name for name in names if name not in found]:
        raise ValueError(f"Expected a function for each of the fields {', '.join(names)}: {missing[0]} has none.")
    return found
