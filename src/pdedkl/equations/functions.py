"""Functions of terms: `exp(u)`, `sin(u + v)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..coordinates import Coordinates
from ..operators.coefficients import AbstractCoefficient, is_number
from .numbers import worked
from .terms import Known, Operated, Term, as_term

DOCUMENT = """`{mathematics}` of a term of an equation{domain}.

    **Arguments:**

    - `term`: a field, or a term made of fields, numbers and known functions of the point.

    **Returns:** a term.

    !!! example
        ```python
        u = pk.fields("u")
        {example}
        ```
    """


def function_of(name: str, argument: Any) -> Any:
    if isinstance(argument, Term):
        if isinstance(argument, Known):
            return Known(worked(name, argument.coefficient))
        if name == "log" and isinstance(argument, Operated) and argument.operation == "exp":
            return argument.arguments[0]
        return Operated(name, (argument,))
    if isinstance(argument, AbstractCoefficient | Coordinates) or is_number(argument):
        return function_of(name, as_term(argument))
    raise TypeError(
        f"pk.{name} is for terms of equations, such as pk.{name}(u): got {argument!r}. For arrays use jax.numpy.{name}."
    )


def public(name: str, mathematics: str, example: str, domain: str = "") -> Callable[[Any], Term]:
    """A registered operation as a function, with its documentation."""

    def function(term: Any) -> Term:
        found: Term = function_of(name, term)
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = DOCUMENT.format(mathematics=mathematics, example=example, domain=domain)
    return function


POSITIVE = " that is positive"
exp = public("exp", "e^a", "bratu = pk.Laplacian(x) @ u + pk.exp(u) == 0")
sin = public("sin", "sin a", "sine_gordon = pk.D(t, t) @ u - pk.Laplacian(x) @ u + pk.sin(u) == 0")
cos = public("cos", "cos a", "term = pk.cos(2 * u)")
tanh = public("tanh", "tanh a", "term = pk.tanh(u / 0.1)")
log = public("log", "log a", "term = u * pk.log(1 + u**2)", POSITIVE)
sqrt = public("sqrt", "√a", "eikonal = pk.sqrt((pk.D(x[0]) @ u) ** 2 + (pk.D(x[1]) @ u) ** 2) == 1", POSITIVE)
