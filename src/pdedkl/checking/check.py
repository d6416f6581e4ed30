"""A check that needs no exact solution: fresh values of source and conditions against what was predicted there.

A forward problem knows its source and its conditions everywhere, so new values cost nothing. They show whether error
bars hold, and how large the error of `u` is. Inside, where `u` is not known, its standard deviation estimates the
error. All of this means little where the statement of the problem does not determine `u`, so that is asked first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import numpy as np

from ..domain import Domain
from ..inference import Posterior, condition
from ..inference.built_in import not_built_in
from ..inference.calibration import WIDTH, Compared, factor_of
from ..inference.comparing import clusters, measured, name_inside, some
from ..inference.estimates import with_estimates
from ..inference.joint import joint
from ..inference.prediction import Prediction
from ..inference.residuals import error_inside
from ..inference.rows import prior_mean, values_of_fields
from ..inference.solver import Factorised
from ..observations import Learned, Observation
from ..operators import Operator, same
from ..scales import responses
from ..shown import over
from ..verdicts import ROUNDING, UNCHECKED, VALUES, Comparison, Verdict
from .around import around
from .determined import undetermined
from .functions import LeftOpen, left_open

# Points inside over which the error of `u` is estimated, and how many are computed at once.
POINTS_OF_THE_ERROR, BATCH = 5000, 512
# Values smaller than this fraction of what their operator makes of a function as large as `u` count as zero.
NEARLY_ZERO = 1e-2
# If error bars have to be widened by more than this factor, the kernel does not fit the solution.
MISFIT = 2.0
# The same where only left-out values are compared: they exceed their error bars somewhat, since training has seen them.
MISFIT_OF_LEFT_OUT = 3.0
# The same for fresh values, which may be far off at a kink or in a layer.
MISFIT_OF_FRESH = 10.0
# If fresh values of the equation are missed by more than the first fraction of their size, error bars of `u` that are
# smaller than the second fraction of that, at a quarter of the places, do not fit.
MISSED, AT_ODDS = 0.1, 1e-3
# The equation is as good as unknown if this fraction of its variance is left between its points.
UNEXPLAINED = 0.5
# Noise causes the error if a tenth of the noise would lower the error to less than this fraction of it.
RULED_BY_NOISE = 0.6
# Left-out values that are this many standard deviations off are named as outliers.
OUTLIER = 6.0

# Error bars hide what coefficients add to the error of `u` if it is more than this fraction of them, at some places.
HIDDEN, INSIDE_POINTS = 0.5, 200
# Fresh values of each kind from which the error of `u` inside is estimated.
RESIDUALS = 200

ADVICE = {
    "rounding": "Nothing is left to gain: the error is as small as 64-bit numbers allow here.",
    "noise": "Most of the error comes from the noise of the data: more measurements, or better ones, lower it.",
    "points": "There are too few points for this solution: add points where they help most, with "
    "problem.refine(posterior, n), and fit again.",
    "model": "The kernel does not fit the solution well: add points, let fresh values choose the kernel with "
    "fit(…, validation=problem.fresh(200)), or try a larger latent_dim.",
}

KEEP_BACK = (
    "There are no fresh values to compare with, only left-out ones. To be sure, keep some measured values back and "
    "compare them with posterior.predict(points)."
)


def check(
    posterior: Posterior, problem: Any, n: int = 500, seed: int = 0, open_questions: Sequence[str] | None = None
) -> Verdict:
    """Compare a posterior with `n` fresh values each of the source and of the conditions of its problem.

    `open_questions` are the reasons why `u` is not determined, if they are known already.
    """
    _check_problem(posterior, problem)
    problem = around(problem, posterior)
    if open_questions is None:
        open_questions = undetermined(problem, posterior.observations, posterior.model.kernel.zero_at)
    fresh = not_built_in(posterior.model.kernel, problem.fresh(n, seed=seed, purpose="check"))
    inside = problem.interior(n, seed)
    # Where a function is unknown, fresh residuals say little: error bars are not to be as narrow as these.
    inverse = bool(problem.unknown_functions)
    functions = left_open(posterior, inside) if inverse else LeftOpen((), ())
    open_questions = (*open_questions, *functions.everywhere)
    size, error_u = error_of_u(posterior, problem.interior(POINTS_OF_THE_ERROR, seed))
    within = _inside(posterior, fresh, inside, size)
    # With several fields there is no one field by which fresh values count.
    near = None if within or len(values_of_fields(posterior)) > 1 else inside
    comparisons = tuple(_comparison(posterior, item, near, size) for item in fresh)
    if inverse:
        within = tuple(replace(item, strict=False) for item in within)
    if within or error_u < ROUNDING or inverse:
        # Then it is known what the error bars of `u` are worth, and the others need not be as good.
        comparisons = tuple(replace(item, strict=False) for item in comparisons)
    comparisons = (*within, *comparisons)
    error_u *= max((item.z_rms for item in within), default=1.0)
    off = tuple(text for item in comparisons if (text := item._in_words()))
    unseen, more = _by_coefficients(posterior, inside, size)
    unknown = _unknown_between_points(posterior, fresh, inside) or _at_odds(posterior, fresh, comparisons, inside, size)
    error_u = math.nan if unknown else float(np.hypot(error_u, unseen))
    unseen_fields = () if inverse else _unseen(posterior, fresh, within)
    off = (*off, *more, *unknown, *_widened(posterior), *unseen_fields)
    errors_of_u = (error_u, *(item.error for item in comparisons if item.name == VALUES or item.inside))
    cause = "model" if unknown else "rounding" if max(errors_of_u) < ROUNDING else _cause(posterior, fresh, inside)
    astray = unconverged(posterior)
    status = "did not converge" if astray else "not calibrated" if off else "calibrated"
    return Verdict(
        status="undetermined" if open_questions else status,
        reasons=(
            *open_questions,
            *astray,
            *off,
            *functions.somewhere,
            *_open_numbers(posterior),
            *outliers(posterior),
        ),
        error_u=math.nan if astray else error_u,
        ruled_by=cause,
        advice="" if open_questions else ADVICE[cause],
        compared_with="nothing" if posterior.calibration is None else posterior.calibration.source,
        comparisons=comparisons,
    )


def judged_by_the_data(posterior: Posterior, open_questions: Sequence[str]) -> Verdict:
    """The verdict where there are no fresh values: each value, and each cluster of values, against all others.

    Training has seen these values, so error bars that had to be widened much for them are not trusted. The error of `u`
    is estimated at the points of the data.
    """
    places = np.concatenate([np.asarray(o.points) for o in posterior.observations])
    size, error_u = error_of_u(posterior, places)
    unseen, more = _by_coefficients(posterior, places, size)
    error_u = float(np.hypot(error_u, unseen))
    widened = 1.0 if posterior.calibration is None else float(np.max(np.asarray(posterior.calibration.factors)))
    off = (
        (
            f"Error bars had to be widened {widened:.1f} times for left-out values: the kernel does not fit the data. "
            "Add data, or try another profile or model.",
        )
        if widened > MISFIT_OF_LEFT_OUT
        else ()
    )
    off = (*off, *more)
    astray = unconverged(posterior)
    status = "unchecked" if posterior.calibration is None else "not calibrated" if off else "calibrated"
    status = "did not converge" if astray else status
    pairs = zip(posterior.observations, posterior.left_out(), posterior.left_out_clusters())
    comparisons = tuple(_left_out(posterior, item, both, widened, size) for item, *both in pairs if len(item) > 1)
    return Verdict(
        status="undetermined" if open_questions else status,
        reasons=(*open_questions, *astray, *off, *_open_numbers(posterior), *outliers(posterior)),
        error_u=math.nan if astray else error_u,
        advice=KEEP_BACK,
        compared_with="nothing" if posterior.calibration is None else posterior.calibration.source,
        comparisons=comparisons,
    )


def unconverged(posterior: Posterior) -> tuple[str, ...]:
    """A sentence if Newton's method ended far from a solution: what a linearisation says of errors holds near one."""
    training = posterior.training
    if training is None or training.converged:
        return ()
    best = min(training.iterations, key=lambda item: item.residual)
    return (
        f"Newton's method did not converge in {len(training.iterations)} iterations: the last one still changed the "
        f"solution by {training.iterations[-1].change:.1e}, and this is the iterate with the smallest residual, "
        f"{best.residual:.1e} of its terms. Start nearer with start=function of the point, solve it first with easier "
        "numbers, continuation={'nu': [0.1, 0.03]}, or add points.",
    )


def _left_out(
    posterior: Posterior, item: Observation, found: Sequence[Compared], widened: float, size: float
) -> Comparison:
    """Single values and clusters of values of one observation that were left out; the worse of the two."""
    points = np.asarray(item.points)
    parts = clusters(points * np.asarray(posterior.model.kernel.components[0].normalisation.scale))
    middles = np.stack([np.mean(points[part], axis=0) for part in parts])
    name = VALUES if item.of_values else item.name
    each = [
        replace(_compared(item, c._replace(parts=widened**2 * c.parts), size, name, where), of=f"left-out {what}")
        for c, where, what in zip(found, (points, middles), ("values", "clusters"))
    ]
    return max(each, key=lambda comparison: comparison.z_rms)


def error_of_u(posterior: Posterior, points: np.ndarray) -> tuple[float, float]:
    """The size of `u` over the points, and its root mean square error bar relative to that size; the largest of all
    fields."""
    # The error may be large only in a few corners: many points are needed to find them.
    fields = values_of_fields(posterior)
    predicted = [posterior.predict(points, of_field, batch_size=BATCH) for of_field in fields]
    sizes = sizes_of_fields(posterior, predicted)
    errors = [float(np.sqrt(np.mean(u.variance))) / size for u, size in zip(predicted, sizes)]
    return max(sizes), max(errors)


def sizes_of_fields(posterior: Posterior, predicted: Sequence[Prediction]) -> list[float]:
    """The size of each field. One that is as good as zero has none of its own, and gets that of the largest."""
    own = [float(np.sqrt(np.mean(u.mean**2))) for u in predicted]
    zero = [
        size < float(np.sqrt(np.mean(u.variance))) and not _has_values(posterior, of_field)
        for u, size, of_field in zip(predicted, own, values_of_fields(posterior))
    ]
    return [(max(own) if none else size) or 1.0 for size, none in zip(own, zero)]


def _has_values(posterior: Posterior, of_field: Operator) -> bool:
    """Whether values of a field are given that are not zero."""
    given = [item.values for item in posterior.observations if same(item.operator, of_field)]
    return any(bool(np.any(np.asarray(values))) for values in given)


def _variance(posterior: Posterior, places: np.ndarray) -> float:
    """The mean variance at places, over all fields."""
    return float(np.mean([posterior.predict(places, A).variance for A in values_of_fields(posterior)]))


def _unseen(posterior: Posterior, fresh: Sequence[Observation], within: Sequence[Comparison]) -> tuple[str, ...]:
    """A sentence for each of several fields that nothing fresh speaks of: a pressure given at one point, say."""
    fields = values_of_fields(posterior)
    compared = {item.name for item in within}
    open_ = [A for A in fields if name_inside(A) not in compared and not any(same(item.operator, A) for item in fresh)]
    return tuple(
        f"Nothing fresh tells how large the error of {operator} is: its values are given on no face, and the equations "
        "say too little about its level. Its error bars were compared with nothing."
        for operator in open_
        if len(fields) > 1
    )


def _widened(posterior: Posterior) -> tuple[str, ...]:
    """A sentence if error bars had to be widened so much that factors cannot make up for a kernel that does not fit."""
    factors = () if posterior.calibration is None else np.asarray(posterior.calibration.factors)
    if not (widened := float(np.max(factors, initial=1.0))) > MISFIT_OF_FRESH:
        return ()
    return (
        f"Error bars had to be widened {widened:.0f} times for fresh values: the kernel does not fit. Add points, or "
        "try another profile or model.",
    )


def _at_odds(
    posterior: Posterior,
    fresh: Sequence[Observation],
    comparisons: Sequence[Comparison],
    inside: np.ndarray,
    size: float,
) -> tuple[str, ...]:
    """A sentence if the equation is missed by far, and `u` is claimed to be known to many digits at many places.

    A kernel can hold both: with parts that make `A u` large and `u` small, it takes what it misses for such a part.
    """
    highest = max(item.operator.order for item in fresh)
    names = {item.name for item in fresh if item.operator.order == highest and highest}
    missed = max((item.error for item in comparisons if item.name in names), default=0.0)
    each = [posterior.predict(inside, of_field).std for of_field in values_of_fields(posterior)]
    claimed = max(float(np.quantile(std, 0.25)) for std in each) / size
    if not (missed > MISSED and claimed < AT_ODDS * missed):
        return ()
    return (
        f"Fresh values of the equation are missed by {missed:.0%} of their size, but at a quarter of the places u is "
        f"claimed to be known to {claimed:.0e}: both cannot be. The kernel does not fit: add points, or try another "
        "profile or model.",
    )


def _unknown_between_points(posterior: Posterior, fresh: Sequence[Observation], inside: np.ndarray) -> tuple[str, ...]:
    """A sentence if the kernel takes the equation for white noise.

    Then the equation says nothing about `u` between its points. Error bars of `u` can be as narrow as they like there,
    while those of the equation, which are wide, hold.
    """
    highest = max(item.operator.order for item in fresh)
    if not isinstance(posterior.solver, Factorised) or not highest:
        return ()
    places = inside[some(len(inside), INSIDE_POINTS)]
    for item in fresh:
        if item.operator.order == highest and item.operator.local:
            rows = joint(posterior.uncalibrated(), [(item.operator, places)])
            # What a prior mean says of the equation is known.
            known = np.mean(prior_mean(posterior, item.operator, places) ** 2)
            left = float(np.mean(np.diagonal(rows.covariance)) / (np.mean(rows.prior) + known))
            if left > UNEXPLAINED:
                return (
                    f"Between its points {item.name} is as good as unknown: {left:.0%} of its variance is left there. "
                    "So the equation says little about u. Add points inside, or try another profile or model.",
                )
    return ()


def _by_coefficients(posterior: Posterior, places: np.ndarray, size: float) -> tuple[float, tuple[str, ...]]:
    """The error of `u` that learned coefficients add, relative to its size, and a sentence if error bars hide it.

    Those of a posterior that `fit` has made contain it.
    """
    if not posterior.model.coefficients or posterior.estimates is not None:
        return 0.0, ()
    places = places[some(len(places), INSIDE_POINTS)]
    claimed = _variance(posterior, places)
    found = float(np.sqrt(_variance(with_estimates(posterior), places) - claimed)) / size
    if not found > HIDDEN * np.sqrt(claimed) / size:
        return found, ()
    names = ", ".join(sorted(posterior.model.coefficients))
    return found, (
        f"The data leave {names} uncertain. This adds about {found:.1e} to the error of u, which its error bars do not "
        "contain: give more or better measurements of u.",
    )


def _open_numbers(posterior: Posterior) -> tuple[str, ...]:
    """What the data leave open of unknown numbers. Error bars of `u` contain it, so they can hold all the same."""
    if not posterior.model.coefficients and not posterior.model.numbers:
        return ()
    # What an earlier verdict says of them is no reason for this one.
    return replace(posterior, verdict=UNCHECKED).parameters.findings


def outliers(posterior: Posterior) -> tuple[str, ...]:
    """A sentence for each observation with values that all others contradict."""
    found = []
    for item, left in zip(posterior.observations, posterior.left_out()):
        if isinstance(item.noise, Learned) and item.noise.exact:
            continue
        z = np.abs(left.errors) / np.sqrt(np.maximum(left.variance + left.noise, np.finfo(float).tiny))
        # A kernel that does not fit is wrong everywhere: an outlier is far off where most values are not.
        if len(far := np.flatnonzero(z > OUTLIER * max(1.0, float(np.median(z)) / 0.6745))) and len(item) >= 10:
            rows = ", ".join(str(i) for i in far[np.argsort(-z[far])][:8]) + (", …" if len(far) > 8 else "")
            found.append(
                f"{len(far)} of {len(item)} values of {item.name!r} are far from what all others predict (rows {rows}, "
                f'up to {z.max():.0f} standard deviations): correct or remove them, or give noise="robust".'
            )
    return tuple(found)


def _check_problem(posterior: Posterior, problem: Any) -> None:
    """Only a problem knows its source and its conditions everywhere, and so has fresh values to compare with."""
    if not all(callable(getattr(problem, name, None)) for name in ("fresh", "interior")):
        known = posterior.model.kernel
        example = f"Problem(domain, operator, source, conditions) over {over(known.layout)}"
        described = problem if isinstance(problem, Domain) else f"a {type(problem).__name__}"
        more = (
            " A Domain has no source and no conditions: to compare with your own measurements use "
            "posterior.predict(points)."
            if isinstance(problem, Domain)
            else " To compare with your own values use posterior.predict(points)."
        )
        raise TypeError(f"check(problem) needs the problem that was solved, a {example}: got {described}.{more}")
    if problem.domain.layout != posterior.model.kernel.layout:
        raise ValueError(
            f"check(problem) needs the problem that was solved: this one is over {over(problem.domain.layout)}, and "
            f"the posterior is over {over(posterior.model.kernel.layout)}."
        )


def _comparison(posterior: Posterior, fresh: Observation, inside: np.ndarray | None, size_of_u: float) -> Comparison:
    found = posterior.compared(fresh, inside)
    name = fresh.name
    if fresh.of_values:
        # Which fresh values of one of several fields tell about the inside is not known.
        name = VALUES if len(values_of_fields(posterior)) == 1 else f"values of {fresh.name}"
    return _compared(fresh, found, size_of_u, name, np.asarray(fresh.points))


def _inside(
    posterior: Posterior, fresh: Sequence[Observation], places: np.ndarray, size: float
) -> tuple[Comparison, ...]:
    """The error of `u`, or of each field, inside, as fresh values show it, beside its error bars.

    Given the residuals of fresh values, the error is normal: that gives the expected coverage and `z²`. A field is left
    out if they leave most of its variance open.
    """
    if not isinstance(posterior.solver, Factorised) or all(item.of_values for item in fresh):
        return ()
    rows = [_some(item, RESIDUALS) for item in fresh]
    fields = values_of_fields(posterior)
    sizes = [size] if len(fields) == 1 else sizes_of_fields(posterior, [posterior.predict(places, A) for A in fields])
    found = [_inside_of(posterior, operator, rows, places, own) for operator, own in zip(fields, sizes)]
    return tuple(item for item in found if item is not None)


def _inside_of(
    posterior: Posterior, operator: Operator, rows: Sequence[Observation], places: np.ndarray, size: float
) -> Comparison | None:
    found = error_inside(posterior, rows, places, operator)
    if found.open:
        return None
    squares, claimed = found.squares, found.claimed
    worst = int(np.argmax(squares))
    return Comparison(
        name=name_inside(operator),
        of="places",
        points=len(places),
        size=size,
        error=float(np.sqrt(np.mean(squares))) / size,
        claimed=float(np.sqrt(np.mean(claimed))) / size,
        z_rms=float(np.sqrt(np.mean(squares / claimed))),
        coverage=found.coverage(),
        worst=tuple(places[worst].tolist()),
        worst_error=float(np.sqrt(squares[worst])) / size,
    )


def _some(item: Observation, count: int) -> Observation:
    """At most `count` of the values, as exact ones."""
    kept = some(len(item), count)
    return Observation(item.operator, np.asarray(item.points)[kept], np.asarray(item.values)[kept], "exact", item.name)


def _compared(item: Observation, found: Compared, size_of_u: float, name: str, places: np.ndarray) -> Comparison:
    """Errors of values of an observation, or of means of them, that belong to these places."""
    truth, variance = np.asarray(item.values), found.variance + found.noise
    own, expected = float(np.sqrt(np.mean(truth**2))), size_of_u * float(responses([item])[0])
    # Values that are zero, or nearly, have no size of their own.
    size = own if own > NEARLY_ZERO * expected else expected
    errors = np.abs(found.errors) / size
    z = found.errors / np.sqrt(variance)
    worst = int(np.argmax(errors))
    return Comparison(
        name=name,
        points=len(places),
        size=size,
        error=float(np.sqrt(np.mean(errors**2))),
        claimed=float(np.sqrt(np.mean(variance))) / size,
        z_rms=float(np.sqrt(np.average(z**2, weights=found.weight))),
        coverage=float(np.average(np.abs(z) <= WIDTH, weights=found.weight)),
        worst=tuple(places[worst].tolist()),
        worst_error=float(errors[worst]),
    )


def _cause(posterior: Posterior, fresh: Sequence[Observation], inside: np.ndarray) -> str:
    """The main cause of the error: `"model"`, `"noise"` or `"points"`.

    A kernel that does not fit explains data that it cannot follow as noise, so the model is tested before the noise.
    """
    plain = posterior.uncalibrated()
    lowest = min(item.operator.order for item in fresh)
    near = None if len(values_of_fields(posterior)) > 1 else inside
    of_u: list[Compared] = [plain.compared(item, near) for item in fresh if item.operator.order == lowest]
    if max(factor_of(c) for c in of_u) > MISFIT:
        return "model"
    if not any(measured(item) for item in posterior.observations):
        return "points"
    less = _variance(_with_a_tenth_of_the_noise(posterior), inside)
    by_noise = np.sqrt(less) < RULED_BY_NOISE * np.sqrt(_variance(plain, inside))
    return "noise" if by_noise else "points"


def _with_a_tenth_of_the_noise(posterior: Posterior) -> Posterior:
    model = posterior.model.with_noise({name: v + np.log(0.1) for name, v in posterior.model.log_noise.items()})
    data = []
    for item in posterior.observations:
        known = None if isinstance(item.noise, Learned) else 0.1 * item.noise
        data.append(item if known is None else eqx.tree_at(lambda o: o.noise, item, known))
    return condition(model, data)
