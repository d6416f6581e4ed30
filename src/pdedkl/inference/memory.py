"""How much memory there is, and whether a Gram matrix fits into it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import jax


def fits(n: int, matrices: int, announce: bool = False) -> bool:
    """Whether `matrices` arrays of `n × n` doubles fit; if not, and asked to, says so and what is done instead."""
    needed, available = 8 * matrices * n * n, available_bytes()
    good = available is None or needed <= available
    if announce and not good:
        warnings.warn(
            f"{n} values need {matrices} matrices of {n} × {n}, {_size(needed)}, and {_size(available or 0)} are free: "
            "solved by conjugate gradients, without the matrix.",
            stacklevel=3,
        )
    return good


def check_columns_fit(n: int, columns: int) -> None:
    """Refuse what even a solver without the matrix cannot do: it holds two arrays of `n × columns` doubles at least."""
    needed, available = 8 * 2 * n * columns, available_bytes()
    if available is not None and needed > available:
        raise MemoryError(
            f"{n} observed values need {_size(needed)} even without their Gram matrix, and "
            f"{_size(max(available, 0))} are free: use fewer, or a machine with more memory."
        )


def check_fits(n: int, matrices: int, what: str = "observed values") -> None:
    """Refuse `matrices` arrays of `n × n` doubles that the device cannot hold, before anything is computed."""
    needed = 8 * matrices * n * n
    available = available_bytes()
    if available is not None and needed > max(available, 0):
        most = int((max(available, 0) / (8 * matrices)) ** 0.5)
        raise MemoryError(
            f"{n} {what} need {matrices} matrices of {n} × {n}, {_size(needed)}, and {_size(available)} are "
            f"free: use at most {most}, or a machine with more memory."
        )


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
