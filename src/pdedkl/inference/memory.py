"""How much memory there is, and whether a Gram matrix fits into it.

Choices depend on the total memory of the machine, so that two runs on it do the same. The free memory changes no
choice: a task that does not fit into it is refused.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import jax

# The fraction of the total memory that matrices may take; the rest is for the system and for other programs.
SHARE = 0.8


def fits(n: int, matrices: int, announce: bool = False) -> bool:
    """Whether this machine can hold `matrices` arrays of `n × n` doubles. If not, `announce` warns what is done."""
    lacking = _lacking(matrices * n * n, _usable_bytes())
    if lacking is not None and announce:
        warnings.warn(
            f"{n} values need {matrices} matrices of {n} × {n}, {lacking.words} are available on this machine: "
            "conjugate gradients are used instead, without the matrix.",
            stacklevel=3,
        )
    return lacking is None


def check_columns_fit(n: int, columns: int) -> None:
    """Refuse values that are too many even for the iterative solver: it needs two arrays of `n × columns` doubles."""
    if (lacking := _lacking(2 * n * columns, available_bytes())) is not None:
        raise MemoryError(
            f"{n} observed values need two arrays of {n} × {columns} even without their Gram matrix, {lacking.words} "
            "are free: use fewer, or a machine with more memory."
        )


def check_fits(n: int, matrices: int, what: str = "observed values") -> None:
    """Refuse `matrices` arrays of `n × n` doubles that the device cannot hold, before anything is computed."""
    if (lacking := _lacking(matrices * n * n, available_bytes())) is not None:
        raise MemoryError(
            f"{n} {what} need {matrices} matrices of {n} × {n}, {lacking.words} are free: use at most "
            f"{_most(matrices, lacking.there)}, end other programs, or use a machine with more memory."
        )


def check_points_fit(n: int, dim: int) -> None:
    """Refuse points that do not fit into memory, before any is drawn: drawing them takes two arrays of `n × dim`."""
    if (lacking := _lacking(2 * n * dim, available_bytes())) is not None:
        raise MemoryError(
            f"{n} points of {dim} coordinates need {lacking.words} are free: use fewer points "
            f"(at most {lacking.there // (16 * dim)} fit), fewer dimensions, or a machine with more memory."
        )


def most_that_fit(matrices: int) -> int:
    """The largest `n` for which this machine holds `matrices` arrays of `n × n` doubles; no limit if it is unknown."""
    usable = _usable_bytes()
    return sys.maxsize if usable is None else _most(matrices, usable)


def _most(matrices: int, there: int) -> int:
    return int((max(there, 0) / (8 * matrices)) ** 0.5)


class _Lack(NamedTuple):
    needed: int
    there: int

    @property
    def words(self) -> str:
        return f"{_size(self.needed)}, and {_size(self.there)}"


def _lacking(doubles: int, there: int | None) -> _Lack | None:
    """The bytes that are needed for the doubles and the bytes that are there; `None` if these are enough or unknown."""
    return None if there is None or 8 * doubles <= there else _Lack(8 * doubles, max(there, 0))


def _usable_bytes() -> int | None:
    total = total_bytes()
    return None if total is None else int(SHARE * total)


def total_bytes() -> int | None:
    """All memory that the default device gives to this process, free or not; `None` where the platform does not say."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return (device.memory_stats() or {}).get("bytes_limit")
    limits = [value for value in (_proc("MemTotal"), _cgroup_limit()) if value is not None]
    return min(limits) if limits else None


def peak_bytes() -> int | None:
    """The most memory that this process has used at once so far: on the GPU if it computes on one, else on the CPU."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return (device.memory_stats() or {}).get("peak_bytes_in_use")
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def available_bytes() -> int | None:
    """Free memory of the default device in bytes; `None` where the platform does not say."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None
    limits = [value for value in (_proc("MemAvailable"), _cgroup_available()) if value is not None]
    return min(limits) if limits else None


def _proc(entry: str) -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(f"{entry}:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _cgroup_limit() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        return None if limit == "max" else int(limit)
    except (OSError, ValueError):
        return None


def _cgroup_available() -> int | None:
    try:
        if (limit := _cgroup_limit()) is None:
            return None
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        stats = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
        return limit - used + int(stats.get("inactive_file", 0))  # the page cache can be freed
    except (OSError, ValueError):
        return None


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
