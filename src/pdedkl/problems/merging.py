"""From values of statements to observations: noise is added, and values of one operator and noise are merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..observations import Learned, Observation
from ..operators import same
from ..operators.base import Identity
from .conditions import Statement

Row = tuple[Statement, np.ndarray, np.ndarray]

# With fewer values than this, noise cannot be told from signal, and the values are taken as exact.
ENOUGH_TO_LEARN_NOISE = 5


def with_noise(rows: list[Row], noise: float, rng: np.random.Generator) -> list[Row]:
    """Normal noise on the values of `u`, relative to their spread."""
    noisy = [_open_to_noise(statement) for statement, _, _ in rows]
    clean = [values for (_, _, values), chosen in zip(rows, noisy) if chosen]
    spread = float(np.std(np.concatenate(clean))) if clean else 0.0
    if spread == 0:
        raise ValueError(
            f"`noise={noise:g}` is relative to the spread of the values of u, and they have none: "
            "add the noise to the observations yourself."
        )
    return [
        (statement, points, values + noise * spread * rng.normal(size=len(values)) if chosen else values)
        for (statement, points, values), chosen in zip(rows, noisy)
    ]


def _open_to_noise(statement: Statement) -> bool:
    return isinstance(statement.operator, Identity) and statement.noise_unknown and not statement.measured


def merged(rows: list[Row], noisy: bool) -> list[Observation]:
    """One observation for each operator and noise.

    Values of functions without a stated noise are exact unless noise was added to them. Their tolerance is learned,
    unless there are only a few of them.
    """
    groups: list[list[Row]] = []
    for row in rows:
        like = next((group for group in groups if _alike(group[0][0], row[0])), None)
        if like is None:
            groups.append([row])
        else:
            like.append(row)
    made: list[Observation] = []
    for group in groups:
        first = group[0][0]
        own = isinstance(first.noise, str) and first.noise in ("learned", "robust")
        name = _unused(first.name or first.label, made) if own else first.name
        points, values = (np.concatenate([row[k] for row in group]) for k in (1, 2))
        few = len(points) < ENOUGH_TO_LEARN_NOISE
        noise = first.noise
        if noise is None:
            drawn = noisy and _open_to_noise(first)
            noise = Learned() if drawn else "exact" if few else Learned(exact=True)
        elif few and own and first.measured:
            noise = "exact"
        made.append(Observation(first.operator, points, values, noise, name))
    return made


def _alike(one: Statement, other: Statement) -> bool:
    return _same_noise(one.noise, other.noise) and same(one.operator, other.operator)


def _same_noise(one: Any, other: Any) -> bool:
    """Whether two conditions share one noise level. A condition with `noise="learned"` has a level of its own."""
    if one is None or other is None:
        return one is other
    if isinstance(one, Learned) or isinstance(other, Learned):
        return isinstance(one, Learned) and one == other and one.name is not None
    values = [value for value in (one, other) if isinstance(value, str)]
    if {"learned", "robust"} & set(values):
        return False
    if values or np.ndim(one) or np.ndim(other):
        return values == ["exact", "exact"]
    return float(one) == float(other)


def _unused(name: str, made: list[Observation]) -> str:
    taken, count, free = {item.name for item in made}, 1, name
    while free in taken:
        count += 1
        free = f"{name} ({count})"
    return free
