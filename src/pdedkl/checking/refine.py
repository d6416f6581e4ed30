"""New points that lower the error of `u` most.

Observing `A u` at a point lowers the variance of `u` at `q` by `cov(u(q), A u)² / (var(A u) + noise)`. The first point
is the candidate that lowers the variance over the domain most. Then all covariances are updated as if its value were
known, and the next point is chosen in the same way. No values are needed, and the points do not crowd together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..inference import Posterior
from ..observations import Observation
from ..operators import same

# The number of candidates for each point that is wanted, and the largest number of candidates.
CANDIDATES_PER_POINT = 20
MOST_CANDIDATES = 2000
# The number of points inside at which the variance of `u` is computed.
PLACES = 300


def most_telling(
    posterior: Posterior, candidates: Sequence[Observation], n: int, inside: np.ndarray
) -> list[np.ndarray]:
    """Which `n` of the candidates to observe: for each observation, the indices of the chosen ones."""
    with_u = np.hstack(
        [posterior.covariance(inside, other_points=b.points, other_operator=b.operator) for b in candidates]
    )
    among = np.block(
        [[posterior.covariance(a.points, a.operator, b.points, b.operator) for b in candidates] for a in candidates]
    )
    noise = np.concatenate([np.full(len(item), _noise(posterior, item)) for item in candidates])
    chosen = greedy(with_u, among, noise, n)
    ends = np.cumsum([0, *map(len, candidates)])
    return [np.sort(chosen[(chosen >= a) & (chosen < b)]) - a for a, b in pairwise(ends)]


def greedy(with_u: np.ndarray, among: np.ndarray, noise: np.ndarray, n: int) -> np.ndarray:
    """The columns to take, one after the other; each updates the covariances of all others."""
    with_u, among = with_u.copy(), among.copy()
    smallest = 1e-12 * np.diagonal(among)
    free = np.ones(len(among), dtype=bool)
    chosen = []
    for _ in range(min(n, len(among))):
        variance = np.maximum(np.diagonal(among), smallest) + noise
        gain = np.where(free, np.sum(with_u**2, axis=0) / variance, -1.0)
        best = int(np.argmax(gain))
        chosen.append(best)
        free[best] = False
        column = among[best] / variance[best]
        with_u -= np.outer(with_u[:, best], column)
        among -= np.outer(among[best], column)
    return np.asarray(chosen, dtype=int)


def _noise(posterior: Posterior, like: Observation) -> float:
    """The variance of noise in the data of the same operator; zero if there are no such data."""
    levels = [
        float(np.mean(np.asarray(o.noise_variance(posterior.model.log_noise))))
        for o in posterior.observations
        if same(o.operator, like.operator)
    ]
    return levels[0] if levels else 0.0
