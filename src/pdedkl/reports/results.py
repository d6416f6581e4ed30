"""Predictions and truth on fresh points, from which metrics and pictures are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import metrics
from ..equations import Nonlinear
from ..inference import Posterior, Prediction, linearising
from ..inference.linearising import linear_at
from ..inference.rows import values_of_fields
from ..observations import Observation
from ..operators import Operator
from ..operators.base import Identity, applied

POINTS = 1000


@dataclass(frozen=True)
class Part:
    """What was predicted at fresh points, a field or an equation, and the truth there; `None` if it is not known.

    `name` is that of its metrics: `u` and `f` where there is one field.
    """

    name: str
    label: str
    found: Prediction
    truth: np.ndarray | None


@dataclass(frozen=True)
class Results:
    """Fields and equations as predicted at fresh interior points."""

    points: np.ndarray
    fields: tuple[Part, ...]
    equations: tuple[Part, ...]
    u_constant: np.ndarray | None = None
    u_line: np.ndarray | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.fields, *self.equations)

    def known(self) -> list[Part]:
        """What can be compared with a truth. Of several fields, equations only where no field can."""
        found = [part for part in self.parts if part.truth is not None]
        of_fields = [part for part in found if part in self.fields]
        return of_fields if of_fields and len(self.fields) > 1 else found

    def metrics(self) -> dict[str, Any]:
        """Metrics with the names of `metrics.json`.

        `constant_u` and `line_u` are the errors of the best constant and line.
        """
        out: dict[str, Any] = {"parts": [part.name for part in self.parts]}
        for part in self.parts:
            if part.truth is not None:
                out |= metrics.summary(part.found.mean, part.found.std, part.truth, part.name)
            out[f"clamped_{part.name}"] = part.found.clamped
        for name, values in (("constant_u", self.u_constant), ("line_u", self.u_line)):
            if values is not None and (truth := self.fields[0].truth) is not None:
                out[name] = metrics.relative_l2(values, truth).value
        return out


def evaluate(posterior: Posterior, problem: Any, n: int = POINTS, seed: int = 0) -> Results:
    """Predict fields and equations at `n` fresh points of the problem, and compute the truth there if it is known."""
    points = np.asarray(problem.interior(n, seed))
    values = [item for item in posterior.observations if isinstance(item.operator, Identity)]
    constant = line = None
    if values:
        q, y = (np.concatenate([np.asarray(getattr(o, name)) for o in values]) for name in ("points", "values"))
        constant, line = metrics.best_constant(q, y)(points), metrics.best_line(q, y)(points)
    names = posterior.model.kernel.fields
    fields = []
    for number, operator in enumerate(values_of_fields(posterior)):
        name = names[number] if len(names) > 1 else "u"
        truth = values_of(exact_of(problem, names, number), points)
        fields.append(Part(name, names[number] if names else "u", posterior.predict(points, operator), truth))
    return Results(points, tuple(fields), tuple(_equations(posterior, problem, points)), constant, line)


def exact_of(problem: Any, names: Sequence[str], number: int) -> Any:
    """The exact solution for one of the fields; `None` if it is not known."""
    return problem.exact[names[number]] if isinstance(problem.exact, Mapping) else problem.exact


def _equations(posterior: Posterior, problem: Any, points: np.ndarray) -> Iterator[Part]:
    stated = getattr(problem, "equations", ())
    inside = [(problem.operator, problem.source)]
    if stated:
        inside = [(s.operator, s.value) for s in problem.statements[-len(stated) :]]
    for number, (operator, source) in enumerate(inside, start=1):
        text = applied(operator) if stated else "A u"
        name, label = ("f", f"f = {text}") if len(inside) == 1 else (f"equation_{number}", text)
        yield Part(name, label, _of_equation(posterior, operator, points), values_of(source, points))


def _of_equation(posterior: Posterior, operator: Operator, points: np.ndarray) -> Prediction:
    """`A u`, or `F(m)` with the error bars of its linearisation at the mean."""
    if not isinstance(operator, Nonlinear):
        return posterior.predict(points, operator)
    item = [Observation(operator, points, np.zeros(len(points)), "exact")]
    (linear,) = linear_at(item, linearising.values_of(posterior, item))
    found = posterior.predict(points, linear.operator)
    # The value of a linearised row is `A m − F(m)` where that of the equation is zero.
    mean = found.mean - np.asarray(linear.values)
    return Prediction(mean, found.variance, found.clamped, found.points, found.names, str(operator))


def values_of(function: Any, points: np.ndarray) -> np.ndarray | None:
    """The values of a function of one point, or of a number, at all points; `None` for `None`."""
    if function is None:
        return None
    if not callable(function):
        return np.full(len(points), float(function))
    found = jax.jit(jax.vmap(lambda q: jnp.asarray(function(q), dtype=float)))(jnp.asarray(points))
    return np.asarray(found)
