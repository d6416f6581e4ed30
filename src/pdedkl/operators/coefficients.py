"""What an operator may be multiplied by: numbers, functions of the point, trainable parameters."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .equality import same

# What unnamed functions are called, in the order in which an operator holds them.
LETTERS = "abcdefgh"


class AbstractCoefficient(eqx.Module):
    """A scalar field `a(q)`; `a * operator` multiplies the operator's result by it."""

    # Numbers and NumPy scalars on the left must hand over to __rmul__ here instead of broadcasting.
    __array_ufunc__ = None

    @abc.abstractmethod
    def __call__(self, q: Float[Array, " d"]) -> Array: ...

    @abc.abstractmethod
    def __str__(self) -> str: ...

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, AbstractCoefficient) or is_number(other):
            return multiply(self, as_coefficient(other))
        return NotImplemented  # an operator answers through its own __rmul__

    def __rmul__(self, other: Any) -> Any:
        return multiply(as_coefficient(other), self) if is_number(other) else NotImplemented

    def __neg__(self) -> AbstractCoefficient:
        return multiply(as_coefficient(-1.0), self)

    def __repr__(self) -> str:
        return str(self)


class Constant(AbstractCoefficient):
    """A fixed number."""

    value: Float[Array, ""]

    def __call__(self, q: Array) -> Array:
        # A number is data, not a parameter: training must not move it.
        return jax.lax.stop_gradient(self.value)

    def __str__(self) -> str:
        return f"{float(self.value):g}" if not isinstance(self.value, jax.core.Tracer) else "c"


class Coefficient(AbstractCoefficient):
    """A function of the point, `Coefficient(lambda q: 1 + x(q)[0])`.

    `fn` may be any function that JAX can differentiate. With parameters, `Coefficient(fn, k)` means `fn(q, k)`.
    """

    fn: Callable[..., Array]
    parameters: tuple[Parameter, ...]
    name: str = eqx.field(static=True)

    def __init__(self, fn: Callable[..., Array], *parameters: Parameter, name: str | None = None) -> None:
        if not callable(fn):
            raise TypeError(f"Coefficient needs a function of the point q: got {fn!r}. A number needs no wrapping.")
        for parameter in parameters:
            if not isinstance(parameter, Parameter):
                raise TypeError(f"Coefficient(fn, *parameters) takes Parameter objects after fn: got {parameter!r}.")
        self.fn = fn
        self.parameters = parameters
        self.name = name or name_of_function(fn, "a")

    def __call__(self, q: Array) -> Array:
        value = jnp.asarray(self.fn(q, *(parameter.value for parameter in self.parameters)))
        if value.shape != ():
            raise ValueError(f"{self} needs to be one number at each point: the function returned shape {value.shape}.")
        return value

    def __str__(self) -> str:
        return f"{self.name}(q)"


class Parameter(AbstractCoefficient):
    """An unknown number, learned with everything else: `Parameter("nu", 0.1, positive=True)`.

    Wherever the same name appears it is the same unknown. A positive one is stored by its logarithm.
    """

    name: str = eqx.field(static=True)
    raw: Float[Array, ""]
    positive: bool = eqx.field(static=True)

    def __init__(self, name: str, initial: float = 1.0, positive: bool = False) -> None:
        if not isinstance(name, str):
            raise TypeError(f"A Parameter needs a name, Parameter('nu', {name!r}): got {name!r} as its name.")
        if not is_number(initial) or not np.isfinite(initial) or (positive and initial <= 0):
            kind = "a positive number" if positive else "a finite number"
            raise ValueError(f"Parameter {name!r} needs {kind} to start from: got {initial!r}.")
        self.name = name
        self.positive = positive
        self.raw = jnp.asarray(np.log(initial) if positive else initial, dtype=float)

    @property
    def value(self) -> Array:
        return jnp.exp(self.raw) if self.positive else self.raw

    def described(self) -> str:
        return f"{'positive, ' if self.positive else ''}{float(self.value):g}"

    def __call__(self, q: Array) -> Array:
        return self.value

    def __str__(self) -> str:
        return self.name


class Product(AbstractCoefficient):
    """`a(q) b(q)`."""

    left: AbstractCoefficient
    right: AbstractCoefficient

    def __call__(self, q: Array) -> Array:
        return self.left(q) * self.right(q)

    def __str__(self) -> str:
        return f"-{self.right}" if str(self.left) == "-1" else f"{self.left} {self.right}"


def multiply(left: AbstractCoefficient, right: AbstractCoefficient) -> AbstractCoefficient:
    """The product, with numbers multiplied out and kept in front."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(left.value * right.value)
    if isinstance(left, Constant) and isinstance(right, Product) and isinstance(right.left, Constant):
        return Product(multiply(left, right.left), right.right)
    return Product(right, left) if isinstance(right, Constant) else Product(left, right)


def name_of_function(fn: Callable, otherwise: str) -> str:
    """The function's own name; a lambda and a callable object have none."""
    name = getattr(fn, "__name__", "<lambda>")
    return otherwise if name == "<lambda>" else name


def is_number(value: Any) -> bool:
    """A real scalar, also as an array of no axes."""
    return np.ndim(value) == 0 and eqx.is_array_like(value) and not np.iscomplexobj(value)


def as_coefficient(value: Any) -> AbstractCoefficient:
    if isinstance(value, AbstractCoefficient):
        return value
    if is_number(value):
        if not isinstance(value, jax.core.Tracer) and not np.isfinite(value):
            raise ValueError(f"A coefficient needs to be finite: got {value}.")
        return Constant(jnp.asarray(value, dtype=float))
    raise TypeError(
        f"A coefficient is a number, a Coefficient(function of q) or a Parameter: got {value!r}. "
        "Wrap a function as Coefficient(fn)."
    )


def parameters_of(tree: Any) -> dict[str, Parameter]:
    """All parameters in a tree, by name; the same name must be positive or not, and start from the same value."""
    found: dict[str, Parameter] = {}
    for leaf in jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, Parameter)):
        if isinstance(leaf, Parameter):
            known = found.setdefault(leaf.name, leaf)
            traced = isinstance(known.raw, jax.core.Tracer)
            if known.positive != leaf.positive or (not traced and float(known.raw) != float(leaf.raw)):
                raise ValueError(
                    f"Parameter {leaf.name!r} appears in two forms, {known.described()} and {leaf.described()}: one "
                    "name is one unknown. Make it once and use that object everywhere."
                )
    return found


def bind(tree: Any, values: dict[str, Array]) -> Any:
    """The same tree with every parameter that `values` names set to the raw value given there."""
    return _with(tree, Parameter, lambda found: _bound(found, values))


def _bound(parameter: Parameter, values: dict[str, Array]) -> Parameter:
    if parameter.name not in values:
        return parameter
    return eqx.tree_at(lambda one: one.raw, parameter, values[parameter.name])


def with_distinct_names(tree: Any) -> Any:
    """The same operator, with another letter or number for a function whose name another function has already.

    So one name is one function within an operator, on paper and in model files: `a(q) ∂/∂x + b(q)`.
    """
    owners: dict[str, Any] = {}

    def renamed(coefficient: Coefficient) -> Coefficient:
        fn = coefficient.fn
        name = next(name for name in _names_like(coefficient.name) if same(owners.get(name, fn), fn))
        owners[name] = fn
        return coefficient if name == coefficient.name else Coefficient(fn, *coefficient.parameters, name=name)

    return _with(tree, Coefficient, renamed)


def _names_like(name: str) -> Iterator[str]:
    """The name itself, then `b`, `c`, … after a single letter, and `name_2`, `name_3`, … without end."""
    yield name
    if name in LETTERS:
        yield from LETTERS[LETTERS.index(name) + 1 :]
    yield from (f"{name}_{number}" for number in itertools.count(2))


def _with(tree: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """The same tree with every part of one kind changed."""
    of_kind = lambda node: isinstance(node, kind)
    return jax.tree.map(lambda node: change(node) if of_kind(node) else node, tree, is_leaf=of_kind)
