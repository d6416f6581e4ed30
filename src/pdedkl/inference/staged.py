"""Gram matrices, evidence and predictions in stages, each a program of its own.

1. Jets of the rows: depends on equations and embeddings, compiles in no time.
2. Covariances between rows, for each part of the kernel: depends on the sizes of groups and sections alone.
3. Linear algebra: depends on the number of rows alone.

Compiling the second stage takes longest. Its programs know nothing of the problem, so other kernels, other operators
and other problems of about the same size find them compiled. The derivative goes back through the same stages.

`evidence.py` has the same evidence in one program, for use inside of others; the tests hold both to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..compilation import array_of, compiled, compiled_quickly, library_for
from ..model import Model
from ..observations import Observation
from ..operators import Operator
from .cholesky import factorise
from .engines import FEW_TERMS, Autodiff, Engine
from .evidence import derivatives, linear_system
from .gram import assemble, offsets, pull_back, row_count
from .parts import Layout, Part, block_of_groups, joined, size_of, variances_of_groups

# Up to this number of values, stages are worth it. With more, compiling is a small part of the time, and one program
# needs less memory.
STAGED_VALUES = 4096

# On a CPU, covariances that are computed once come in tiles of so many rows and columns, unless there are more of them:
# one program then serves all sizes. With more, a program of their own is faster, its compilation included.
TILE, TILED_PAIRS = 128, 1 << 20


class System(eqx.Module):
    """What the evidence is computed from: parts of the matrix, the noise of rows and what is left of their values.

    Noise and values are in the order of the matrix, where `place` is the row of each value. Rows are the joined jets
    themselves or, with `terms`, sums of them; `owner` is the row that a jet belongs to. The given rows are among the
    first `first`, and `count` rows are not given. Rows that are only there to fill up have no covariance, a noise of
    one and a value of zero.
    """

    parts: tuple[Part, ...]
    noise: Float[Array, " n"]
    residual: Float[Array, " n"]
    place: Int[Array, " _"]
    terms: Int[Array, "n t"] | None
    owner: Int[Array, " m"] | None
    count: Int[Array, ""]
    first: int = eqx.field(static=True)


class Order(NamedTuple):
    """How the rows of observations become rows of a matrix: the place of each, and how many there are."""

    place: np.ndarray
    size: int


def filled_system(model: Model, observations: Sequence[Observation], given: int = 0) -> tuple[System, Order]:
    """The system of a model, filled up to a usual size; inside of a program, differentiable in the model."""
    whole = linear_system(model, observations)
    parts, layout = joined(whole.engine, whole.parameters, whole.sections, given)
    rows = sum(map(len, observations[:given]))
    total = len(layout.place)
    if layout.plain:
        order, terms, owner = Order(layout.place[:, 0], len(layout.owner)), None, None
        first = layout.first or 0
    else:
        order, first = _given_first(rows, total)
        several = np.full((order.size, layout.place.shape[1]), -1)
        several[order.place] = layout.place
        terms, owner = (
            _too_large(several, len(layout.owner)),
            _too_large(np.append(order.place, -1)[layout.owner], order.size),
        )
    noise = jnp.ones(order.size).at[order.place].set(whole.noise)
    residual = jnp.zeros(order.size).at[order.place].set(whole.residual)
    place = jnp.asarray(order.place)
    return System(parts, noise, residual, place, terms, owner, jnp.asarray(total - rows), first), order


def _given_first(given: int, total: int) -> tuple[Order, int]:
    first = size_of(given)
    place = np.concatenate([np.arange(given), first + np.arange(total - given)])
    return Order(place, first + size_of(total - given)), first


def terms_of(layout: Layout) -> Array:
    """The places of a layout, with numbers that are too large in place of −1."""
    return array_of(np.where(layout.place < 0, len(layout.owner), layout.place))


def _too_large(index: np.ndarray, size: int) -> Array:
    """The index with numbers that are too large in place of −1."""
    return jnp.asarray(np.where(index < 0, size, index))


class Evaluated(NamedTuple):
    """The evidence, the jitter, and derivatives with respect to the matrix of all jets, the noise and the residual.

    `left_out` are the values minus their predictions from all others. `before` and `after` are the variances of each
    value, noise included: of the prior, and given all others.
    """

    value: Float[Array, ""]
    jitter: Float[Array, ""]
    weights: Float[Array, "m m"]
    of_noise: Float[Array, " n"]
    of_residual: Float[Array, " n"]
    left_out: Float[Array, " n"]
    before: Float[Array, " n"]
    after: Float[Array, " n"]


def evaluate(system: System) -> Evaluated:
    """`−log p(y | y₀)` and its derivatives."""
    gram = gram_of(system.parts)
    return _evaluated(gram, system.noise, system.residual, system.terms, system.owner, system.count, system.first)


def gram_of(parts: Sequence[Part]) -> Float[Array, "m m"]:
    """The covariances of all joined jets; only the upper block triangle is filled."""
    return _sum([_spread(_gram(part.bare()), part.among, part.among) for part in parts])


def cross_of(parts: Sequence[Part], others: Sequence[Part]) -> Float[Array | np.ndarray, "m n"]:
    """The covariances of joined jets with others of the same kernel."""
    pairs = list(zip(parts, others))
    return _sum([_spread(_crossed(part, other.sections), part.among, other.among) for part, other in pairs])


def pulled_back(parts: Sequence[Part], weights: Float[Array, "m m"]) -> list[tuple[Any, tuple[Any, ...]]]:
    """For each part, the gradient of `Σ_ij W_ij K_ij` with respect to its parameters and rows; `W` is symmetric."""
    return [_pull(part.bare(), _spread(weights, part.own, part.own)) for part in parts]


def variances_of(parts: Sequence[Part], layout: Layout, engine: Engine, parameters: Any, rows: Any) -> np.ndarray:
    """The prior variance of each row."""
    if isinstance(engine, Autodiff) or not layout.plain:
        return np.asarray(_diagonal(engine, parameters, rows))
    found = []
    for part in parts:
        own = np.concatenate([_variances(part.parameters, rows) for rows in part.sections])
        found.append(own if part.among is None else np.append(own, 0.0)[np.asarray(part.among)])
    return np.sum(found, axis=0)[layout.place[:, 0]]


def rows_at(engine: Engine, kernel: Any, operator: Operator, points: Any) -> Any:
    """The rows of an operator at points, as NumPy arrays. Points are filled up, so that few programs are compiled."""
    q = np.asarray(points)
    filled = np.concatenate([q, np.broadcast_to(q[-1:], (size_of(len(q)) - len(q), q.shape[1]))])
    return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(q)], _rows_at(engine, kernel, operator, filled))


@compiled_quickly
def _rows_at(engine: Engine, kernel: Any, operator: Operator, points: Any) -> Any:
    return engine.rows(kernel, operator, points)


def matrix_of(parts: Sequence[Part], layout: Layout) -> np.ndarray:
    """The symmetric matrix of all rows."""
    upper = [_spread(_upper(part), part.among, part.among) for part in parts]
    gram = symmetric(np.asarray(_sum(upper)))
    return between(between(gram, layout).T, layout)


def between(gram: np.ndarray, layout: Layout) -> np.ndarray:
    """The sums of rows of a matrix that make the rows of a layout."""
    filled = np.concatenate([gram, np.zeros((1, gram.shape[1]))]) if np.any(layout.place < 0) else gram
    return sum((filled[column] for column in layout.place.T[1:]), filled[layout.place[:, 0]])


def symmetric(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def _spread(matrix: Any, rows: Any, columns: Any) -> Any:
    """The rows and columns of a matrix with these numbers; zeros where a number is too large."""
    return matrix if rows is None and columns is None else _taken(matrix, rows, columns)


@compiled_quickly
def _taken(matrix: Any, rows: Any, columns: Any) -> Array:
    take = lambda a, at: a if at is None else a.at[at].get(mode="fill", fill_value=0.0)
    return take(take(matrix, rows).T, columns).T


def _sum(found: Sequence[Any]) -> Any:
    return found[0] if len(found) == 1 else _added(tuple(found))


@compiled_quickly
def _added(found: tuple[Any, ...]) -> Any:
    return sum(found[1:], found[0])


def _crossed(part: Part, others: Sequence[Any]) -> Any:
    return _in_tiles(part, others) if _few(part, others) else _cross(part.bare(), tuple(others))


def _upper(part: Part) -> Any:
    few = _few(part, part.sections)
    return _in_tiles(part, part.sections, upper=True) if few else _gram(part.bare())


def _few(part: Part, others: Sequence[Any]) -> bool:
    """Whether covariances are computed in tiles."""
    if part.block is not block_of_groups or jax.default_backend() != "cpu" or library_for((part, others)) is not np:
        return False
    return offsets(part.sections)[-1] * offsets(others)[-1] <= TILED_PAIRS


def _in_tiles(part: Part, others: Sequence[Any], upper: bool = False) -> np.ndarray:
    """The covariances of all rows with others, or those tiles of a symmetric matrix that are not below its diagonal."""
    gram = np.zeros((offsets(part.sections)[-1], offsets(others)[-1]))
    right = _tiles(others)
    for i, m, left, simple in _tiles(part.sections):
        for j, n, other, as_simple in right:
            if upper and j < i:
                continue
            # Covariances are symmetric: rows that lack parts come first, so that one program serves both orders.
            turned = as_simple and not simple
            found = np.asarray(_tile(part.parameters, *((other, left) if turned else (left, other))))
            gram[i : i + m, j : j + n] = (found.T if turned else found)[:m, :n]
    return gram


def _tiles(sections: Sequence[Any]) -> list[tuple[int, int, Any, bool]]:
    """For each tile its first row, how many it has, the rows, filled up with zeros, and whether they lack parts."""
    found = []
    for start, rows in zip(offsets(sections), sections):
        total = row_count(rows)
        for i in range(0, total, TILE):
            n = min(TILE, total - i)
            fill = lambda a, i=i, n=n: np.pad(np.asarray(a)[i : i + n], ((0, TILE - n), *[(0, 0)] * (a.ndim - 1)))
            found.append((start + i, n, jax.tree.map(fill, rows), rows.drift is None))
    return found


_tile = compiled(block_of_groups)


def _assembled(part: Part) -> Array:
    return assemble(partial(part.block, part.parameters), part.sections)


def _rectangle(part: Part, others: tuple[Any, ...]) -> Array:
    rows = [
        jnp.concatenate([part.block(part.parameters, left, right) for right in others], 1) for left in part.sections
    ]
    return jnp.concatenate(rows)


def _pulled(part: Part, weights: Array) -> tuple[Any, tuple[Any, ...]]:
    moving, fixed = eqx.partition(part.parameters, eqx.is_inexact_array)

    def block(parameters: Any, left: Any, right: Any) -> Array:
        return part.block(eqx.combine(parameters, fixed), left, right)

    strip = lambda start, size: jax.lax.dynamic_slice_in_dim(weights, start, size)
    return pull_back(block, moving, part.sections, strip)


_gram, _cross, _pull = compiled(_assembled), compiled(_rectangle), compiled(_pulled)
_variances = compiled_quickly(variances_of_groups)


@compiled_quickly
def _diagonal(engine: Engine, parameters: Any, rows: Any) -> Array:
    return engine.diagonal(parameters, rows)


@compiled
def _evaluated(
    gram: Array,
    noise: Array,
    residual: Array,
    terms: Array | None,
    owner: Array | None,
    count: Array,
    first: int,
) -> Evaluated:
    if terms is not None:
        gram = of_rows(gram, terms)
    factor, jitter = factorise(gram, noise)
    found = derivatives(factor, jitter, residual, first, count)
    weights = found.weights if owner is None else _of_jets(found.weights, owner)
    of_values = found.left_out, found.before, found.after
    return Evaluated(found.value, jitter, weights, found.of_noise, found.of_residual, *of_values)


def of_rows(upper: Array, terms: Array) -> Array:
    """The symmetric matrix of rows that are sums of jets."""
    gram = jnp.triu(upper) + jnp.triu(upper, 1).T
    return summed(summed(gram, terms).T, terms)


def summed(gram: Array, terms: Array) -> Array:
    """The sums of rows of a matrix that make the rows of observations; an index that is too large adds nothing."""
    take = lambda column: gram.at[column].get(mode="fill", fill_value=0.0)
    if terms.shape[1] > FEW_TERMS:
        add = lambda total, column: (total + take(column), None)
        return jax.lax.scan(add, jnp.zeros((terms.shape[0], gram.shape[1])), terms.T)[0]
    parts = [take(column) for column in terms.T]
    return sum(parts[1:], parts[0])


def _of_jets(weights: Array, owner: Array) -> Array:
    """The derivative with respect to the matrix of jets, from that with respect to the matrix of rows."""
    take = lambda a: a.at[owner].get(mode="fill", fill_value=0.0)
    return take(take(weights).T).T
