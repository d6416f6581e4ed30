"""What a benchmark of equations with fields measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A problem with a known solution, and the relative error that is wanted for each field that has one.

    **Arguments:**

    - `title`: the equations in one line.
    - `problem`: the problem, with its numbers of points.
    - `truth`: for each field, the solution as a function from an array of shape `(n, d)` to `n` values.
    - `wanted`: the errors to reach, by field.
    - `source`: a published error.
    - `options`: what `fit` is told besides the problem and its data.
    - `data`: the observations for a seed, where they are not those that `sample` takes by default.
    - `places`: where errors are measured for a seed, if not at points spread evenly inside.
    """

    title: str
    problem: Any
    truth: dict[str, Callable[[Any], Any]]
    wanted: dict[str, float]
    source: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    data: Callable[[int], Any] | None = None
    places: Callable[[int], Any] | None = None
