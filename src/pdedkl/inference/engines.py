"""Two ways to compute covariances of operators, behind one interface.

An engine turns an operator and `n` points into *rows*, a tree of arrays whose leading axis runs over the points, and
computes blocks of covariances between rows. A block depends on trained parameters only through the rows and through the
engine's `parameters`, so that the derivative rule of the evidence can pull gradients back through both.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from functools import partial, reduce
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..embeddings import LatentJet
from ..kernels import BaseKernel, Component, Kernel
from ..operators import Operator


class Engine(eqx.Module):
    """How covariances of operators are computed."""

    @abc.abstractmethod
    def parameters(self, kernel: Kernel) -> Any: ...

    @abc.abstractmethod
    def rows(self, kernel: Kernel, operator: Operator, points: Float[Array, "n d"]) -> Any: ...

    @abc.abstractmethod
    def block(self, parameters: Any, left: Any, right: Any) -> Float[Array, "m n"]: ...

    @abc.abstractmethod
    def diagonal(self, parameters: Any, rows: Any) -> Float[Array, " n"]:
        """The prior variance of each row."""

    @abc.abstractmethod
    def with_value(
        self, kernel: Kernel, q: Float[Array, " d"], rows: Any, field: str | None = None
    ) -> Float[Array, " n"]:
        """The covariance of `u(q)` with each row, as a function of `q` that differentiates in either mode."""


# The rows of one component: jets, or one list of jets for each local term of the operator.
Jets = LatentJet | tuple[LatentJet, ...]


class ClosedForm(Engine):
    """Every point goes through every network once, as a latent jet; a closed formula gives the blocks between jets.

    An operator `Σ_k A_k S_k` that needs `u` at several points has a jet for each term. Its covariances are sums over
    the terms.
    """

    def parameters(self, kernel: Kernel) -> tuple[BaseKernel, ...]:
        return tuple(component.base for component in kernel.components)

    def rows(self, kernel: Kernel, operator: Operator, points: Float[Array, "n d"]) -> tuple[Jets, ...]:
        def one(component: Component) -> Jets:
            jets = tuple(component.jets(local, points, move) for move, local in operator.local_terms())
            return jets[0] if len(jets) == 1 else jets

        return tuple(map(one, kernel.components))

    def block(self, parameters: tuple[BaseKernel, ...], left: Any, right: Any) -> Float[Array, "m n"]:
        components = zip(parameters, left, right)
        return sum_of(base.block(a, b) for base, jets, others in components for a, b in _pairs(jets, others))

    def diagonal(self, parameters: tuple[BaseKernel, ...], rows: Any) -> Float[Array, " n"]:
        return sum_of(base.paired(a, b) for base, jets in zip(parameters, rows) for a, b in _pairs(jets, jets))

    def with_value(
        self, kernel: Kernel, q: Float[Array, " d"], rows: Any, field: str | None = None
    ) -> Float[Array, " n"]:
        def one(component: Component, jets: LatentJet) -> Array:
            jet = component.value_at(q, field)
            return jax.vmap(lambda other: component.base.pair(jet, other))(jets)

        return sum_of(one(component, a) for component, jets in zip(kernel.components, rows) for a in terms_of(jets))


def terms_of(jets: Jets) -> tuple[LatentJet, ...]:
    return (jets,) if isinstance(jets, LatentJet) else jets


def _pairs(left: Jets, right: Jets) -> Iterable[tuple[LatentJet, LatentJet]]:
    return product(terms_of(left), terms_of(right))


class OperatorRows(eqx.Module):
    """Points, and an operator whose arrays are repeated for each of them."""

    points: Float[Array, "n d"]
    arrays: Any
    static: Any = eqx.field(static=True)

    def observe(self, u):
        """`(A u)(q)`; called on one row."""
        return eqx.combine(self.arrays, self.static)(u)(self.points)


class Autodiff(Engine):
    """Nested automatic differentiation of `k(q, q')` over pairs: any order, any kernel, much slower."""

    def parameters(self, kernel: Kernel) -> Kernel:
        return kernel

    def rows(self, kernel: Kernel, operator: Operator, points: Float[Array, "n d"]) -> OperatorRows:
        arrays, static = eqx.partition(operator, eqx.is_array)
        repeated = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (points.shape[0], *leaf.shape)), arrays)
        return OperatorRows(points, repeated, static)

    def block(self, parameters: Kernel, left: OperatorRows, right: OperatorRows) -> Float[Array, "m n"]:
        return jax.vmap(lambda a: jax.vmap(lambda b: _observed(parameters, a, b))(right))(left)

    def diagonal(self, parameters: Kernel, rows: OperatorRows) -> Float[Array, " n"]:
        return jax.vmap(lambda a: _observed(parameters, a, a))(rows)

    def with_value(
        self, kernel: Kernel, q: Float[Array, " d"], rows: OperatorRows, field: str | None = None
    ) -> Float[Array, " n"]:
        return jax.vmap(lambda a: a.observe(_of_each(kernel, lambda other, q_: kernel.between(field, q, other, q_))))(
            rows
        )


def _observed(kernel: Kernel, a: OperatorRows, b: OperatorRows) -> Array:
    """`A A' k(q, q')` for two rows."""

    def with_second(field: str | None, q: Array) -> Array:
        return b.observe(_of_each(kernel, lambda other, q_: kernel.between(field, q, other, q_)))

    return a.observe(_of_each(kernel, with_second))


def _of_each(kernel: Kernel, function: Callable[[str | None, Array], Array]) -> Any:
    """A function of the point for each field, by name; a single one where there is one field."""
    if len(kernel.fields) > 1:
        return {name: partial(function, name) for name in kernel.fields}
    return partial(function, kernel.fields[0] if kernel.fields else None)


def engine_of(name: str) -> Engine:
    return ClosedForm() if name == "closed-form" else Autodiff()


def sum_of(terms: Iterable[Array]) -> Array:
    """A sum that does not start from the integer zero."""
    return reduce(lambda a, b: a + b, terms)
