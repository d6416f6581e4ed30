"""Shares of the variance of `u` for a kernel that is a sum over sets of few inputs: all integrals are exact.

Let `P_k` be products of Legendre polynomials that are orthonormal on the box, one for each list of degrees `k`. The
coefficients `c_k = ⟨u, P_k⟩` are Gaussian, and `V_T = Σ c_k²` over all `k` whose positive degrees are those of the
inputs `T`. Under a kernel `Σ_S v_S k_S(x_S, x'_S)` the covariances of coefficients with the data and with each other
are integrals over one or two points `x_S` of a few inputs. Gauss's rule takes these to rounding.

With the mean `μ` and the covariance `C` of the coefficients, `E V_T = |μ_T|² + tr C_TT`. To first order the parts `V_T`
have the covariances `4 μ_Tᵀ C μ_T'`, and the second adds `2 |C_TT|²`, at most `2 (tr C_TT)²`. Calibration multiplies
`C` by what it adds to the variance of `u`, on average.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled_quickly
from ..embeddings import IdentityEmbedding, LatentJet
from ..kernels import covariances
from ..means import ConstantMean, ZeroMean
from ..operators import Operator, identity
from ..operators.base import applied
from ..sampling import SAMPLERS
from . import legendre
from .engines import ClosedForm
from .parts import Groups, Rows
from .parts import Part as Joined
from .rows import data_of
from .staged import between

Set = tuple[int, ...]

# Nodes along each input: so many, and so many for each length scale in half a box; at most so many in sets of a size.
NODES, NODES_EACH = 8, 4.0
MOST_NODES = {1: 96, 2: 32, 3: 14}
# The matrices of coefficients against data, and against each other, have at most so many numbers.
NUMBERS = 2e8
# Points at which the calibrated variance is compared with that of the model.
PLACES = 256


class Part(NamedTuple):
    """Groups of one size in one component: their inputs, and their nodes in units of length scales."""

    sets: tuple[Set, ...]
    z: Float[np.ndarray, "g nodes k"]
    joined: Joined


class Found(NamedTuple):
    """Sets of inputs, the share of each, the covariances of their errors, and the variance of `u`.

    `rest` is the share of all other sets, and its standard deviation.
    """

    sets: tuple[Set, ...]
    share: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]
    rest: tuple[float, float]
    variance: float


def is_sum(posterior: Any) -> bool:
    """Whether the kernel is a sum over sets of at most three inputs, and the prior mean says nothing of them."""
    model = posterior.model
    groups = [group for part in model.kernel.components for group in part.base.groups]
    few = all(len(group) <= max(MOST_NODES) and list(group) == sorted(group) for group in groups)
    plain = all(isinstance(c.embedding, IdentityEmbedding) and c.multiplier is None for c in model.kernel.components)
    known = isinstance(model.mean, ZeroMean | ConstantMean) and not model.kernel.fields
    return few and plain and known and isinstance(posterior.engine, ClosedForm)


def exact(posterior: Any, lower: np.ndarray, upper: np.ndarray) -> Found | None:
    """The shares of all sets; `None` if they need so many nodes that a sample is better."""
    data = data_of(posterior).rows
    count = _count(posterior, lower, upper)
    if count is None:
        return None
    parts = _parts(posterior, data.parts, lower, upper, count)
    matrices = [legendre.product([legendre.transform(count)[1]] * part.z.shape[2]) for part in parts]
    with_data: defaultdict[Set, Any] = defaultdict(float)
    for part, matrix in zip(parts, matrices):
        blocks = np.asarray(_with_rows(part.joined.parameters, part.z, part.joined.sections, matrix))
        for group, block in zip(part.sets, blocks):
            rows = between(block.T, data.layout).T
            for own in _subsets(group):
                with_data[own] += rows[_degrees_of(own, group, count)]
    sets = tuple(sorted(with_data.keys() - {()}, key=lambda own: (len(own), own)))
    alpha = np.asarray(posterior.alpha)
    means = [with_data[own] @ alpha for own in sets]
    traces: defaultdict[Set, float] = defaultdict(float)
    forms = np.zeros((len(sets), len(sets)))
    for part, matrix in zip(parts, matrices):
        priors = np.asarray(_with_nodes(part.joined.parameters, part.z, matrix))
        for group, prior in zip(part.sets, priors):
            along = np.zeros((len(sets), len(prior)))
            for own in _subsets(group):
                chosen = _degrees_of(own, group, count)
                traces[own] += float(np.sum(np.diagonal(prior)[chosen]))
                if own:
                    along[sets.index(own), chosen] = means[sets.index(own)]
            forms += along @ prior @ along.T
    explained = _explained(posterior, [with_data[own] for own in (*sets, ())])
    left = np.asarray([max(traces[own] - gone, 0.0) for own, gone in zip((*sets, ()), explained)])
    tilted = np.stack([m @ with_data[own] for m, own in zip(means, sets)])
    forms -= np.asarray(posterior.solver.cross(posterior.gram, jnp.asarray(tilted.T), jnp.asarray(tilted.T)))
    check_varies(sum(float(m @ m) for m in means), identity)
    wider = _widened(posterior, lower, upper)
    left *= wider
    parts = np.asarray([m @ m for m in means]) + left[:-1]
    whole = float(np.sum(parts))
    turned = (np.eye(len(sets)) - (parts / whole)[:, None]) / whole
    covariance = turned @ (4 * wider * forms + np.diag(2 * left[:-1] ** 2)) @ turned.T
    return Found(sets, parts / whole, covariance, (0.0, 0.0), whole)


def check_varies(variance: float, operator: Operator) -> None:
    """Refuse what is constant."""
    if not variance > 0:
        raise ValueError(f"{applied(operator)} is constant over the box, so there is no variance to share.")


def _widened(posterior: Any, lower: np.ndarray, upper: np.ndarray) -> float:
    """How many times larger the calibrated variance of `u` is, on average over the box."""
    if posterior.calibration is None:
        return 1.0
    cube = SAMPLERS["sobol"](PLACES, len(lower), np.random.default_rng(0))
    places = lower + (upper - lower) * cube
    plain = float(np.mean(posterior.uncalibrated().predict(places).variance))
    return float(np.mean(posterior.predict(places).variance)) / plain if plain > 0 else 1.0


def _count(posterior: Any, lower: np.ndarray, upper: np.ndarray) -> int | None:
    """The nodes along each input; `None` if there would be too many."""
    count, kernel = NODES, posterior.model.kernel
    for component in kernel.components:
        scale = np.asarray(component.normalisation.scale) / np.exp(np.asarray(component.log_lengthscale))
        used = sorted({i for group in component.base.groups for i in group})
        count = max(count, NODES + int(np.ceil(NODES_EACH * np.max(((upper - lower) * scale)[used]) / 2)))
    sizes = [len(group) for component in kernel.components for group in component.base.groups]
    numbers = sum(count**size * (count**size + len(posterior.alpha)) for size in sizes)
    return count if count <= MOST_NODES[max(sizes)] and numbers <= NUMBERS else None


def _parts(posterior: Any, joined: Sequence[Joined], lower: np.ndarray, upper: np.ndarray, count: int) -> list[Part]:
    """All groups, sorted by component and size, as `joined` are."""
    found, pieces = [], iter(joined)
    nodes, _ = legendre.transform(count)
    for component in posterior.model.kernel.components:
        scale = np.asarray(component.normalisation.scale) / np.exp(np.asarray(component.log_lengthscale))
        centre = np.asarray(component.normalisation.centre)
        low, high = (lower - centre) * scale, (upper - centre) * scale
        for _, members in component.base.by_size():
            piece = next(pieces)
            cube = np.stack(np.meshgrid(*[nodes] * members.shape[1], indexing="ij"), axis=-1)
            half, middle = (high - low)[members] / 2, (high + low)[members] / 2
            z = middle[:, None] + half[:, None] * cube.reshape(-1, members.shape[1])
            spare = len(piece.parameters.variance) - len(members)
            z = np.pad(z, ((0, spare), (0, 0), (0, 0)))
            found.append(Part(tuple(tuple(map(int, group)) for group in members), z, piece))
    return found


def _subsets(group: Set) -> list[Set]:
    return [own for size in range(len(group) + 1) for own in combinations(group, size)]


def _degrees_of(own: Set, group: Set, count: int) -> np.ndarray:
    """Which coefficients of a group belong to a set of its inputs: positive degrees there, zero elsewhere."""
    degrees = np.stack(np.meshgrid(*[np.arange(count)] * len(group), indexing="ij"), axis=-1)
    return np.flatnonzero(np.all((degrees.reshape(-1, len(group)) > 0) == np.isin(group, own), axis=1))


def _explained(posterior: Any, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """`tr B K⁻¹ Bᵀ` of each block."""
    rows = np.concatenate(blocks)
    gone = np.asarray(posterior.solver.explained(posterior.gram, jnp.asarray(rows.T)))
    return np.asarray([np.sum(piece) for piece in np.split(gone, np.cumsum([len(b) for b in blocks])[:-1])])


@compiled_quickly
def _with_rows(groups: Groups, z: Array, sections: tuple[Rows, ...], matrix: Array) -> Float[Array, "g c m"]:
    """The covariances of the coefficients of each group with all rows."""

    def of_group(item: Any) -> Array:
        variance, nodes, jets = item
        left = LatentJet(nodes, jnp.ones(len(nodes)), None, None)
        return variance * matrix @ jnp.concatenate([covariances(groups.profile, left, right) for right in jets], 1)

    return jax.lax.map(of_group, (groups.variance, z, tuple(rows.by_group() for rows in sections)))


@compiled_quickly
def _with_nodes(groups: Groups, z: Array, matrix: Array) -> Float[Array, "g c c"]:
    """The covariances of the coefficients of each group."""

    def of_group(item: Any) -> Array:
        variance, nodes = item
        jets = LatentJet(nodes, jnp.ones(len(nodes)), None, None)
        return variance * matrix @ covariances(groups.profile, jets, jets) @ matrix.T

    return jax.lax.map(of_group, (groups.variance, z))
