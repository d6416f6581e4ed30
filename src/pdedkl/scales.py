"""The size of the data and of the solution behind them, and the constant about which it varies.

Noise, variances and errors are all measured relative to the size of the data. All-zero values (a homogeneous equation
or boundary condition) have no size. For them `s √E (A φ)²` is used, where `s` is the size of `u` and `φ` a random
smooth function of size one. This is about the size of `A u` for a solution with `A u` not zero.

Values of `u` that vary little about a large constant, such as temperatures in kelvin, would lose the digits that the
constant takes up. So training sees `u` without this constant, and all other values accordingly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .compilation import compiled_quickly
from .means import Mean, ZeroMean, observed_mean
from .observations import Learned, Observation
from .operators import Operator, Row, parameters_of
from .operators.base import Identity
from .operators.offset import linear_part
from .operators.rows import by_field, names_in

# Each observation implies a size of `u`. Values count as zero up to rounding if their implied size is smaller than the
# largest one by this factor. Examples are `sin(πx)` at `x = 1` and the Laplacian of a harmonic function.
ROUNDING = 1e-10
# The sizes of `u` are computed only if some values are smaller than the largest ones by this factor.
SUSPICIOUS = 1e-6

# The noise of values that are no measurements is at most this fraction of their size: of values of functions, and of
# values that are all the same, such as those of a constant source.
NOISE_OF_EXACT = 1e-4
# Fewer values that are all the same may be measurements.
FEWEST_ALIKE = 5

# Training removes a constant of more than `MANY_TIMES` the spread of the values of `u`, if there are `ENOUGH` values.
MANY_TIMES, ENOUGH = 10.0, 5

# The number of random functions, and of points at which operators are applied to them.
FUNCTIONS, PLACES = 32, 8


def constant_part(observations: Sequence[Observation]) -> float:
    """The constant about which `u` varies, if it is many times larger than the variation; else zero.

    It is also zero if an operator has unknown coefficients, since its effect on a constant is then not known.
    """
    of_u = [np.asarray(item.values) for item in observations if isinstance(item.operator, Identity)]
    if sum(map(len, of_u)) < ENOUGH or parameters_of([item.operator for item in observations]):
        return 0.0
    values = np.concatenate(of_u)
    middle = float(np.mean(values))
    return middle if abs(middle) > MANY_TIMES * float(np.std(values)) else 0.0


def about(observations: Sequence[Observation], mean: Mean) -> tuple[Observation, ...]:
    """The observations of `u − m`."""
    if isinstance(mean, ZeroMean):
        return tuple(observations)
    rest = lambda item: item.values - _observed(mean, linear_part(item.operator), item.points)
    return tuple(eqx.tree_at(lambda o: o.values, item, rest(item)) for item in observations)


_observed = compiled_quickly(observed_mean)


def without_rounding(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """The same observations, with values that are zero up to rounding replaced by zeros."""
    largest = [float(np.max(np.abs(item.values))) for item in observations]
    if not any(0 < size < SUSPICIOUS * max(largest) for size in largest):
        return tuple(observations)
    of_u = np.asarray(largest) / responses(observations)
    return tuple(
        eqx.tree_at(lambda o: o.values, item, jnp.zeros(len(item))) if size < ROUNDING * np.max(of_u) else item
        for item, size in zip(observations, of_u)
    )


def with_tolerance(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """The same observations, with a learned tolerance for values without noise.

    Training begins with kernels that are far off. Without any noise their evidence says little about the way to go.
    """

    def eased(item: Observation) -> Observation:
        if isinstance(item.noise, Learned) or len(item) < FEWEST_ALIKE or np.any(np.asarray(item.noise)):
            return item
        return eqx.tree_at(lambda o: o.noise, item, Learned(f"{item.name}, tolerance", exact=True))

    return tuple(map(eased, observations))


def data_scales(observations: Sequence[Observation]) -> dict[str, float]:
    """The size of the values behind each learned noise level: their spread, or their size where they are constant.

    For values that are zero everywhere, it is the size of their operator applied to a smooth function as large as `u`.
    """
    groups = _groups(observations)
    sizes = {name: _size(np.concatenate([observations[i].values for i in members])) for name, members in groups.items()}
    if all(sizes.values()):
        return sizes
    if not any(sizes.values()):
        return dict.fromkeys(sizes, 1.0)
    expected = expected_sizes(observations)
    return {name: sizes[name] or float(np.max(expected[members])) for name, members in groups.items()}


def expected_sizes(observations: Sequence[Observation]) -> np.ndarray:
    """The size of each operator applied to smooth functions as large as the fields."""
    overall, names = float(np.sqrt(signal_variance(observations))), names_in([item.operator for item in observations])
    if not names:
        return overall * responses(observations)
    return responses(observations, {name: size_of_field(name, observations) or overall for name in names})


def size_of_field(name: str, observations: Sequence[Observation]) -> float:
    """The root mean square of the values of a field; zero if none are given."""
    if name.endswith("()"):
        return 1.0  # an unknown number, in units of its prior
    of_it = [o for o in observations if o.of_values and isinstance(o.operator, Row) and o.operator.names == (name,)]
    return float(np.sqrt(np.mean(np.concatenate([np.asarray(o.values) for o in of_it]) ** 2))) if of_it else 0.0


def conditions(observations: Sequence[Observation]) -> list[int]:
    """The observations whose values are all zero, or all the same: equations and conditions, not measurements."""
    return [i for i, item in enumerate(observations) if _all_alike(np.asarray(item.values))]


def may_be_noise(some: Sequence[Observation], observations: Sequence[Observation]) -> bool:
    """Whether some of the observations are measurements whose noise is learned."""
    exact = exact_levels(observations)
    return any(isinstance(item.noise, Learned) and item.noise_name not in exact for item in some)


def exact_levels(observations: Sequence[Observation]) -> set[str]:
    """The noise levels of values that are no measurements: those of functions, and those that are all the same.

    If all data are zero, their noise says how well the equation holds, and it is none of these.
    """
    alike = set(conditions(observations)) if any(np.any(item.values) for item in observations) else set()
    functions = {i for i, o in enumerate(observations) if isinstance(o.noise, Learned) and o.noise.exact}
    return {name for name, members in _groups(observations).items() if alike | functions >= set(members)}


def _all_alike(values: np.ndarray) -> bool:
    spread = float(np.ptp(values))
    return not np.any(values) or (len(values) >= FEWEST_ALIKE and spread <= 1e-12 * float(np.max(np.abs(values))))


def signal_variance(observations: Sequence[Observation]) -> float:
    """The initial variance of the kernel: the mean square of the values of `u`, if there are any.

    If there are none, or all are zero, it is the largest variance that the values of other operators need.
    """
    of_u = [np.asarray(item.values) for item in observations if item.of_values]
    if of_u and (found := float(np.mean(np.concatenate(of_u) ** 2))):
        return found
    sizes = np.asarray([float(np.sqrt(np.mean(item.values**2))) for item in observations])
    return float(np.max(sizes / responses(observations))) ** 2 if np.any(sizes) else 1.0


def _groups(observations: Sequence[Observation]) -> dict[str, list[int]]:
    """The observations of each noise level, or of each name where the noise is known, as indices."""
    groups: dict[str, list[int]] = {}
    for i, item in enumerate(observations):
        groups.setdefault(item.noise_name or item.name, []).append(i)
    return groups


def _size(values: np.ndarray) -> float:
    largest, spread = float(np.max(np.abs(values))), float(np.std(values))
    return spread if spread > 1e-12 * largest else largest


def responses(observations: Sequence[Observation], fields: Mapping[str, float] | None = None) -> np.ndarray:
    """The size of each operator applied to a function of size one that varies once over the box of all points.

    Fields may have sizes of their own.
    """
    points = np.concatenate([np.asarray(item.points) for item in observations])
    lower, upper = points.min(axis=0), points.max(axis=0)
    half = np.where(upper > lower, 0.5 * (upper - lower), 1.0)
    waves = np.random.default_rng(0).normal(size=(FUNCTIONS, len(half))) / np.sqrt(len(half)) / half
    some = [np.asarray(item.points)[np.linspace(0, len(item) - 1, PLACES).astype(int)] for item in observations]
    # Fields are independent, so the squares of their parts add.
    size = lambda name: 1.0 if fields is None else fields[name]
    found = [
        float(np.sqrt(sum((size(name) * float(_response(A, q, waves))) ** 2 for name, A in parts.items())))
        for parts, q in zip((by_field(item.operator, ()) for item in observations), some)
    ]
    return np.maximum(found, np.finfo(float).tiny)


@compiled_quickly
def _response(operator: Operator, points: Float[Array, "p d"], waves: Float[Array, "m d"]) -> Float[Array, ""]:
    """`√E (A φ)²` over points and functions `φ = √2 cos(w·q + b)`, with two phases `b` a quarter period apart."""

    def response(w: Array, phase: Array, q: Array) -> Array:
        return operator(lambda place: jnp.sqrt(2.0) * jnp.cos(jnp.dot(w, place) + phase))(q)

    of_points = jax.vmap(response, (None, None, 0))
    of_phases = jax.vmap(of_points, (None, 0, None))
    found = jax.vmap(of_phases, (0, None, None))(waves, jnp.asarray([0.0, jnp.pi / 2]), points)
    return jnp.sqrt(jnp.mean(found**2))
