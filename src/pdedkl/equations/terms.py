"""Terms of equations: rows of fields, known functions of the point, and operations on them."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, TypeGuard

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..coordinates import Coordinates
from ..operators import Operator
from ..operators.base import Composed, Scaled, Sum, compose, scale
from ..operators.base import Identity as Values
from ..operators.coefficients import AbstractCoefficient, Coefficient, Constant, Product, as_coefficient, is_number
from ..operators.derivatives import D, Laplacian, Partial
from ..operators.rows import Row, changed, row_of
from ..operators.unknown import Unknown
from .numbers import Powered, Slope, Worked, number_of, raised, worked
from .operations import NAME, OPERATIONS, POWER, PRODUCT, SUM, power_written, written


class Term(Unknown, eqx.Module):
    """An expression in unknown fields. `term == source` is an equation."""

    # A NumPy scalar on the left must call __rmul__ of this class instead of broadcasting.
    __array_ufunc__ = None

    @abc.abstractmethod
    def evaluate(self, q: Float[Array, " d"], values: Float[Array, " k"]) -> Float[Array, ""]:
        """The number at a point, given those of its rows, which are slots then."""

    @abc.abstractmethod
    def derivative(self, along: Partial) -> Term:
        """`∂/∂q_i` of this term, by the rules of calculus."""

    @abc.abstractmethod
    def replaced(self, change: Callable[[Linear], Term]) -> Term:
        """The same term with each row changed."""

    @abc.abstractmethod
    def written(self) -> tuple[str, int]:
        """The text, and how strongly its parts hold together."""

    def __str__(self) -> str:
        return self.written()[0]

    def __repr__(self) -> str:
        return str(self)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: Any) -> Any:
        return Equation(self, other)

    def __ne__(self, other: Any) -> Any:
        raise TypeError(f"`term == source` is an equation; {self} != {other!r} is none.")

    def __bool__(self) -> bool:
        raise TypeError(f"{self} is a term of an equation: it is neither true nor false.")

    def __add__(self, other: Any) -> Term:
        return added(self, as_term(other))

    def __radd__(self, other: Any) -> Term:
        return added(as_term(other), self)

    def __sub__(self, other: Any) -> Term:
        return added(self, -as_term(other))

    def __rsub__(self, other: Any) -> Term:
        return added(as_term(other), -self)

    def __neg__(self) -> Term:
        return multiplied(as_term(-1.0), self)

    def __pos__(self) -> Term:
        return self

    def __mul__(self, other: Any) -> Term:
        return multiplied(self, as_term(other))

    def __rmul__(self, other: Any) -> Term:
        return multiplied(as_term(other), self)

    def __truediv__(self, other: Any) -> Term:
        return divided(self, as_term(other))

    def __rtruediv__(self, other: Any) -> Term:
        return divided(as_term(other), self)

    def __pow__(self, other: Any) -> Term:
        return power(self, other)

    def __rpow__(self, other: Any) -> Term:
        raise TypeError(f"{other!r} ** ({self}) is written pk.exp(jnp.log({other!r}) * ({self})).")

    def __rmatmul__(self, operator: Any) -> Term:
        if not isinstance(operator, Operator):
            raise TypeError(
                f"`A @ u` applies an operator to a term: got {operator!r} on the left. To scale write a * u."
            )
        return applied(operator, self)

    def __matmul__(self, other: Any) -> Term:
        raise TypeError(
            f"`A @ u` applies an operator to a term, with the operator on the left: got ({self}) @ {other}."
        )


class Known(Term):
    """`a(q)`: a number or a known function of the point."""

    coefficient: AbstractCoefficient

    def evaluate(self, q: Array, values: Array) -> Array:
        return self.coefficient(q)

    def derivative(self, along: Partial) -> Term:
        if number_of(self.coefficient) is not None:
            return as_term(0.0)
        return Known(Slope(self.coefficient, along.indices[0]))

    def replaced(self, change: Callable[[Linear], Term]) -> Term:
        return self

    def written(self) -> tuple[str, int]:
        if isinstance(self.coefficient, Worked | Powered):
            return self.coefficient.written()
        text = str(self.coefficient)
        negative = text.startswith("-") and text != "-1"
        return text, PRODUCT if negative or isinstance(self.coefficient, Product) else NAME


class Linear(Term):
    """`Σ_a A_a u_a`; a field itself is one, with the identity."""

    row: Row

    def evaluate(self, q: Array, values: Array) -> Array:
        raise TypeError(f"{self} has no value without its fields: compile the term first.")

    def derivative(self, along: Partial) -> Term:
        return Linear(changed(self.row, lambda A: compose(along, A)))

    def replaced(self, change: Callable[[Linear], Term]) -> Term:
        return change(self)

    def written(self) -> tuple[str, int]:
        text = str(self.row)
        if len(self.row.names) > 1 or isinstance(self.row.operators[0], Sum):
            return text, SUM
        if isinstance(self.row.operators[0], Values):
            return text, NAME
        return text, POWER if isinstance(self.row.operators[0], Partial) else PRODUCT


class Slot(Term):
    """The place of a row in a term that was compiled."""

    index: int = eqx.field(static=True)

    def evaluate(self, q: Array, values: Array) -> Array:
        return values[self.index]

    def derivative(self, along: Partial) -> Term:
        raise TypeError("A compiled term has no derivative: take it before.")

    def replaced(self, change: Callable[[Linear], Term]) -> Term:
        return self

    def written(self) -> tuple[str, int]:
        return f"ℓ{self.index + 1}", NAME


class Operated(Term):
    """A registered operation on terms: `a b`, `a / b`, `exp(a)`."""

    operation: str = eqx.field(static=True)
    arguments: tuple[Term, ...]

    def evaluate(self, q: Array, values: Array) -> Array:
        return OPERATIONS[self.operation].value(*(part.evaluate(q, values) for part in self.arguments))

    def derivative(self, along: Partial) -> Term:
        slopes = OPERATIONS[self.operation].slopes(*self.arguments)
        parts = [multiplied(as_term(slope), part.derivative(along)) for slope, part in zip(slopes, self.arguments)]
        return added(*parts)

    def replaced(self, change: Callable[[Linear], Term]) -> Term:
        return Operated(self.operation, tuple(part.replaced(change) for part in self.arguments))

    def written(self) -> tuple[str, int]:
        return written(self.operation, [part.written() for part in self.arguments])


class Power(Term):
    """`a^n` with a number `n`."""

    base: Term
    exponent: float = eqx.field(static=True)

    def evaluate(self, q: Array, values: Array) -> Array:
        return raised(self.base.evaluate(q, values), self.exponent)

    def derivative(self, along: Partial) -> Term:
        return self.exponent * power(self.base, self.exponent - 1) * self.base.derivative(along)

    def replaced(self, change: Callable[[Linear], Term]) -> Term:
        return Power(self.base.replaced(change), self.exponent)

    def written(self) -> tuple[str, int]:
        return power_written(self.base.written(), self.exponent)


class Equation(eqx.Module):
    """`term = source`, as written with `==`. The source is a number, a function of the point, or another term."""

    term: Term
    source: Any

    def __init__(self, term: Term, source: Any) -> None:
        if isinstance(source, Term):
            term, source = term - source, 0.0
        elif isinstance(source, AbstractCoefficient | Coordinates):
            term, source = term - as_term(source), 0.0
        if not (callable(source) or is_number(source)):
            raise TypeError(
                f"{term} == source needs a number, a function of the point q or another term: got {source!r}."
            )
        self.term, self.source = term, source

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self} is an equation, for Problem(domain, equations=[…]): it is neither true nor false. "
            "To compare terms use `is`."
        )

    def __str__(self) -> str:
        return f"{self.term} = {'f' if callable(self.source) else f'{float(self.source):g}'}"

    def __repr__(self) -> str:
        return str(self)


def as_term(value: Any) -> Term:
    """A term; a number, a coefficient or a coordinate becomes a known one."""
    if isinstance(value, Term):
        return value
    if isinstance(value, Coordinates) and value.scalar:
        return Known(Coefficient(value, name=str(value)))
    if isinstance(value, Operator):
        raise TypeError(f"{value} is an operator and no term: apply it to a field, as in ({value}) @ u.")
    if callable(value) and not isinstance(value, AbstractCoefficient):
        raise TypeError(
            f"A known function of the point in a term is written Coefficient(fn): got {value!r}. As the "
            "right-hand side of an equation it needs no wrapping."
        )
    return Known(as_coefficient(value))


def as_operator(value: Any) -> Any:
    """The row of a linear term, as an operator; anything that is no term is returned as it is."""
    if not isinstance(value, Term):
        return value
    if not isinstance(value, Linear):
        why = "is known already" if isinstance(value, Known) else "is not linear in the fields"
        raise TypeError(
            f"A row is a sum of operators of fields, such as D(x[0]) @ v - D(x[1]) @ u: {value} {why}. A "
            "nonlinear term can be part of an equation, and posterior.predict(points, term) takes it."
        )
    return value.row


def parted(term: Term) -> tuple[Term, Term] | None:
    """`A u` and `a` of a term `A u + a` with a linear row and a known function; `None` if it is of another kind."""
    if isinstance(term, Linear):
        return term, as_term(0.0)
    if isinstance(term, Known):
        return as_term(0.0), term
    if _is(term, "+"):
        each = [found for part in term.arguments if (found := parted(part)) is not None]
        rows, known = (added(*parts) for parts in zip(*each)) if each else (term, term)
        return (rows, known) if len(each) == len(term.arguments) else None
    if _is(term, "*") and isinstance(term.arguments[0], Known):
        found = parted(term.arguments[1])
        return (
            None
            if found is None
            else (multiplied(term.arguments[0], found[0]), multiplied(term.arguments[0], found[1]))
        )
    return None


def added(*terms: Term) -> Term:
    """The sum: all rows become one row, and all numbers one number."""
    parts = [p for term in terms for p in (term.arguments if _is(term, "+") else (term,))]
    rows = [(name, A) for p in parts if isinstance(p, Linear) for name, A in zip(p.row.names, p.row.operators)]
    numbers = [number_of(p.coefficient) for p in parts if isinstance(p, Known)]
    total = sum(number for number in numbers if number is not None)
    found: list[Term] = []
    for part in parts:
        if isinstance(part, Linear):
            if rows:
                found.append(Linear(row_of(rows)))
            rows = []
        elif not (isinstance(part, Known) and number_of(part.coefficient) is not None):
            found.append(part)
    if total or not found:
        found.append(as_term(total))
    if len(found) > 1 and all(isinstance(part, Known) for part in found):
        return Known(worked("+", *(part.coefficient for part in found if isinstance(part, Known))))
    return found[0] if len(found) == 1 else Operated("+", tuple(found))


def multiplied(a: Term, b: Term) -> Term:
    """The product: known factors go first, and into the operators of a row."""
    if isinstance(b, Known) and not isinstance(a, Known):
        a, b = b, a
    if isinstance(a, Known):
        number = number_of(a.coefficient)
        if number == 0.0 or (isinstance(b, Known) and number_of(b.coefficient) == 0.0):
            return as_term(0.0)
        if number == 1.0:
            return b
        if isinstance(b, Known):
            return a if number_of(b.coefficient) == 1.0 else Known(_product(a.coefficient, b.coefficient))
        if isinstance(b, Linear):
            return Linear(changed(b.row, lambda A: scale(a.coefficient, A)))
        if _is(b, "+"):
            return (
                added(*(multiplied(a, part) for part in b.arguments)) if number is not None else Operated("*", (a, b))
            )
        if _is(b, "*") and isinstance(b.arguments[0], Known):
            return multiplied(Known(_product(a.coefficient, b.arguments[0].coefficient)), b.arguments[1])
        return Operated("*", (a, b))
    for known, other in ((a, b), (b, a)):
        # `(c a) b` is `c (a b)`, so that known factors meet.
        if _is(known, "*") and isinstance(known.arguments[0], Known):
            rest = known.arguments[1]
            return multiplied(known.arguments[0], multiplied(*((rest, other) if known is a else (other, rest))))
    return Operated("*", (a, b))


def divided(a: Term, b: Term) -> Term:
    """The quotient; a row divided by something known is a row."""
    if isinstance(b, Known):
        number = number_of(b.coefficient)
        if number == 0.0:
            raise ZeroDivisionError(f"({a}) / 0: a term can be divided by a number other than zero.")
        if number is not None:
            return multiplied(as_term(1.0 / number), a)
        return multiplied(Known(worked("/", as_coefficient(1.0), b.coefficient)), a)
    if isinstance(a, Known) and number_of(a.coefficient) == 0.0:
        return a
    return Operated("/", (a, b))


def power(base: Term, exponent: Any) -> Term:
    if not is_number(exponent):
        raise TypeError(
            f"A term is taken to the power of a number: got ({base}) ** {exponent!r}. For other exponents write "
            "pk.exp(b * pk.log(a))."
        )
    n = float(exponent)
    if n in (0.0, 1.0):
        return base if n else as_term(1.0)
    if isinstance(base, Known):
        return Known(Powered(base.coefficient, n))
    return power(base.base, n * base.exponent) if _whole(base, n) else Power(base, n)


def applied(operator: Operator, term: Term) -> Term:
    """`A a`: rows become rows, and the rules of calculus are applied to everything else."""
    if isinstance(term, Linear):
        return Linear(changed(term.row, lambda A: compose(operator, A)))
    if isinstance(operator, Values):
        return term
    if isinstance(operator, Sum):
        return added(*(applied(part, term) for part in operator.terms))
    if isinstance(operator, Scaled):
        return multiplied(Known(operator.coefficient), applied(operator.operator, term))
    if isinstance(operator, Composed):
        return applied(operator.outer, applied(operator.inner, term))
    if _is(term, "+"):
        return added(*(applied(operator, part) for part in term.arguments))
    if isinstance(operator, Partial):
        for index, name in zip(operator.indices, operator.label):
            term = term.derivative(Partial((index,), (name,), operator.space))
        return term
    if isinstance(operator, Laplacian):
        each = [operator.x] if operator.x.scalar else [operator.x[i] for i in range(len(operator.x))]
        return added(*(applied(D(x, x), term) for x in each))
    raise TypeError(
        f"({operator}) @ ({term}): derivatives of terms that are not linear are written with D and Laplacian, as in "
        "D(x[0]) @ (k * (D(x[0]) @ u)), one for each coordinate."
    )


def _is(term: Any, operation: str) -> TypeGuard[Operated]:
    return isinstance(term, Operated) and term.operation == operation


def _whole(base: Term, n: float) -> TypeGuard[Power]:
    """Whether `(a^m)^n` is `a^(mn)` for every `a`."""
    return isinstance(base, Power) and base.exponent == int(base.exponent) and n == int(n)


def _product(a: AbstractCoefficient, b: AbstractCoefficient) -> AbstractCoefficient:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return Constant(jnp.asarray(a.value * b.value))
    return a * b
