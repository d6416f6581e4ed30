"""A problem: an equation on a domain with its conditions. Observations are sampled from it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np

from ..checking.design import Design, designed
from ..checking.refine import CANDIDATES_PER_POINT, MOST_CANDIDATES, PLACES, most_telling
from ..domain import Domain
from ..equations import Equation, as_operator, plain
from ..equations.nonlinear import as_fields, numbers_of
from ..inference.memory import check_points_fit
from ..observations import Observation, _check_operator_at
from ..operators import Operator, identity, parameters_of
from ..operators.base import applied
from ..regions import Region
from ..sampling import check_count, check_sampler, draw, shares
from ..shown import Rows, Shown
from .conditions import Condition, Statement
from .equations import fields_of, for_fields, order_of, read_equations
from .functions import FAILURES, check_at_a_point, evaluate, finite_values, read_function, split
from .lint import NAMES, Finding, ProblemWarning, findings, in_free_space
from .merging import Row, merged, with_noise
from .verification import Verification, verify

BUDGETS = ("boundary", "initial", "source")
# Streams of random numbers, one for each purpose, so that points for one purpose never equal those for another.
SAMPLED, FRESH, INTERIOR, VERIFIED, NOISE, CALIBRATED, CHECKED, REFINED, TRAINED = range(9)
EXACT = ("calibration", "check", "training")
STREAMS = {
    "validation": FRESH,
    "calibration": CALIBRATED,
    "check": CHECKED,
    "refinement": REFINED,
    "training": TRAINED,
}


@dataclass(frozen=True)
class Points:
    """How many points are observed on the boundary, at the initial time and inside.

    **Arguments:**

    - `boundary`: points on the boundary, shared by its conditions.
    - `initial`: points at the initial time or, for a problem that runs backwards, at the final time.
    - `source`: points inside, where the equation holds.

    !!! example
        ```python
        counts = pk.Points(boundary=100, initial=50, source=150)
        ```
    """

    boundary: int = 0
    initial: int = 0
    source: int = 0

    def __post_init__(self) -> None:
        for name in BUDGETS:
            object.__setattr__(self, name, check_count(name, getattr(self, name)))


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Shown):
    """`A u = f` on a domain, with conditions, and the exact solution where one is known.

    Equations of several fields, and equations that are not linear, are given as `equations` in place of an operator and
    its source.

    **Arguments:**

    - `domain`: the domain of the points.
    - `operator`: the operator `A`.
    - `source`: `f`, a function of one point `q` written with `jax.numpy`, or a number.
    - `conditions`: a list of `Dirichlet`, `Initial`, `Neumann`, `Robin`, `Periodic` and `Sensors`.
    - `exact`: the exact solution, a function of one point, if it is known; of several fields, a function for each by
      its name.
    - `name`: its name, for messages and reports.
    - `points`: how many points `sample` takes by default; chosen from the dimension if they are not given.
    - `equation`: the equation as text for a terminal; written from the operator by default.
    - `mathml`: the equation as MathML for a report.
    - `silenced`: names of findings of `lint` that are known and shall not be reported again.
    - `equations`: a list of equations of fields, `[D(t) @ u + u * (D(x) @ u) == 0]`. Each holds at `source` points.

    !!! example
        ```python
        cooling = pk.Problem(
            domain,
            heat,
            source=0.0,
            conditions=[pk.Dirichlet(on=domain.boundary(x), value=0.0), pk.Initial(t, value=1.0)],
            name="cooling",
        )
        ```
    """

    domain: Domain
    operator: Any = None
    source: Any = None
    conditions: Sequence[Condition] = ()
    exact: Any = None
    name: str = "problem"
    points: Points | None = None
    equation: str = ""
    mathml: str = ""
    silenced: Sequence[str] = ()
    equations: Sequence[Equation] = ()
    fields: tuple[str, ...] = field(init=False, repr=False, default=())
    statements: tuple[Statement, ...] = field(init=False, repr=False)
    _found: tuple[Finding, ...] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise TypeError(f"`domain` needs to be a Domain, such as Domain(x=[(0, 1)] * 3): got {self.domain!r}.")
        if isinstance(self.equations, Equation):
            self._set("equations", (self.equations,))
        inside = self._inside()
        # Where numbers are unknown there are measurements, which may be given to `fit` beside the problem.
        conditions = _read_conditions(self.conditions, bool(parameters_of([s.operator for s in inside])))
        stated = [condition.stated(self.domain) for condition in conditions]
        names = fields_of([*(s.operator for s in inside), *(s.operator for s in stated)])
        statements = for_fields([*stated, *inside], names)
        self._set("fields", names)
        self._set("conditions", conditions)
        self._set("statements", tuple(statements))
        if self.exact is not None:
            self._set("exact", self._read_exact())
        if self.equations:
            self._set("operator", statements[-1].operator)
            self._set("source", statements[-1].value)
            self._set("equation", self.equation or "; ".join(map(str, self.equations)))
        self._set("points", self._read_points(self.points))
        self._set("equation", self.equation or f"{applied(self.operator)} = f")
        self._set("silenced", _read_names(self.silenced))
        for finding in self.lint():
            warnings.warn(f"{self.name}: {finding.text} [{finding.name}]", ProblemWarning, stacklevel=3)

    def _inside(self) -> list[Statement]:
        """What is stated inside: an operator and its source, or equations."""
        if not self.equations:
            if self.operator is None:
                raise TypeError(
                    "A problem needs an operator with its source, or equations: Problem(domain, equations=[…])."
                )
            _check_operator(self.operator, self.domain)
            operator, source = split(self.operator, self.source)
            source = read_function(source, "The source", self.domain)
            return [Statement("source", operator, self.domain.interior, source)]
        if self.operator is not None or self.source is not None:
            raise TypeError("Give either an operator with its source or equations: a source is part of an equation.")
        found = read_equations(self.equations, self.domain)
        return [Statement(label, operator, self.domain.interior, source) for label, operator, source in found]

    def _read_exact(self) -> Any:
        exact = as_fields(self.exact, self.fields)
        if isinstance(exact, Mapping) and len(self.fields) < 2:
            exact = exact[self.fields[0]] if self.fields else exact
        functions = exact if isinstance(exact, Mapping) else {"": exact}
        for name, function in functions.items():
            what = f"The exact solution {name}".strip()
            if not callable(function):
                raise TypeError(f"`exact` needs to be a function of the point q: got {function!r}.")
            check_at_a_point(function, what, self.domain)
        if len(self.fields) > 1 and not isinstance(exact, Mapping):
            raise TypeError(f"`exact` needs a function for each field: exact={{{self.fields[0]!r}: …}}.")
        return exact

    def sample(
        self,
        source: int | None = None,
        boundary: int | None = None,
        initial: int | None = None,
        seed: int = 0,
        sampler: str = "uniform",
        noise: float = 0.0,
    ) -> tuple[Observation, ...]:
        """Observations at points drawn from the regions: the conditions first, then the source.

        Conditions on the boundary share its points in proportion to the areas of their regions. Measurements and
        conditions at given points are always included completely. Conditions with the same operator become one
        observation, unless their noise differs.

        **Arguments:**

        - `source`: points inside; `problem.points.source` by default.
        - `boundary`: points on the boundary; `problem.points.boundary` by default.
        - `initial`: points at the initial time; `problem.points.initial` by default.
        - `seed`: the seed of the points and of the noise.
        - `sampler`: `"uniform"`, `"latin-hypercube"`, `"sobol"` or `"halton"`.
        - `noise`: normal noise to add to the values of `u`: its standard deviation divided by that of the values.
          Measurements and conditions that state their noise are not changed.

        **Returns:** a tuple of `Observation`s.

        !!! example
            ```python
            observations = problem.sample(source=20, boundary=10, initial=10, sampler="sobol")
            ```
        """
        given = {"boundary": boundary, "initial": initial, "source": source}
        counts = {name: getattr(self.points, name) if n is None else check_count(name, n) for name, n in given.items()}
        for name, count in counts.items():
            if count and not self._takers(name):
                raise ValueError(f"`{name}={count}`: no condition of {self.name} is sampled there; leave it out.")
        return self._observe(self.statements, counts, check_count("seed", seed), SAMPLED, sampler, noise)

    def fresh(
        self, n: int = 1000, seed: int = 0, sampler: str = "uniform", purpose: str = "validation"
    ) -> tuple[Observation, ...]:
        """New observations to compare a posterior with: `n` of the source, `n` on the boundary and `n` at the initial
        time.
        Their points are never those of `sample`, and two purposes never share points. Measurements have no fresh
        values.

        **Arguments:**

        - `n`: how many of each kind.
        - `seed`: the seed of the points.
        - `sampler`: `"uniform"`, `"latin-hypercube"`, `"sobol"` or `"halton"`.
        - `purpose`: `"validation"`, `"calibration"`, `"check"`, `"refinement"` or `"training"`. Values for a
          calibration, a check or the training of a network are exact, even if a condition states a noise.

        **Returns:** a tuple of `Observation`s.

        !!! example
            ```python
            observations = problem.fresh(50, purpose="calibration")
            ```
        """
        if purpose not in STREAMS:
            raise ValueError(f"Unknown purpose {purpose!r}: choose one of {', '.join(STREAMS)}.")
        sampled = [statement for statement in self.statements if statement.budget]
        counts = dict.fromkeys(BUDGETS, check_count("n", n))
        found = self._observe(sampled, counts, check_count("seed", seed), STREAMS[purpose], sampler, 0.0)
        if purpose not in EXACT:
            return found
        return tuple(Observation(o.operator, o.points, o.values, "exact", o.name) for o in found)

    @overload
    def refine(self, posterior: Any, n: int, seed: int = 0) -> tuple[Observation, ...]: ...

    @overload
    def refine(self, posterior: Any, n: int, seed: int = 0, *, goal: Any, noise: float | None = None) -> Design: ...

    def refine(
        self, posterior: Any, n: int, seed: int = 0, *, goal: Any = None, noise: float | None = None
    ) -> tuple[Observation, ...] | Design:
        """Observations at `n` new points that lower the variance of `u` most, to be added to its data.

        They are chosen one after the other from random candidates on the boundary, at the initial time and inside.

        With a `goal` they are points inside at which to *measure* `u`, because that narrows the goal most.

        **Arguments:**

        - `posterior`: a `Posterior` of this problem. Its kernel is not trained again.
        - `n`: how many points.
        - `seed`: the seed of the candidates.
        - `goal`: what is to become known: an unknown number, as a `Parameter` or by name; `u` at a point; or an
          `Integral` over all coordinates.
        - `noise`: the standard deviation of the new measurements; by default that of the sensors in the data.

        **Returns:** a tuple of `Observation`s; with a `goal` a `Design`, with points and the expected standard
        deviations.

        !!! example
            ```python
            first = problem.sample(10, 10, 10)
            more = problem.refine(pk.condition(pk.ard(problem.domain), first), n=2)
            ```
        """
        if not callable(getattr(posterior, "covariance", None)):
            raise TypeError(f"refine(posterior, n) needs a Posterior, as from fit or condition: got {posterior!r}.")
        count = min(CANDIDATES_PER_POINT * max(check_count("n", n), 1), MOST_CANDIDATES)
        if goal is not None:
            return designed(posterior, goal, self.interior(max(count, PLACES), seed), n, noise)
        candidates = self.fresh(max(count // 3, 1), seed, purpose="refinement")
        parts = zip(candidates, most_telling(posterior, candidates, n, self.interior(PLACES, seed)))
        return tuple(
            Observation(item.operator, item.points[kept], item.values[kept], item.noise, item.name)
            for item, kept in parts
            if len(kept)
        )

    def interior(self, n: int, seed: int = 0, sampler: str = "uniform") -> np.ndarray:
        """New points inside, none of them a point of `sample` or `fresh`.

        **Arguments:**

        - `n`: how many.
        - `seed`: the seed.
        - `sampler`: `"uniform"`, `"latin-hypercube"`, `"sobol"` or `"halton"`.

        **Returns:** an array of shape `(n, d)`.

        !!! example
            ```python
            places = problem.interior(100)
            ```
        """
        check_sampler(sampler)
        rng = np.random.default_rng([check_count("seed", seed), INTERIOR])
        return draw(self.domain.interior, check_count("n", n), rng, sampler)

    def truth(self, points: Any, operator: Any = identity) -> np.ndarray:
        """`A u` of the exact solution, by automatic differentiation.

        **Arguments:**

        - `points`: an array of shape `(n, d)`.
        - `operator`: the operator `A`; `u` itself by default.

        **Returns:** `n` values.

        !!! example
            ```python
            exact = problem.truth(points)
            ```
        """
        if self.exact is None:
            raise ValueError(f"{self.name} has no exact solution: give one with Problem(…, exact=function of q).")
        wanted = plain(as_operator(operator), self.fields)
        if len(self.fields) > 1 and not fields_of([wanted]):
            raise ValueError(f"There are several fields: truth(points, {self.fields[0]}).")
        return evaluate(np.asarray(points, dtype=float), wanted(self.exact))[0]

    def lint(self) -> tuple[Finding, ...]:
        """What a reader would ask before solving the problem: conditions that are missing, contradict or say nothing.

        It is called where a problem is made, and each finding is a warning then. Findings that leave `u` open are
        `fatal`: the verdict on a solution is `"undetermined"`.

        **Arguments:** none.

        **Returns:** findings with a `name`, a sentence as `text`, and `fatal`. `Problem(…, silenced=[name])` leaves
        those of a name out.

        !!! example
            ```python
            assert problem.lint() == ()
            ```
        """
        if self._found is None:
            self._set("_found", tuple(findings(self)))
        return tuple(finding for finding in self._found or () if finding.name not in self.silenced)

    @property
    def unknown_functions(self) -> tuple[str, ...]:
        """The fields that only measurements can determine: there are as many as there are more fields than equations.

        They are those of the lowest order in the equations, such as a source or a conductivity. So are unknown numbers
        of nonlinear equations, as functions of no coordinate.
        """
        inside = [s.operator for s in self.statements if s.budget == "source"]
        count = max(len(self.fields) - len(inside), 0) if len(self.fields) > 1 else 0
        alone = {name for s in self.statements if len(names := fields_of([s.operator])) == 1 for name in names}
        rank = lambda name: (order_of(name, inside), name in alone)
        numbers = [f"{one.name}()" for one in numbers_of([s.operator for s in self.statements])]
        return (*sorted(self.fields, key=rank)[:count], *numbers)

    @property
    def in_free_space(self) -> bool:
        """Whether time has its condition and no face of space has any: then `u` is determined only in the middle."""
        return in_free_space(self)

    def verify(self, n: int = 200, seed: int = 0, tolerance: float = 1e-8) -> Verification:
        """Compare the source and each condition with the exact solution, by automatic differentiation.

        **Arguments:**

        - `n`: the number of points for the source and for each condition.
        - `seed`: the seed of the points.
        - `tolerance`: the largest difference that counts as rounding, relative to the size of the terms.

        **Returns:** a `Verification`. It is true if all parts agree; printed, it shows the parts that do not.

        !!! example
            ```python
            assert problem.verify(n=5).ok
            ```
        """
        if self.exact is None:
            raise ValueError(f"{self.name} has no exact solution to verify it with: Problem(…, exact=function of q).")
        rng = np.random.default_rng([check_count("seed", seed), VERIFIED])
        places = [
            draw(s.where, max(check_count("n", n), 1), rng, "uniform") if isinstance(s.where, Region) else s.where
            for s in self.statements
        ]
        return verify(self.name, self.exact, self.statements, places, tolerance)

    def _observe(
        self,
        statements: Sequence[Statement],
        counts: dict[str, int],
        seed: int,
        stream: int,
        sampler: str,
        noise: float,
    ) -> tuple[Observation, ...]:
        check_sampler(sampler)
        if not (isinstance(noise, int | float | np.number) and 0 <= noise < np.inf):
            raise ValueError(f"`noise` needs a finite number that is not negative, relative to u: got {noise!r}.")
        check_points_fit(sum(counts[name] for name in {s.budget for s in statements if s.budget}), self.domain.dim)
        allotted = self._allotted(statements, counts)
        rows: list[Row] = []
        for number, (statement, count) in enumerate(zip(statements, allotted)):
            rng = np.random.default_rng([seed, stream, number])
            where = statement.where
            points = draw(where, count, rng, sampler) if isinstance(where, Region) else where
            if len(points):
                values = statement.value
                found = finite_values(values, points, f"The {statement.label}") if callable(values) else values
                rows.append((statement, points, found))
        if not rows:
            raise ValueError("There is nothing to observe: all numbers of points are zero.")
        if noise:
            rows = with_noise(rows, float(noise), np.random.default_rng([seed, NOISE]))
        return tuple(merged(rows, noisy=noise > 0))

    def _allotted(self, statements: Sequence[Statement], counts: dict[str, int]) -> list[int]:
        """How many points each statement takes from its budget."""
        found = [0] * len(statements)
        for budget, sharing in _sharing(statements):
            regions = {k: where for k, where in sharing.items() if isinstance(where, Region)}
            if not counts[budget]:
                continue
            if counts[budget] < len(regions) and self.domain.dim > 1:
                raise ValueError(
                    f"`{budget}={counts[budget]}` is too few for {len(regions)} conditions: each needs a point."
                )
            each = shares(max(counts[budget], len(regions)), [region.log_area for region in regions.values()])
            for k, count in zip(regions, each):
                found[k] = count
        return found

    def _takers(self, budget: str) -> bool:
        return any(statement.budget == budget for statement in self.statements)

    def _read_points(self, points: Any) -> Points:
        if points is None:
            return default_points(self.domain.dim, self._takers("boundary"), self._takers("initial"))
        if not isinstance(points, Points):
            raise TypeError(f"`points` needs Points(boundary=…, initial=…, source=…): got {points!r}.")
        for name in BUDGETS:
            count, takers = getattr(points, name), [s for s in self.statements if s.budget == name]
            if count and not takers:
                raise ValueError(f"Points({name}={count}): no condition is sampled there.")
            if takers and not count:
                at = "at the initial or final time" if name == "initial" else f"as {name} points"
                raise ValueError(
                    f"Points({name}=0): the {takers[0].label} is sampled {at} and would get no values. Give "
                    f"Points(…, {name}=…), or leave the condition out."
                )
        return points

    def _conditions(self) -> Sequence[Statement]:
        return self.statements[: -len(self.equations) or -1]

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _described(self) -> tuple[str, Rows]:
        counts = ", ".join(f"{getattr(self.points, name)} {name}" for name in BUDGETS if getattr(self.points, name))
        return f"Problem {self.name}: {self.equation}", {
            "domain": str(self.domain),
            "given": "; ".join(statement.label for statement in self._conditions()),
            "points": f"{counts or 'none'} by default",
            "exact solution": "not known" if self.exact is None else "known",
        }

    def __str__(self) -> str:
        given = "".join(f"\n  {s.label}" for s in self._conditions())
        return f"{self.name}: {self.equation}, {self.domain}{given}"


def _sharing(statements: Sequence[Statement]) -> list[tuple[str, dict[int, Any]]]:
    """The statements that share the points of a budget. Each equation has its own, and so has each field."""
    found: dict[tuple, dict[int, Any]] = {}
    for k, s in enumerate(statements):
        if s.budget:
            own = s.label if s.budget == "source" else fields_of([s.operator])
            found.setdefault((s.budget, own), {})[k] = s.where
    return sorted(((budget, where) for (budget, _), where in found.items()), key=lambda item: BUDGETS.index(item[0]))


def default_points(dim: int, boundary: bool, initial: bool) -> Points:
    """Enough points for a solution that varies along a few directions; zero where no condition is sampled."""
    if not initial:
        return Points(boundary=max(10 * dim, 60) if boundary else 0, source=max(10 * dim, 60))
    found = points_in_time(max(dim - 1, 1))
    return found if boundary else replace(found, boundary=0)


def points_in_time(dim: int) -> Points:
    """100 + 50 + 150 points in ten space dimensions, 200 + 100 + 300 in fifty, and linear in the dimension."""
    n = 75 + round(2.5 * dim)
    return Points(boundary=n, initial=n // 2, source=n + n // 2)


def _check_operator(operator: Any, domain: Domain) -> None:
    if not isinstance(operator, Operator):
        raise TypeError(f"`operator` needs to be an operator such as D(t) - Laplacian(x): got {operator!r}.")
    if operator.layout not in (None, domain.layout):
        raise ValueError(
            f"`operator` acts on coordinates of another domain, {operator.layout}: the problem's are {domain.layout}."
        )
    try:
        _check_operator_at(operator, 0.5 * (domain.lower + domain.upper))
    except FAILURES as error:
        raise ValueError(f"`operator` could not be evaluated at a point of the domain: {error}") from error


def _read_names(silenced: Any) -> tuple[str, ...]:
    found = (silenced,) if isinstance(silenced, str) else tuple(silenced)
    if unknown := [name for name in found if name not in NAMES]:
        raise ValueError(f"`silenced` takes names of findings, {', '.join(NAMES)}: got {unknown[0]!r}.")
    return found


def _read_conditions(conditions: Any, may_be_none: bool = False) -> tuple[Condition, ...]:
    found = (conditions,) if isinstance(conditions, Condition) else conditions
    if not isinstance(found, Sequence) or isinstance(found, str) or not (len(found) or may_be_none):
        raise ValueError(
            "A problem needs at least one condition, as in conditions=[Dirichlet(on=domain.boundary(x), value=0.0)]: "
            "without any, its solution is not determined."
        )
    for condition in found:
        if not isinstance(condition, Condition):
            raise TypeError(
                f"`conditions` takes Dirichlet, Initial, Neumann, Robin, Periodic, Sensors: got {condition!r}."
            )
    return tuple(found)
