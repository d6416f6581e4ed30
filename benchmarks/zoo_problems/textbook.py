"""The fifteen equations of `benchmarks/textbook.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textbook import PROBLEMS

from .common import Case, of_problem, on_rows


def textbook(name: str, seed: int) -> Case:
    """A condition whose number of points is zero is missing from the data: the final values of `black-scholes`."""
    problem, title = PROBLEMS[name]()
    posed = all(getattr(problem.points, part.budget) for part in problem.statements if part.budget)
    return of_problem(title, problem, on_rows(problem.exact), seed, posed=posed)


CASES: dict[str, Callable[[int], Case]] = {f"textbook-{name}": partial(textbook, name) for name in PROBLEMS}
