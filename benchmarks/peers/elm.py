"""Random features and least squares (an extreme learning machine); NumPy only.

`u = Σ_j w_j φ(k_j·x + s_j)` with random `k` and `s`, so that `A u` is linear in `w` and in closed form. The kind of
feature, the size of `k` and the weight of the values of `u` are chosen by fresh values of `u` and `f`. Then the number
of features doubles for as long as there is time, and the best by the same fresh values counts.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from task import Rows, Task, Trail

SCALES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
WEIGHTS = (0.1, 1.0, 10.0, 100.0)
FEWEST, TUNED, MOST = 125, 1000, 8000
# With as many points as it likes, it takes so many of each kind for each feature.
POINTS_PER_FEATURE = 2
# Relative to the largest singular value: what is smaller is rounding.
CUT = 1e-14


@dataclass(frozen=True)
class Setting:
    """`scale` is the size of `k·x` over a box of half-width 1; `weight` that of values of `u` against those of `f`."""

    kind: str = "tanh"
    scale: float = 1.0
    weight: float = 1.0
    features: int = TUNED


def tanh(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A feature with its first two derivatives."""
    y = np.tanh(z)
    slope = 1 - y * y
    return y, slope, -2 * y * slope


def sine(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = np.sin(z)
    return y, np.cos(z), -y


KINDS = {"tanh": tanh, "sine": sine}


class Features:
    """`φ(k_j·x + s_j)` and what the operator makes of it."""

    def __init__(self, task: Task, setting: Setting, seed: int) -> None:
        rng = np.random.default_rng([seed, 7])
        d, m = len(task.b), setting.features
        half = (task.upper - task.lower) / 2
        self.task, self.function = task, KINDS[setting.kind]
        self.k = setting.scale / np.sqrt(d) * rng.normal(size=(d, m)) / half[:, None]
        self.s = rng.uniform(-np.pi, np.pi, m) - (task.lower + half) @ self.k

    def values(self, points: np.ndarray) -> np.ndarray:
        return self.function(points @ self.k + self.s)[0]

    def operated(self, points: np.ndarray) -> np.ndarray:
        """`c φ + (b·k) φ' + Σ_i a_i k_i² φ''`."""
        y, first, second = self.function(points @ self.k + self.s)
        return self.task.c * y + (self.task.b @ self.k) * first + (self.task.a @ self.k**2) * second


@dataclass(frozen=True)
class Solution:
    features: Features
    w: np.ndarray
    score: float

    def u(self, points: np.ndarray) -> np.ndarray:
        return self.features.values(points) @ self.w


def solve(task: Task, rows: Rows, setting: Setting, seed: int = 0) -> Solution:
    """Least squares over the values of `u` and of `f`, each kind relative to its size."""
    features = Features(task, setting, seed)
    of_u = setting.weight / np.linalg.norm(rows.u_values)
    of_f = 1 / np.linalg.norm(rows.f_values)
    matrix = np.concatenate([of_u * features.values(rows.u_points), of_f * features.operated(rows.f_points)])
    right = np.concatenate([of_u * rows.u_values, of_f * rows.f_values])
    w, *_ = np.linalg.lstsq(matrix, right, rcond=CUT)
    fresh = task.fresh
    score = task.score(features.values(fresh.u_points) @ w, features.operated(fresh.f_points) @ w)
    return Solution(features, w, score)


def points_for(task: Task, which: str, features: int) -> Rows:
    return task.given if which == "given" else task.pool.first(POINTS_PER_FEATURE * features)


def tune(task: Task, which: str, seed: int) -> tuple[Setting, list[dict]]:
    """The best of a grid of kinds and scales, then of weights, by fresh values; and all that was tried."""
    tried: dict[Setting, float] = {}

    def best(settings: list[Setting]) -> Setting:
        for setting in settings:
            if setting not in tried:
                tried[setting] = solve(task, points_for(task, which, setting.features), setting, seed).score
        return min(tried, key=tried.__getitem__)

    chosen = best([Setting(kind, scale) for kind in KINDS for scale in SCALES])
    chosen = best([replace(chosen, weight=weight) for weight in WEIGHTS])
    return chosen, [asdict(setting) | {"score": score} for setting, score in tried.items()]


def race(task: Task, which: str, setting: Setting, seconds: float, seed: int) -> Trail:
    trail, best = Trail(task), None
    m = FEWEST
    while m <= MOST:
        begin = trail.seconds
        found = solve(task, points_for(task, which, m), replace(setting, features=m), seed)
        best = found if best is None or found.score < best.score else best
        trail.add(best.u)
        # Twice the features take up to eight times as long.
        if trail.seconds + 8 * (trail.seconds - begin) > seconds:
            break
        m *= 2
    return trail


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", choices=("given", "pool"), default="given")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    task = Task.load(options.task)
    begin = time.monotonic()
    setting, tried = tune(task, options.points, options.seed)
    tuning = {"tried": tried, "tuning_seconds": time.monotonic() - begin, "setting": asdict(setting)}
    trail = race(task, options.points, setting, options.seconds, options.seed)
    found = tuning | {"trail": trail.pairs, "versions": {"numpy": np.__version__}}
    options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
