"""A check that needs no exact solution: fresh values of source and conditions against what was predicted there.

A forward problem knows its source and its conditions everywhere, so new values cost nothing. They show whether error
bars hold, and how large the error of `u` is. Inside, where `u` is not known, its standard deviation estimates the
error, after calibration with values on the boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import numpy as np

from ..domain import Domain
from ..inference import Posterior, condition
from ..inference.calibration import WIDTH, calibration_of
from ..observations import Learned, Observation
from ..shown import Written, over
from ..training.starts import with_noise

# Error bars hold if the fraction of values in the 95 % interval, and the root mean square of `z`, are in these ranges.
COVERED, Z = (0.90, 0.985), (0.6, 1.4)
# Errors below this fraction of the size of the values are rounding: error bars can only be too narrow there.
ROUNDING = 1e-6
# Points inside over which the error of `u` is estimated.
POINTS_OF_THE_ERROR = 5000
# If error bars have to be widened by more than this factor, the kernel does not fit the solution.
MISFIT = 2.0
# Noise causes the error if a tenth of the noise would lower the error to less than this fraction of it.
RULED_BY_NOISE = 0.6

ADVICE = {
    "rounding": "Nothing is left to gain: the error is as small as 64-bit numbers allow here.",
    "noise": "Most of the error comes from the noise of the data: more measurements, or better ones, lower it.",
    "points": "There are too few points for this solution: add points where they help most, with "
    "problem.refine(posterior, n), and fit again.",
    "model": "The kernel does not fit the solution well: add points, let fresh values choose the kernel with "
    "fit(…, validation=problem.fresh(200)), or try a larger latent_dim.",
}


@dataclass(frozen=True)
class Comparison:
    """Fresh values of one operator. `error` and `claimed`, the error bar, are root mean squares relative to `size`.

    `z_rms` and `coverage` are means over the values. Values of `u` are weighted by how much they tell about points
    inside.
    """

    name: str
    points: int
    size: float
    error: float
    claimed: float
    z_rms: float
    coverage: float
    worst: tuple[float, ...]
    worst_error: float

    @property
    def calibrated(self) -> bool:
        if self.error < ROUNDING:
            return self.z_rms <= Z[1]
        return Z[0] <= self.z_rms <= Z[1] and COVERED[0] <= self.coverage <= COVERED[1]


@dataclass(frozen=True, repr=False)
class Verdict(Written):
    """What fresh values say about a posterior.

    `error_u` is the estimated error of `u` inside, relative to its size (not relative where `u` is zero). `ruled_by` is
    the main cause of this error: `"rounding"`, `"noise"`, `"points"` or `"model"`. `compared_with` says which values
    the error bars were calibrated with.
    """

    calibrated: bool
    error_u: float
    ruled_by: str
    advice: str
    compared_with: str
    comparisons: tuple[Comparison, ...]

    def to_json(self) -> dict[str, Any]:
        parts = [asdict(item) | {"calibrated": item.calibrated} for item in self.comparisons]
        return asdict(self) | {"comparisons": parts}

    def __str__(self) -> str:
        lines = [
            f"{'Calibrated' if self.calibrated else 'Not calibrated'}; the error of u is about {self.error_u:.1e}."
        ]
        for item in self.comparisons:
            lines.append(
                f"  {item.name}: error {item.error:.1e}, claimed {item.claimed:.1e}; {item.coverage:.1%} of "
                f"{item.points} fresh values are in their 95 % intervals"
            )
        worst = max(self.comparisons, key=lambda item: item.worst_error)
        place = ", ".join(f"{value:.3g}" for value in worst.worst[:6]) + (", …" if len(worst.worst) > 6 else "")
        lines.append(f"  worst: {worst.name} at ({place}), off by {worst.worst_error:.1e}")
        return "\n".join([*lines, self.advice])


def check(posterior: Posterior, problem: Any, n: int = 500, seed: int = 0) -> Verdict:
    """Compare a posterior with `n` fresh values each of the source and of the conditions of its problem."""
    _check_problem(posterior, problem)
    fresh = problem.fresh(n, seed=seed, purpose="check")
    inside = problem.interior(n, seed)
    # The error may be large only in a few corners: many points are needed to find them.
    u = posterior.predict(problem.interior(POINTS_OF_THE_ERROR, seed))
    size = float(np.sqrt(np.mean(u.mean**2))) or 1.0
    error_u = float(np.sqrt(np.mean(u.variance))) / size
    comparisons = tuple(_comparison(posterior, item, inside, size) for item in fresh)
    errors_of_u = (error_u, *(item.error for item in comparisons if item.name == "u"))
    cause = "rounding" if max(errors_of_u) < ROUNDING else _cause(posterior, fresh, inside)
    return Verdict(
        calibrated=all(item.calibrated for item in comparisons),
        error_u=error_u,
        ruled_by=cause,
        advice=ADVICE[cause],
        compared_with="nothing" if posterior.calibration is None else posterior.calibration.source,
        comparisons=comparisons,
    )


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


def _comparison(posterior: Posterior, fresh: Observation, inside: np.ndarray, size_of_u: float) -> Comparison:
    found, truth = posterior.compared(fresh, inside), np.asarray(fresh.values)
    claimed = float(np.sqrt(np.mean(found.variance)))
    # Values that are zero have no size of their own.
    size = float(np.sqrt(np.mean(truth**2))) or (size_of_u if fresh.of_values else claimed) or 1.0
    errors = np.abs(found.errors) / size
    z = found.errors / np.sqrt(found.variance)
    worst = int(np.argmax(errors))
    return Comparison(
        name="u" if fresh.of_values else fresh.name,
        points=len(fresh),
        size=size,
        error=float(np.sqrt(np.mean(errors**2))),
        claimed=claimed / size,
        z_rms=float(np.sqrt(np.average(z**2, weights=found.weight))),
        coverage=float(np.average(np.abs(z) <= WIDTH, weights=found.weight)),
        worst=tuple(np.asarray(fresh.points)[worst].tolist()),
        worst_error=float(errors[worst]),
    )


def _cause(posterior: Posterior, fresh: Sequence[Observation], inside: np.ndarray) -> str:
    """The main cause of the error: `"model"`, `"noise"` or `"points"`.

    A kernel that does not fit explains data that it cannot follow as noise, so the model is tested before the noise.
    """
    plain = posterior.uncalibrated()
    lowest = min(item.operator.order for item in fresh)
    of_u = [plain.compared(item, inside) for item in fresh if item.operator.order == lowest]
    if float(calibration_of(of_u, (), "").factors[0]) > MISFIT:
        return "model"
    less = _with_a_tenth_of_the_noise(posterior).predict(inside).variance
    by_noise = np.sqrt(np.mean(less)) < RULED_BY_NOISE * np.sqrt(np.mean(plain.predict(inside).variance))
    return "noise" if by_noise else "points"


def _with_a_tenth_of_the_noise(posterior: Posterior) -> Posterior:
    model = with_noise(posterior.model, {name: v + np.log(0.1) for name, v in posterior.model.log_noise.items()})
    data = []
    for item in posterior.observations:
        known = None if isinstance(item.noise, Learned) else 0.1 * item.noise
        data.append(item if known is None else eqx.tree_at(lambda o: o.noise, item, known))
    return condition(model, data)
