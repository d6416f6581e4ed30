"""Where to measure `u` next, so that a quantity of interest becomes known best.

A value at `q` with noise `σ²` lowers the variance of a quantity `g` by `cov(g, u(q))² / (var u(q) + σ²)`. For an
unknown number `θ` this is `cov(θ, u(q)) = cov(θ) wᵀ` with the slope `w` of `u(q)` (`inference/estimates.py`). Points
are chosen one after the other; each updates the covariances of all others, as in `refine.py`. No values are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..equations import Term, as_operator
from ..inference import Posterior, rows
from ..inference.comparing import measured
from ..inference.estimates import slopes_at, unknowns_of, with_estimates
from ..observations import as_points
from ..operators import Operator, Parameter, identity
from ..operators.base import applied
from ..operators.integrals import place_of
from ..shown import Written
from .refine import greedy


@dataclass(frozen=True, repr=False, eq=False)
class Design(Written):
    """Points at which to measure `u`, and what that is expected to bring: `problem.refine(posterior, n, goal=…)`.

    **Arguments:**

    - `points`: the points, the most telling one first.
    - `goal`: what becomes known better, in words.
    - `before`: its standard deviation now. Of an unknown number this is on the scale on which it is learned: for a
      positive number that of its logarithm, which is its relative error.
    - `after`: that expected after the first, the second, … point.

    !!! example
        ```python
        design = problem.refine(pk.condition(pk.ard(problem.domain), problem.sample(10, 10, 10)), 3, goal=points[0])
        print(design, design.points, design.after)
        ```
    """

    points: np.ndarray
    goal: str
    before: float
    after: np.ndarray

    def __str__(self) -> str:
        share = self.after[-1] / self.before if self.before > 0 else 1.0
        return (
            f"{len(self.points)} points at which to measure u: the standard deviation of {self.goal} is expected to "
            f"fall from {self.before:.2g} to {self.after[-1]:.2g}, {share:.0%} of it."
        )


def designed(posterior: Posterior, goal: Any, candidates: np.ndarray, n: int, noise: float | None) -> Design:
    """The `n` candidates that tell most about a number, about `u` at a point, or about an integral."""
    sigma = noise_of_sensors(posterior) if noise is None else noise
    if isinstance(goal, Parameter | str):
        wide = with_estimates(posterior) if posterior.estimates is None else posterior
        name = goal if isinstance(goal, str) else goal.name
        names = list(unknowns_of(wide))
        if name not in names and posterior.model.numbers:
            raise ValueError("`goal` is not yet possible for an unknown number of a nonlinear equation: give a point.")
        if name not in names:
            raise ValueError(
                f"`goal` needs an unknown number of the posterior, {', '.join(names) or 'none'}: got {name}."
            )
        assert wide.estimates is not None
        covariance = np.asarray(wide.estimates.covariance)[names.index(name)]
        variance, text = float(covariance[names.index(name)]), name
        with_goal = (slopes_of(wide, candidates) @ covariance)[None]
    elif isinstance(goal, Operator | Term):
        operator = as_operator(goal)
        if (place := place_of(operator)) is None:
            raise ValueError(f"`goal` needs one number, such as an Integral over all coordinates: got {operator}.")
        wide, text = posterior, applied(operator)
        variance = float(wide.covariance(place[None], operator)[0, 0])
        with_goal = wide.covariance(place[None], operator, candidates, identity)
    else:
        place = as_points(np.atleast_2d(np.asarray(goal, dtype=float)), identity, posterior.model.kernel.dim)
        if len(place) > 1:
            raise ValueError(f"`goal` needs an unknown number or one point: got {len(place)} points.")
        wide, text = posterior, f"u at {tuple(place[0].tolist())}"
        variance, with_goal = (
            float(wide.covariance(place)[0, 0]),
            wide.covariance(place, identity, candidates, identity),
        )
    among = wide.covariance(candidates)
    chosen = greedy(with_goal, among, np.full(len(candidates), sigma**2), n)
    after = [_left(variance, with_goal[0], among, chosen[:count], sigma) for count in range(1, len(chosen) + 1)]
    return Design(candidates[chosen], text, float(np.sqrt(variance)), np.sqrt(np.asarray(after)))


def _left(variance: float, with_goal: np.ndarray, among: np.ndarray, chosen: np.ndarray, sigma: float) -> float:
    """The variance of the goal that is left after measuring at the chosen candidates."""
    spare = sigma**2 + 1e-12 * np.diagonal(among)[chosen]
    explained = with_goal[chosen] @ np.linalg.solve(among[np.ix_(chosen, chosen)] + np.diag(spare), with_goal[chosen])
    return max(variance - float(explained), 0.0)


def slopes_of(posterior: Posterior, points: np.ndarray) -> Float[np.ndarray, "m p"]:
    """How `u` at points follows the unknown numbers, the data held."""
    through = np.asarray(rows.predict(posterior, rows.data_of(posterior), identity, points).following)
    return slopes_at(posterior, identity, points) - through.T


def noise_of_sensors(posterior: Posterior) -> float:
    """The largest standard deviation of measured values of `u`; zero if there are none."""
    levels = [
        float(np.sqrt(np.mean(np.asarray(item.noise_variance(posterior.model.log_noise)))))
        for item in posterior.observations
        if item.of_values and measured(item)
    ]
    return max(levels, default=0.0)
