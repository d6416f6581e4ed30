"""One problem as arrays, so that every method solves the same one; NumPy only, for both environments read it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Values of `u` on the boundary and at the start, and of `f` inside."""

    u_points: np.ndarray
    u_values: np.ndarray
    f_points: np.ndarray
    f_values: np.ndarray

    def first(self, n: int) -> Rows:
        """At most `n` of each kind."""
        return Rows(*(getattr(self, field.name)[:n] for field in fields(self)))


@dataclass(frozen=True)
class Task:
    """`c u + b·∇u + Σ_i a_i ∂_i² u = f` in a box; time is a coordinate with a part in `b`.

    `given` are the points that our own fit has, `pool` is plenty of others, and settings are chosen by `fresh`. The
    truth at `test` is there to be recorded and decides nothing.
    """

    c: float
    b: np.ndarray
    a: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    given: Rows
    pool: Rows
    fresh: Rows
    test_points: np.ndarray
    test_values: np.ndarray

    def save(self, path: Path) -> None:
        arrays: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Rows):
                arrays |= {f"{field.name}.{key}": part for key, part in vars(value).items()}
            else:
                arrays[field.name] = value
        np.savez(path, **arrays)

    @staticmethod
    def load(path: Path) -> Task:
        with np.load(path) as stored:
            rows = lambda name: Rows(*(stored[f"{name}.{field.name}"] for field in fields(Rows)))
            names = [field.name for field in fields(Task)]
            parts = {name: stored[name] if name in stored else rows(name) for name in names}
            return Task(**parts | {"c": float(stored["c"])})

    def score(self, u: np.ndarray, f: np.ndarray) -> float:
        """What settings are chosen by: relative errors of predicted `fresh` values of `u` and of `f`, added."""
        return relative(u, self.fresh.u_values) + relative(f, self.fresh.f_values)


def relative(values: np.ndarray, reference: np.ndarray) -> float:
    error = float(np.linalg.norm(values - reference) / np.linalg.norm(reference))
    return error if np.isfinite(error) else float("inf")


class Trail:
    """Pairs of seconds and error of `u` at the test points; the clock stands still while an error is measured."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.pairs: list[tuple[float, float]] = []
        self.begin = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begin

    @property
    def due(self) -> bool:
        """Whether a tenth more time has passed than at the last pair: enough for a logarithmic axis."""
        return self.seconds > (1.1 * self.pairs[-1][0] if self.pairs else 0.1)

    def add(self, predict: Callable[[np.ndarray], np.ndarray]) -> None:
        now = self.seconds
        self.pairs.append((now, relative(predict(self.task.test_points), self.task.test_values)))
        self.begin += self.seconds - now
