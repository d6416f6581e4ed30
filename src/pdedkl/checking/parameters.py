"""What the data say about unknown numbers: estimates, intervals, and what is not determined.

Numbers are learned on scales without limits (`operators/priors.py`), where their posterior is taken to be normal with
the covariance `C`. With the prior variances `Λ`, `Λ^½ (C⁻¹ − Λ⁻¹) Λ^½` says how much the data tell: a direction with an
eigenvalue below three has more than half of the prior's standard deviation left. If such a direction mixes several
numbers, the data know a combination of them only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from ..equations.nonlinear import centre_of, spread_of_number
from ..inference.estimates import prior_spreads, unknowns_of, with_estimates
from ..operators import Parameter
from ..operators.priors import Support, told
from ..operators.rows import value_of
from ..shown import Written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..inference import Posterior

# A number is identified if the data leave less than this fraction of its prior's standard deviation.
IDENTIFIED = 0.5
# A number belongs to a direction that is left open if it is at least this part of it.
PART = 0.25
# Weights of a combination that are this close to those of a product, say, make one.
CLOSE = 0.15
# Verdicts under which intervals of numbers are not to be trusted: they rest on the same kernel.
DOUBTFUL = {
    "not calibrated": "the verdict is that error bars of u do not hold",
    "undetermined": "the verdict is that what was given does not determine u",
}
# With more values than this a picture has no profiles: they take time.
MOST_VALUES = 1000
# Nodes of the quadrature for means and standard deviations.
NODES = 64


@dataclass(frozen=True)
class Estimate:
    """What the data say about one unknown number.

    **Arguments:**

    - `name`: its name.
    - `estimate`: its value in the posterior: the most probable one on the scale on which it is learned, and the median.
    - `mean`: the mean.
    - `std`: the standard deviation.
    - `prior`: what was known before.
    - `identified`: whether the data say much more than the prior did.
    - `raw`: the middle on the scale on which it is learned, such as its logarithm.
    - `raw_std`: the standard deviation on that scale.
    - `support`: where it can lie.
    - `draws`: draws of a sampler, where there are any; then intervals are theirs.
    - `ends`: intervals that are known, by their probability.

    !!! example
        ```python
        assert not posterior.parameters  # there are no unknown numbers here
        ```
    """

    name: str
    estimate: float
    mean: float
    std: float
    prior: str
    identified: bool
    raw: float = field(repr=False)
    raw_std: float = field(repr=False)
    support: Support = field(repr=False)
    draws: np.ndarray | None = field(default=None, repr=False, compare=False)
    ends: Mapping[float, tuple[float, float]] = field(default_factory=dict, repr=False, compare=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval in which the number lies with this probability, as much below as above it.

        **Arguments:**

        - `level`: the probability.

        **Returns:** its two ends.

        !!! example
            ```python
            found = {name: one.interval(0.95) for name, one in posterior.parameters.items()}
            ```
        """
        if not 0 < level < 1:
            raise ValueError(f"`level` needs a probability between 0 and 1: got {level!r}.")
        if level in self.ends:
            return self.ends[level]
        if self.draws is not None:
            low, high = np.quantile(self.draws, [0.5 - level / 2, 0.5 + level / 2])
            return float(low), float(high)
        width = float(ndtri(0.5 + level / 2)) * self.raw_std
        ends = sorted(float(self.support.value(self.raw + side * width)) for side in (-1, 1))
        return ends[0], ends[1]

    def _to_json(self) -> dict[str, Any]:
        """What metrics.json holds."""
        low, high = self.interval(0.95)
        return {
            "estimate": self.estimate,
            "mean": self.mean,
            "std": self.std,
            "lower": low,
            "upper": high,
            "prior": self.prior,
            "identified": self.identified,
        }


class Parameters(Written, Mapping[str, Estimate]):
    """The unknown numbers of a posterior, by name: `posterior.parameters`.

    It prints as a table: estimate, standard deviation, 95 % interval, prior, the strongest correlation with another
    number, and whether the data identify it. `findings` says what they leave open.

    **Arguments:**

    - `posterior`: the posterior.
    - `estimates`: an `Estimate` for each number.
    - `correlation`: the correlations of the numbers on the scales on which they are learned.
    - `findings`: sentences about numbers that the data do not identify, or only together.
    - `method`: how the uncertainty was found.

    !!! example
        ```python
        nu = pk.Parameter("nu", 1.0, positive=True)
        unknown = pk.Observation(pk.D(t) - nu * pk.Laplacian(x), points, np.zeros(20), noise=0.01)
        found = pk.condition(pk.ard(domain), [data, unknown]).parameters
        print(found, found["nu"].interval(0.95))
        ```
    """

    def __init__(
        self,
        posterior: Posterior,
        estimates: Mapping[str, Estimate],
        correlation: Float[np.ndarray, "p p"],
        findings: tuple[str, ...],
        method: str,
    ) -> None:
        self._of, self._estimates = posterior, dict(estimates)
        self.correlation, self.findings, self.method = correlation, findings, method

    def __getitem__(self, name: str) -> Estimate:
        if name not in self._estimates:
            known = ", ".join(self._estimates) or "none"
            raise KeyError(f"There is no unknown number {name!r} here: there is {known}.")
        return self._estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def posterior(self, method: str = "laplace", **options: Any) -> Any:
        """The distribution of the numbers given the data, by one of three methods.

        **Arguments:**

        - `method`: `"laplace"`, normal on the scale on which a number is learned, from the curvature of the evidence;
          `"profile"`, the evidence along each number with everything else optimised, which shows skew and bounds;
          `"nuts"`, draws of numbers, kernel and noise by the No-U-Turn sampler, which needs blackjax.
        - `**options`: for `"profile"`, `names`, the numbers to follow; all by default. For `"nuts"`, `chains`, `draws`,
          `warmup`, `seed`, and `checkpoint`, a file from which a run that was killed goes on.

        **Returns:** `Parameters`; of a profile, with `curves`; of a sampler, with `draws`, `r_hat` and `effective`, the
        number of independent draws.

        !!! example
            ```python
            assert len(posterior.parameters.posterior(method="laplace")) == 0
            ```
        """
        if method == "laplace":
            if options:
                raise TypeError(f'posterior(method="laplace") takes no options: got {", ".join(options)}.')
            return parameters_of_posterior(self._of)
        if method in ("profile", "nuts") and self._of.model.numbers:
            raise ValueError(
                f'method="{method}" is for linear equations: the numbers of a nonlinear one are found together with u, '
                "by Newton's method, and their uncertainty is that of the last linearisation."
            )
        if method == "profile":
            from .profiles import profiled

            return profiled(self._of, **options)
        if method == "nuts":
            from .chains import sampled

            return sampled(self._of, **options)
        raise ValueError(f'Unknown method {method!r}: choose "laplace", "profile" or "nuts".')

    def plot(self) -> Figure:
        """The density of each number, with its 95 % interval; the profile too, unless there are many values.

        **Arguments:** none.

        **Returns:** a matplotlib `Figure`.

        !!! example
            ```python
            nu = pk.Parameter("nu", 1.0, positive=True)
            unknown = pk.Observation(pk.D(t) - nu * pk.Laplacian(x), points, np.zeros(20), noise=0.01)
            figure = pk.condition(pk.ard(domain), [data, unknown]).parameters.plot()
            ```
        """
        from ..reports.profiles import drawn

        if len(self._of.alpha) > MOST_VALUES or self._of.training is None:
            return drawn(self, {}, {})
        return self.posterior("profile").plot()

    def _rows(self) -> list[tuple[str, ...]]:
        """The cells of the table, a row for each number."""
        made: list[tuple[str, ...]] = []
        for i, (name, one) in enumerate(self._estimates.items()):
            others = np.abs(self.correlation[i]) * (np.arange(len(self)) != i)
            most = int(np.argmax(others)) if len(self) > 1 else i
            with_it = f"{self.correlation[i, most]:+.2f} with {list(self)[most]}" if len(self) > 1 else "–"
            low, high = one.interval(0.95)
            interval = f"{low:.4g} to {high:.4g}"
            verdict = "identified" if one.identified else "not identified"
            made.append((name, f"{one.estimate:.4g}", f"{one.std:.2g}", interval, one.prior, with_it, verdict))
        return made

    def _to_json(self) -> dict[str, Any]:
        """What metrics.json holds."""
        return {
            "method": self.method,
            "numbers": {name: one._to_json() for name, one in self._estimates.items()},
            "correlation": self.correlation.tolist(),
            "findings": list(self.findings),
        }

    def __str__(self) -> str:
        if not self:
            return "There are no unknown numbers."
        lines = [HEADS, *self._rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(len(HEADS))]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        return "\n".join([*text, *self.findings])


HEADS = ("parameter", "estimate", "std", "95 % interval", "prior", "correlation", "the data")


def parameters_of_posterior(posterior: Posterior) -> Parameters:
    """Laplace's approximation, as `fit` found it; that of a linear model where kernel and noise were not learned."""
    if posterior.model.numbers:
        return _of_fields(posterior)
    unknown = unknowns_of(posterior)
    if not unknown:
        return Parameters(posterior, {}, np.zeros((0, 0)), (), "")
    found = posterior.estimates or with_estimates(posterior).estimates
    raw = np.asarray([float(posterior.model.coefficients[name]) for name in unknown])
    return described(posterior, raw, np.asarray(found.covariance), f"laplace, from {found.source}")


def _of_fields(posterior: Posterior) -> Parameters:
    """The numbers of a nonlinear equation, which are fields: their posterior is that of the last linearisation."""
    numbers = posterior.model.numbers
    point = np.asarray(posterior.observations[0].points)[:1]
    fields = [value_of(f"{one.name}()") for one in numbers]
    spread = np.asarray([float(spread_of_number(one)) for one in numbers])
    middle = np.asarray([posterior.predict(point, row).mean[0] for row in fields])
    covariance = np.asarray([[posterior.covariance(point, a, point, b)[0, 0] for b in fields] for a in fields])
    raw = np.asarray([float(centre_of(one)) for one in numbers]) + spread * middle
    return described(posterior, raw, covariance * np.outer(spread, spread), "laplace, from the last linearisation")


def described(posterior: Posterior, raw: np.ndarray, covariance: np.ndarray, method: str) -> Parameters:
    """Estimates from a normal distribution of the numbers as they are learned."""
    unknown = {one.name: one for one in posterior.model.numbers} or unknowns_of(posterior)
    std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    prior = prior_spreads(unknown)
    open_ = directions_left_open(covariance, prior)
    estimates = {
        name: _estimate(one, raw[i], std[i], bool(std[i] < IDENTIFIED * prior[i]))
        for i, (name, one) in enumerate(unknown.items())
    }
    size = np.where(std > 0, std, 1.0)
    correlation = covariance / np.outer(size, size)
    findings = tuple(_finding(direction, unknown, raw, estimates) for direction in open_)
    if posterior.verdict.status in DOUBTFUL:
        findings = (*findings, f"These intervals may be too narrow: {DOUBTFUL[posterior.verdict.status]}.")
    return Parameters(posterior, estimates, correlation, findings, method)


def directions_left_open(covariance: np.ndarray, prior: np.ndarray) -> list[np.ndarray]:
    """Unit vectors, as parts of the priors' standard deviations, along which the data say little beyond the priors."""
    scaled = covariance / np.outer(prior, prior)
    values, vectors = np.linalg.eigh(scaled)
    return [vector for value, vector in zip(values, vectors.T) if value > IDENTIFIED**2]


def _estimate(one: Parameter, raw: float, std: float, identified: bool) -> Estimate:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / np.sum(weights)
    values = np.asarray(one.support.value(raw + std * nodes), dtype=float)
    mean = float(weights @ values)
    spread = float(np.sqrt(np.maximum(weights @ (values - mean) ** 2, 0.0)))
    estimate = float(one.support.value(np.float64(raw)))
    prior = told(one.prior, one.support)
    return Estimate(one.name, estimate, mean, spread, prior, identified, float(raw), float(std), one.support)


def _finding(
    direction: np.ndarray, unknown: Mapping[str, Parameter], raw: np.ndarray, estimates: Mapping[str, Estimate]
) -> str:
    """What it means that a direction is left open, in a sentence."""
    names = [name for name, part in zip(unknown, direction) if abs(part) > PART]
    if len(names) == 1:
        return f"The data do not identify {names[0]}: they say little more than its prior."
    together = " and ".join([", ".join(names[:-1]), names[-1]])
    if len(names) == 2:
        # How the values change along the direction, as such and relative to themselves.
        prior = prior_spreads(unknown)
        place = [list(unknown).index(name) for name in names]
        slopes = [_slope(unknown[name].support, raw[i]) for name, i in zip(names, place)]
        change = np.asarray([slope * direction[i] * prior[i] for slope, i in zip(slopes, place)])
        values = np.asarray([estimates[name].estimate for name in names])
        relative = change / np.where(values == 0, 1.0, values)
        kinds = (("product", relative, -1), ("ratio", relative, 1), ("sum", change, -1), ("difference", change, 1))
        for kind, moves, sign in kinds:
            if np.all(values != 0) and abs(moves[0] - sign * moves[1]) < CLOSE * np.max(np.abs(moves)):
                return f"The data know {together} only by their {kind}: give one of them, or data that tell them apart."
    return f"The data know {together} only together, by a combination of them: give one of them, or other data."


def _slope(support: Support, raw: float) -> float:
    step = 1e-4
    return float(support.value(np.float64(raw + step)) - support.value(np.float64(raw - step))) / (2 * step)
