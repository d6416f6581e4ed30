"""Shares of the variance of `u` from its values at random points, for any kernel.

In each of `B` blocks of evenly spread points, products `P_k` of Legendre polynomials of one and of two inputs are
fitted to the posterior mean. The blocks are independent, so `c_k^a c_k^b` from two of them has the mean `c_k²`, however
much the polynomials leave: `V_T` is the sum of these over all pairs of blocks, and the jackknife over blocks says how
far it may be off. In many dimensions only the pairs are asked for which the rest of a fit of single inputs speaks most.

The error `ε` of `u` moves `V_T` by `2 ⟨u_T, ε⟩`, to first order, and the variance of this comes from the covariance of
`ε` at some of the points. The second order is at most `|ε|²`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float

from ..operators import Operator
from ..sampling import SAMPLERS
from . import legendre
from .shares_of_sums import Found, Set, check_varies

BLOCKS = 8
# Points of a block: so many, and so many for each input.
POINTS, POINTS_EACH = 1024, 8
# Polynomials, for each point of a block.
TERMS = 0.5
# The highest degrees of one input, as the budget allows; the degrees of two inputs.
HIGHEST, LOWEST = 8, 2
DEGREES_OF_TWO = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2))
# Points at which errors of `u` are taken jointly.
JOINT = 500


def sampled(posterior: Any, operator: Operator, lower: np.ndarray, upper: np.ndarray, seed: int) -> Found:
    """The shares of the variance of `A u`; those of sets that are not asked for are in the rest."""
    dim, rng = len(lower), np.random.default_rng(seed)
    size = 1 << (max(POINTS, POINTS_EACH * dim) - 1).bit_length()
    cubes = [2 * SAMPLERS["sobol"](size, dim, rng) - 1 for _ in range(BLOCKS)]
    place = lambda x: lower + (upper - lower) * (x + 1) / 2
    values = [posterior.predict(place(x), operator).mean for x in cubes]
    budget = int(TERMS * size)
    degree = int(np.clip(budget // (2 * dim), LOWEST, HIGHEST))
    pairs = _pairs(cubes, values, degree, max(0, budget - 1 - degree * dim) // len(DEGREES_OF_TWO))
    sets = (*((i,) for i in range(dim)), *pairs)
    fits = np.stack([_fitted(_features(x, degree, pairs), y) for x, y in zip(cubes, values)])
    owner = np.concatenate([[-1], np.repeat(np.arange(dim), degree), _owners(pairs, dim)])
    ys = np.stack(values)
    check_varies(float(np.var(ys)), operator)
    found = _shares(fits, ys, owner)
    without = [_shares(np.delete(fits, b, axis=0), np.delete(ys, b, axis=0), owner) for b in range(BLOCKS)]
    sampling = np.cov(np.stack(without, axis=1), bias=True) * (BLOCKS - 1)
    # How an error of u at some points moves the shares.
    every = -(-BLOCKS * size // JOINT)
    joint, u = np.concatenate(cubes)[::every], np.concatenate(values)[::every]
    features, means = _features(joint, degree, pairs), np.mean(fits, axis=0)
    along = [features[:, owner == k] @ means[owner == k] for k in range(len(sets))]
    around, variance = u - np.mean(ys), float(np.var(ys))
    along = np.stack([*along, around - sum(along)]) - found[:, None] * around
    errors = posterior.covariance(place(joint), operator)
    covariance = sampling + 4 * (along @ errors @ along.T) / (len(joint) * variance) ** 2
    covariance += np.diag(np.full(len(found), (np.mean(np.diagonal(errors)) / variance) ** 2))
    rest = float(found[-1]), float(np.sqrt(max(covariance[-1, -1], 0.0)))
    return Found(sets, found[:-1], covariance[:-1, :-1], rest, variance)


def _owners(pairs: tuple[Set, ...], dim: int) -> np.ndarray:
    return dim + np.repeat(np.arange(len(pairs)), len(DEGREES_OF_TWO))


def _features(x: Float[np.ndarray, "n d"], degree: int, pairs: tuple[Set, ...]) -> Float[np.ndarray, "n k"]:
    """One, the polynomials of each input, and those of each pair."""
    each = legendre.values(max(degree, 3) + 1, x)
    one = each[:, :, 1 : degree + 1].reshape(len(x), -1)
    two = [each[:, i, a] * each[:, j, b] for i, j in pairs for a, b in DEGREES_OF_TWO]
    return np.column_stack([np.ones(len(x)), one, *two])


def _fitted(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(features, values, rcond=None)[0]


def _pairs(cubes: list[np.ndarray], values: list[np.ndarray], degree: int, most: int) -> tuple[Set, ...]:
    """The pairs that are asked: all of them, or those of the largest coefficients in what single inputs leave."""
    dim = cubes[0].shape[1]
    everything = tuple(combinations(range(dim), 2))
    if len(everything) <= most:
        return everything
    sizes = np.zeros((dim, dim))
    for x, y in zip(cubes, values):
        features = _features(x, degree, ())
        left = y - features @ _fitted(features, y)
        each = legendre.values(4, x)
        for a, b in DEGREES_OF_TWO:
            sizes += ((each[:, :, a] * left[:, None]).T @ each[:, :, b] / len(x)) ** 2
    found = sorted(everything, key=lambda pair: -sizes[pair])[:most]
    return tuple(sorted(found))


def _shares(fits: Float[np.ndarray, "b k"], values: Float[np.ndarray, "b n"], owner: np.ndarray) -> np.ndarray:
    """`Σ_k c_k²` of each set, from products of coefficients of different blocks, as shares; and the rest."""
    blocks = len(fits)
    squares = (np.sum(fits, axis=0) ** 2 - np.sum(fits**2, axis=0)) / (blocks * (blocks - 1))
    found = np.bincount(owner[1:], squares[1:], int(owner[-1]) + 1) / np.var(values)
    return np.append(found, 1 - np.sum(found))
