"""Two ways to compute covariances of operators, behind one interface.

An engine turns an operator and `n` points into *rows*, a tree of arrays whose leading axis runs over the points, and
computes blocks of covariances between rows. A block depends on trained parameters only through the rows and through the
engine's `parameters`, so that the derivative rule of the evidence can pull gradients back through both.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..embeddings import LatentJet
from ..kernels import BaseKernel, Component, Kernel
from ..operators import Integral, Operator, Row
from ..operators.integrals import spread
from ..operators.offset import linear_part


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


class Stacked(eqx.Module):
    """The jets of rows with many terms, as those of integrals: the terms of a row are the second axis."""

    jets: LatentJet

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and that of terms."""
        n, terms = self.jets.z.shape[:2]
        return n, terms

    @property
    def nothing(self) -> bool:
        return self.jets.nothing

    def of_terms(self) -> tuple[LatentJet, ...]:
        return tuple(jax.tree.map(lambda leaf, k=k: leaf[:, k], self.jets) for k in range(self.shape[1]))

    def flat(self) -> LatentJet:
        """All jets one after the other, those of the first row first."""
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self.jets)


# The rows of one component: jets, or one list of jets for each local term of the operator.
Jets = LatentJet | tuple[LatentJet, ...] | Stacked

# Rows of more terms are stacked.
FEW_TERMS = 4


class ClosedForm(Engine):
    """Every point goes through every network once, as a latent jet; a closed formula gives the blocks between jets.

    An operator `Σ_k A_k S_k` that needs `u` at several points has a jet for each term. Its covariances are sums over
    the terms.
    """

    def parameters(self, kernel: Kernel) -> tuple[BaseKernel, ...]:
        return tuple(component.base for component in kernel.components)

    def rows(self, kernel: Kernel, operator: Operator, points: Float[Array, "n d"]) -> tuple[Jets, ...]:
        integral = integral_of(operator)

        def one(component: Component) -> Jets:
            if integral is not None:
                places, weights = spread(integral, points)
                flat = weighted(component.jets(_inside(operator), places), weights)
                return Stacked(jax.tree.map(lambda leaf: leaf.reshape(len(points), -1, *leaf.shape[1:]), flat))
            jets = tuple(component.jets(local, points, move) for move, local in operator.local_terms())
            if len(jets) > FEW_TERMS:
                return Stacked(stacked(jets))
            return jets[0] if len(jets) == 1 else jets

        return tuple(map(one, kernel.components))

    def block(self, parameters: tuple[BaseKernel, ...], left: Any, right: Any) -> Float[Array, "m n"]:
        components = zip(parameters, left, right)
        return sum_of(_block(base, jets, others) for base, jets, others in components)

    def diagonal(self, parameters: tuple[BaseKernel, ...], rows: Any) -> Float[Array, " n"]:
        return sum_of(_variances(base, jets) for base, jets in zip(parameters, rows))

    def with_value(
        self, kernel: Kernel, q: Float[Array, " d"], rows: Any, field: str | None = None
    ) -> Float[Array, " n"]:
        def one(component: Component, jets: LatentJet) -> Array:
            jet = component.value_at(q, field)
            return jax.vmap(lambda other: component.base.pair(jet, other))(jets)

        def all_terms(component: Component, jets: Jets) -> Array:
            if isinstance(jets, Stacked):
                return jnp.sum(one(component, jets.flat()).reshape(jets.shape), axis=1)
            return sum_of(one(component, a) for a in terms_of(jets))

        return sum_of(all_terms(component, jets) for component, jets in zip(kernel.components, rows))


def integral_of(operator: Operator) -> Integral | None:
    """The integral that an operator, or a row of one field, is."""
    if isinstance(operator, Row) and len(operator.names) == 1:
        operator = operator.operators[0]
    return operator if isinstance(operator, Integral) else None


def _inside(operator: Operator) -> Operator:
    if isinstance(operator, Row):
        return Row(operator.names, tuple(_inside(part) for part in operator.operators))
    assert isinstance(operator, Integral)
    return operator.inner


def weighted(jets: LatentJet, weights: Float[Array, " n"]) -> LatentJet:
    """Each row of jets times a number."""
    times = lambda a: None if a is None else a * weights.reshape(-1, *(1,) * (a.ndim - 1))
    return LatentJet(jets.z, times(jets.c), times(jets.drift), times(jets.diffusion))


def stacked(jets: Sequence[LatentJet]) -> LatentJet:
    """Jets side by side; parts that some lack are zero there."""
    square = any(jet.diffusion is not None and jet.diffusion.ndim == jet.z.ndim + 1 for jet in jets)
    h = jets[0].z.shape[-1]

    def part(jet: LatentJet, name: str, *tail: int) -> Array:
        found = getattr(jet, name)
        if found is None:
            return jnp.zeros((jet.z.shape[0], *tail))
        return found[..., None] * jnp.eye(h) if found.ndim == len(tail) else found

    tails = {"c": (), "drift": (h,), "diffusion": (h, h) if square else (h,)}
    parts = {
        name: None
        if all(getattr(jet, name) is None for jet in jets)
        else jnp.stack([part(jet, name, *tail) for jet in jets], axis=1)
        for name, tail in tails.items()
    }
    return LatentJet(jnp.stack([jet.z for jet in jets], axis=1), **parts)


def _block(base: BaseKernel, left: Jets, right: Jets) -> Array:
    if isinstance(left, Stacked):
        found = _block(base, left.flat(), right)
        return jnp.sum(found.reshape(*left.shape, found.shape[1]), axis=1)
    if isinstance(right, Stacked):
        return _block(base, right, left).T
    return sum_of(base.block(a, b) for a, b in _pairs(left, right))


def _variances(base: BaseKernel, jets: Jets) -> Array:
    if isinstance(jets, Stacked):
        return jax.lax.map(lambda own: jnp.sum(base.block(own, own)), jets.jets)
    return sum_of(base.paired(a, b) for a, b in _pairs(jets, jets))


def terms_of(jets: Jets) -> tuple[LatentJet, ...]:
    if isinstance(jets, Stacked):
        return jets.of_terms()
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
        arrays, static = eqx.partition(linear_part(operator), eqx.is_array)
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
