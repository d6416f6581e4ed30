"""A problem as its linearisation at a posterior mean states it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..domain import Domain
from ..equations import Nonlinear
from ..inference import Posterior
from ..inference.linearising import is_linearised, linear_at, values_of
from ..observations import Observation
from ..operators import same


class Around:
    """What training and checks ask of a problem, with its nonlinear equations linearised.

    With a posterior it also has fresh values. There `y − A m` of a linearised row is `f − F(m)`, so what is compared is
    the residual of the equation itself.
    """

    def __init__(self, problem: Any, linear: Sequence[Observation], posterior: Posterior | None = None) -> None:
        self.problem, self.posterior = problem, posterior
        self.domain: Domain = problem.domain
        self.statements = tuple(_stated(s, linear, problem.statements) for s in problem.statements)
        self.name, self.fields, self.unknown_functions = problem.name, problem.fields, problem.unknown_functions
        if posterior is not None:
            self.fresh, self.interior = self._fresh, problem.interior

    @property
    def in_free_space(self) -> bool:
        return bool(self.problem.in_free_space)

    def lint(self) -> Sequence[Any]:
        return self.problem.lint()

    def _fresh(self, n: int = 1000, seed: int = 0, sampler: str = "uniform", purpose: str = "validation") -> Any:
        data = self.problem.fresh(n, seed, sampler, purpose)
        assert self.posterior is not None
        return linear_at(data, values_of(self.posterior, data))


def around(problem: Any, posterior: Posterior) -> Any:
    """The problem as its linearisation at the posterior mean; the problem itself if it is linear."""
    statements = getattr(problem, "statements", ())
    if isinstance(problem, Around) or not any(isinstance(s.operator, Nonlinear) for s in statements):
        return problem
    return Around(problem, posterior.observations, posterior)


def _stated(statement: Any, linear: Sequence[Observation], statements: Sequence[Any]) -> Any:
    """A nonlinear statement becomes that of its linearisation, at the points where it was linearised."""
    operator = statement.operator
    if not isinstance(operator, Nonlinear):
        return statement
    # Different equations may print alike: observations have the order of statements, and equal operators share one.
    alike: list[Nonlinear] = []
    for other in statements:
        if str(other.operator) == str(operator) and not any(same(other.operator, known) for known in alike):
            alike.append(other.operator)
    number = next(i for i, other in enumerate(alike) if same(other, operator))
    found = [item for item in linear if is_linearised(item, operator)]
    if number >= len(found):
        raise ValueError(
            f"The posterior was not conditioned on {operator} of this problem: give the problem that was solved."
        )
    item = found[number]
    points, values = np.asarray(item.points), np.asarray(item.values)
    return replace(statement, operator=item.operator, where=points, value=values, measured=True)
