"""Timing on a noisy machine: everything that is compared runs in turns, and only ratios are reported."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import jax

import pdedkl as pk

FOLDER = Path(__file__).parent.parent / "runs" / "bench"


# In a turn a function is called as often as it can be in so many seconds, at most so often; the median counts. The
# first call after something long, which leaves caches and memory as they are, is slower than all others.
TURN_SECONDS, CALLS = 2.0, 5


def in_turns(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each function, called in turns after one warm-up call that compiles it."""
    for function in functions.values():
        jax.block_until_ready(function())
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            calls = [_seconds(function)]
            while len(calls) < CALLS and sum(calls) + calls[0] <= TURN_SECONDS:
                calls.append(_seconds(function))
            seconds[name].append(statistics.median(calls))
    return seconds


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


class Ratio:
    """The median of the ratios of each turn, with their range."""

    def __init__(self, above: list[float], below: list[float]) -> None:
        ratios = sorted(a / b for a, b in zip(above, below))
        self.median, self.low, self.high = statistics.median(ratios), ratios[0], ratios[-1]

    def __str__(self) -> str:
        return f"{self.median:.3g} (range {self.low:.3g} to {self.high:.3g})"


class Measurements:
    """What one benchmark measured, printed line by line and stored as JSON with the machine and the versions.

    The file is written with every line: what was measured stays, however a long benchmark ends.
    `benchmarks/table.py` makes the table of the documentation from those files.
    """

    def __init__(self, name: str, folder: Path = FOLDER) -> None:
        self.file = folder / f"{name}.json"
        self.rows: list[dict[str, object]] = []
        self.machine = machine()

    def add(
        self, what: str, value: float, shown: object, *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Something that is measured, and its limit if it has one."""
        row: dict[str, object] = {"what": what, "value": float(value), "shown": str(shown)}
        mark, end = "      ", ""
        if at_least is not None or at_most is not None:
            row["held"] = bool((at_least is None or value >= at_least) and (at_most is None or value <= at_most))
            row["limit"] = f"at least {at_least:g}" if at_least is not None else f"at most {at_most:g}"
            mark, end = "ok    " if row["held"] else "MISSED", f", limit {row['limit']}"
        print(f"{mark}  {what}: {shown}{end}", flush=True)
        self.rows.append(row)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"machine": self.machine, "measured": self.rows}, indent=1) + "\n")

    def finish(self) -> int:
        """The exit status: 1 if a limit was missed."""
        missed = [row["what"] for row in self.rows if row.get("held") is False]
        print(f"limits missed: {'; '.join(map(str, missed))}" if missed else "all limits held", flush=True)
        return int(bool(missed))


def peak_bytes() -> int:
    """The most memory that this process has had. Not `ru_maxrss`, which it inherits from the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def machine() -> dict[str, object]:
    """What a figure depends on."""
    information = Path("/proc/cpuinfo")
    names = [line for line in information.read_text().splitlines() if line.startswith("model name")]
    device = jax.devices()[0]
    return {
        "processor": names[0].split(":", 1)[1].strip() if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "device": device.device_kind if device.platform != "cpu" else "cpu",
        "python": platform.python_version(),
        "jax": jax.__version__,
        "pdedkl": pk.__version__,
        "date": date.today().isoformat(),
    }
