"""Known numbers and functions in expressions: named numbers, derivatives, and what is computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..operators.coefficients import AbstractCoefficient, Constant, is_number
from ..operators.directions import along, unit
from .operations import NAME, OPERATIONS, SUM, power_written, written


class Number(AbstractCoefficient):
    """A known number with a name, such as a viscosity, that an equation can be solved for again with other values.

    It is not learned: for an unknown number use `Parameter`.

    **Arguments:**

    - `name`: its name.
    - `value`: the number.

    !!! example
        ```python
        nu = pk.Number("nu", 0.01)
        operator = pk.D(t) - nu * pk.Laplacian(x)
        ```
    """

    name: str = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, name: str, value: float) -> None:
        if not isinstance(name, str):
            raise TypeError(f"A Number needs a name, Number('nu', {name!r}): got {name!r} as its name.")
        if not is_number(value) or not np.isfinite(value):
            raise ValueError(f"Number {name!r} needs a finite number: got {value!r}.")
        self.name = name
        self.value = jnp.asarray(value, dtype=float)

    def __call__(self, q: Array) -> Array:
        # A known number is data: training must not change it.
        return jax.lax.stop_gradient(self.value)

    def __str__(self) -> str:
        return self.name


class Slope(AbstractCoefficient):
    """`∂a/∂q_i` of a function of the point."""

    coefficient: AbstractCoefficient
    index: int = eqx.field(static=True)

    def __call__(self, q: Array) -> Array:
        return along(self.coefficient, unit(self.index, q.shape[0]))(q)

    def __str__(self) -> str:
        return f"∂{self.coefficient}/∂q[{self.index}]"


class Worked(AbstractCoefficient):
    """An operation on known functions of the point: `a + b`, `exp(a)`."""

    operation: str = eqx.field(static=True)
    arguments: tuple[AbstractCoefficient, ...]

    def __call__(self, q: Array) -> Array:
        return OPERATIONS[self.operation].value(*(argument(q) for argument in self.arguments))

    def written(self) -> tuple[str, int]:
        return written(self.operation, [_written(argument) for argument in self.arguments])

    def __str__(self) -> str:
        return self.written()[0]


class Powered(AbstractCoefficient):
    """`a(q)^n` with a number `n`."""

    base: AbstractCoefficient
    exponent: float = eqx.field(static=True)

    def __call__(self, q: Array) -> Array:
        return raised(self.base(q), self.exponent)

    def written(self) -> tuple[str, int]:
        return power_written(_written(self.base), self.exponent)

    def __str__(self) -> str:
        return self.written()[0]


def raised(base: Array, exponent: float) -> Array:
    """`a^n`; whole numbers are products, so that they are defined and smooth for negative and for zero `a` too."""
    return base ** int(exponent) if exponent == int(exponent) else base**exponent


def worked(operation: str, *arguments: AbstractCoefficient) -> AbstractCoefficient:
    """The result of an operation; numbers are worked out."""
    found = Worked(operation, arguments)
    if all(isinstance(argument, Constant) for argument in arguments):
        return Constant(jnp.asarray(found(jnp.zeros(1)), dtype=float))
    return found


def number_of(coefficient: AbstractCoefficient) -> float | None:
    """The number, if it is one without a name."""
    if not isinstance(coefficient, Constant) or isinstance(coefficient.value, jax.core.Tracer):
        return None
    return float(coefficient.value)


def with_numbers(tree: Any, values: Mapping[str, float]) -> Any:
    """The same tree with other values of its named numbers."""
    is_named = lambda node: isinstance(node, Number)
    change = lambda node: Number(node.name, values[node.name]) if is_named(node) and node.name in values else node
    return jax.tree.map(change, tree, is_leaf=is_named)


def numbers_in(tree: Any) -> dict[str, float]:
    """The named numbers of a tree, with their values."""
    is_named = lambda node: isinstance(node, Number)
    return {node.name: float(node.value) for node in jax.tree.leaves(tree, is_leaf=is_named) if is_named(node)}


def _written(coefficient: AbstractCoefficient) -> tuple[str, int]:
    if isinstance(coefficient, Worked | Powered):
        return coefficient.written()
    text = str(coefficient)
    return text, SUM if text.startswith("-") else NAME
