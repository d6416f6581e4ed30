"""The error of `u` under any trained kernel, as residuals of fresh values show it.

The error `e = u − m` of a mean `m` solves the problem itself, with residuals in place of sources and conditions:
`A e = f − A m` and `B e = b − B m`. In a forward problem both are known everywhere, so `e` can be computed like any
solution: as the mean of a Gaussian process, given the residuals of many fresh values and those of the data. One digit
of `e` is enough. And the process is the same for all kernels that are compared, the plain one, so that no kernel judges
itself: one that takes the equation for noise, or its values for rounding, would find no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve

from ..inference import condition
from ..inference.engines import engine_of
from ..inference.parts import joined
from ..inference.staged import matrix_of, rows_at
from ..model import Model
from ..observations import Observation
from ..operators import identity
from .judging import Candidate
from .phases import Trained

# Fresh values of each kind, and places at which the error is computed.
FRESH, PLACES = 300, 300
# The part of a residual that says nothing about other rows, in units of the prior standard deviation of its row.
OWN = 1e-2
# The process cannot tell if fresh values and data leave more than this fraction of the variance of `u`.
OPEN = 0.1


class FreshErrors:
    """Errors of `u` inside, relative to its size.

    **Arguments:**

    - `plain`: the model of the plain kernel, or that of symmetric functions.
    - `problem`: a `Problem`, whose source and conditions are known everywhere.
    - `data`: the observations of the fit.
    - `seed`: the seed of the points.
    """

    def __init__(self, plain: Model, problem: Any, data: Sequence[Observation], seed: int) -> None:
        self.rows: list[Observation] = [*problem.fresh(FRESH, seed=seed, purpose="training"), *data]
        self.places: np.ndarray = np.asarray(problem.interior(PLACES, seed))
        wanted = [*((item.operator, item.points) for item in self.rows), (identity, self.places)]
        self._found: dict[str, float] = {}
        self.open: bool = True
        covariance = _prior(plain, wanted)
        if not np.all(np.isfinite(covariance)):
            return
        n = sum(map(len, self.rows))
        size = np.sqrt(np.diagonal(covariance)[:n])
        size = np.where(size > 0, size, np.inf)
        among = covariance[:n, :n] / np.outer(size, size) + OWN**2 * np.eye(n)
        towards = covariance[:n, n:] / size[:, None]
        solved = cho_solve(cho_factor(among), towards)
        self.of_residuals: Float[np.ndarray, "m n"] = (solved / size[:, None]).T
        left = np.diagonal(covariance)[n:] - np.sum(towards * solved, axis=0)
        self.open = not np.mean(left) < OPEN * np.mean(np.diagonal(covariance)[n:])

    def of(self, candidate: Candidate) -> float:
        """The error of the posterior mean of a trained kernel; infinite if it has none."""
        if candidate.name not in self._found:
            self._found[candidate.name] = self._error(candidate.trained)
        return self._found[candidate.name]

    def _error(self, trained: Trained) -> float:
        try:
            posterior = condition(trained.model, trained.objective.observations)
            parts = [np.asarray(o.values) - posterior.predict(o.points, o.operator).mean for o in self.rows]
            size = np.sqrt(np.mean(posterior.predict(self.places).mean ** 2))
        except (ArithmeticError, ValueError):
            return np.inf
        error = np.sqrt(np.mean((self.of_residuals @ np.concatenate(parts)) ** 2))
        return float(error / np.hypot(size, error)) if np.isfinite(error) else np.inf


def _prior(model: Model, wanted: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """The prior covariance of rows, given as operators and their points."""
    engine = engine_of(model.engine)
    sections = tuple(rows_at(engine, model.kernel, model.bound(operator), points) for operator, points in wanted)
    return matrix_of(*joined(engine, engine.parameters(model.kernel), sections))
