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
from ..operators import Operator, Parameter, bind, identity, parameters_of, same
from ..operators.base import Field, Scaled, Sum, common_layout
from ..operators.coefficients import middle_of
from ..operators.offset import Offset
from ..operators.priors import spread_of
from ..operators.rows import Row, names_in
from ..operators.symbol import Symbol
from ..operators.unknown import InFull
from .terms import Known, Linear, Operated, Slot, Term


class Nonlinear(InFull, Operator):
    """`u ↦ F(q, L_1 u, …, L_k u)`, an operator that is not linear.

    It is applied to functions as every operator is. It has no symbol: a kernel sees its linearisations.
    """

    rows: tuple[Operator, ...]
    body: Term
    text: str = eqx.field(static=True)
    numbers: tuple[Parameter, ...] = ()

    @property
    def order(self) -> int:
        return max(row.order for row in self.rows)

    @property
    def layout(self) -> Layout | None:
        return common_layout(*self.rows)

    def __call__(self, u: Any) -> Field:
        known = len(self.rows) - len(self.numbers)
        parts = [row(u) if k < known else _zero for k, row in enumerate(self.rows)]
        return lambda q: self.at(q, jnp.stack([part(q) for part in parts]))

    def at(self, q: Float[Array, " d"], values: Float[Array, " k"]) -> Float[Array, ""]:
        """`F` at a point, given the values of its rows; the last ones are those of unknown numbers."""
        body = self.body
        if self.numbers:
            count = len(self.numbers)
            raw = [centre_of(one) + spread_of_number(one) * v for one, v in zip(self.numbers, values[-count:])]
            body, values = bind(body, {one.name: r for one, r in zip(self.numbers, raw)}), values[:-count]
        return jnp.asarray(body.evaluate(q, values), dtype=float)

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
        if parameters_of(part.row):
            return _expanded(part.row).replaced(slot)
        index = next((i for i, row in enumerate(rows) if same(row, part.row)), len(rows))
        if index == len(rows):
            rows.append(part.row)
        return Slot(index)

    body = term.replaced(slot)
    if not rows:
        raise ValueError(f"An equation needs an unknown field: {term} has none. Make fields with pk.fields('u').")
    return Nonlinear(tuple(rows), body, str(term))


def _expanded(row: Row) -> Term:
    """A row with unknown numbers as a sum of terms: the numbers are factors of rows that have none."""
    found: list[Term] = []
    for name, operator in zip(row.names, row.operators):
        for part in operator.terms if isinstance(operator, Sum) else (operator,):
            if not parameters_of(part):
                found.append(Linear(Row((name,), (part,))))
            elif isinstance(part, Scaled) and not parameters_of(part.operator):
                found.append(Operated("*", (Known(part.coefficient), Linear(Row((name,), (part.operator,))))))
            elif isinstance(part, Offset):
                found += [*_expanded_parts(Row((name,), (part.operator,))), Known(part.more)]
            else:
                raise ValueError(
                    f"An unknown number in a nonlinear problem is a factor, as in k * (D(x) @ {name}): got {part}."
                )
    return found[0] if len(found) == 1 else Operated("+", tuple(found))


def _expanded_parts(row: Row) -> tuple[Term, ...]:
    found = _expanded(row)
    return found.arguments if isinstance(found, Operated) and found.operation == "+" else (found,)


def is_number_field(name: str) -> bool:
    """Whether a field is an unknown number: a function of no coordinate."""
    return name.endswith("()")


def centre_of(number: Parameter) -> Any:
    """The middle of what is known of a number before the data, as it is learned."""
    if number.prior is None:
        return jax.lax.stop_gradient(number.raw)
    return number.support.raw(middle_of(number.support, number.prior))


def spread_of_number(number: Parameter) -> Any:
    """The standard deviation of a number before the data, as it is learned."""
    return spread_of(number.prior, number.support, jax.lax.stop_gradient(number.raw))


def with_number_fields(operators: Sequence[Operator], name: str | None) -> list[Operator]:
    """Operators in which unknown numbers are fields that do not depend on the point, where any is not linear.

    A number is `θ = θ₀ + s c`, as it is learned, with a field `c` of variance one. `name` is the only field that
    operators without a name are of.
    """
    if not parameters_of(list(operators)) or not any(isinstance(operator, Nonlinear) for operator in operators):
        return list(operators)
    return [_with_number_fields(operator, name) for operator in operators]


def _with_number_fields(operator: Operator, name: str | None) -> Operator:
    numbers = tuple(one for _, one in sorted(parameters_of(operator).items()))
    if not numbers or (isinstance(operator, Nonlinear) and operator.numbers):
        return operator
    if not isinstance(operator, Nonlinear):
        row = operator if isinstance(operator, Row) else Row((name or "u",), (operator,))
        operator = compiled_term(_expanded(row))
        assert isinstance(operator, Nonlinear)
    rows = tuple(Row((f"{one.name}()",), (identity,)) for one in numbers)
    return Nonlinear((*operator.rows, *rows), operator.body, operator.text, numbers)


def numbers_of(operators: Sequence[Any]) -> tuple[Parameter, ...]:
    """The unknown numbers that are fields in operators, by their names."""
    found = {one.name: one for operator in operators if isinstance(operator, Nonlinear) for one in operator.numbers}
    return tuple(one for _, one in sorted(found.items()))


def _zero(q: Any) -> Array:
    return jnp.zeros(())


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
