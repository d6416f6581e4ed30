"""Equations and conditions of fields, as statements `A u = f`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..domain import Domain
from ..equations import Equation, Linear, Nonlinear, Term, compiled_term, plain, terms
from ..equations.nonlinear import with_number_fields
from ..equations.numbers import number_of
from ..equations.terms import applied, parted
from ..observations import _check_operator_at
from ..operators import Operator, Row, parameters_of
from ..operators.coefficients import AbstractCoefficient
from ..operators.offset import with_offset
from ..operators.rows import names_in
from .functions import FAILURES, Function, read_function, split

Known = AbstractCoefficient | None


def on_row(operator: Any, row: Any, label: str) -> tuple[Any, Known]:
    """The linear or nonlinear operator of `A a` for a term `a`, and what is known in it; `A` where there is no term."""
    if isinstance(operator, Term):
        return operator_of(operator)
    if row is None:
        return operator, None
    if not isinstance(row, Term):
        raise TypeError(f"The {label} is of a field, or of a term such as D(x) @ u + v: got {row!r}.")
    return operator_of(applied(operator, row))


def operator_of(term: Term) -> tuple[Operator, Known]:
    """The operator of a term, and the known function `a` of a term `A u + a`, which belongs on the right-hand side."""
    row, known = parted(term) or (term, None)
    if not isinstance(row, Linear) or not isinstance(known, terms.Known):
        return compiled_term(term), None
    if parameters_of(known):
        return with_offset(compiled_term(row), known.coefficient), None
    return compiled_term(row), None if number_of(known.coefficient) == 0.0 else known.coefficient


def less(source: Function, known: Known) -> Function:
    """`f − a`."""
    return source if known is None else lambda q: source(q) - known(q)


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
        operator, known = operator_of(equation.term)
        if operator.layout not in (None, domain.layout):
            raise ValueError(f"The {label}, {equation}, acts on coordinates of another domain, {operator.layout}.")
        try:
            _check_operator_at(operator, 0.5 * (domain.lower + domain.upper))
        except FAILURES as error:
            raise ValueError(f"The {label}, {equation}, could not be evaluated at a point: {error}") from error
        operator, right = split(operator, equation.source)
        source = read_function(right, f"The source of the {label}", domain)
        made.append((label, operator, less(source, known)))
    return made


def for_fields(statements: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The statements with their operators as a kernel of these fields needs them."""
    if not names:
        return list(statements)
    made = with_number_fields([s.operator for s in statements], names[0] if len(names) == 1 else None)
    if any(isinstance(operator, Nonlinear) and operator.numbers for operator in made):
        # Then there are more fields than one: the numbers are some of them.
        only = lambda A: A if isinstance(A, Row | Nonlinear) or len(names) > 1 else Row((names[0],), (A,))
        return [replace(s, operator=only(operator)) for s, operator in zip(statements, made)]
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


def order_of(name: str, operators: Sequence[Operator]) -> int:
    """The highest order of derivatives of a field in operators; −1 if none contains it."""
    rows = [
        row for operator in operators for row in (operator.rows if isinstance(operator, Nonlinear) else (operator,))
    ]
    parts = [part for row in rows if isinstance(row, Row) for key, part in zip(row.names, row.operators) if key == name]
    return max((part.order for part in parts), default=-1)
