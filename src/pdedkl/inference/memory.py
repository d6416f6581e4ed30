"""How much memory there is, and whether a Gram matrix fits into it."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import jax


def fits(n: int, matrices: int, announce: bool = False) -> bool:
    """Whether `matrices` arrays of `n × n` doubles fit; if not, and asked to, says so and what is done instead."""
    lacking = _lacking(matrices * n * n)
    if lacking is not None and announce:
        warnings.warn(
            f"{n} values need {matrices} matrices of {n} × {n}, {lacking.words}: solved by conjugate gradients, "
            "without the matrix.",
            stacklevel=3,
        )
    return lacking is None


def check_columns_fit(n: int, columns: int) -> None:
    """Refuse what even a solver without the matrix cannot do: it holds two arrays of `n × columns` doubles at least."""
    if (lacking := _lacking(2 * n * columns)) is not None:
        raise MemoryError(
            f"{n} observed values need two arrays of {n} × {columns} even without their Gram matrix, {lacking.words}: "
            "use fewer, or a machine with more memory."
        )


def check_fits(n: int, matrices: int, what: str = "observed values") -> None:
    """Refuse `matrices` arrays of `n × n` doubles that the device cannot hold, before anything is computed."""
    if (lacking := _lacking(matrices * n * n)) is not None:
        raise MemoryError(
            f"{n} {what} need {matrices} matrices of {n} × {n}, {lacking.words}: use at most "
            f"{most_that_fit(matrices)}, or a machine with more memory."
        )


def check_points_fit(n: int, dim: int) -> None:
    """Refuse points that even alone do not fit, before any is drawn: drawing them takes two arrays of `n × dim`."""
    if (lacking := _lacking(2 * n * dim)) is not None:
        raise MemoryError(
            f"{n} points of {dim} coordinates need {lacking.words}: use fewer points "
            f"(at most {max(lacking.free // (16 * dim), 0)} fit), fewer dimensions, or a machine with more memory."
        )


def most_that_fit(matrices: int) -> int:
    """The largest `n` of which so many arrays of `n × n` doubles fit, where the platform says what is free."""
    available = available_bytes()
    return sys.maxsize if available is None else int((max(available, 0) / (8 * matrices)) ** 0.5)


class _Lack(NamedTuple):
    needed: int
    free: int

    @property
    def words(self) -> str:
        return f"{_size(self.needed)}, and {_size(self.free)} are free"


def _lacking(doubles: int) -> _Lack | None:
    """The bytes that so many doubles need and that are free, where the first are more."""
    available = available_bytes()
    if available is None or 8 * doubles <= available:
        return None
    return _Lack(8 * doubles, max(available, 0))


def available_bytes() -> int | None:
    """Free memory of the default device in bytes; `None` where the platform does not say."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None
    limits = [value for value in (_proc_available(), _cgroup_available()) if value is not None]
    return min(limits) if limits else None


def _proc_available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _cgroup_available() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit == "max":
            return None
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        stats = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
        return int(limit) - used + int(stats.get("inactive_file", 0))  # the page cache gives way
    except (OSError, ValueError):
        return None


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
