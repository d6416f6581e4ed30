"""The operations that expressions may hold: each with its value, its partial derivatives and its text.

An expression is a tree of their names, so it is data: a file that stores one stores no code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
# How strongly parts hold together in print: a sum, a product, a power, a name.
SUM, PRODUCT, POWER, NAME = range(4)


class Operation(NamedTuple):
    """`f(a, b, …)`: `value` of numbers; `slopes`, the derivatives by each argument, made of whatever arguments are."""

    value: Callable[..., Any]
    slopes: Callable[..., tuple[Any, ...]]
    strength: int = NAME


def _all_ones(*parts: Any) -> tuple[Any, ...]:
    return (1.0,) * len(parts)


def _sum(*parts: Any) -> Any:
    return sum(parts[1:], parts[0])


OPERATIONS: dict[str, Operation] = {
    "+": Operation(_sum, _all_ones, SUM),
    "*": Operation(lambda a, b: a * b, lambda a, b: (b, a), PRODUCT),
    "/": Operation(lambda a, b: a / b, lambda a, b: (1.0 / b, -(a / b**2)), PRODUCT),
    "exp": Operation(jnp.exp, lambda a: (of("exp", a),)),
    "sin": Operation(jnp.sin, lambda a: (of("cos", a),)),
    "cos": Operation(jnp.cos, lambda a: (-of("sin", a),)),
    "tanh": Operation(jnp.tanh, lambda a: (1.0 - of("tanh", a) ** 2,)),
    "log": Operation(jnp.log, lambda a: (1.0 / a,)),
    "sqrt": Operation(jnp.sqrt, lambda a: (0.5 / of("sqrt", a),)),
}
FUNCTIONS = tuple(name for name in OPERATIONS if name.isalpha())


def of(name: str, argument: Any) -> Any:
    """A function of an expression."""
    from .functions import function_of

    return function_of(name, argument)


def written(name: str, parts: list[tuple[str, int]]) -> tuple[str, int]:
    """An operation as text, from the texts of its arguments and how strongly these hold together."""
    strength = OPERATIONS[name].strength
    if name in FUNCTIONS:
        return f"{name}({parts[0][0]})", NAME
    if name == "+":
        text = parts[0][0]
        for part, _ in parts[1:]:
            text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return text, SUM
    enclosed = [f"({text})" if held < strength else text for text, held in parts]
    if name == "/":
        below, held = parts[1]
        return f"{enclosed[0]} / {f'({below})' if held <= PRODUCT else below}", PRODUCT
    first, second = enclosed
    if first == "-1":
        return f"-{second}", PRODUCT
    return f"{first} {second}", PRODUCT


def power_written(base: tuple[str, int], exponent: float) -> tuple[str, int]:
    """`u³`, `(1 + u)²`, `u^0.5`."""
    text = base[0] if base[1] == NAME else f"({base[0]})"
    if exponent == int(exponent):
        return text + str(int(exponent)).translate(SUPERSCRIPTS), POWER
    return f"{text}^{exponent:g}", POWER
