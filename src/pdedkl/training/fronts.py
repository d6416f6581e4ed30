"""Fronts, layers and kinks: thin sheets `w·q = b` across which a solution turns within a width `δ`.

A smooth function of all inputs and of `tanh((w·q − b)/δ)` is smooth away from the sheet and as steep as it has to be
across it: a front is `g + h tanh`, a kink is `g + h (w·q − b) tanh`. Sheets are looked for where second derivatives of
a first posterior mean are large: there these have one large eigenvalue, whose eigenvector is `w`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..embeddings import Residual
from ..kernels import Kernel, Profile, deep

# At most so many sheets are looked for, each with at least this share of the squared second derivatives.
MOST, SHARE = 3, 0.2
# Points belong to a sheet that are nearer than this, in half-widths of the domain, and whose second derivatives are
# along its normal up to this squared cosine.
NEAR, ALONG = 0.25, 0.8
# The squared second derivative of `tanh(s/δ)` has a spread of 0.7 δ.
SPREAD = 0.7
# Each sheet has two widths, its own and one that many times larger: fronts steepen and spread.
BROADER = 4.0
# The fewest points in a sheet that the data know.
FEWEST = 5
# Turns in which points and normal of a sheet are found from each other.
TURNS = 4


class Sheet(NamedTuple):
    """The plane `w·q = b` with a unit normal `w`, and the width of what happens there, in half-widths of the domain."""

    normal: np.ndarray
    offset: float
    width: float


def sheets(points: np.ndarray, hessians: np.ndarray) -> list[Sheet]:
    """The sheets along which second derivatives are large, the strongest first; none where they are spread out.

    **Arguments:**

    - `points`: an array of shape `(n, d)`, in half-widths of the domain.
    - `hessians`: the second derivatives there, of shape `(n, d, d)`.

    **Returns:** a list of `Sheet`s.
    """
    values, vectors = np.linalg.eigh(hessians)
    strongest = np.argmax(np.abs(values), axis=1)
    each = np.arange(len(points))
    energy, along = values[each, strongest] ** 2, vectors[each, :, strongest]
    total, found = float(np.sum(energy)), []
    for _ in range(MOST if np.isfinite(total) and total > 0 else 0):
        first = int(np.argmax(energy))
        normal, offset = along[first], float(points[first] @ along[first])
        weight = energy
        for _ in range(TURNS):
            near = (np.abs(points @ normal - offset) < NEAR) & ((along @ normal) ** 2 > ALONG)
            if not np.sum(weight := np.where(near, energy, 0.0)) > SHARE * total:
                break
            normal = np.linalg.eigh((along.T * weight) @ along)[1][:, -1]
            offset = float(np.average(points @ normal, weights=weight))
        if not np.sum(weight) > SHARE * total:
            break
        spread = float(np.sqrt(np.average((points @ normal - offset) ** 2, weights=weight)))
        found.append(Sheet(normal, offset, max(spread / SPREAD, NEAR / len(points))))
        energy = np.where(weight > 0, 0.0, energy)
    return found


def across(
    domain: Domain, variance: float, found: Sequence[Sheet], profile: Profile | None = None, lengthscale: float = 1.0
) -> Kernel:
    """A smooth function of all inputs and of `tanh` across each sheet, with two widths."""
    d, units = domain.dim, [(s, s.width * factor) for s in found for factor in (1.0, BROADER)]
    inner = np.asarray([s.normal / width for s, width in units])
    offsets = np.asarray([-s.offset / width for s, width in units])
    linear, outer = np.eye(d + len(units), d), np.eye(d + len(units), len(units), -d)
    like = Residual(d, d + len(units), width=len(units), depth=1, activation="tanh", key=jax.random.PRNGKey(0))
    where = lambda e: (
        e.linear.matrix,
        e.network.layers[0].matrix,
        e.network.layers[0].offset,
        e.network.layers[-1].matrix,
    )
    embedding = eqx.tree_at(where, like, tuple(map(jnp.asarray, (linear, inner, offsets, outer))))
    return deep(domain, embedding, profile, variance=4 * variance, lengthscale=lengthscale)


def torn(kernel: Kernel, points: np.ndarray) -> bool:
    """Whether a sheet runs between points, with hardly any in it.

    A function may then jump where nothing is known, and fulfil an equation on both sides with wrong values.
    """
    component = kernel.components[0]
    assert isinstance(component.embedding, Residual)
    first = component.embedding.network.layers[0]
    unit = np.asarray(jax.vmap(component.normalisation)(jnp.asarray(points)))
    across = unit @ np.asarray(first.matrix).T + (0.0 if first.offset is None else np.asarray(first.offset))
    before, inside, after = (np.sum(where, axis=0) for where in (across < -1, np.abs(across) <= 1, across > 1))
    return bool(np.any((before > 0) & (after > 0) & (inside < FEWEST)))
