"""Predictions and truth on fresh points, from which metrics and pictures are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import metrics
from ..inference import Posterior, Prediction
from ..operators.base import Identity

POINTS = 1000


@dataclass(frozen=True)
class Results:
    """`u` and `f = A u` as predicted at fresh interior points; a truth that is not known is `None`."""

    points: np.ndarray
    u: Prediction
    f: Prediction
    u_truth: np.ndarray | None
    f_truth: np.ndarray | None
    u_constant: np.ndarray | None
    u_line: np.ndarray | None

    def metrics(self) -> dict[str, Any]:
        """Metrics with the names of `metrics.json`.

        `constant_u` and `line_u` are the errors of the best constant and line.
        """
        out: dict[str, Any] = {}
        for name, found, truth in (("u", self.u, self.u_truth), ("f", self.f, self.f_truth)):
            if truth is not None:
                out |= metrics.summary(found.mean, found.std, truth, name)
            out[f"clamped_{name}"] = found.clamped
        for name, values in (("constant_u", self.u_constant), ("line_u", self.u_line)):
            if values is not None and self.u_truth is not None:
                out[name] = metrics.relative_l2(values, self.u_truth).value
        return out


def evaluate(posterior: Posterior, problem: Any, n: int = POINTS, seed: int = 0) -> Results:
    """Predict `u` and `f` at `n` fresh points of the problem, and compute the truth there if it is known."""
    points = np.asarray(problem.interior(n, seed))
    values = [item for item in posterior.observations if isinstance(item.operator, Identity)]
    constant = line = None
    if values:
        q, y = (np.concatenate([np.asarray(getattr(o, name)) for o in values]) for name in ("points", "values"))
        constant, line = metrics.best_constant(q, y)(points), metrics.best_line(q, y)(points)
    return Results(
        points=points,
        u=posterior.predict(points),
        f=posterior.predict(points, problem.operator),
        u_truth=values_of(problem.exact, points),
        f_truth=values_of(problem.source, points),
        u_constant=constant,
        u_line=line,
    )


def values_of(function: Any, points: np.ndarray) -> np.ndarray | None:
    """The values of a function of one point, or of a number, at all points; `None` for `None`."""
    if function is None:
        return None
    if not callable(function):
        return np.full(len(points), float(function))
    found = jax.jit(jax.vmap(lambda q: jnp.asarray(function(q), dtype=float)))(jnp.asarray(points))
    return np.asarray(found)
