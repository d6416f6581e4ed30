"""What an operator may be multiplied by: numbers, functions of the point, trainable parameters."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .equality import same
from .hidden import reached
from .priors import Prior, Support, energy_of, support_of
from .unknown import Unknown

# Unnamed functions are printed as these letters, in the order of their appearance in an operator.
LETTERS = "abcdefgh"


class AbstractCoefficient(eqx.Module):
    """A scalar field `a(q)`; `a * operator` multiplies the operator's result by it."""

    # A NumPy scalar on the left must call __rmul__ of this class instead of broadcasting.
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

    def __truediv__(self, other: Any) -> AbstractCoefficient:
        if isinstance(other, Unknown):
            return NotImplemented  # a term of an equation answers through its own __rtruediv__
        if not is_number(other) or other == 0:
            raise _no_arithmetic(f"{self} / {other!r}")
        return multiply(as_coefficient(1.0 / other), self)

    def __neg__(self) -> AbstractCoefficient:
        return multiply(as_coefficient(-1.0), self)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, AbstractCoefficient) or is_number(other):
            raise _no_arithmetic(f"{self} + {other!r}")
        return NotImplemented  # an operator answers through its own __radd__

    def __radd__(self, other: Any) -> Any:
        raise _no_arithmetic(f"{other!r} + {self}")

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, AbstractCoefficient) or is_number(other):
            raise _no_arithmetic(f"{self} - {other!r}")
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        raise _no_arithmetic(f"{other!r} - {self}")

    def __rtruediv__(self, other: Any) -> Any:
        raise _no_arithmetic(f"{other!r} / {self}")

    def __pow__(self, other: Any) -> Any:
        raise _no_arithmetic(f"{self} ** {other!r}")

    def __rpow__(self, other: Any) -> Any:
        raise _no_arithmetic(f"{other!r} ** {self}")

    def __abs__(self) -> Any:
        raise _no_arithmetic(f"abs({self})")

    def __repr__(self) -> str:
        return str(self)


class Constant(AbstractCoefficient):
    """A fixed number."""

    value: Float[Array, ""]

    def __call__(self, q: Array) -> Array:
        # A number is data, not a parameter: training must not change it.
        return jax.lax.stop_gradient(self.value)

    def __str__(self) -> str:
        return f"{float(self.value):g}" if not isinstance(self.value, jax.core.Tracer) else "c"


class Coefficient(AbstractCoefficient):
    """`a(q)`, a known function of the point that operators are multiplied by; with parameters, `a(q, k, …)`.

    **Arguments:**

    - `fn`: a function of the point, written with `jax.numpy`, that returns one number. With parameters it takes their
      values after the point.
    - `*parameters`: the unknown numbers that `fn` takes, as `Parameter`s.
    - `name`: how it is printed; the name of `fn` by default.

    !!! example
        ```python
        speed = pk.Coefficient(lambda q: 1 + x(q)[0], name="speed")
        decay = pk.Coefficient(lambda q, k: jnp.exp(-k * t(q)), pk.Parameter("k", 1.0), name="decay")
        operator = speed * pk.D(t) - decay * pk.Laplacian(x)
        ```
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
        if not isinstance(fn, AbstractCoefficient):
            refuse_hidden_parameters(fn, "Coefficient", "Coefficient(lambda q, {k}: …, {k})")
        self.fn = fn
        self.parameters = parameters
        self.name = name or name_of_function(fn, "a")

    def __call__(self, q: Array) -> Array:
        value = as_array(self.fn(q, *(parameter.value for parameter in self.parameters)))
        if value.shape != ():
            raise ValueError(f"{self} needs to be one number at each point: the function returned shape {value.shape}.")
        return value

    def __str__(self) -> str:
        return f"{self.name}(q)"


class Parameter(AbstractCoefficient):
    """An unknown number in an operator, which training learns.

    The same name means the same unknown wherever it appears. `posterior.parameters` has what was found, with error
    bars.

    **Arguments:**

    - `name`: its name.
    - `initial`: the value to start from, roughly: others are tried too. By default the middle of its prior, or 1.
    - `positive`: whether it has to stay positive. Then its logarithm is learned.
    - `prior`: what is known of it before the data: `Normal`, `LogNormal` or `Uniform`; wide by default.
    - `bounds`: a lower and an upper bound, `None` where there is none.

    !!! example
        ```python
        nu = pk.Parameter("nu", 0.1, positive=True)
        operator = pk.D(t) - nu * pk.Laplacian(x)
        ```
    """

    name: str = eqx.field(static=True)
    raw: Float[Array, ""]
    positive: bool = eqx.field(static=True)
    prior: Prior | None = eqx.field(static=True, default=None)
    bounds: tuple[float | None, float | None] | None = eqx.field(static=True, default=None)

    def __init__(
        self,
        name: str,
        initial: float | None = None,
        positive: bool = False,
        prior: Prior | None = None,
        bounds: tuple[float | None, float | None] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"A Parameter needs a name, Parameter('nu', {name!r}): got {name!r} as its name.")
        support = support_of(name, positive, bounds, prior)
        if initial is None:
            initial = middle_of(support, prior)
        if not is_number(initial) or not np.isfinite(initial) or not support.contains(float(initial)):
            usual = support == Support(0.0)
            kind = "a finite number" if support.free else "a positive number" if usual else f"a number {support}"
            raise ValueError(f"Parameter {name!r} needs {kind} to start from: got {initial!r}.")
        self.name = name
        self.positive = support == Support(0.0)
        self.prior = prior
        self.bounds = None if support.free or self.positive else (_limit(support.lower), _limit(support.upper))
        self.raw = jnp.asarray(support.raw(float(initial)), dtype=float)

    def __check_init__(self) -> None:
        if self.bounds is not None:
            support_of(self.name, False, self.bounds, self.prior)

    @staticmethod
    def vector(
        name: str,
        initial: Sequence[float],
        positive: bool = False,
        prior: Prior | None = None,
        bounds: tuple[float | None, float | None] | None = None,
    ) -> list[Parameter]:
        """A vector of unknown numbers, `name[0]`, `name[1]`, …, as a list.

        **Arguments:**

        - `name`: the name of the vector.
        - `initial`: the values to start from, one for each entry.
        - `positive`: whether all have to stay positive.
        - `prior`: the prior of each.
        - `bounds`: the bounds of each.

        **Returns:** a list of `Parameter`s.

        !!! example
            ```python
            wind = pk.Parameter.vector("v", [1.0, 0.0])
            operator = pk.D(t) + pk.Directional(x, wind)
            ```
        """
        return [Parameter(f"{name}[{i}]", value, positive, prior, bounds) for i, value in enumerate(initial)]

    @property
    def support(self) -> Support:
        """The interval in which it lies."""
        if self.bounds is None:
            return Support(0.0) if self.positive else Support()
        lower, upper = self.bounds
        return Support(-np.inf if lower is None else lower, np.inf if upper is None else upper)

    @property
    def value(self) -> Array:
        """The value it has now."""
        return self.support.value(self.raw)

    def _energy(self, raw: Array) -> Array:
        """`−log p(r)` of the number `r` that is learned, up to a constant; `self.raw` is where it starts."""
        return energy_of(self.prior, self.support, raw, jax.lax.stop_gradient(self.raw))

    def described(self) -> str:
        """The value as text, and whether it has to stay positive.

        **Arguments:** none.

        **Returns:** a few words.

        !!! example
            ```python
            assert pk.Parameter("nu", 0.1, positive=True).described() == "positive, 0.1"
            ```
        """
        where = "positive, " if self.positive else "" if self.bounds is None else f"{self.support}, "
        own = "" if self.prior is None else f", {self.prior}"
        return f"{where}{float(self.value):g}{own}"

    def __call__(self, q: Array) -> Array:
        return self.value

    def __str__(self) -> str:
        return self.name


def _limit(limit: float) -> float | None:
    return None if np.isinf(limit) else float(limit)


def middle_of(support: Support, prior: Prior | None) -> float:
    """Where a parameter starts if it was not said."""
    if prior is not None and support.contains(prior.middle):
        return prior.middle
    return 1.0 if support.contains(1.0) and not support.between else float(support.value(0.0))


class Product(AbstractCoefficient):
    """`a(q) b(q)`."""

    left: AbstractCoefficient
    right: AbstractCoefficient

    def __call__(self, q: Array) -> Array:
        return self.left(q) * self.right(q)

    def __str__(self) -> str:
        return f"-{self.right}" if str(self.left) == "-1" else f"{self.left} {self.right}"


class Entries(eqx.Module):
    """A vector or a matrix of coefficients, one for each entry: `q ↦ (a_1(q), …, a_k(q))`."""

    entries: tuple[AbstractCoefficient, ...]
    shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, q: Float[Array, " d"]) -> Array:
        return jnp.stack([entry(q) for entry in self.entries]).reshape(self.shape)


def as_entries(what: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> Entries | None:
    """A list, or a list of lists, with coefficients among its entries; `None` where all entries are numbers."""
    if not isinstance(value, list | tuple | np.ndarray):
        return None
    rows = [list(row) if isinstance(row, list | tuple | np.ndarray) else [row] for row in value]
    flat = [entry for row in rows for entry in row]
    if not any(isinstance(entry, AbstractCoefficient) or callable(entry) for entry in flat):
        return None
    nested = any(isinstance(row, list | tuple | np.ndarray) for row in value)
    shape = (len(rows), len(rows[0])) if nested else (len(rows),)
    if shape not in shapes or len({len(row) for row in rows}) > 1:
        raise ValueError(f"Expected {what} of shape {' or '.join(map(str, shapes))}: got {value!r}.")
    return Entries(tuple(map(as_coefficient, flat)), shape)


def as_array(value: Any) -> Array:
    """The value that a function of the point returned, as an array.

    It must not contain a `Parameter`, because training could not learn it.
    """
    is_coefficient = lambda leaf: isinstance(leaf, AbstractCoefficient)
    if any(map(is_coefficient, jax.tree.leaves(value, is_leaf=is_coefficient))):
        raise TypeError(
            f"A function of the point needs to return numbers: got {value!r}, which holds a Parameter or a "
            "Coefficient. Write Coefficient(lambda q, k: k * q[0], k) for one number, and a list of such "
            "coefficients and numbers for a vector, as in Directional(x, [Coefficient(…), 0.0])."
        )
    return jnp.asarray(value)


def refuse_hidden_parameters(fn: Callable, what: str, instead: str) -> None:
    """Refuse a function that uses a Parameter without taking it as an argument: training could not learn it."""
    if found := reached(fn, Parameter):
        name = found[0].name if found[0].name.isidentifier() else "k"
        raise TypeError(
            f"The function given to {what} uses the Parameter {found[0].name!r} from outside, where it could not be "
            f"learned. Write {instead.format(k=name)}."
        )


def refuse_hidden_in(fn: Any, what: str) -> None:
    """The same for the function of an operator's vector or matrix."""
    if not isinstance(fn, eqx.Module):
        one = f"{what}(x, [Coefficient(lambda q, {{k}}: …, {{k}}), …]), one entry for each coordinate"
        instead = one if what == "Directional" else f"{what}(x, Coefficient(lambda q, {{k}}: …, {{k}})), or {one}"
        refuse_hidden_parameters(fn, what, instead)


def _no_arithmetic(expression: str) -> TypeError:
    return TypeError(
        f"{expression} cannot be written: coefficients are multiplied with each other and with numbers, nothing else. "
        "Write it as a function that takes the parameters as numbers: Coefficient(lambda q, k: k + q[0], k)."
    )


def multiply(left: AbstractCoefficient, right: AbstractCoefficient) -> AbstractCoefficient:
    """The product, with numbers multiplied out and kept in front."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(left.value * right.value)
    if isinstance(left, Constant) and isinstance(right, Product) and isinstance(right.left, Constant):
        return Product(multiply(left, right.left), right.right)
    return Product(right, left) if isinstance(right, Constant) else Product(left, right)


def name_of_function(fn: Callable, otherwise: str) -> str:
    """The function's name, or `otherwise` for a lambda or a callable object, which have none."""
    name = getattr(fn, "__name__", "<lambda>")
    return otherwise if name == "<lambda>" else name


def is_number(value: Any) -> bool:
    """Whether it is a real scalar or a real array of shape `()`."""
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
    """All parameters in a tree, by name.

    Parameters with the same name must have the same initial value and the same `positive`.
    """
    found: dict[str, Parameter] = {}
    for leaf in jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, Parameter)):
        if isinstance(leaf, Parameter):
            known = found.setdefault(leaf.name, leaf)
            traced = isinstance(known.raw, jax.core.Tracer)
            form = lambda one: (one.positive, one.prior, one.bounds)
            if form(known) != form(leaf) or (not traced and float(known.raw) != float(leaf.raw)):
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
    """The same operator, with a new name for each function whose name another function has already.

    Within an operator, one name then means one function, in print and in model files: `a(q) ∂/∂x + b(q)`.
    """
    owners: dict[str, Any] = {}

    def renamed(coefficient: Coefficient) -> Coefficient:
        fn = coefficient.fn
        name = next(name for name in _names_like(coefficient.name) if same(owners.get(name, fn), fn))
        owners[name] = fn
        return coefficient if name == coefficient.name else Coefficient(fn, *coefficient.parameters, name=name)

    return _with(tree, Coefficient, renamed)


def _names_like(name: str) -> Iterator[str]:
    """The name itself; then, if it is a single letter, the letters after it; then `name_2`, `name_3`, …"""
    yield name
    if name in LETTERS:
        yield from LETTERS[LETTERS.index(name) + 1 :]
    yield from (f"{name}_{number}" for number in itertools.count(2))


def _with(tree: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """The same tree with every part of one kind changed."""
    of_kind = lambda node: isinstance(node, kind)
    return jax.tree.map(lambda node: change(node) if of_kind(node) else node, tree, is_leaf=of_kind)
