"""The part of a posterior that compares it with values it was not conditioned on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..compilation import array_of, compiled_quickly
from ..observations import Learned, Observation, check_observations
from ..operators import Operator, Row, identity, same
from ..verdicts import INSIDE
from .calibration import Calibration, Compared, Probes, factor_of, factors_of, votes
from .cholesky import inverse, left_out
from .joint import Joint, joint
from .residuals import error_given
from .rows import ROUNDING, values_of_fields
from .solver import Factorised

if TYPE_CHECKING:
    from .posterior import Posterior

# Probes of each cause: enough to tell causes apart, and few enough not to slow predictions down.
PROBES = 100
# How far the quantile of errors inside may be from their root mean square.
SLACK_INSIDE = 0.5
# Left-out values are left out one at a time, and in clusters of about this many neighbours.
CLUSTER = 10

left_out_of, inverse_of = compiled_quickly(left_out), compiled_quickly(inverse)


class Cause(NamedTuple):
    """One cause of errors: fresh values that show it or, where there are none, observed values to be left out."""

    name: str
    fresh: tuple[Observation, ...]
    left_out: tuple[int, ...]


class Inside(NamedTuple):
    """Places inside, and errors of `u`, or of a field, there."""

    operator: Operator
    places: np.ndarray
    errors: np.ndarray


class Comparing:
    """Errors at fresh and at left-out values, and error bars that fit them."""

    def calibrated(self: Any, fresh: Sequence[Observation] = (), *, narrow: bool = True) -> Posterior:
        """The same posterior with standard deviations that fit values it was not conditioned on. Means stay as they
        are.

        The error of `u` has several causes: each condition, and the source. Each gets a factor of its own, from the
        fresh values of that cause; `posterior.calibration` holds them. Fresh values of `u` lie on the boundary and at
        the initial time, but error bars are wanted inside, so each value counts by how much it tells about the inside.
        Fresh values are exact, so the learned noise is not added. Fresh values with a known noise can only widen error
        bars. Data without fresh values of their kind are left out in turn, one at a time and in clusters of neighbours,
        and predicted from all others. Training has seen these values, so they can only widen error bars too.

        **Arguments:**

        - `fresh`: new values, such as `problem.fresh(500, purpose="calibration")`; none to use the data alone.
        - `narrow`: whether error bars may become narrower.

        **Returns:** a `Posterior`.

        !!! example
            ```python
            wider = pk.condition(pk.ard(problem.domain), problem.sample(10, 10, 10)).calibrated()
            ```
        """
        found = check_observations(fresh) if len(fresh) else ()
        plain = self.uncalibrated()
        causes = plain._causes(found)
        if not found or not isinstance(self.solver, Factorised):
            return plain._calibrated_as_a_whole(found, narrow)
        source = causes[-1].fresh
        inside = np.asarray(source[0].points if source else np.zeros((0, self.model.kernel.dim)))
        noisy = [any(float(np.max(o.noise_variance({}))) > 0 for o in c.fresh if not o.noise_name) for c in causes]
        only_values = all(item.of_values for cause in causes for item in cause.fresh)
        split, errors = plain._split(causes, inside[:0] if only_values or any(noisy) else inside)
        count = len(split.calibration.causes)
        first = count - len(causes)
        # Where there are several fields, there is no one field by which values count.
        near = inside if len(inside) and len(values_of_fields(self)) == 1 else None
        compared = [split._of_cause(first + k, cause, count, near) for k, cause in enumerate(causes)]
        compared = [*(split._of_inside(error) for error in errors), *compared]
        wide = [bool(cause.left_out) or noise or not narrow for cause, noise in zip(causes, noisy)]
        least = [0.0 if narrow else 1.0] * first + [1.0 if only_wider else 0.0 for only_wider in wide]
        names = ["fresh values"] + ["left-out values"] * any(cause.left_out for cause in causes)
        factors = array_of(factors_of(compared, least))
        calibration = dataclasses.replace(split.calibration, factors=factors, source=" and ".join(names))
        return dataclasses.replace(self, calibration=calibration)

    def uncalibrated(self: Any) -> Posterior:
        """The same posterior with the standard deviations that the model itself gives.

        **Arguments:** none.

        **Returns:** a `Posterior`.

        !!! example
            ```python
            assert posterior.uncalibrated().calibration is None
            ```
        """
        return dataclasses.replace(self, calibration=None)

    def compared(self: Any, fresh: Observation, inside: np.ndarray | None = None) -> Compared:
        """The errors at values that were not conditioned on, beside the variances that were predicted there.

        **Arguments:**

        - `fresh`: the values, one observation.
        - `inside`: points inside. If they are given, values count by how much they tell about `u` at these points.

        **Returns:** a `Compared` with `errors`, `variance`, `noise` and `weight`.

        !!! example
            ```python
            new = pk.Observation(pk.identity, points[:5], values[:5], noise="exact")
            assert posterior.compared(new).errors.shape == (5,)
            ```
        """
        predicted = self._predicted(fresh.points, fresh.operator)
        known = np.zeros(len(fresh)) if fresh.noise_name else np.broadcast_to(fresh.noise_variance({}), len(fresh))
        weight = np.ones(len(fresh))
        if inside is not None:
            covariance = self.covariance(inside, identity, fresh.points, fresh.operator)
            claimed = np.sqrt(np.outer(self.predict(inside).variance, predicted.variance + predicted.besides))
            weight = votes(covariance / claimed)
        errors = np.asarray(fresh.values) - predicted.mean
        return Compared(errors, predicted.by_cause, known + predicted.besides, weight)

    def left_out(self: Any) -> list[Compared]:
        """Each value of the data against its prediction from all others.

        **Arguments:** none.

        **Returns:** a `Compared` for each observation; an empty list if the solver is iterative.

        !!! example
            ```python
            (found,) = posterior.left_out()
            ```
        """
        if not isinstance(self.solver, Factorised):
            return []
        return self._split_by_observation(*map(np.asarray, left_out_of(self.solver.factor, self.alpha)))

    def left_out_clusters(self: Any) -> list[Compared]:
        """The mean of each cluster of neighbours against its prediction from all other values.

        Dense measurements vouch for each other: each is predicted well from the next. And errors of neighbours that
        have the same sign do not average out as noise does. So the points of an observation are left out in clusters of
        about ten. With `P = K⁻¹` the errors of a cluster are `P_bb⁻¹ α_b`, with covariance `P_bb⁻¹`, noise included.

        **Arguments:** none.

        **Returns:** a `Compared` for each observation, with one entry for each cluster; an empty list if the solver is
        iterative.

        !!! example
            ```python
            (found,) = posterior.left_out_clusters()
            ```
        """
        if not isinstance(self.solver, Factorised):
            return []
        precision, alpha = np.asarray(inverse_of(self.solver.factor)), np.asarray(self.alpha)
        normalisation = self.model.kernel.components[0].normalisation
        found, begin = [], 0
        for item in self.observations:
            noise = np.broadcast_to(np.asarray(item.noise_variance(self.model.log_noise)), len(item))
            rows = []
            for part in clusters(np.asarray(item.points) * np.asarray(normalisation.scale)):
                members = begin + part
                covariance = np.linalg.inv(precision[np.ix_(members, members)])
                errors, of_noise = np.mean(covariance @ alpha[members]), np.mean(noise[part]) / len(part)
                rows.append((errors, max(float(np.mean(covariance)) - of_noise, 0.0), of_noise))
            errors, variance, of_noise = np.asarray(rows).T
            found.append(Compared(errors, variance[None], of_noise, np.ones(len(rows))))
            begin += len(item)
        return found

    def _split_by_observation(self: Any, errors: np.ndarray, variance: np.ndarray) -> list[Compared]:
        """Errors and variances of all data, noise included, observation by observation."""
        ends = np.cumsum([len(item) for item in self.observations])[:-1]
        found = []
        for item, e, v in zip(self.observations, np.split(errors, ends), np.split(variance, ends)):
            noise = np.broadcast_to(np.asarray(item.noise_variance(self.model.log_noise)), len(item))
            found.append(Compared(e, np.maximum(v - noise, 0.0)[None], noise, np.ones(len(item))))
        return found

    def _causes(self: Any, fresh: Sequence[Observation]) -> list[Cause]:
        """Values of `u` first, then other operators by their order: the source comes last."""
        data = [
            Cause(item.name, (), (i,))
            for i, item in enumerate(self.observations)
            if not any(_alike(item, other) for other in fresh)
        ]
        of_u: dict[str, tuple[Observation, ...]] = {}
        for item in fresh:
            if item.of_values:
                name = str(item.operator) if isinstance(item.operator, Row) else "u"
                of_u[name] = (*of_u.get(name, ()), item)
        others = [Cause(item.name, (item,), ()) for item in fresh if not item.of_values]
        order = lambda cause: max([o.operator.order for o in cause.fresh], default=-1)
        values = [Cause(name, items, ()) for name, items in of_u.items()]
        return [*data, *values, *sorted(others, key=order)]

    def _split(self: Any, causes: Sequence[Cause], inside: np.ndarray) -> tuple[Posterior, list[Inside]]:
        """This posterior with probes for each cause and all factors one, and the errors of `u` inside.

        Values of `u` inside are a cause of their own, the first, if fresh values tell how large their errors are. With
        several fields this holds for each.
        """
        items = [(k, item) for k, cause in enumerate(causes) for item in self._items(cause)]
        totals = [sum(map(len, self._items(cause))) for cause in causes]
        parts = [some(len(item), -(-2 * PROBES * len(item) // totals[k])) for k, item in items]
        ends = np.cumsum([0, *map(len, parts)])
        rows = [(item.operator, np.asarray(item.points)[part]) for (_, item), part in zip(items, parts)]
        index = [np.arange(i, j) for i, j in pairwise(ends)]
        inside = inside if len(inside) > 1 else inside[:0]
        held = np.isin(np.arange(len(inside)), some(len(inside), min(PROBES, len(inside) // 2)))
        targets = values_of_fields(self) if len(inside) else []
        places = [(operator, part) for operator in targets for part in (inside[held], inside[~held])]
        found = joint(self, [*rows, *places])
        probes = [(k, op, points[::2], at[::2]) for (k, _), (op, points), at in zip(items, rows, index)]
        names: list[str] = [cause.name for cause in causes]
        fresh = [
            (at, np.asarray(item.values)[part]) for (k, item), part, at in zip(items, parts, index) if causes[k].fresh
        ]
        errors: list[Inside] = []
        for number, operator in reversed(list(enumerate(targets))):
            of_held = ends[-1] + number * len(inside) + np.arange(held.sum())
            last = ends[-1] + number * len(inside) + np.arange(held.sum(), len(inside))
            error = _errors_inside(found, fresh, operator, inside[~held], last)
            if error is not None:
                errors.insert(0, error)
                probes.insert(0, (number - len(targets), operator, inside[held], of_held))
                names.insert(0, name_inside(operator))
        numbers, operators, points, at = zip(*probes)
        counts = tuple(sum(len(q) for k, q in zip(numbers, points) if k == number) for number in sorted({*numbers}))
        chosen = np.concatenate(at)
        made = Probes(
            operators,
            tuple(map(array_of, points)),
            array_of(found.solved[:, chosen]),
            array_of(found.factor(chosen)),
            counts,
        )
        calibration = Calibration(array_of(np.ones(len(names))), made, tuple(names), "nothing yet")
        return dataclasses.replace(self, calibration=calibration), errors

    def _of_inside(self: Any, error: Inside) -> Compared:
        parts = self._predicted(error.places, error.operator)
        # Residuals show the errors for numbers as they were learned.
        return Compared(error.errors, parts.by_cause, parts.rounding, np.ones(len(error.places)), SLACK_INSIDE)

    def _items(self: Any, cause: Cause) -> tuple[Observation, ...]:
        return cause.fresh or tuple(self.observations[i] for i in cause.left_out)

    def _of_cause(self: Any, number: int, cause: Cause, count: int, inside: np.ndarray | None) -> Compared:
        """The errors of one cause: of its fresh values, or of values that are left out."""
        if cause.fresh:
            last = number == count - 1
            return _joined([self.compared(item, None if last else inside) for item in cause.fresh])
        found = [c[i] for c in (self.left_out(), self.left_out_clusters()) for i in cause.left_out]
        parts = [np.where(np.arange(count)[:, None] == number, item.parts, 0.0) for item in found]
        each = [item._replace(parts=part) for item, part in zip(found, parts)]
        worst = max(each, key=lambda c: factor_of(c) / chance(len(c.errors)))
        return worst._replace(errors=worst.errors / chance(len(worst.errors)))

    def _calibrated_as_a_whole(self: Any, fresh: Sequence[Observation], narrow: bool) -> Posterior:
        """One factor for the whole error: the largest that any kind of values asks for."""
        found = [self.compared(item) for item in fresh] or [*self.left_out(), *self.left_out_clusters()]
        if not found:
            return self
        noisy = not (fresh and narrow) or any(
            np.any(item.noise_variance({}) > 0) for item in fresh if not item.noise_name
        )
        factor = max(factor_of(c) / (1.0 if fresh else chance(len(c.errors))) for c in found)
        name = "fresh values" if fresh else "left-out values"
        factors = jnp.asarray([max(factor, 1.0) if noisy else factor])
        return dataclasses.replace(self, calibration=Calibration(factors, None, ("all errors",), name))


def chance(count: int) -> float:
    """How much larger than one the spread of `count` normal errors may be by chance: two standard deviations of it."""
    return 1 + 2 / np.sqrt(2 * count)


def _alike(item: Observation, fresh: Observation) -> bool:
    """Whether fresh values show how well the observed ones are predicted.

    Fresh values of conditions say nothing about sensors: those have a name of their own.
    """
    values = item.of_values and fresh.of_values and not isinstance(item.operator, Row)
    alike = values or same(item.operator, fresh.operator)
    return alike and (item.name == fresh.name or not measured(item))


def measured(item: Observation) -> bool:
    """Whether these are measurements with noise, and not values of a function."""
    return not item.noise.exact if isinstance(item.noise, Learned) else bool(np.any(np.asarray(item.noise) > 0))


def _joined(parts: Sequence[Compared]) -> Compared:
    errors, claimed, noise, weight = (np.concatenate(columns, axis=-1) for columns in zip(*(c[:4] for c in parts)))
    return Compared(errors, claimed, noise, weight)


def some(total: int, count: int) -> np.ndarray:
    """At most `count` of `total` indices, evenly spread: points of several regions come one after the other."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).astype(int))


def clusters(points: np.ndarray) -> list[np.ndarray]:
    """Indices of neighbours, about `CLUSTER` in each part: halves along the widest coordinate, again and again."""
    parts = [np.arange(len(points))]
    while len(parts[0]) > CLUSTER or (len(parts) == 1 and len(points) > 1):
        halves = []
        for part in parts:
            widest = np.argmax(np.ptp(points[part], axis=0))
            halves += np.array_split(part[np.argsort(points[part, widest], kind="stable")], 2)
        parts = halves
    return parts


def name_inside(operator: Operator) -> str:
    """What errors of a field inside are called."""
    return f"{operator} inside" if isinstance(operator, Row) else INSIDE


def _errors_inside(
    found: Joint,
    fresh: Sequence[tuple[np.ndarray, np.ndarray]],
    operator: Operator,
    places: np.ndarray,
    last: np.ndarray,
) -> Inside | None:
    """Errors of `u` at places, the rows `last`, as residuals of fresh values show them; `None` if these tell too
    little.

    What the residuals leave is drawn at random, in proportion to the errors that they show.
    """
    rows = found.of(np.concatenate([*(at for at, _ in fresh), last]))
    claimed = np.maximum(np.diagonal(rows.covariance), 0.0) + ROUNDING * rows.prior
    shown = error_given(rows, np.concatenate([values for _, values in fresh]), claimed[-len(places) :])
    if shown.open:
        return None
    factor = np.sqrt(np.mean(shown.mean**2) / np.mean(np.maximum(shown.claimed - shown.left, 0.0)))
    draws = np.random.default_rng(0).normal(size=len(places))
    return Inside(operator, places, shown.mean + factor * np.sqrt(shown.left) * draws)
