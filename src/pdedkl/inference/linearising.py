"""Nonlinear observations made linear: rows with stored coefficients, and their values.

At values `ℓ = L m` of the rows of `F(q, L_1 u, …, L_k u) = f`, the row is `Σ_i ∂F/∂ℓ_i L_i` and its value is
`f − F(ℓ) + Σ_i ∂F/∂ℓ_i ℓ_i`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..equations import Nonlinear, linearised
from ..equations.nonlinear import is_number_field, with_number_fields
from ..observations import Observation
from ..operators import Operator, Row
from ..operators.rows import names_in, row_of
from ..operators.tabulated import Tabulated, tabulated
from ..scales import data_scales, expected_sizes
from . import rows
from .posterior import Posterior
from .staged import between, cross_of

# Iterates with larger numbers have gone astray.
LARGEST = 1e30
TINY = 1e-300
# Terms smaller than this fraction of what their operator makes of functions as large as the fields count as zero.
NEARLY_ZERO = 1e-2
# What an equation feels of the change of a row, in units of its largest term, counts this many times at most.
FELT = 100.0
# Points whose rows are predicted at once.
BATCH = 2048

Values = list[Float[np.ndarray, "_ _"]]


def rows_in(operator: Operator) -> tuple[Operator, ...]:
    """The linear rows that an operator is a function of; a linear one is a function of itself."""
    return operator.rows if isinstance(operator, Nonlinear) else (operator,)


def is_nonlinear(data: Sequence[Observation]) -> bool:
    return any(isinstance(item.operator, Nonlinear) for item in data)


def with_numbers_as_fields(data: Sequence[Observation]) -> tuple[Observation, ...]:
    """The data of nonlinear equations with their unknown numbers as fields of no coordinate."""
    fields = [name for name in names_in([item.operator for item in data]) if not is_number_field(name)]
    made = with_number_fields([item.operator for item in data], fields[0] if len(fields) == 1 else None)
    return tuple(eqx.tree_at(lambda o: o.operator, item, operator) for item, operator in zip(data, made))


def values_of(posterior: Posterior, data: Sequence[Observation]) -> Values:
    """`L m` for all rows of the data, at their points."""
    return [
        np.stack([means(posterior, row, np.asarray(item.points)) for row in rows_in(item.operator)], axis=1)
        for item in data
    ]


def values_of_functions(start: Any, data: Sequence[Observation]) -> Values:
    """The same for functions that the user starts from."""
    found = []
    for item in data:
        each = [evaluated(row(start), np.asarray(item.points)) for row in rows_in(item.operator)]
        found.append(np.stack(each, axis=1))
    return found


def evaluated(function: Any, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    return np.asarray(eqx.filter_vmap(lambda q: jnp.asarray(function(q), dtype=float))(jnp.asarray(points)))


def zeros(data: Sequence[Observation]) -> Values:
    return [np.zeros((len(item), len(rows_in(item.operator)))) for item in data]


def means(posterior: Posterior, operator: Operator, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """The posterior mean of a row, without its variance."""
    data, found = rows.data_of(posterior).rows, []
    for start in range(0, len(points), BATCH):
        part = points[start : start + BATCH]
        test = rows.test_rows(posterior, (operator, part))
        with_data = between(between(np.asarray(cross_of(test.parts, data.parts)), test.layout).T, data.layout)
        found.append(with_data.T @ np.asarray(posterior.alpha) + rows.prior_mean(posterior, operator, part))
    return np.concatenate(found)


def linear_at(data: Sequence[Observation], values: Values) -> tuple[Observation, ...]:
    """The observations, linearised where their rows have these values."""
    return tuple(_linear(item, at) if isinstance(item.operator, Nonlinear) else item for item, at in zip(data, values))


def _linear(item: Observation, at: Float[np.ndarray, "n k"]) -> Observation:
    assert isinstance(item.operator, Nonlinear)
    points = np.asarray(item.points)
    found = linearised(item.operator, points, at)
    slopes = np.asarray(found.slopes)
    target = np.asarray(item.values) - np.asarray(found.value) + np.sum(slopes * at, axis=1)
    operator = linear_row(item.operator, points, slopes)
    return Observation(operator, points, target, item.noise, item.name, item.weights)


def linear_row(operator: Nonlinear, points: np.ndarray, slopes: Float[np.ndarray, "n k"]) -> Operator:
    """`Σ_i c_i L_i` with numbers for each point, for each field by itself."""
    text = text_of(operator)
    parts: dict[str, list[tuple[int, Operator]]] = {}
    for i, row in enumerate(operator.rows):
        if not isinstance(row, Row):
            return tabulated(operator.rows, points, slopes, text)
        for name, part in zip(row.names, row.operators):
            parts.setdefault(name, []).append((i, part))
    found = []
    for name, members in parts.items():
        numbers, operators = zip(*members)
        found.append((name, tabulated(operators, points, slopes[:, list(numbers)], text)))
    return row_of(found)


def text_of(operator: Nonlinear) -> str:
    """What the linearisations of an operator print as."""
    return f"linearised {operator}"


def is_linearised(item: Observation, operator: Nonlinear) -> bool:
    """Whether an observation is of a linearisation of this operator."""
    row = item.operator
    parts = row.operators if isinstance(row, Row) else (row,)
    return all(isinstance(part, Tabulated) and part.text == text_of(operator) for part in parts)


def residuals(data: Sequence[Observation], values: Values) -> list[Float[np.ndarray, " _"]]:
    """`f − F(L m)` at all points."""
    found = []
    for item, at in zip(data, values):
        of_rows = at[:, 0]
        if isinstance(item.operator, Nonlinear):
            of_rows = np.asarray(linearised(item.operator, np.asarray(item.points), at).value)
        found.append(np.asarray(item.values) - of_rows)
    return found


def has_slopes(data: Sequence[Observation], values: Values) -> bool:
    """Whether all equations have finite values and slopes there."""
    each = [
        linearised(item.operator, np.asarray(item.points), at)
        for item, at in zip(data, values)
        if isinstance(item.operator, Nonlinear)
    ]
    return all(bool(np.all(np.isfinite(part))) for found in each for part in (found.value, found.slopes))


def bounded(data: Sequence[Observation], values: Values) -> bool:
    """Whether values and residuals are numbers that can be computed with."""
    found = [*values, *residuals(data, values)]
    return all(bool(np.all(np.abs(part) < LARGEST)) for part in found)


def sizes(data: Sequence[Observation], values: Values) -> list[float]:
    """The size of the terms of each observation: what its residuals are small in comparison to."""
    # A condition whose values are all zero is as large as a function of the size of the others makes it.
    linear = linear_at(data, values)
    usual, least = data_scales(linear), NEARLY_ZERO * expected_sizes(linear)
    found = []
    for item, at, floor in zip(data, values, least.tolist()):
        size = max(usual[item.noise_name or item.name], floor)
        if isinstance(item.operator, Nonlinear):
            slopes = np.asarray(linearised(item.operator, np.asarray(item.points), at).slopes)
            size = max(size, *(float(np.sqrt(np.mean(part**2))) for part in (slopes * at).T))
        found.append(size)
    return found


def linear_residuals(data: Sequence[Observation], old: Values, new: Values) -> list[Float[np.ndarray, " _"]]:
    """`f − F(ℓ) − Σ_i ∂F/∂ℓ_i (ℓ'_i − ℓ_i)`, what a linearisation at the old values leaves at the new ones."""
    found = []
    for item, one, other in zip(data, old, new):
        of_rows = other[:, 0]
        if isinstance(item.operator, Nonlinear):
            made = linearised(item.operator, np.asarray(item.points), one)
            of_rows = np.asarray(made.value) + np.sum(np.asarray(made.slopes) * (other - one), axis=1)
        found.append(np.asarray(item.values) - of_rows)
    return found


def misfit(data: Sequence[Observation], values: Values, scale: Sequence[float]) -> float:
    """The root mean square of all residuals, each relative to the size of its kind, and counted by its weight."""
    return mean_square_root(data, residuals(data, values), scale)


def mean_square_root(
    data: Sequence[Observation], left: Sequence[Float[np.ndarray, " _"]], scale: Sequence[float]
) -> float:
    weights = [None if item.weights is None else np.asarray(item.weights) for item in data]
    each = [float(np.average((r / s) ** 2, weights=w)) for r, s, w in zip(left, scale, weights)]
    return float(np.sqrt(np.mean(each))) if np.all(np.isfinite(each)) else float("inf")


def moved(values: Values, new: Values, step: float) -> Values:
    return [old + step * (other - old) for old, other in zip(values, new)]


def change(data: Sequence[Observation], old: Values, new: Values, scale: Sequence[float]) -> float:
    """How far two lists of values are apart, relative to the size of each row; the largest of all rows.

    A row that is zero has no size. What counts then is how much its equation feels of the change.
    """
    far = [0.0]
    for item, one, other, size in zip(data, old, new, scale):
        own = np.sqrt(np.mean(other**2, axis=0))
        away = np.sqrt(np.mean((other - one) ** 2, axis=0))
        if isinstance(item.operator, Nonlinear):
            slopes = np.asarray(linearised(item.operator, np.asarray(item.points), other).slopes)
            own = np.maximum(own, away * size / (FELT * np.sqrt(np.mean((slopes * (other - one)) ** 2, axis=0)) + TINY))
        else:
            own = np.maximum(own, size)
        far += [float(a / s) for a, s in zip(away, own) if a > 0]
    return max(far)
