"""A Gaussian process over the search set, and the choice of the next values to train."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from .space import Parameters, Space

ACQUISITIONS = ("ei", "ucb", "pi")

# The improvement to look for, in nats, and the width of the confidence bound, in standard deviations.
WORTH_TRYING = 0.01
KAPPA = 2.576

# Bounds of the length scales on [0, 1]: neighbours are always correlated, the two ends need not be.
LENGTHSCALES = (0.1, 10.0)

Known = Sequence[tuple[Parameters, float | None]]


class Surrogate:
    """A Gaussian process through the objectives found so far.

    A failed training counts as the worst objective found so far, which keeps the search away from its parameters.
    """

    def __init__(self, space: Space, known: Known, seed: int, acquisition: str = "ei") -> None:
        from bayes_opt import BayesianOptimization  # it brings scikit-learn, which takes a second to import
        from sklearn.gaussian_process.kernels import Matern

        self.space = space
        self.best = min(value for _, value in known if value is not None)
        worst = max(value for _, value in known if value is not None)
        self.acquisition = _acquisition(acquisition)
        self.optimizer = BayesianOptimization(
            f=None,
            pbounds=dict.fromkeys(space.names, (0.0, 1.0)),
            acquisition_function=self.acquisition,
            random_state=seed % 2**32,
            verbose=0,
        )
        start = np.full(len(space.axes), 0.5)
        self.optimizer.set_gp_params(kernel=Matern(length_scale=start, length_scale_bounds=LENGTHSCALES, nu=2.5))
        for point, (_, value) in zip(self._points([item for item, _ in known]), known):
            self.optimizer.register(point, -(worst if value is None else value))
        self._fitted = False

    def predict(self, parameters: Sequence[Parameters]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Mean and standard deviation of the objective."""
        with warnings.catch_warnings(), _one_thread().limit(limits=1):
            warnings.simplefilter("ignore")  # about length scales at a bound, and variances below zero by rounding
            result: Any = self.optimizer.predict(self._points(parameters), return_std=True, fit_gp=not self._fitted)
        self._fitted = True
        mean, deviation = result
        return -mean, deviation

    def choose(self, candidates: Sequence[Parameters]) -> Parameters:
        """The candidate with the largest acquisition; in a tie the one with the largest standard deviation."""
        mean, deviation = self.predict(candidates)
        self.acquisition.y_max = -self.best
        value = self.acquisition.base_acq(-mean, np.maximum(deviation, np.finfo(float).tiny))
        return candidates[max(range(len(candidates)), key=lambda i: (value[i], deviation[i]))]

    def _points(self, parameters: Sequence[Parameters]) -> list[dict[str, float]]:
        return [dict(zip(self.space.names, map(float, row))) for row in self.space.coordinates(parameters)]


def propose(space: Space, known: Known, count: int, seed: int, acquisition: str) -> list[Parameters]:
    """The next `count` members of the set to train, all new. They depend only on the seed and the known results.

    Each proposal assumes that the ones before it reach the best objective so far (a constant liar), so that they
    spread out.
    """
    assumed, proposals = list(known), []
    finite = [value for _, value in known if value is not None]
    for _ in range(count):
        remaining = space.without([item for item, _ in assumed])
        if not remaining:
            break
        if finite:
            choice = Surrogate(space, assumed, seed + len(assumed), acquisition).choose(remaining)
        else:
            choice = next(item for item in space.shuffled(seed) if item in remaining)
        proposals.append(choice)
        assumed.append((choice, min(finite) if finite else None))
    return proposals


@cache
def _one_thread() -> Any:
    """Limits linear algebra to one thread. For matrices of ten rows more threads only cost time."""
    from threadpoolctl import ThreadpoolController  # of scikit-learn

    return ThreadpoolController()


def _acquisition(name: str) -> Any:
    from bayes_opt import acquisition

    if name == "ucb":
        return acquisition.UpperConfidenceBound(kappa=KAPPA)
    kind = acquisition.ExpectedImprovement if name == "ei" else acquisition.ProbabilityOfImprovement
    return kind(xi=WORTH_TRYING)
