"""Timing on a noisy machine: everything that is compared runs in turns, and only ratios are reported."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import jax


def in_turns(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each function, called in turns after one warm-up call that compiles it."""
    for function in functions.values():
        jax.block_until_ready(function())
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            jax.block_until_ready(function())
            seconds[name].append(time.perf_counter() - start)
    return seconds


class Ratio:
    """The median of the ratios of each turn, with their range."""

    def __init__(self, above: list[float], below: list[float]) -> None:
        ratios = sorted(a / b for a, b in zip(above, below))
        self.median, self.low, self.high = statistics.median(ratios), ratios[0], ratios[-1]

    def __str__(self) -> str:
        return f"{self.median:.3g} (range {self.low:.3g} to {self.high:.3g})"


class Limits:
    """Collects what is checked; `exit_code` is 1 if a limit was missed."""

    def __init__(self) -> None:
        self.missed = 0

    def check(
        self, what: str, value: float, shown: object, *, at_least: float = 0.0, at_most: float = float("inf")
    ) -> None:
        good = at_least <= value <= at_most
        limit = f"at least {at_least:g}" if at_least else f"at most {at_most:g}"
        print(f"{'ok    ' if good else 'MISSED'}  {what}: {shown}, limit {limit}", flush=True)
        self.missed += not good

    @property
    def exit_code(self) -> int:
        return int(self.missed > 0)
