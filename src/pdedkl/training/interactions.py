"""Which inputs act together: `u` as a sum of functions of few inputs each, with a variance for each of these sets.

Let `K = Σ_S v_S K_S + Σ_l n_l D_l`, with a matrix `K_S` for each set `S` of inputs and `D_l` for each level of noise.
With `α = K⁻¹ y`, the evidence is stationary in `v_S` where `αᵀ K_S α = tr(K⁻¹ K_S)`, and

    v_S ← v_S √( αᵀ K_S α / tr(K⁻¹ K_S) )

never lowers it (Zhou, Hu, Zhou and Lange, 2019). The variances of sets that are not needed fall to zero. So all single
inputs and all pairs start alike on a part of the data, sets that contribute nothing are left out, length scales are
trained for those that remain, and the next round leaves out more. Triples are asked where all of their pairs remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from ..compilation import compiled
from ..domain import Domain
from ..embeddings import IdentityEmbedding
from ..inference.cholesky import JITTER_LADDER
from ..inference.engines import ClosedForm
from ..inference.parts import Groups, Rows, joined
from ..inference.staged import between, rows_at
from ..kernels import Kernel, Profile, covariances, deep
from ..model import Model
from ..observations import Observation
from ..scales import data_scales, exact_levels
from . import starts
from .objective import NOISE_FLOOR, USUAL_NOISE, Objective

if TYPE_CHECKING:
    from .building import Building

Sets = tuple[tuple[int, ...], ...]

# All pairs of up to this many inputs are asked. Of more inputs, those of the largest mixed second derivatives.
ALL_PAIRS = 24
# The matrices of all sets have at most this many entries together.
ENTRIES = 60_000_000
# Values that are looked at, at most.
VALUES = 600
# Turns of the iteration, and iterations for length scales between its rounds.
TURNS, REFIT = 12, 30
# Sets that contribute less than these fractions of the largest contribution are left out: first, and in the end.
FIRST, LAST = 1e-3, 1e-5
# Rows of second derivatives that are looked at, over all points: one for each input at each point.
CURVATURES = 6400


class Sum(NamedTuple):
    """Sets of inputs with their variances, and the length scale of each input."""

    sets: Sets
    variances: np.ndarray
    lengthscales: np.ndarray

    def kernel(self, domain: Domain, profile: Profile) -> Kernel:
        return deep(domain, IdentityEmbedding(), profile, self.sets, self.variances, self.lengthscales)


def interactions(search: Building) -> Sum | None:
    """The sets of inputs that act together in the data of a search; `None` if no sum of them fits the data."""
    try:
        found = _found(search)
    except FloatingPointError:
        return None
    return found if found.sets else None


def sets_of(kernel: Kernel) -> tuple[tuple[str, ...], ...]:
    """The sets of inputs, by name, of a kernel that is a sum over several of them; none if it is another kernel."""
    if not all(isinstance(part.embedding, IdentityEmbedding) for part in kernel.components):
        return ()
    sets = dict.fromkeys(tuple(sorted(group)) for part in kernel.components for group in part.base.groups)
    names = kernel.names
    return tuple(tuple(names[i] for i in own) for own in sets) if len(sets) > 1 else ()


def _found(search: Building) -> Sum:
    dim = search.domain.dim
    pairs = all_pairs(dim) if dim <= ALL_PAIRS else strongest_pairs(search)
    singles = tuple((i,) for i in range(dim))
    found = _narrowed(search, (*singles, *pairs), np.ones(dim))
    triples = triangles(found.sets)
    if triples:
        found = _narrowed(search, (*found.sets, *triples), found.lengthscales)
    return found


def all_pairs(dim: int) -> Sets:
    return tuple(combinations(range(dim), 2))


def triangles(sets: Sequence[tuple[int, ...]]) -> Sets:
    """The triples of which all pairs are among the sets."""
    pairs = {s for s in sets if len(s) == 2}
    known = {s for s in sets if len(s) == 3}
    inputs = sorted({i for pair in pairs for i in pair})
    return tuple(
        t for t in combinations(inputs, 3) if t not in known and all(pair in pairs for pair in combinations(t, 2))
    )


def strongest_pairs(search: Building) -> Sets:
    """As many pairs as there are of `ALL_PAIRS` inputs, by `E (∂_i ∂_j m)²` for the posterior mean `m` so far."""
    _, hessians = search.curvatures(max(8, CURVATURES // search.domain.dim))
    sizes = np.mean(hessians**2, axis=0)
    rows, columns = np.triu_indices(len(sizes), 1)
    order = np.argsort(-sizes[rows, columns])[: ALL_PAIRS * (ALL_PAIRS - 1) // 2]
    return tuple(sorted((int(rows[k]), int(columns[k])) for k in order))


def _narrowed(search: Building, sets: Sets, lengthscales: np.ndarray) -> Sum:
    """The sets that remain after two rounds, with length scales trained in between."""
    most = max(50, int(np.sqrt(ENTRIES / len(sets))))
    part = starts.subsample(search.observations, min(most, VALUES), search.options.seed)
    equal = np.full(len(sets), search.variance / len(sets))
    found = reduced(search, part, Sum(sets, equal, lengthscales), FIRST)
    if not found.sets:
        return found
    model = search.model(found.kernel(search.domain, search.profile), noise=USUAL_NOISE)
    objective = Objective(model, part, search.options.strength)
    kernel = search.trainer.fit_kernel(f"interactions, {len(found.sets)} sets", objective, REFIT).model.kernel
    component = kernel.components[0]
    least = np.finfo(float).tiny
    variances, scales = (np.maximum(np.exp(a), least) for a in (component.base.log_variance, component.log_lengthscale))
    return reduced(search, part, Sum(found.sets, variances, scales), LAST)


def reduced(search: Building, part: Sequence[Observation], start: Sum, least: float) -> Sum:
    """The sets that contribute at least this fraction of the largest contribution, with their variances."""
    model = search.model(start.kernel(search.domain, search.profile))
    system = system_of(model, part)
    variances, _ = iterated(system, start.variances, TURNS)
    size = contributions(system, variances)
    kept = np.flatnonzero((size >= least * np.max(size)) & (variances > 0))
    return Sum(tuple(start.sets[i] for i in kept), variances[kept], start.lengthscales)


class Components(NamedTuple):
    """The matrices of all sets, one below the other; the values, and the level and variance of noise of each."""

    matrices: Float[np.ndarray, "s n n"]
    values: Float[np.ndarray, " n"]
    level: np.ndarray
    noise: Float[np.ndarray, " l"]
    learned: np.ndarray


def system_of(model: Model, observations: Sequence[Observation]) -> Components:
    """The matrices of the groups of a kernel of one component, and all that the iteration needs besides."""
    engine = ClosedForm()
    sections = [rows_at(engine, model.kernel, model.bound(item.operator), item.points) for item in observations]
    parts, layout = joined(engine, engine.parameters(model.kernel), sections)
    n = sum(map(len, observations))
    matrices = np.empty((len(model.kernel.components[0].base.groups), n, n))
    for (numbers, _), piece in zip(model.kernel.components[0].base.by_size(), parts, strict=True):
        for number, block in zip(numbers, np.asarray(_blocks(piece.parameters, piece.sections))):
            matrices[number] = between(between(block, layout).T, layout)
    scales, exact = data_scales(observations), exact_levels(observations)
    names = [item.noise_name or item.name for item in observations]
    levels = sorted(set(names))
    learned = [item.noise_name is not None and item.noise_name not in exact for item in observations]
    size = {name: NOISE_FLOOR * scales[name] for name in levels}
    for item, name, free in zip(observations, names, learned):
        if free:
            size[name] = starts.INITIAL_NOISE * scales[name]
        elif item.noise_name is None:
            size[name] = max(size[name], float(np.sqrt(np.max(np.asarray(item.noise)))))
    return Components(
        matrices,
        np.concatenate([np.asarray(item.values) for item in observations]),
        np.concatenate([np.full(len(item), levels.index(name)) for item, name in zip(observations, names)]),
        np.asarray([size[name] ** 2 for name in levels]),
        np.asarray([any(free for n, free in zip(names, learned) if n == name) for name in levels]),
    )


def iterated(system: Components, variances: np.ndarray, turns: int) -> tuple[np.ndarray, np.ndarray]:
    """The variances of sets and of noise after some turns of the iteration."""
    v, noise = np.array(variances, dtype=float), system.noise
    n, count = len(system.values), len(v)
    flat = system.matrices.reshape(count, n * n)
    levels = len(noise)
    for _ in range(turns):
        precision, alpha = _solved(system, v, noise)
        forms = flat @ np.stack([np.outer(alpha, alpha).ravel(), precision.ravel()], axis=1)
        v = v * np.sqrt(np.maximum(forms[:, 0], 0.0) / np.maximum(forms[:, 1], np.finfo(float).tiny))
        squares = np.bincount(system.level, alpha**2, levels)
        traces = np.bincount(system.level, np.diagonal(precision), levels)
        noise = np.where(system.learned, noise * np.sqrt(squares / np.maximum(traces, 1e-300)), noise)
    return v, noise


def contributions(system: Components, variances: np.ndarray) -> np.ndarray:
    """`|v_S K_S α|`: how much each set contributes to the values, as its part of the posterior mean."""
    _, alpha = _solved(system, variances, system.noise)
    # Rows of high order are large: each counts relative to the size of its kind.
    sizes = np.sqrt(np.bincount(system.level, system.values**2) / np.bincount(system.level))
    weight = 1 / np.where(sizes > 0, sizes, np.inf)[system.level]
    parts = system.matrices @ alpha * variances[:, None]
    return np.sqrt(np.sum((parts * weight) ** 2, axis=1))


def objective_of(system: Components, variances: np.ndarray, noise: np.ndarray) -> float:
    """`−log p(y)` for these variances."""
    n = len(system.values)
    matrix = np.tensordot(variances, system.matrices, 1) + np.diag(noise[system.level])
    factor = cho_factor(matrix, lower=True)
    half = 0.5 * system.values @ cho_solve(factor, system.values)
    return float(half + np.sum(np.log(np.diagonal(factor[0]))) + 0.5 * n * np.log(2 * np.pi))


def _solved(system: Components, v: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`K⁻¹` and `α = K⁻¹ y`, with the smallest jitter that serves."""
    matrix = np.tensordot(v, system.matrices, 1)
    diagonal = np.diagonal(matrix).copy()
    for jitter in JITTER_LADDER[1:]:
        matrix[np.diag_indices(len(matrix))] = diagonal * (1 + jitter) + noise[system.level]
        try:
            factor = cho_factor(matrix, lower=True)
        except LinAlgError:
            continue
        inverse, _ = lapack.dpotri(factor[0], lower=1)
        return np.tril(inverse) + np.tril(inverse, -1).T, cho_solve(factor, system.values)
    raise FloatingPointError("The matrix of a sum over sets of inputs has no Cholesky factor.")


@compiled
def _blocks(groups: Groups, sections: tuple[Rows, ...]) -> Array:
    """The covariances of all rows, for each group and variance one."""
    jets = tuple(rows.by_group() for rows in sections)

    def of_group(jets: tuple) -> Array:
        return jnp.concatenate(
            [jnp.concatenate([covariances(groups.profile, a, b) for b in jets], axis=1) for a in jets]
        )

    return jax.lax.map(of_group, jets)
