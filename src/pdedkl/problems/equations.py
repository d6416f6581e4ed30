"""Equations and conditions of fields, as statements `A u = f`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..domain import Domain
from ..equations import Equation, Nonlinear, Term, compiled_term, plain
from ..equations.terms import applied
from ..observations import _check_operator_at
from ..operators import Operator, Row, parameters_of
from ..operators.rows import names_in
from .functions import FAILURES, read_function

C = TypeVar("C", bound=type)


def field_first(condition: C) -> C:
    """Let a condition take its row first, as in `Dirichlet(u, on=…, value=…)`."""
    made = condition.__init__  # type: ignore[misc]

    @functools.wraps(made)
    def init(self: Any, *given: Any, **named: Any) -> None:
        if given and isinstance(given[0], Term):
            given, named = given[1:], {**named, "row": given[0]}
        made(self, *given, **named)

    init.__signature__ = inspect.signature(made)  # type: ignore[attr-defined]
    condition.__init__ = init  # type: ignore[misc]
    return condition


def on_row(operator: Any, row: Any, label: str) -> Any:
    """`A a` for a term `a`: a row, or a nonlinear operator; `A` itself where there is none."""
    if isinstance(operator, Term):
        operator = compiled_term(operator)
    if row is None:
        return operator
    if not isinstance(row, Term):
        raise TypeError(f"The {label} is of a field, or of a term such as D(x) @ u + v: got {row!r}.")
    return compiled_term(applied(operator, row))


def read_equations(equations: Any, domain: Domain) -> list[tuple[str, Operator, Any]]:
    """The label, the operator and the source of each equation, checked on a domain."""
    found = (equations,) if isinstance(equations, Equation) else equations
    if not isinstance(found, Sequence) or isinstance(found, str) or len(found) == 0:
        raise ValueError(
            f"`equations` needs a list of equations, such as [Laplacian(x) @ u + u**3 == f]: got {found!r}."
        )
    made = []
    for number, equation in enumerate(found, start=1):
        label = "equation" if len(found) == 1 else f"equation {number}"
        if isinstance(equation, bool) or not isinstance(equation, Equation):
            raise TypeError(f"The {label} needs to be written as term == source, with fields: got {equation!r}.")
        operator = compiled_term(equation.term)
        if operator.layout not in (None, domain.layout):
            raise ValueError(f"The {label}, {equation}, acts on coordinates of another domain, {operator.layout}.")
        try:
            _check_operator_at(operator, 0.5 * (domain.lower + domain.upper))
        except FAILURES as error:
            raise ValueError(f"The {label}, {equation}, could not be evaluated at a point: {error}") from error
        if isinstance(operator, Nonlinear) and (unknown := parameters_of(operator)):
            raise ValueError(
                f"The {label}, {equation}, is not linear and has the unknown number {min(unknown)}: numbers of "
                "nonlinear equations need to be known. Give it as a number, or as Number(name, value)."
            )
        made.append((label, operator, read_function(equation.source, f"The source of the {label}", domain)))
    return made


def for_fields(statements: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The statements with their operators as a kernel of these fields needs them."""
    if not names:
        return list(statements)
    for statement in statements:
        if not isinstance(statement.operator, Row | Nonlinear) and len(names) > 1:
            raise ValueError(
                f"There are several fields, {', '.join(names)}, and the {statement.label} does not say of which it is: "
                f"give it first, as in Dirichlet({names[0]}, on=…, value=…)."
            )
    return [replace(s, operator=plain(s.operator, names)) for s in statements]


def fields_of(operators: Sequence[Operator]) -> tuple[str, ...]:
    """The names of all fields, in the order of their appearance."""
    return names_in(list(operators))
