"""Check a problem against its exact solution, point by point, by automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..operators import parameters_of
from ..operators.base import Sum
from ..shown import Written
from .conditions import Statement
from .functions import evaluate, show_point

SIGMAS = 6.0  # a larger error of a measurement, in standard deviations, is not noise


@dataclass(frozen=True)
class Check:
    """One part of a problem at its worst point: the value `stated` there, and the value of the `exact` solution.

    `checked` is false for measurements whose noise is not known, and for operators with unknown numbers: they cannot
    be checked.
    """

    what: str
    points: int
    error: float
    allowed: float
    point: tuple[float, ...]
    stated: float
    exact: float
    checked: bool = True

    @property
    def ok(self) -> bool:
        return not self.checked or bool(self.error <= self.allowed)

    def __str__(self) -> str:
        if not self.checked:
            return f"  –  {self.what}: not checked, measured with noise of unknown size, or with unknown numbers"
        if self.ok:
            return f"  ok {self.what}: {self.points} points, largest difference {self.error:.1e}"
        place = show_point(np.asarray(self.point))
        found = f"it says {self.stated:.10g} and the exact solution gives {self.exact:.10g}"
        return f"  NO {self.what}: at q = {place} {found}"


@dataclass(frozen=True, repr=False)
class Verification(Written):
    """The checks of all parts of a problem; `ok` if all hold."""

    problem: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def raise_if_wrong(self) -> None:
        if not self.ok:
            raise ValueError(str(self))

    def __str__(self) -> str:
        verdict = "fits its exact solution" if self.ok else "does not fit its exact solution"
        return "\n".join([f"{self.problem} {verdict}:", *map(str, self.checks)])


def verify(
    name: str,
    exact: Any,
    statements: Sequence[Statement],
    places: Sequence[np.ndarray],
    tolerance: float,
) -> Verification:
    if not (isinstance(tolerance, int | float) and 0 < tolerance < 1):
        raise ValueError(f"`tolerance` needs a number between 0 and 1: got {tolerance!r}.")
    # The source comes first: if it is wrong, the other checks matter less.
    order = [len(statements) - 1, *range(len(statements) - 1)]
    # Where u is zero, for example on a face, rounding errors are relative to its size elsewhere.
    size = _size(evaluate(places[-1], *_functions(exact)))
    return Verification(name, tuple(_check(exact, statements[k], places[k], size, tolerance) for k in order))


def _check(exact: Any, statement: Statement, points: np.ndarray, size: float, tolerance: float) -> Check:
    value, operator = statement.value, statement.operator
    # Terms of an operator may cancel. The rounding error is then relative to the largest term.
    terms = operator.terms if isinstance(operator, Sum) else ()
    true, *sizes = evaluate(points, operator(exact), *_functions(exact), *(term(exact) for term in terms))
    stated = evaluate(points, value)[0] if callable(value) else np.asarray(value)
    difference = np.abs(stated - true)
    allowed = np.full(len(points), tolerance * max(size, *map(_size, (stated, true, *sizes))))
    if parameters_of(operator):
        allowed[:] = np.inf  # it holds for values that are not known
    if statement.measured:
        allowed = allowed + SIGMAS * _known_noise(statement)
    badness = np.where(np.isfinite(difference), difference - allowed, np.inf)
    worst = int(np.argmax(badness))
    return Check(
        what=statement.label,
        points=len(points),
        error=float(difference[worst]) if np.isfinite(difference[worst]) else float("nan"),
        allowed=float(allowed[worst]),
        point=tuple(points[worst].tolist()),
        stated=float(stated[worst]),
        exact=float(true[worst]),
        checked=bool(np.isfinite(allowed[worst]) or not np.isfinite(difference[worst])),
    )


def _functions(exact: Any) -> Sequence[Callable[[Any], Any]]:
    """The exact solution, one function for each field."""
    return tuple(exact.values()) if isinstance(exact, Mapping) else (exact,)


def _size(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))


def _known_noise(statement: Statement) -> Any:
    if statement.noise_unknown:
        return np.inf
    return 0.0 if isinstance(statement.noise, str) else np.asarray(statement.noise, dtype=float)
