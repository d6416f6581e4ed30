"""Functions of terms: `exp(u)`, `sin(u + v)`."""

from __future__ import annotations

from typing import Any

from ..coordinates import Coordinates
from ..operators.coefficients import AbstractCoefficient, is_number
from .numbers import worked
from .terms import Known, Operated, Term, as_term


def function_of(name: str, argument: Any) -> Any:
    if isinstance(argument, Term):
        if isinstance(argument, Known):
            return Known(worked(name, argument.coefficient))
        return Operated(name, (argument,))
    if isinstance(argument, AbstractCoefficient | Coordinates) or is_number(argument):
        return function_of(name, as_term(argument))
    raise TypeError(
        f"pk.{name} is for terms of equations, such as pk.{name}(u): got {argument!r}. For arrays use jax.numpy.{name}."
    )


def exp(term: Any) -> Term:
    """`e^a` of a term of an equation.

    **Arguments:**

    - `term`: a field, or a term made of fields, numbers and known functions of the point.

    **Returns:** a term.

    !!! example
        ```python
        u = pk.fields("u")
        bratu = pk.Laplacian(x) @ u + pk.exp(u) == 0
        ```
    """
    return function_of("exp", term)


def sin(term: Any) -> Term:
    """`sin a` of a term of an equation.

    **Arguments:**

    - `term`: a field, or a term made of fields, numbers and known functions of the point.

    **Returns:** a term.

    !!! example
        ```python
        u = pk.fields("u")
        sine_gordon = pk.D(t, t) @ u - pk.Laplacian(x) @ u + pk.sin(u) == 0
        ```
    """
    return function_of("sin", term)


def cos(term: Any) -> Term:
    """`cos a` of a term of an equation.

    **Arguments:**

    - `term`: a field, or a term made of fields, numbers and known functions of the point.

    **Returns:** a term.

    !!! example
        ```python
        u = pk.fields("u")
        term = pk.cos(2 * u)
        ```
    """
    return function_of("cos", term)


def tanh(term: Any) -> Term:
    """`tanh a` of a term of an equation.

    **Arguments:**

    - `term`: a field, or a term made of fields, numbers and known functions of the point.

    **Returns:** a term.

    !!! example
        ```python
        u = pk.fields("u")
        term = pk.tanh(u / 0.1)
        ```
    """
    return function_of("tanh", term)


def log(term: Any) -> Term:
    """`log a` of a term of an equation that is positive.

    **Arguments:**

    - `term`: a field, or a term made of fields, numbers and known functions of the point.

    **Returns:** a term.

    !!! example
        ```python
        u = pk.fields("u")
        term = u * pk.log(1 + u**2)
        ```
    """
    return function_of("log", term)


def sqrt(term: Any) -> Term:
    """`√a` of a term of an equation that is positive.

    **Arguments:**

    - `term`: a field, or a term made of fields, numbers and known functions of the point.

    **Returns:** a term.

    !!! example
        ```python
        u = pk.fields("u")
        eikonal = pk.sqrt((pk.D(x[0]) @ u) ** 2 + (pk.D(x[1]) @ u) ** 2) == 1
        ```
    """
    return function_of("sqrt", term)
