"""What a problem of the zoo is, and helpers to write one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

import pdedkl as pk

PLACES = 1000
# Functions of one point are compiled once, for this many points at a time.
BLOCK = 1000

# `u` at many points: from an array of shape (n, d) to n values.
Field = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A problem as a user would write it, its data, and the truth from outside the library.

    **Arguments:**

    - `title`: the equation in one line.
    - `problem`: what `fit` gets first.
    - `data`: what `fit` gets second, drawn with the seed.
    - `places`: test points inside.
    - `truth`: `u` at the places.
    - `operator`: `A`, if `A u` is to be predicted too. It holds the true values of unknown coefficients.
    - `source`: `A u` at the places.
    - `posed`: whether the data determine `u`.
    - `coefficients`: true values of unknown coefficients, by name.
    - `wanted`: the relative error to reach; also that of each unknown coefficient.
    - `exact`: the truth as a function, from an array of shape `(n, d)` to `n` values.
    - `accuracy`: the relative error of the truth. Formulas are exact up to rounding.
    """

    title: str
    problem: pk.Problem | pk.Domain
    data: tuple[pk.Observation, ...]
    places: np.ndarray
    truth: np.ndarray
    operator: pk.Operator | None
    source: np.ndarray | None
    posed: bool = True
    coefficients: dict[str, float] | None = None
    wanted: float | None = None
    exact: Field = field(kw_only=True)
    accuracy: float = field(default=1e-13, kw_only=True)


def of_problem(
    title: str,
    problem: pk.Problem,
    exact: Field,
    seed: int,
    *,
    within: tuple[Any, Any] | None = None,
    noise: float = 0.0,
    **more: Any,
) -> Case:
    """A case from a `Problem`, sampled with its own numbers of points.

    `within` is the lower and upper end of a smaller box for the test points. `more` goes to `Case`.
    """
    places = problem.interior(PLACES, seed)
    if within is not None:
        places = np.random.default_rng([seed, 1]).uniform(*within, (PLACES, problem.domain.dim))
    parts: dict[str, Any] = {"operator": problem.operator, "source": values_at(problem.source, places)} | more
    return Case(title, problem, problem.sample(seed=seed, noise=noise), places, exact(places), exact=exact, **parts)


def of_data(
    title: str,
    domain: pk.Domain,
    data: Sequence[pk.Observation],
    places: np.ndarray,
    exact: Field,
    operator: pk.Operator | None = None,
    source: Field | None = None,
    **more: Any,
) -> Case:
    """A case from a bare `Domain` and observations at one's own points."""
    values = None if source is None else source(places)
    return Case(title, domain, tuple(data), places, exact(places), operator, values, exact=exact, **more)


def on_rows(function: Callable[[Any], Any]) -> Field:
    """The values at the rows of an array, from a function of one point written with `jax.numpy`."""
    compiled = jax.jit(jax.vmap(lambda q: jax.numpy.asarray(function(q), dtype=float)))

    def at_rows(q: np.ndarray) -> np.ndarray:
        filled = np.concatenate([q, np.repeat(q[-1:], -len(q) % BLOCK, axis=0)])
        blocks = filled.reshape(-1, BLOCK, q.shape[1])
        return np.concatenate([np.asarray(compiled(block)) for block in blocks])[: len(q)]

    return at_rows


def values_at(function: Any, q: np.ndarray) -> np.ndarray:
    """The values of a number or of a function of one point."""
    return on_rows(function)(q) if callable(function) else np.full(len(q), float(function))


def constant(number: float) -> Field:
    """The same number at every point."""
    return lambda q: np.full(len(q), number)


def on_faces(domain: pk.Domain, axes: Sequence[int], n: int, rng: np.random.Generator) -> np.ndarray:
    """Random points on the faces of these coordinates."""
    lower, upper = domain.lower, domain.upper
    points = rng.uniform(lower, upper, (n, domain.dim))
    axis = rng.choice(np.asarray(axes), n)
    points[np.arange(n), axis] = np.where(rng.random(n) < 0.5, lower[axis], upper[axis])
    return points


def uniform(domain: pk.Domain, n: int, rng: np.random.Generator) -> np.ndarray:
    """Random points of a box."""
    return rng.uniform(domain.lower, domain.upper, (n, domain.dim))


def measured(values: np.ndarray, relative: float, rng: np.random.Generator) -> np.ndarray:
    """The values with normal noise, relative to their standard deviation."""
    return values + relative * np.std(values) * rng.normal(size=len(values))
