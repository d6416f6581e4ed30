"""Rows over several fields: one linear operator for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Layout
from .base import Field, Identity, Operator, Sum, Term, add, common_layout, gathered, scale
from .base import identity as values
from .coefficients import AbstractCoefficient
from .derivatives import Laplacian, Partial
from .symbol import Symbol
from .unknown import InFull


class Weight(AbstractCoefficient):
    """The weight of a process in a field. Unlike a number in an operator it is trained."""

    value: Float[Array, ""]

    def __call__(self, q: Array) -> Array:
        return self.value

    def __str__(self) -> str:
        return "w"


class Nothing(Operator):
    """`u ↦ 0`, a row that a process does not enter: none of its covariances is computed."""

    @property
    def order(self) -> int:
        return 0

    @property
    def layout(self) -> None:
        return None

    def __call__(self, u: Field) -> Field:
        return lambda q: jnp.zeros(())

    def symbol(self, q: Array) -> Symbol:
        return Symbol()

    def __str__(self) -> str:
        return "0"


class Row(InFull, Operator):
    """`Σ_a A_a u_a`, with an operator `A_a` for each field `u_a` that it contains.

    Where the fields are `u_a = Σ_c w_ca g_c` with independent scalar processes `g_c`, the row is the scalar operator
    `Σ_a w_ca A_a` on each `g_c`: see `seen_by`.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    operators: tuple[Operator, ...]

    def __check_init__(self) -> None:
        common_layout(*self.operators)

    @property
    def order(self) -> int:
        return max(operator.order for operator in self.operators)

    @property
    def layout(self) -> Layout | None:
        return common_layout(*self.operators)

    def __call__(self, u: Mapping[str, Field] | Field) -> Field:
        """The row of some fields, given by name; or of the same function in place of each."""
        functions = [u[name] if isinstance(u, Mapping) else u for name in self.names]
        parts = [operator(function) for operator, function in zip(self.operators, functions)]
        return lambda q: sum((part(q) for part in parts[1:]), parts[0](q))

    def symbol(self, q: Array) -> Symbol:
        raise ValueError(f"{self} is a row of {', '.join(self.names)}: it has one symbol for each process of a kernel.")

    def local_terms(self) -> tuple[Term, ...]:
        """All parts without a move are one term; each other one is a term of its own."""
        return gathered(self, list(zip(self.names, self.operators)), row_of)

    def seen_by(self, weights: Mapping[str, Array | None]) -> Operator:
        """`Σ_a w_a A_a`, what the row is on a process that enters each field with a weight; `None` is the weight one.

        It is `Nothing` for a process that enters none of its fields.
        """
        parts = [
            operator if (w := weights[name]) is None else scale(Weight(w), operator)
            for name, operator in zip(self.names, self.operators)
            if name in weights
        ]
        if not parts:
            return Nothing()
        return parts[0] if len(parts) == 1 else add(*parts)

    def __str__(self) -> str:
        parts = [on_field(operator, name) for name, operator in zip(self.names, self.operators)]
        # The parts of a linearised equation have its text in common.
        return joined_by_signs(list(dict.fromkeys(parts)))


def value_of(name: str) -> Row:
    """The values of a field."""
    return Row((name,), (values,))


def row_of(parts: Sequence[tuple[str, Operator]]) -> Row:
    """The row with these parts; those of the same field are added."""
    found: dict[str, Operator] = {}
    for name, operator in parts:
        found[name] = add(found[name], operator) if name in found else operator
    return Row(tuple(found), tuple(found.values()))


def changed(row: Row, change: Callable[[Operator], Operator]) -> Row:
    """The row with each of its operators changed."""
    return Row(row.names, tuple(map(change, row.operators)))


def on_field(operator: Operator, name: str) -> str:
    """`A u` as on paper: `∂²u/∂x²`, `2 u`, `∂u/∂t - 0.1 Δ_x u`."""
    if isinstance(operator, Identity):
        return name
    if isinstance(operator, InFull):
        return str(operator)
    if isinstance(operator, Partial):
        above, below = str(operator).split("/", 1)
        return f"{above}{name}/{below}"
    if isinstance(operator, Sum):
        return joined_by_signs([on_field(term, name) for term in operator.terms])
    inner: Any = getattr(operator, "operator", None)
    if hasattr(operator, "coefficient") and isinstance(inner, Operator):
        part, factor = on_field(inner, name), str(operator.coefficient)
        part = f"({part})" if isinstance(inner, Sum) else part
        return {"1": part, "-1": f"-{part}"}.get(factor, f"{factor} {part}")
    return f"{operator} {name}" if isinstance(operator, Laplacian) else f"({operator}) {name}"


def joined_by_signs(parts: list[str]) -> str:
    """`a + b - c` from `a`, `b`, `-c`."""
    text = parts[0]
    for part in parts[1:]:
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return text


def by_field(operator: Operator, names: tuple[str, ...]) -> dict[str, Operator]:
    """The operator of each field in a row. An operator that is no row is one of the only field."""
    if isinstance(operator, Row):
        return dict(zip(operator.names, operator.operators))
    return {names[0] if names else "u": operator}


def constant_in(name: str) -> Mapping[str, Field]:
    """Fields that are one in one field, and zero in all others."""
    return _Constant(name)


class _Constant(Mapping[str, Field]):
    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, name: str) -> Field:
        number = 1.0 if name == self.name else 0.0
        return lambda q: jnp.full((), number)

    def __iter__(self) -> Any:
        return iter((self.name,))

    def __len__(self) -> int:
        return 1


def coordinates_of(name: str, layout: Layout) -> tuple[int, ...] | None:
    """The coordinates that a field is a function of, as its name says: `v(x)`, `k(x[0], t)`, `c()`; `None` for all."""
    if "(" not in name:
        return None
    begins = np.cumsum([0, *(size for _, size in layout)])
    places = {group: tuple(range(i, i + size)) for (group, size), i in zip(layout, begins)}
    places |= {f"{group}[{k}]": (i,) for group, at in list(places.items()) for k, i in enumerate(at)}
    parts = [part for part in name[name.index("(") + 1 : -1].split(", ") if part]
    if unknown := [part for part in parts if part not in places]:
        known = ", ".join(group for group, _ in layout)
        raise ValueError(f"The field {name} is a function of {unknown[0]}, and the domain has {known}.")
    return tuple(sorted({i for part in parts for i in places[part]}))


def names_in(tree: Any) -> tuple[str, ...]:
    """The names of all fields in rows of a tree, in the order of their appearance."""
    is_row = lambda node: isinstance(node, Row)
    found = [node.names for node in jax.tree.leaves(tree, is_leaf=is_row) if is_row(node)]
    return tuple(dict.fromkeys(name for names in found for name in names))
