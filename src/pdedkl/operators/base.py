"""Linear operators and their algebra: `D(t) - Laplacian(x) + 1.0`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Layout
from .coefficients import AbstractCoefficient, as_coefficient, is_number, with_distinct_names
from .linear import OnlyLinear, factor_of, not_linear
from .product_rule import along_first_order, differentiate_multiple, first_order_parts
from .symbol import Symbol
from .unknown import InFull, Unknown

Field = Callable[[Float[Array, " d"]], Array]


class Place(eqx.Module):
    """A move to given values of some coordinates: `q ↦ q` with `q_i = v_i`."""

    indices: tuple[int, ...] = eqx.field(static=True)
    values: Float[Array, " k"]

    def __call__(self, q: Float[Array, " d"]) -> Float[Array, " d"]:
        return q.at[np.asarray(self.indices)].set(self.values)


# `A S_s`: a move `s` (`None` stays where it is) and a local operator `A`. After a move to a place, all of `A` is there.
Term = tuple[Float[Array, " d"] | Place | None, "Operator"]


class Operator(OnlyLinear, eqx.Module):
    """A linear differential operator `A`, written as in an equation: `D(t) - 0.1 * Laplacian(x) + 1.0`.

    Operators are added, multiplied by numbers and coefficients, and composed with `@`. `A(u)` is the function `q ↦ (A
    u)(q)`, by automatic differentiation. `A.symbol(q)` is the same operator as coefficients at one point, where its
    order is two or less. The tests check that both agree.

    **Arguments:** none. This is the base class; `docs/extending.md` shows how to add an operator.

    !!! example
        ```python
        heat = pk.D(t) - 0.1 * pk.Laplacian(x)
        f = heat(lambda q: t(q) * x(q)[0] ** 2)
        assert heat.order == 2 and jnp.allclose(f(jnp.array([1.0, 0.0, 2.0])), 1.0 - 0.4)
        ```
    """

    __array_ufunc__ = None

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """The highest order of its derivatives."""

    @property
    @abc.abstractmethod
    def layout(self) -> Layout | None:
        """The groups of coordinates that its points have; `None` if it acts on points of any domain."""

    @abc.abstractmethod
    def __call__(self, u: Field) -> Field: ...

    @abc.abstractmethod
    def symbol(self, q: Float[Array, " d"]) -> Symbol:
        """`A = c + b·∇ + Σ w_i ∂_i² + Σ s_r (v_r·∇)²`, as numbers at one point. For operators of order two or less.

        **Arguments:**

        - `q`: a point.

        **Returns:** a `Symbol`.

        !!! example
            ```python
            symbol = heat.symbol(jnp.zeros(3))
            assert symbol.axes == (0, 1)
            ```
        """

    @abc.abstractmethod
    def __str__(self) -> str: ...

    @property
    def dim(self) -> int | None:
        """The number of coordinates that its points have; `None` if it acts on points of any dimension."""
        return None if self.layout is None else sum(size for _, size in self.layout)

    def local_terms(self) -> tuple[Term, ...]:
        """`A = Σ_k A_k S_k`, with local operators `A_k` and moves `(S_k u)(q) = u(q + s_k)`.

        **Arguments:** none.

        **Returns:** pairs `(s_k, A_k)`. For a local operator this is one pair, `(None, A)`.

        !!! example
            ```python
            ((move, operator),) = heat.local_terms()
            assert move is None and operator is heat
            ```
        """
        return ((None, self),)

    @property
    def acts_last(self) -> bool:
        """Whether no operator can act on the result, as on that of an integral."""
        return False

    @property
    def local(self) -> bool:
        """Whether `(A u)(q)` depends only on `u` near `q`."""
        return all(move is None for move, _ in self.local_terms())

    def after(self, inner: Operator) -> Operator | None:
        """A simpler form of `self @ inner`.

        **Arguments:**

        - `inner`: the operator that acts first.

        **Returns:** an operator, or `None` where there is no simpler form.

        !!! example
            ```python
            assert pk.D(t).after(pk.D(t)) == pk.D(t, t)
            ```
        """
        return None

    def times(self, factor: AbstractCoefficient) -> Operator | None:
        """A simpler form of `factor * self`.

        **Arguments:**

        - `factor`: a coefficient.

        **Returns:** an operator, or `None` where there is no simpler form.

        !!! example
            ```python
            assert pk.D(t).times(pk.Coefficient(t)) is None
            ```
        """
        return None

    def __repr__(self) -> str:
        return str(self)

    def __add__(self, other: Any) -> Operator:
        return add(self, as_operator(other))

    def __radd__(self, other: Any) -> Operator:
        return add(as_operator(other), self)

    def __sub__(self, other: Any) -> Operator:
        return add(self, -as_operator(other))

    def __rsub__(self, other: Any) -> Operator:
        return add(as_operator(other), -self)

    def __neg__(self) -> Operator:
        return scale(-1.0, self)

    def __mul__(self, other: Any) -> Operator:
        if isinstance(other, Operator):
            raise not_linear(f"({self}) * ({other})")
        return scale(factor_of(other, self), self)

    def __rmul__(self, other: Any) -> Operator:
        return scale(factor_of(other, self), self)

    def __truediv__(self, other: Any) -> Operator:
        if isinstance(other, Operator):
            raise not_linear(f"({self}) / ({other})")
        if not is_number(other) or other == 0:
            raise TypeError(
                f"An operator can be divided by a number other than zero: got {other!r}. "
                "To divide by a function of the point write Coefficient(lambda q: 1 / a(q)) * A."
            )
        return scale(1.0 / other, self)

    def __pos__(self) -> Operator:
        return self

    def __matmul__(self, other: Any) -> Any:
        # A term of an equation answers through its own __rmatmul__.
        return NotImplemented if isinstance(other, Unknown) else compose(self, other)

    def __rmatmul__(self, other: Any) -> Operator:
        raise TypeError(f"`A @ B` composes two operators: got {other!r} on the left. To scale one write `a * A`.")


class Identity(Operator):
    """`u ↦ u`: values of the unknown itself."""

    @property
    def order(self) -> int:
        return 0

    @property
    def layout(self) -> None:
        return None

    def __call__(self, u: Field) -> Field:
        return u

    def symbol(self, q: Array) -> Symbol:
        return Symbol(c=jnp.asarray(1.0))

    def __str__(self) -> str:
        return "1"


identity = Identity()


class Sum(Operator):
    """`A + B + …`."""

    terms: tuple[Operator, ...]

    @property
    def order(self) -> int:
        return max(term.order for term in self.terms)

    @property
    def layout(self) -> Layout | None:
        return common_layout(*self.terms)

    def __call__(self, u: Field) -> Field:
        parts = [term(u) for term in self.terms]
        return lambda q: sum((part(q) for part in parts[1:]), parts[0](q))

    def symbol(self, q: Array) -> Symbol:
        symbols = [term.symbol(q) for term in self.terms]
        return sum(symbols[1:], symbols[0])

    def local_terms(self) -> tuple[Term, ...]:
        """All terms without a move become one term, so that each point is pushed through a network only once."""
        if all(term.local for term in self.terms):
            return ((None, self),)
        found = [term for operator in self.terms for term in operator.local_terms()]
        here = tuple(operator for move, operator in found if move is None)
        elsewhere = tuple(term for term in found if term[0] is not None)
        return ((None, Sum(here)), *elsewhere) if here else elsewhere

    def __str__(self) -> str:
        text = str(self.terms[0])
        for term in map(str, self.terms[1:]):
            text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
        return text


class Scaled(Operator):
    """`a(q) A`."""

    coefficient: AbstractCoefficient
    operator: Operator

    @property
    def order(self) -> int:
        return self.operator.order

    @property
    def layout(self) -> Layout | None:
        return self.operator.layout

    def __call__(self, u: Field) -> Field:
        inner = self.operator(u)
        return lambda q: self.coefficient(q) * inner(q)

    def symbol(self, q: Array) -> Symbol:
        return self.operator.symbol(q).scaled(self.coefficient(q))

    def local_terms(self) -> tuple[Term, ...]:
        if self.operator.local:
            return ((None, self),)
        return tuple((move, Scaled(self.coefficient, term)) for move, term in self.operator.local_terms())

    def __str__(self) -> str:
        factor = str(self.coefficient)
        if isinstance(self.operator, Identity):
            return factor
        inner = f"({self.operator})" if isinstance(self.operator, Sum) else str(self.operator)
        return {"1": inner, "-1": f"-{inner}"}.get(factor, f"{factor} {inner}")


class Composed(Operator):
    """`A B`: `B` acts first. The coefficients of `B` are differentiated too."""

    outer: Operator
    inner: Operator

    @property
    def order(self) -> int:
        return self.outer.order + self.inner.order

    @property
    def layout(self) -> Layout | None:
        return common_layout(self.outer, self.inner)

    def __call__(self, u: Field) -> Field:
        return self.outer(self.inner(u))

    def symbol(self, q: Array) -> Symbol:
        """By the product rule: `A (c u + b·∇u + …)`, for a result of order two or less."""
        if self.order > 2:
            raise high_order(self)
        outer = self.outer.symbol(q)
        zeroth = Symbol() if outer.c is None else self.inner.symbol(q).scaled(outer.c)
        if self.outer.order == 0:
            return zeroth
        if self.inner.order == 0:
            return differentiate_multiple(outer, self.outer, lambda p: first_order_parts(self.inner, p)[0], q)
        return zeroth + along_first_order(outer.b, self.inner, q)

    def local_terms(self) -> tuple[Term, ...]:
        """`(A S_s)(B S_r) = A (S_s B S_s⁻¹) S_{s+r}`: the coefficients of `B` are taken at `q + s`."""
        if self.outer.local and self.inner.local:
            return ((None, self),)
        found: list[Term] = []
        for s, outer in self.outer.local_terms():
            for r, inner in self.inner.local_terms():
                if s is None:
                    found.append((r, compose(outer, inner)))
                elif isinstance(s, Place) or isinstance(r, Place):
                    raise ValueError(f"An integral is of a local operator: got {self}.")
                else:
                    found.append((s if r is None else s + r, compose(outer, _Translated(inner, s))))
        return tuple(found)

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, Sum) else str(part) for part in (self.outer, self.inner))


class _Translated(Operator):
    """`S_s A S_s⁻¹`: the same operator with its coefficients taken at `q + s`."""

    operator: Operator
    move: Float[Array, " d"]

    @property
    def order(self) -> int:
        return self.operator.order

    @property
    def layout(self) -> Layout | None:
        return self.operator.layout

    def __call__(self, u: Field) -> Field:
        there = self.operator(lambda p: u(p - self.move))
        return lambda q: there(q + self.move)

    def symbol(self, q: Array) -> Symbol:
        return self.operator.symbol(q + self.move)

    def __str__(self) -> str:
        return f"({self.operator} at q + s)"


def translated(operator: Operator, move: Float[Array, " d"]) -> Operator:
    """The operator with its coefficients taken at `q + s`."""
    return _Translated(operator, move)


def as_operator(value: Any) -> Operator:
    """`u ↦ a u` for a number or coefficient `a`; an operator is returned as it is."""
    return value if isinstance(value, Operator) else Scaled(as_coefficient(value), identity)


def add(*operators: Operator) -> Operator:
    common_layout(*operators)
    terms = [term for op in operators for term in (op.terms if isinstance(op, Sum) else (op,))]
    return with_distinct_names(Sum(tuple(terms)))


def scale(factor: Any, operator: Operator) -> Operator:
    coefficient = as_coefficient(factor)
    if isinstance(operator, Sum):
        return Sum(tuple(scale(coefficient, term) for term in operator.terms))
    if isinstance(operator, Scaled):
        return with_distinct_names(Scaled(coefficient * operator.coefficient, operator.operator))
    return operator.times(coefficient) or with_distinct_names(Scaled(coefficient, operator))


def compose(outer: Operator, inner: Operator) -> Operator:
    if not isinstance(inner, Operator):
        raise TypeError(
            f"`A @ B` composes two operators: got {inner!r} on the right. To apply A to a function u: A(u)."
        )
    common_layout(outer, inner)
    if isinstance(outer, Identity):
        return inner
    if isinstance(inner, Identity):
        return outer
    if any(part.acts_last for part in (inner.terms if isinstance(inner, Sum) else (inner,))):
        raise ValueError(f"An integral acts last: got {outer} of {inner}. Write the operator inside of it.")
    return outer.after(inner) or with_distinct_names(Composed(outer, inner))


def gathered(
    operator: Operator, parts: Sequence[tuple[Any, Operator]], made: Callable[[list[tuple[Any, Operator]]], Operator]
) -> tuple[Term, ...]:
    """The local terms of an operator made of parts with keys: those without a move together, each other one alone."""
    if all(part.local for _, part in parts):
        return ((None, operator),)
    found = [(key, *term) for key, part in parts for term in part.local_terms()]
    here = [(key, local) for key, move, local in found if move is None]
    elsewhere = [(move, made([(key, local)])) for key, move, local in found if move is not None]
    return ((None, made(here)), *elsewhere) if here else tuple(elsewhere)


def common_layout(*operators: Operator) -> Layout | None:
    layouts = {operator.layout: operator for operator in operators if operator.layout is not None}
    if len(layouts) > 1:
        parts = [f"{operator} on ({', '.join(name for name, _ in layout)})" for layout, operator in layouts.items()]
        raise ValueError(f"Operators of different domains do not mix: {' and '.join(parts)}.")
    return next(iter(layouts), None)


def applied(operator: Operator) -> str:
    """`A u` as text."""
    if isinstance(operator, InFull):
        return str(operator)
    if isinstance(operator, Identity):
        return "u"
    return f"({operator}) u" if isinstance(operator, Sum) else f"{operator} u"


def high_order(operator: Operator) -> ValueError:
    return ValueError(
        f"{operator} is of order {operator.order}, and closed forms go up to order 2: "
        'pass engine="autodiff" to fit, or to Model.'
    )
