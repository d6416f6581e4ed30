"""The finite set that is searched."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

Parameters = dict[str, Any]

# Prior strengths are compared on a log scale, whole numbers on a linear one.
LOGARITHMIC = {"prior_strength"}


@dataclass(frozen=True)
class Space:
    """The product of lists of values. For the surrogate, each list is mapped to `[0, 1]`."""

    axes: tuple[tuple[str, tuple[Any, ...]], ...]

    @staticmethod
    def of(latent_dims: Any, groups: Any = None, prior_strengths: Any = None) -> Space:
        axes: list[tuple[str, tuple[Any, ...]]] = [("latent_dim", _whole_numbers("latent_dims", latent_dims))]
        if groups is not None:
            axes.append(("groups", _whole_numbers("groups", groups)))
        if prior_strengths is not None:
            axes.append(("prior_strength", _strengths(prior_strengths)))
        return Space(tuple(axes))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @cached_property
    def members(self) -> list[Parameters]:
        return [dict(zip(self.names, values)) for values in itertools.product(*(values for _, values in self.axes))]

    def __len__(self) -> int:
        return len(self.members)

    def shuffled(self, seed: int) -> list[Parameters]:
        """All members, in an order that the seed decides."""
        return [self.members[i] for i in np.random.default_rng(seed).permutation(len(self))]

    def without(self, known: Sequence[Parameters]) -> list[Parameters]:
        return [member for member in self.members if member not in known]

    def coordinates(self, parameters: Sequence[Parameters]) -> Float[np.ndarray, "n axes"]:
        """The parameters in the surrogate's coordinates. They need not be members, as plots show values in between."""
        columns = []
        for name, values in self.axes:
            scale = np.log if name in LOGARITHMIC else np.asarray
            low, high = scale(values[0]), scale(values[-1])
            column = scale(np.asarray([item[name] for item in parameters], float))
            columns.append((column - low) / (high - low) if high > low else np.zeros(len(parameters)))
        return np.stack(columns, axis=1)


def _listed(name: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"`{name}` needs a set of values to search, such as [1, 2, 5]: got {given!r}.")
    if not (found := list(given)):
        raise ValueError(f"`{name}` is empty: there is nothing to search.")
    return found


def _whole_numbers(name: str, given: Any) -> tuple[int, ...]:
    found = _listed(name, given)
    for value in found:
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"`{name}` needs positive whole numbers, such as range(1, 21): got {value!r}.")
    return tuple(sorted({int(value) for value in found}))


def _strengths(given: Any) -> tuple[float, ...]:
    found = _listed("prior_strengths", given)
    for value in found:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (number and np.isfinite(value) and value > 0):
            raise ValueError(
                f"`prior_strengths` needs positive numbers, such as [0.01, 0.1, 1]: got {value!r}. "
                "They are compared on a log scale, so zero is not possible."
            )
    return tuple(sorted({float(value) for value in found}))
