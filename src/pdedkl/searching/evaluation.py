"""Train with one value of the search set, and record the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..ending import INTERRUPTED
from ..observations import Observation
from ..training import fit
from .space import Parameters

# A function from parameters to the objective and the trained posterior.
Train = Callable[[Parameters], tuple[float, Any]]


@dataclass(frozen=True)
class Evaluation:
    """One training of a search.

    **Arguments:**

    - `parameters`: the values that it was trained with, by name.
    - `objective`: the training objective; `None` if the training failed.
    - `seconds`: how long it took.
    - `error`: why it failed; `None` if it did not.

    !!! example
        ```python
        searched = pk.search(problem, data, latent_dims=[1, 2, 3])
        seconds = sum(evaluation.seconds for evaluation in searched.history)
        ```
    """

    parameters: Parameters
    objective: float | None
    seconds: float
    error: str | None = None

    @property
    def rank(self) -> float:
        """The objective; infinity if the training failed."""
        return math.inf if self.objective is None else self.objective


@dataclass(frozen=True)
class Fit:
    """`pdedkl.fit` as a function of the parameters that are searched."""

    problem: Any
    data: Sequence[Observation]
    options: Mapping[str, Any]

    def __call__(self, parameters: Parameters) -> tuple[float, Any]:
        posterior = fit(self.problem, self.data, progress=False, **self.options, **parameters)
        if posterior.training.stopped == INTERRUPTED:
            raise KeyboardInterrupt  # an unfinished training says nothing about its parameters
        return posterior.training.objective, posterior


def evaluate(train: Train, parameters: Parameters) -> tuple[Evaluation, Any]:
    """Train once. An arithmetic error is recorded as a failed evaluation; any other error is raised."""
    begin = time.monotonic()
    try:
        objective, posterior = train(parameters)
    except ArithmeticError as error:
        return Evaluation(parameters, None, time.monotonic() - begin, f"{type(error).__name__}: {error}"), None
    seconds = time.monotonic() - begin
    if not math.isfinite(objective):
        return Evaluation(parameters, None, seconds, f"The objective is {objective}."), None
    return Evaluation(parameters, float(objective), seconds), posterior


@dataclass(frozen=True)
class Trained:
    """`evaluate` as a function of the parameters. The posterior is returned only if `keep` is set: it may be large."""

    train: Train
    keep: bool

    def __call__(self, parameters: Parameters) -> tuple[Evaluation, Any]:
        evaluation, posterior = evaluate(self.train, parameters)
        return evaluation, posterior if self.keep else None


def best_of(history: Sequence[Evaluation]) -> Evaluation | None:
    """The evaluation with the lowest objective, the first one in a tie; `None` if all failed."""
    found = [item for item in history if item.objective is not None]
    return min(found, key=lambda item: item.rank, default=None)


def described(parameters: Parameters) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in parameters.items())
