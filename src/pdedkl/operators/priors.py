"""Where an unknown number may lie, and what is known of it before the data.

A parameter `θ` is learned as a number `r` without limits: `θ = r`, or `θ = a + e^r` above a bound, `θ = b − e^r` below
one, `θ = a + (b − a)/(1 + e^{−r})` between two. A prior is a density of `θ`; that of `r` has the factor `|dθ/dr|`.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Without a prior of its own, the logarithm of a bounded number has this standard deviation about where it starts: a
# factor of 150 either way.
WIDE = 5.0
# A number without bounds then has a Cauchy distribution, whose tails cost little, of this width, in units of its size.
WIDE_FREE = 10.0
# The standard deviation of `r` where `θ` is evenly spread between two bounds: that of the logistic distribution.
LOGISTIC = math.pi / math.sqrt(3)


@dataclass(frozen=True)
class Support:
    """The interval in which a number lies, and the map from all numbers to it."""

    lower: float = -math.inf
    upper: float = math.inf

    @property
    def free(self) -> bool:
        return math.isinf(self.lower) and math.isinf(self.upper)

    @property
    def between(self) -> bool:
        """Whether there is a bound on both sides."""
        return not (math.isinf(self.lower) or math.isinf(self.upper))

    def value(self, raw: Any) -> Any:
        """`θ` from `r`."""
        xp = np if isinstance(raw, np.ndarray | np.generic | float) else jnp
        if self.free:
            return raw
        if self.between:
            return self.lower + (self.upper - self.lower) * (
                0.5 * (1.0 + xp.tanh(0.5 * raw))  # stable on both sides
            )
        return self.lower + xp.exp(raw) if math.isinf(self.upper) else self.upper - xp.exp(raw)

    def raw(self, value: float) -> float:
        """`r` from `θ`."""
        if self.free:
            return value
        if self.between:
            return math.log(value - self.lower) - math.log(self.upper - value)
        return math.log(value - self.lower) if math.isinf(self.upper) else math.log(self.upper - value)

    def log_slope(self, raw: Any) -> Any:
        """`log |dθ/dr|`."""
        if self.free:
            return jnp.zeros(())
        if self.between:
            return math.log(self.upper - self.lower) - jax.nn.softplus(raw) - jax.nn.softplus(-raw)
        return raw

    def contains(self, value: float) -> bool:
        return self.lower < value < self.upper

    def __str__(self) -> str:
        if self.between:
            return f"between {self.lower:g} and {self.upper:g}"
        if self.free:
            return "any number"
        return f"above {self.lower:g}" if math.isinf(self.upper) else f"below {self.upper:g}"


@dataclass(frozen=True)
class Prior(abc.ABC):
    """What is known of a number before the data: a density, its middle, and where it is zero."""

    def __post_init__(self) -> None:
        self.__check_init__()

    @abc.abstractmethod
    def __check_init__(self) -> None:
        """Refuse numbers that make no prior; model files call this too."""

    @property
    @abc.abstractmethod
    def middle(self) -> float:
        """The median."""

    @property
    def support(self) -> Support:
        """Where the density is not zero."""
        return Support()

    @abc.abstractmethod
    def _energy(self, value: Any) -> Any:
        """`−log p(θ)` up to a constant."""

    @abc.abstractmethod
    def _spread(self, support: Support) -> float:
        """The standard deviation of `r` at the middle."""


@dataclass(frozen=True)
class Normal(Prior):
    """`θ ~ N(mean, std²)`; with bounds, cut off there.

    **Arguments:**

    - `mean`: the mean.
    - `std`: the standard deviation.

    !!! example
        ```python
        speed = pk.Parameter("speed", prior=pk.Normal(1.0, 0.2))
        ```
    """

    mean: float
    std: float

    def __check_init__(self) -> None:
        _finite("Normal(mean, std)", self.mean)
        _positive("Normal(mean, std)", "std", self.std)

    @property
    def middle(self) -> float:
        return self.mean

    def _energy(self, value: Any) -> Any:
        return 0.5 * ((value - self.mean) / self.std) ** 2

    def _spread(self, support: Support) -> float:
        if support.free:
            return self.std
        slope = math.exp(float(support.log_slope(support.raw(self.mean)))) if support.contains(self.mean) else 1.0
        return min(self.std / slope, LOGISTIC if support.between else WIDE)

    def __str__(self) -> str:
        return f"normal, {self.mean:g} ± {self.std:g}"


@dataclass(frozen=True)
class LogNormal(Prior):
    """`log θ ~ N(log median, spread²)`: positive numbers that are known up to a factor.

    **Arguments:**

    - `median`: the median.
    - `log_std`: the standard deviation of the logarithm; 0.7 is a factor of two.

    !!! example
        ```python
        nu = pk.Parameter("nu", prior=pk.LogNormal(0.1, 1.0))  # positive, and it starts at 0.1
        ```
    """

    median: float
    log_std: float = 1.0

    def __check_init__(self) -> None:
        _positive("LogNormal(median, log_std)", "median", self.median)
        _positive("LogNormal(median, log_std)", "log_std", self.log_std)

    @property
    def middle(self) -> float:
        return self.median

    @property
    def support(self) -> Support:
        """Where the density is not zero."""
        return Support(lower=0.0)

    def _energy(self, value: Any) -> Any:
        away = jnp.log(value) - math.log(self.median)
        return 0.5 * (away / self.log_std) ** 2 + jnp.log(value)

    def _spread(self, support: Support) -> float:
        if support == self.support:
            return self.log_std
        return min(self.log_std, LOGISTIC) if support.between else self.log_std

    def __str__(self) -> str:
        return f"log-normal, {self.median:g} times or over {math.exp(self.log_std):.3g}"


@dataclass(frozen=True)
class Uniform(Prior):
    """`θ` is evenly spread between two bounds.

    **Arguments:**

    - `lower`: the lower bound.
    - `upper`: the upper bound.

    !!! example
        ```python
        angle = pk.Parameter("angle", prior=pk.Uniform(0.0, 0.5))
        ```
    """

    lower: float
    upper: float

    def __check_init__(self) -> None:
        _finite("Uniform(lower, upper)", self.lower)
        _finite("Uniform(lower, upper)", self.upper)
        if not self.lower < self.upper:
            raise ValueError(f"Uniform(lower, upper) needs lower < upper: got {self.lower!r} and {self.upper!r}.")

    @property
    def middle(self) -> float:
        return 0.5 * (self.lower + self.upper)

    @property
    def support(self) -> Support:
        """Where the density is not zero."""
        return Support(self.lower, self.upper)

    def _energy(self, value: Any) -> Any:
        return jnp.zeros(())

    def _spread(self, support: Support) -> float:
        return LOGISTIC

    def __str__(self) -> str:
        return f"even, {self.lower:g} to {self.upper:g}"


def energy_of(prior: Prior | None, support: Support, raw: Any, initial: Any) -> Float[Array, ""]:
    """`−log p(r)` up to a constant; without a prior that of a wide one about where the number starts."""
    if prior is not None:
        return prior._energy(support.value(raw)) - support.log_slope(raw)
    if support.between:
        return -support.log_slope(raw)
    if support.free:
        return jnp.log1p(((raw - initial) / width_of(initial)) ** 2)
    return 0.5 * ((raw - initial) / WIDE) ** 2


def spread_of(prior: Prior | None, support: Support, initial: Any) -> Any:
    """The standard deviation of `r` before the data."""
    if prior is not None:
        return prior._spread(support)
    return LOGISTIC if support.between else width_of(initial) if support.free else WIDE


def width_of(initial: Any) -> Any:
    xp = np if isinstance(initial, np.ndarray | np.generic | float) else jnp
    return WIDE_FREE * xp.maximum(1.0, xp.abs(initial))


def told(prior: Prior | None, support: Support) -> str:
    """A prior in a few words."""
    if prior is not None:
        own = prior.support
        return str(prior) if support == own else f"{prior}, {support}"
    return f"even, {support.lower:g} to {support.upper:g}" if support.between else "wide"


def support_of(name: str, positive: bool, bounds: Any, prior: Any) -> Support:
    """Where a parameter lies, by all that was said of it."""
    if prior is not None and not isinstance(prior, Prior):
        raise TypeError(f"Parameter {name!r} needs a prior such as LogNormal(0.1), Normal or Uniform: got {prior!r}.")
    lower, upper = _bounds(name, bounds)
    if positive:
        lower = max(lower, 0.0)
    if prior is not None:
        lower, upper = max(lower, prior.support.lower), min(upper, prior.support.upper)
    if not lower < upper:
        raise ValueError(f"Parameter {name!r} needs bounds with numbers between them: got {lower:g} and {upper:g}.")
    return Support(lower, upper)


def _bounds(name: str, bounds: Any) -> tuple[float, float]:
    if bounds is None:
        return -math.inf, math.inf
    try:
        lower, upper = bounds
        found = -math.inf if lower is None else float(lower), math.inf if upper is None else float(upper)
    except (TypeError, ValueError):
        raise ValueError(
            f"Parameter {name!r} needs two bounds, such as bounds=(0.0, 1.0) or (None, 2.0): got {bounds!r}."
        ) from None
    if any(map(math.isnan, found)):
        raise ValueError(f"Parameter {name!r} needs bounds that are numbers: got {bounds!r}.")
    return found


def _finite(what: str, value: Any) -> None:
    if not (isinstance(value, int | float | np.number) and math.isfinite(value)):
        raise ValueError(f"{what} needs finite numbers: got {value!r}.")


def _positive(what: str, name: str, value: Any) -> None:
    if not (isinstance(value, int | float | np.number) and 0 < value < math.inf):
        raise ValueError(f"{what} needs a positive number as `{name}`: got {value!r}.")
