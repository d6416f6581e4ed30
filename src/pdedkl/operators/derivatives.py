"""The elementary operators: partial and directional derivatives, Laplacian, diffusion in both forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Coordinates, Layout
from .base import Field, Operator, high_order
from .directions import along, unit, units
from .symbol import Symbol
from .tensors import as_matrix, call_or_constant, read_tensor, read_vector, second_order_symbol, tensor_at, written


class Partial(Operator):
    """`∂^k / ∂q_i ∂q_j …`, of any order."""

    indices: tuple[int, ...] = eqx.field(static=True)
    label: tuple[str, ...] = eqx.field(static=True)
    space: Layout = eqx.field(static=True)

    @property
    def order(self) -> int:
        return len(self.indices)

    @property
    def layout(self) -> Layout:
        return self.space

    def _unit(self, index: int) -> np.ndarray:
        return unit(index, sum(size for _, size in self.space))

    def __call__(self, u: Field) -> Field:
        for index in self.indices:
            u = along(u, self._unit(index))
        return u

    def symbol(self, q: Array) -> Symbol:
        if self.order == 1:
            return Symbol(b=jnp.asarray(self._unit(self.indices[0])))
        if self.order > 2:
            raise high_order(self)
        i, j = self.indices
        if i == j:
            return Symbol(axes=(i,), axis_weights=jnp.ones(1))
        e, f = self._unit(i), self._unit(j)
        return Symbol(directions=jnp.asarray(np.stack([e + f, e - f])), weights=jnp.asarray([0.25, -0.25]))

    def after(self, inner: Operator) -> Operator | None:
        if not isinstance(inner, Partial):
            return None
        return _sorted_partial([*zip(self.indices, self.label), *zip(inner.indices, inner.label)], self.space)

    def __str__(self) -> str:
        powers = {name: self.label.count(name) for name in self.label}
        below = " ".join(f"∂{name}" + (_superscript(k) if k > 1 else "") for name, k in powers.items())
        return f"∂{_superscript(self.order) if self.order > 1 else ''}/{below}"


def D(*coordinates: Coordinates) -> Partial:
    """A partial derivative of any order: `D(t)` is ∂/∂t, `D(x[0], x[1])` is ∂²/∂x₀∂x₁ and `D(t, t)` is ∂²/∂t².

    **Arguments:**

    - `*coordinates`: the coordinates to differentiate by, one for each derivative.

    **Returns:** the operator.

    !!! example
        ```python
        wave = pk.D(t, t) - pk.D(x[0], x[0])
        ```
    """
    if not coordinates:
        raise ValueError("D needs the coordinate to differentiate by: D(t), or D(x[0], x[0]).")
    for coordinate in coordinates:
        if not isinstance(coordinate, Coordinates):
            raise TypeError(f"D takes coordinates of a domain, as in t = domain.coordinates('t'): got {coordinate!r}.")
        if len(coordinate) != 1:
            raise ValueError(
                f"D takes single coordinates and {coordinate} has {len(coordinate)}: "
                f"use D({coordinate}[i]), Laplacian({coordinate}) or Directional({coordinate}, v)."
            )
        if coordinate.layout != coordinates[0].layout:
            raise ValueError(f"{coordinates[0]} and {coordinate} belong to different domains.")
    pairs = [(coordinate.indices[0], coordinate.name) for coordinate in coordinates]
    return _sorted_partial(pairs, coordinates[0].layout)


class Laplacian(Operator):
    """`Δ_x = Σ_i ∂²/∂x_i²` over one group of coordinates.

    **Arguments:**

    - `x`: the coordinates to sum over.

    !!! example
        ```python
        poisson = pk.Laplacian(x)
        ```
    """

    x: Coordinates = eqx.field(static=True)

    def __check_init__(self) -> None:
        check_coordinates("Laplacian", self.x)

    @property
    def order(self) -> int:
        return 2

    @property
    def layout(self) -> Layout:
        return self.x.layout

    def __call__(self, u: Field) -> Field:
        basis = units(self.x)

        def second(q: Array, v: Array) -> Array:
            return along(along(u, v), v)(q)

        return lambda q: jnp.sum(jax.vmap(second, in_axes=(None, 0))(q, basis), axis=0)

    def symbol(self, q: Array) -> Symbol:
        return Symbol(axes=self.x.indices, axis_weights=jnp.ones(len(self.x)))

    def __str__(self) -> str:
        return f"Δ_{self.x}"


class Directional(Operator):
    """`v·∇_x u`, the derivative along a vector `v`.

    **Arguments:**

    - `x`: the coordinates that `v` has entries for.
    - `vector`: a list with one entry for each coordinate, a number, a `Parameter` or a `Coefficient`; or a function of
      the point that returns such a vector of numbers.

    !!! example
        ```python
        wind = pk.Directional(x, [pk.Parameter("speed", 1.0), 0.0])
        swirl = pk.Directional(x, lambda q: jnp.array([-x(q)[1], x(q)[0]]))
        ```
    """

    x: Coordinates = eqx.field(static=True)
    vector: Float[Array, " k"] | Callable[[Array], Array]

    def __init__(self, x: Coordinates, vector: Any) -> None:
        check_coordinates("Directional", x)
        self.x = x
        self.vector = read_vector(vector, len(x))

    @property
    def order(self) -> int:
        return 1

    @property
    def layout(self) -> Layout:
        return self.x.layout

    def __call__(self, u: Field) -> Field:
        return lambda q: along(u, self._full(q))(q)

    def symbol(self, q: Array) -> Symbol:
        return Symbol(b=self._full(q))

    def _full(self, q: Array) -> Array:
        v = call_or_constant(self.vector, q, "The direction", (len(self.x),))
        return jnp.zeros(self.x.dim).at[np.asarray(self.x.indices)].set(v)

    def __str__(self) -> str:
        return f"{written(self.vector, 'v')}·∇_{self.x}"


class Diffusion(Operator):
    """`a : ∇_x∇_xᵀ u = Σ_ij a_ij ∂_i∂_j u`, the non-divergence form. `a` may be indefinite.

    **Arguments:**

    - `x`: the coordinates that `a` has entries for.
    - `a`: a number, a vector (a diagonal) or a symmetric matrix, whose entries may be numbers, `Parameter`s and
      `Coefficient`s; a `Parameter` or `Coefficient`; or a function of the point that returns a number, a vector or a
      matrix.

    !!! example
        ```python
        mixed = pk.Diffusion(x, [[1.0, 0.5], [0.5, 2.0]])
        ```
    """

    x: Coordinates = eqx.field(static=True)
    a: Any

    def __init__(self, x: Coordinates, a: Any) -> None:
        check_coordinates("Diffusion", x)
        self.x = x
        self.a = read_tensor("Diffusion", a, len(x))

    @property
    def order(self) -> int:
        return 2

    @property
    def layout(self) -> Layout:
        return self.x.layout

    def __call__(self, u: Field) -> Field:
        basis = units(self.x)

        def contracted(q: Array) -> Array:
            mixed = jax.vmap(lambda v: jax.vmap(lambda w: along(along(u, v), w)(q))(basis))(basis)
            return jnp.sum(as_matrix(tensor_at(self.a, q), len(self.x)) * mixed)

        return contracted

    def symbol(self, q: Array) -> Symbol:
        return second_order_symbol(self.a, q, self.x)

    def __str__(self) -> str:
        return f"{written(self.a, 'a')}:∇∇_{self.x}"


class Divergence(Operator):
    """`∇_x·(a ∇_x u)`, the divergence form. Where `a` depends on the point, its derivatives are part of the operator.

    **Arguments:**

    - `x`: the coordinates that `a` has entries for.
    - `a`: a number, a vector (a diagonal) or a matrix, whose entries may be numbers, `Parameter`s and `Coefficient`s; a
      `Parameter` or `Coefficient`; or a function of the point that returns a number, a vector or a matrix.

    !!! example
        ```python
        flow = pk.Divergence(x, lambda q: 1 + x(q)[0] ** 2)
        unknown = pk.Divergence(x, pk.Coefficient(lambda q, k: 1 + k * x(q)[0], pk.Parameter("k", 0.5)))
        ```
    """

    x: Coordinates = eqx.field(static=True)
    a: Any

    def __init__(self, x: Coordinates, a: Any) -> None:
        check_coordinates("Divergence", x)
        self.x = x
        self.a = read_tensor("Divergence", a, len(x))

    @property
    def order(self) -> int:
        return 2

    @property
    def layout(self) -> Layout:
        return self.x.layout

    def __call__(self, u: Field) -> Field:
        basis = units(self.x)

        def flux(q: Array) -> Array:
            slope = jax.vmap(lambda v: along(u, v)(q))(basis)
            return as_matrix(tensor_at(self.a, q), len(self.x)) @ slope

        def divergence(q: Array) -> Array:
            return jnp.trace(jax.vmap(lambda v: along(flux, v)(q))(basis))

        return divergence

    def symbol(self, q: Array) -> Symbol:
        """`a:∇∇ᵀ + (∇·a)·∇`."""
        symbol = second_order_symbol(self.a, q, self.x)
        if not callable(self.a):
            return symbol
        drift = jnp.zeros(self.x.dim).at[np.asarray(self.x.indices)].set(self._divergence_of_a(q))
        return symbol + Symbol(b=drift)

    def _divergence_of_a(self, q: Array) -> Array:
        """The vector `Σ_i ∂_i a_ij`."""
        index = np.asarray(self.x.indices)
        ndim = jnp.ndim(tensor_at(self.a, q))
        if ndim == 0:
            return jax.grad(lambda p: tensor_at(self.a, p))(q)[index]
        changes = jax.vmap(lambda v: along(lambda p: tensor_at(self.a, p), v)(q))(units(self.x))
        return jnp.diagonal(changes) if ndim == 1 else jnp.einsum("iij->j", changes)

    def __str__(self) -> str:
        return f"∇_{self.x}·({written(self.a, 'a')} ∇_{self.x})"


def check_coordinates(what: str, x: Any) -> None:
    if not isinstance(x, Coordinates):
        raise TypeError(f"{what} acts on coordinates of a domain, as in x = domain.coordinates('x'): got {x!r}.")


def _sorted_partial(pairs: list[tuple[int, str]], layout: Layout) -> Partial:
    indices, label = zip(*sorted(pairs))
    return Partial(indices, label, layout)


def _superscript(k: int) -> str:
    return str(k).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
