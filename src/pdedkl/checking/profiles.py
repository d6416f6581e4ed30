"""The evidence along each unknown number, with the others, the kernel and the noise optimised.

Along the values of one number, `−log p(y | θ_k)` at the best of everything else shows what a normal approximation
cannot: skew, bounds, and evidence that levels off where the data cannot exclude a value. The ends of the 95 % interval
are where twice the rise above the minimum reaches the quantile 3.84 of `χ²` (Wilks). Priors are part of the objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
from scipy.special import chdtri

from ..inference.estimates import prior_spreads, unknowns_of
from ..means import ZeroMean
from ..model import Model
from ..operators.priors import Support
from ..scales import about, with_tolerance, without_rounding
from ..training import starts
from ..training.curvature import Curvature, Line, settled
from ..training.objective import USUAL_NOISE, Objective, value_and_gradient
from ..training.phases import Trained
from .parameters import IDENTIFIED, Parameters, parameters_of_posterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..inference import Posterior

# Steps along a number are this fraction of its standard deviation, and rises are followed up to this many nats.
STEP, HIGHEST = 0.5, 4.5
# At most as many steps to each side: the profile of a number that the data leave open ends there.
MOST = 40
# Steps over which the objective rises by more than this are shortened, down to this fraction of the first.
JUMP, SHORTEST = 1.5, 1 / 64
LEVELS = (0.5, 0.68, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Curve:
    """Values of a number, and the rise of the objective above its minimum there, in nats."""

    name: str
    values: np.ndarray
    rises: np.ndarray


class Profiles(Parameters):
    """The unknown numbers by their profiles: `posterior.parameters.posterior(method="profile")`.

    **Arguments:**

    - `curves`: a `Curve` for each number: its values, and the rise of the objective in nats.

    !!! example
        ```python
        found = posterior.parameters.posterior(method="profile")
        figure = found.plot()
        ```
    """

    curves: dict[str, Curve]

    def plot(self) -> Figure:
        """The rise of the objective along each number, with the normal approximation and the 95 % interval.

        **Arguments:** none.

        **Returns:** a matplotlib `Figure`.
        """
        from ..reports.profiles import drawn

        return drawn(self, self.curves, {})


def profiled(posterior: Posterior, names: Sequence[str] | None = None) -> Profiles:
    """Profiles of some numbers of a posterior, of all by default."""
    laplace = parameters_of_posterior(posterior)
    unknown = unknowns_of(posterior)
    for name in names or ():
        laplace[name]  # an unknown name is an error
    chosen = list(unknown) if names is None else list(names)
    prior = prior_spreads(unknown)
    curves, estimates = {}, dict(laplace.items())
    found = minimum_of(posterior) if chosen else None
    for name in chosen:
        assert found is not None
        place = list(unknown).index(name)
        raws, rises = _followed(Line(found, place), float(prior[place]))
        support = unknown[name].support
        values = np.asarray(support.value(raws), dtype=float)
        order = np.argsort(values)
        curves[name] = Curve(name, values[order], rises[order])
        estimates[name] = _estimate(laplace[name], raws, rises, support, float(prior[place]))
    made = Profiles(posterior, estimates, laplace.correlation, laplace.findings, "profile of the evidence")
    made.curves = curves
    return made


def minimum_of(posterior: Posterior) -> Curvature:
    """The minimum of the objective next to a trained posterior, its embedding held, and the curvature there."""
    plain = eqx.tree_at(lambda m: m.mean, posterior.model, ZeroMean())
    observations = with_tolerance(without_rounding(about(posterior.observations, posterior.model.mean)))
    # The tolerances of exact values are not kept: they are found again.
    levels = starts.model_of(plain.kernel, observations, USUAL_NOISE, plain.engine).log_noise
    rough = Objective(_with(plain, {**levels, **plain.log_noise}), observations)
    objective = Objective(_with(plain, rough.unlimited(rough.template.log_noise)), observations)
    start = objective.start()
    return settled(Trained(objective, start, float(value_and_gradient(objective, start)[0])))


def _with(model: Model, log_noise: dict[str, Any]) -> Model:
    return eqx.tree_at(lambda m: m.log_noise, model, log_noise, is_leaf=lambda node: isinstance(node, dict))


def _followed(line: Line, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """The values of a number as it is learned, and the rises, from a minimum to both sides."""
    first = STEP * min(1.0, prior / line.std)
    middle = line.at(0.0)
    found = [middle]
    for side in (-1.0, 1.0):
        before, last, step, away = middle, middle, first, 0.0
        while away * line.std < 3 * prior and len(found) < 2 * MOST:
            # On along the line through the last two results.
            slope = (last.rest - before.rest) / abs(last.raw - before.raw) if last is not before else 0.0
            held = line.at(side * (away + step), last.rest + step * line.std * slope)
            if not held.rise - last.rise < JUMP and step > SHORTEST * first:
                step *= 0.5  # a curved valley was lost
                continue
            if not np.isfinite(held.rise):
                break
            before, last, away = last, held, away + step
            found.append(held)
            if held.rise > HIGHEST:
                break
            if held.rise - before.rise < 0.2 * JUMP:
                step *= 1.5
    found.sort(key=lambda held: held.raw)
    rises = np.asarray([held.rise for held in found])
    return np.asarray([held.raw for held in found]), rises - np.min(rises)


def _estimate(laplace: Any, raws: np.ndarray, rises: np.ndarray, support: Support, prior: float) -> Any:
    """Moments of the density `exp(−rise)`, and intervals where the rise reaches the quantiles of `χ²`."""
    fine = np.linspace(raws[0], raws[-1], 2001)
    density = np.exp(-np.interp(fine, raws, rises))
    density /= np.sum(density)
    values = np.asarray(support.value(fine), dtype=float)
    mean = float(density @ values)
    std = float(np.sqrt(density @ (values - mean) ** 2))
    middle = float(density @ fine)
    raw_std = float(np.sqrt(density @ (fine - middle) ** 2))
    ends = {level: _ends(raws, rises, support, 0.5 * float(chdtri(1, 1 - level))) for level in LEVELS}
    best = float(support.value(raws[int(np.argmin(rises))]))
    return replace(
        laplace, estimate=best, mean=mean, std=std, identified=raw_std < IDENTIFIED * prior, raw_std=raw_std, ends=ends
    )


def _ends(raws: np.ndarray, rises: np.ndarray, support: Support, height: float) -> tuple[float, float]:
    """Where the rise crosses a height; the limits of the support where it never does."""
    low = int(np.argmin(rises))
    left, right = support.value(np.float64(raws[0])), support.value(np.float64(raws[-1]))
    ends = []
    for part, rise, limit, bound in (
        (raws[: low + 1][::-1], rises[: low + 1][::-1], left, -np.inf),
        (raws[low:], rises[low:], right, np.inf),
    ):
        above = np.flatnonzero(rise > height)
        if not len(above):
            ends.append(float(support.value(np.float64(bound))) if np.isfinite(limit) else bound)
            continue
        k = int(above[0])
        # Rises are parabolas: their roots are straight lines.
        a, b = np.sqrt(max(rise[k - 1], 0.0)), np.sqrt(rise[k])
        t = (np.sqrt(height) - a) / (b - a)
        ends.append(float(support.value(np.float64(part[k - 1] + t * (part[k] - part[k - 1])))))
    first, second = sorted(ends)
    return first, second
