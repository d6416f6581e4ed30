"""Points of the unit cube by four samplers; regions map them to where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from scipy.stats import qmc

from .regions import Region


def _sobol(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """The first `n` of the next power of two. The points are balanced if `n` is a power of two itself."""
    return qmc.Sobol(d, seed=rng).random_base2(max(n - 1, 0).bit_length())[:n]


SAMPLERS: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "uniform": lambda n, d, rng: rng.random((n, d)),
    "latin-hypercube": lambda n, d, rng: qmc.LatinHypercube(d, seed=rng).random(n),
    "sobol": _sobol,
    "halton": lambda n, d, rng: qmc.Halton(d, seed=rng).random(n),
}


def draw(region: Region, n: int, rng: np.random.Generator, sampler: str) -> np.ndarray:
    """`n` points spread evenly over a region. In one dimension a boundary is one or two points, returned once each."""
    if region.finite and n:
        return region.each_once()
    return region.from_cube(SAMPLERS[sampler](n, region.cube_dim, rng)) if n else np.zeros((0, region.domain.dim))


def shares(total: int, log_areas: Sequence[float]) -> list[int]:
    """`total` points divided in proportion to areas, at least one for each, by the largest-remainder method."""
    areas = np.exp(np.asarray(log_areas) - max(log_areas))
    wanted = total * areas / areas.sum()
    counts = np.maximum(np.floor(wanted).astype(int), 1)
    while (rest := total - int(counts.sum())) != 0:
        # The sum exceeds `total` only if small shares were raised to one. Then reduce the most over-counted share.
        place = np.argmax(wanted - counts) if rest > 0 else np.argmax(np.where(counts > 1, counts - wanted, -np.inf))
        counts[place] += np.sign(rest)
    return [int(count) for count in counts]


def check_sampler(sampler: Any) -> None:
    if sampler not in SAMPLERS:
        close = get_close_matches(str(sampler), SAMPLERS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"Unknown sampler {sampler!r}: choose one of {', '.join(SAMPLERS)}.{hint}")


def check_count(name: str, value: Any) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 0:
        raise ValueError(f"`{name}` needs a whole number that is not negative: got {value!r}.")
    return int(value)


def check_dim(dim: Any) -> int:
    if check_count("dim", dim) < 1:
        raise ValueError("`dim` needs at least one space dimension: got 0.")
    return int(dim)
