"""A problem as its linearisation at a posterior mean states it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..domain import Domain
from ..equations import Nonlinear
from ..inference import Posterior
from ..observations import Observation
from .linearising import linear_at, values_of


class Around:
    """What training and checks ask of a problem, with its nonlinear equations linearised.

    With a posterior it also has fresh values. There `y − A m` of a linearised row is `f − F(m)`, so what is compared is
    the residual of the equation itself.
    """

    def __init__(self, problem: Any, linear: Sequence[Observation], posterior: Posterior | None = None) -> None:
        self.problem, self.posterior = problem, posterior
        self.domain: Domain = problem.domain
        by_name = {item.name: item for item in linear}
        self.statements = tuple(self._stated(s, by_name) for s in problem.statements)
        self.name, self.fields = problem.name, problem.fields
        if posterior is not None:
            self.fresh, self.interior = self._fresh, problem.interior

    @property
    def in_free_space(self) -> bool:
        return bool(self.problem.in_free_space)

    def lint(self) -> Sequence[Any]:
        return self.problem.lint()

    def _stated(self, statement: Any, linear: dict[str, Observation]) -> Any:
        """A nonlinear statement becomes that of its linearisation, at the points where it was linearised."""
        if not isinstance(statement.operator, Nonlinear):
            return statement
        item = linear[str(statement.operator)]
        return replace(
            statement,
            operator=item.operator,
            where=np.asarray(item.points),
            value=np.asarray(item.values),
            measured=True,
        )

    def _fresh(self, n: int = 1000, seed: int = 0, sampler: str = "uniform", purpose: str = "validation") -> Any:
        data = self.problem.fresh(n, seed, sampler, purpose)
        assert self.posterior is not None
        return linear_at(data, values_of(self.posterior, data))
