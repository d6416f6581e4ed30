"""Symmetries of a problem: swaps and reflections of inputs that change nothing that it states.

Let `g` swap two inputs, or reflect one at the middle of the domain. If equation, conditions and their values are the
same after `g`, and the problem has one solution, then `u(g q) = u(q)`: `u∘g` solves the same problem. So `u` is a
function of what `g` does not change (`embeddings/invariants.py`), which varies in fewer ways, and each value counts for
all its images.

What is known at given points only, such as measurements, has no image and is not asked. If it does not have the
symmetry, the evidence will say so: a kernel of symmetric functions is one candidate among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled_quickly
from ..domain import Domain
from ..embeddings import Invariants
from ..operators import Operator
from ..operators.tabulated import known_everywhere
from ..operators.unknown import InFull
from ..regions import Region
from ..sampling import draw

# Points of each region at which a problem is compared with its image.
PLACES = 8
# The largest difference that is rounding, relative to the numbers compared; of values also relative to all values.
ROUNDING, OF_ALL = 1e-9, 1e-13
# All pairs of up to this many inputs are tried, of more inputs those that follow each other, of very many none.
ALL_PAIRS, MOST_INPUTS = 24, 1000
# So many coordinates of images are computed at once.
ENTRIES = 1 << 22


class Move(NamedTuple):
    """`x ↦ (s_i x_{π(i)})_i` for inputs scaled to `[−1, 1]`."""

    order: np.ndarray
    signs: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.signs * x[..., self.order]


def symmetries(problem: Any) -> Invariants | None:
    """What does not change under the symmetries of a problem; `None` if it has none, or if they cannot be known."""
    statements = getattr(problem, "statements", ())
    if not statements or not all(_can_be_moved(s.operator) for s in statements):
        return None
    if not 2 <= (dim := problem.domain.dim) <= MOST_INPUTS:
        return None
    asked = [s for s in statements if isinstance(s.where, Region) and not s.measured]
    pairs = combinations(range(dim), 2) if dim <= ALL_PAIRS else pairwise(range(dim))
    swaps, flips = list(pairs), list(range(dim))
    moves = [_swap(dim, i, j) for i, j in swaps] + [_flip(dim, i) for i in flips]
    kept = np.ones(len(moves), dtype=bool)
    values = [_values(s.value, _points(s.where)) for s in asked]
    spare = OF_ALL * max((float(np.max(np.abs(v))) for v in values), default=0.0)
    for statement, here in zip(asked, values):
        chosen = np.flatnonzero(kept)
        for part in np.array_split(chosen, -(-len(chosen) * PLACES * dim // ENTRIES)) if len(chosen) else ():
            kept[part] = _unchanged(problem.domain, statement, here, spare, [moves[i] for i in part])
    orbits = _orbits(dim, [pair for pair, keep in zip(swaps, kept) if keep])
    even = {i for i, keep in zip(flips, kept[len(swaps) :]) if keep}
    if len(orbits) == dim and not even:
        return None
    return Invariants(orbits, [orbit[0] in even for orbit in orbits])


def _can_be_moved(operator: Operator) -> bool:
    """Whether an operator of one field is known at all points, by its symbol."""
    return not isinstance(operator, InFull) and operator.order <= 2 and operator.local and known_everywhere(operator)


def _points(where: Region) -> np.ndarray:
    return draw(where, PLACES, np.random.default_rng(0), "uniform")


def _unchanged(domain: Domain, statement: Any, values: np.ndarray, spare: float, moves: Sequence[Move]) -> np.ndarray:
    """Which moves leave a statement as it is: its region, its values and its operator."""
    centre, half = 0.5 * (domain.lower + domain.upper), 0.5 * (domain.upper - domain.lower)
    points = _points(statement.where)
    inside = (points - centre) / half
    images = centre + half * np.stack([move(inside) for move in moves])
    kept = np.ones(len(moves), dtype=bool)
    flat = images.reshape(-1, domain.dim)
    if statement.where.pieces:
        kept &= np.all(statement.where.contains(flat).reshape(len(moves), -1), axis=1)
    if not np.any(kept):
        return kept
    moved = _values(statement.value, flat).reshape(len(moves), -1)
    kept &= _alike(moved, values, ROUNDING * np.max(np.abs(values)) + spare)
    if not np.any(kept):
        return kept
    vectors = np.random.default_rng(1).normal(size=(2, domain.dim))
    for v in vectors:
        here = _symbols(statement.operator, points, v * half)
        v_moved = np.stack([move(v) for move in moves])
        there = _symbols(statement.operator, flat, np.repeat(v_moved * half, len(points), axis=0))
        for part, image in zip(here, there):
            if part.ndim == 1:
                wanted = np.broadcast_to(part, (len(moves), *part.shape))
                found = image.reshape(wanted.shape)
            else:
                wanted = np.stack([move(part / half) for move in moves])
                found = (image / half).reshape(wanted.shape)
            kept &= _alike(found, wanted, ROUNDING * np.max(np.abs(wanted)))
    return kept


def _alike(found: np.ndarray, wanted: np.ndarray, spare: float) -> np.ndarray:
    """For each move, whether the numbers agree up to rounding. NaN agrees with nothing."""
    return np.all(np.abs(found - wanted).reshape(len(found), -1) <= spare, axis=1)


def _values(value: Any, points: np.ndarray) -> np.ndarray:
    return np.asarray(_evaluated(value, jnp.asarray(points)))


@compiled_quickly
def _evaluated(function: Any, points: Float[Array, "n d"]) -> Float[Array, " n"]:
    return jax.vmap(lambda q: jnp.asarray(function(q), dtype=float))(points)


def _symbols(operator: Operator, points: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, ...]:
    """`c`, `b` and `a v` at each point, for the symbol `c + b·∇ + a:∇∇ᵀ`."""
    each = np.broadcast_to(vectors, points.shape)
    return tuple(map(np.asarray, _symbol_parts(operator, jnp.asarray(points), jnp.asarray(each))))


@compiled_quickly
def _symbol_parts(
    operator: Operator, points: Float[Array, "n d"], vectors: Float[Array, "n d"]
) -> tuple[Float[Array, " n"], Float[Array, "n d"], Float[Array, "n d"]]:
    def one(q: Array, v: Array) -> tuple[Array, Array, Array]:
        symbol = operator.symbol(q)
        c = jnp.zeros(()) if symbol.c is None else jnp.asarray(symbol.c, dtype=float)
        b = jnp.zeros_like(q) if symbol.b is None else symbol.b
        return c, b, symbol.diffusion_times(v)

    return jax.vmap(one)(points, vectors)


def _swap(dim: int, i: int, j: int) -> Move:
    order = np.arange(dim)
    order[[i, j]] = j, i
    return Move(order, np.ones(dim))


def _flip(dim: int, i: int) -> Move:
    signs = np.ones(dim)
    signs[i] = -1.0
    return Move(np.arange(dim), signs)


def _orbits(dim: int, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The inputs that swaps connect."""
    label = np.arange(dim)
    for i, j in pairs:
        label[label == label[j]] = label[i]
    return [tuple(np.flatnonzero(label == name).tolist()) for name in dict.fromkeys(label.tolist())]
