"""Observations: values of operators of `u` at points, with noise."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .compilation import array_of, library_for
from .domain import Domain
from .equations import Linear, Nonlinear, Term, as_operator, compiled_term
from .operators import Integral, Operator, Row, Symbol, identity, same
from .operators.base import applied
from .operators.integrals import place_of
from .operators.offset import has_offset
from .precision import require_float64
from .shown import Rows, Shown, known, plural, span
from .tables import check_inside, check_noise, read_table

# The largest size of values that is allowed; the smallest is `1 / LARGEST`.
LARGEST = 1e100

# Words that say what noise values have; other strings are names of columns.
NOISE_WORDS = ("learned", "exact", "robust")


class Learned(eqx.Module):
    """A noise level that training finds. Observations with the same name of a level share it.

    **Arguments:**

    - `name`: the name of the level; by default that of the observation.
    - `initial`: the standard deviation to start from; by default a hundredth of the standard deviation of the values.
    - `exact`: whether the values come from a function and have no noise. Then the level is only a tolerance, at most a
      small fraction of the size of the values: what a kernel cannot follow is not explained as noise.
    - `robust`: whether some values may be far off. Then the noise has Student's t-distribution: values that all others
      contradict count less.

    !!! example
        ```python
        left = pk.Observation(pk.identity, points, values, noise=pk.Learned("sensors", initial=0.1))
        right = pk.Observation(pk.D(t), points, values, noise=pk.Learned("sensors", initial=0.1))
        ```
    """

    name: str | None = eqx.field(default=None, static=True)
    initial: float | None = eqx.field(default=None, static=True)
    exact: bool = eqx.field(default=False, static=True)
    robust: bool = eqx.field(default=False, static=True)

    def __check_init__(self) -> None:
        if self.exact and self.robust:
            raise ValueError("Learned noise of exact values has no outliers: give exact=True or robust=True.")
        if not (self.name is None or isinstance(self.name, str)):
            raise TypeError(f"Learned(name, initial) needs a string as the name: got {self.name!r}.")
        number = isinstance(self.initial, int | float | np.number)
        if self.initial is not None and not (number and np.isfinite(self.initial) and self.initial > 0):
            raise ValueError(f"Learned noise needs a positive standard deviation to start from: got {self.initial!r}.")


class Observation(Shown, eqx.Module):
    """`y_i = (A u)(q_i) + ε_i`: values of one operator at `n` points, with normal noise.

    **Arguments:**

    - `operator`: the operator `A`; `identity` for values of `u` itself; a row of several fields, `D(x) @ u + p`; or a
      term that is not linear, such as `u * (D(x) @ u)`, for `fit`.
    - `points`: an array of shape `(n, d)`, all coordinates of the domain in their order; `None` for an `Integral` over
      all of them.
    - `values`: the `n` values `y`.
    - `noise`: the standard deviation of `ε`, in the units of the values. A number, or one number for each point; `0` or
      `"exact"` for none; `"learned"`, the default; `"robust"`, learned, with values far off counting less; or
      `Learned(name, initial)`.
    - `name`: its name, and that of its learned noise level. Observations of the same name share one level. By default
      the name is the operator as text, `u` or `Δ_x u`; different operators with the same text get a number.
    - `weights`: how much each value counts: its noise variance is divided by its weight. `fit` finds them for
      `noise="robust"`; by default all values count the same.

    !!! example
        ```python
        sensors = pk.Observation(pk.identity, points, values, noise=0.01)
        equation = pk.Observation(heat, points, np.zeros(20), noise="exact")
        ```
    """

    operator: Operator
    points: Float[Array, "n d"]
    values: Float[Array, " n"]
    noise: Learned | Float[Array, ""] | Float[Array, " n"]
    name: str = eqx.field(static=True)
    weights: Float[Array, " n"] | None = None

    def __init__(
        self,
        operator: Any,
        points: Any,
        values: Any,
        noise: Any = "learned",
        name: str | None = None,
        weights: Any = None,
    ) -> None:
        require_float64()
        is_linear = not isinstance(operator, Term) or isinstance(operator, Linear)
        operator = as_operator(operator) if is_linear else compiled_term(operator)
        if not isinstance(operator, Operator):
            raise TypeError(f"`operator` needs to be an operator such as identity or Laplacian(x): got {operator!r}.")
        y = _numbers("values", values)
        if points is None and y.ndim == 1 and (place := place_of(operator)) is not None:
            points = np.tile(place, (len(y), 1))
        q = as_points(points, operator)
        if y.ndim != 1 or y.shape[0] != q.shape[0]:
            raise ValueError(
                f"`values` needs one entry per point: {q.shape[0]} points, values of shape {y.shape}. "
                + ("Pass values[:, 0]." if y.ndim == 2 else "For a constant right-hand side pass jnp.full(n, c).")
            )
        _check_size(y)
        self.operator = operator
        _check_operator_at(operator, q[0])
        self.points = _own(q)
        self.values = _own(y)
        self.noise = _read_noise(noise, q.shape[0])
        self.name = name or applied(operator)
        self.weights = None if weights is None else _read_weights(weights, q.shape[0])

    @classmethod
    def from_table(
        cls,
        path: str | os.PathLike[str],
        coordinates: Sequence[str] | str,
        value: str,
        noise: Any = "learned",
        operator: Operator = identity,
        domain: Domain | None = None,
        name: str | None = None,
    ) -> Observation:
        """Observations from the columns of a CSV, Parquet or NPZ file, one row for each point.

        **Arguments:**

        - `path`: the file. Its ending says what it is: `.csv`, `.tsv`, `.txt`, `.parquet`, `.pq` or `.npz`.
        - `coordinates`: the names of the columns that hold the coordinates, in the order of the domain.
        - `value`: the name of the column of values.
        - `noise`: the name of a column of standard deviations; a number; `"exact"`; `"robust"`; or `"learned"`, the
          default.
        - `operator`: what was measured; `u` itself by default.
        - `domain`: if it is given, every point has to lie in it.
        - `name`: the name of the observation and of its learned noise level.

        **Returns:** an `Observation`.

        !!! example
            ```python
            columns = np.column_stack([points, values])
            np.savetxt("sensors.csv", columns, delimiter=",", header="x[0],x[1],t,u", comments="")
            names = domain.coordinate_names  # x[0], x[1], t
            sensors = pk.Observation.from_table("sensors.csv", names, "u", noise=0.01, domain=domain)
            ```
        """
        axes = [coordinates] if isinstance(coordinates, str) else list(coordinates)
        if not axes:
            raise ValueError("`coordinates` needs the name of a column for each coordinate: got none.")
        given = isinstance(noise, str) and noise not in NOISE_WORDS
        table = read_table(path, [*axes, value, *([noise] if given else [])])
        points = table.stacked(axes)
        if domain is not None:
            check_inside(table, points, domain)
        if given:
            check_noise(table, noise)
        return cls(operator, points, table.columns[value], table.columns[noise] if given else noise, name)

    def __len__(self) -> int:
        return self.points.shape[0]

    @property
    def of_values(self) -> bool:
        """Whether these are values of `u`, or multiples of them: no derivatives, no differences."""
        return self.operator.order == 0 and self.operator.local and not has_offset(self.operator)

    @property
    def noise_name(self) -> str | None:
        """The name of the learned noise level; `None` if the noise is known."""
        return (self.noise.name or self.name) if isinstance(self.noise, Learned) else None

    def initial_noise(self) -> float:
        """Where a learned noise level starts.

        **Arguments:** none.

        **Returns:** a standard deviation.

        !!! example
            ```python
            assert pk.Observation(pk.identity, points, values, noise=pk.Learned(initial=0.3)).initial_noise() == 0.3
            ```
        """
        given = self.noise.initial if isinstance(self.noise, Learned) else None
        if given is not None:
            return given
        values = np.asarray(self.values)
        size, spread = float(np.max(np.abs(values))), float(np.std(values))
        return 1e-2 * (spread if spread > 1e-12 * size else size or 1.0)

    def noise_variance(self, log_noise: dict[str, Array]) -> Float[Array, " n"]:
        """The variance of the noise at each point.

        **Arguments:**

        - `log_noise`: logarithms of the learned standard deviations, by name, as a `Model` holds them.

        **Returns:** `n` variances.

        !!! example
            ```python
            assert jnp.allclose(data.noise_variance({}), 1e-4)
            ```
        """
        learned = isinstance(self.noise, Learned)
        level = log_noise[self.noise_name or ""] if learned else self.noise
        xp = library_for((level, self.weights))
        level = xp.asarray(level)
        variance = xp.broadcast_to(xp.exp(2 * level) if learned else level**2, (len(self),))
        return variance if self.weights is None else variance / xp.asarray(self.weights)

    def _described(self) -> tuple[str, Rows] | None:
        level = None if isinstance(self.noise, Learned) else self.noise
        if not known(self.points, self.values, *([] if level is None else [level])):
            return None
        learned = f"learned, as the level {self.noise_name!r}"
        if isinstance(self.noise, Learned) and self.noise.exact:
            learned = "exact, up to a small tolerance"
        if isinstance(self.noise, Learned) and self.noise.robust:
            learned += ", robust against values far off"
        return f"Observation of {applied(self.operator)} at {plural(len(self), 'point')}", {
            "name": self.name,
            "points": f"{plural(self.points.shape[1], 'coordinate')} each",
            "values": span(self.values),
            "noise": learned if level is None else span(level) if np.any(np.asarray(level)) else "exact",
        }


def as_points(points: Any, operator: Operator, dim: int | None = None) -> np.ndarray:
    """Points as a finite `(n, d)` array that fits the operator, and the kernel where its dimension is given."""
    q = _numbers("points", points)
    if q.size == 0:
        raise ValueError("An empty set of points: at least one is needed.")
    if q.ndim != 2:
        raise ValueError(
            f"`points` needs shape (n, d), one row per point: got shape {q.shape}. For one point pass q[None, :]."
        )
    for wanted, who in ((operator.dim, str(operator)), (dim, "the kernel")):
        if wanted is not None and q.shape[1] != wanted:
            raise ValueError(f"`points` has {q.shape[1]} coordinates and {who} acts on {wanted}.")
    return q


def _check_operator_at(operator: Operator, q: np.ndarray) -> None:
    """Trace the operator at one point, so that a coefficient of a wrong shape is found before anything is compiled."""

    if isinstance(operator, Nonlinear):
        jax.eval_shape(operator(jnp.sum), jnp.asarray(q))
        return
    if isinstance(operator, Integral):
        _check_operator_at(operator.inner, q)
        return
    if isinstance(operator, Row):
        for part in operator.operators:
            _check_operator_at(part, q)
        return

    def symbols(q: Array) -> list[Symbol]:
        return [local.symbol(q) for _, local in operator.local_terms()]

    jax.eval_shape(symbols if operator.order <= 2 else operator(jnp.sum), array_of(q))


def check_observations(
    observations: Sequence[Observation] | Observation, beside: Sequence[Observation] = ()
) -> tuple[Observation, ...]:
    """The observations as a tuple. Different operators get different names, also from the observations `beside`."""
    found = (observations,) if isinstance(observations, Observation) else observations
    found = tuple(found) if isinstance(found, Sequence) else ()
    if not found:
        raise ValueError("There is nothing to condition on: pass at least one Observation.")
    for item in found:
        if not isinstance(item, Observation):
            raise TypeError(f"Expected a list of Observation: got {type(item).__name__}.")
    if len(dims := {item.points.shape[1] for item in found}) > 1:
        raise ValueError(f"All observations need points of one dimension: got {sorted(dims)}.")
    return _told_apart((*beside, *found))[len(beside) :]


def _told_apart(observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """The same observations. If two without a name have different operators that print alike, names get a number."""
    known: dict[str, list[Operator]] = {}
    found = []
    for item in observations:
        plain = applied(item.operator)
        alike = known.setdefault(plain, [])
        number = next((i for i, other in enumerate(alike) if same(other, item.operator)), len(alike))
        if number == len(alike):
            alike.append(item.operator)
        renamed = number > 0 and item.name == plain
        found.append(_renamed(item, f"{plain} ({number + 1})") if renamed else item)
    return tuple(found)


def check_in_domain(domain: Domain, observations: Sequence[Observation]) -> None:
    """Refuse points outside the domain: the kernel is scaled to it, and wrong units or order lead to such points."""
    for item in observations:
        outside = np.flatnonzero(~np.asarray(domain.contains(item.points)))
        if len(outside):
            index = int(outside[0])
            raise ValueError(
                f"Point {index} of observation {item.name!r}, {np.asarray(item.points[index]).tolist()}, is outside "
                f"the domain {domain} ({len(outside)} of {len(item)} points are): check the order of coordinates and "
                "their units, or enlarge the domain."
            )


def _check_size(values: np.ndarray) -> None:
    """Refuse values so large or so small that computations with their squares would overflow or underflow."""
    largest = float(np.max(np.abs(values)))
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise ValueError(
            f"`values` needs numbers between {1 / LARGEST:g} and {LARGEST:g} in size: the largest is {largest:g}. "
            "Measure them in another unit."
        )


def _renamed(item: Observation, name: str) -> Observation:
    """The same observation, not checked again, under another name."""
    other = copy.copy(item)
    object.__setattr__(other, "name", name)
    return other


def _numbers(name: str, value: Any) -> np.ndarray:
    given = np.asarray(value)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"`{name}` needs real numbers: got {type(value).__name__} of {given.dtype}.")
    array = given.astype(float, copy=False)
    if not np.all(np.isfinite(array)):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f"entry {where} is {array[where]}. Remove or repair such entries first." if where else f"got {array}."
        raise ValueError(f"`{name}` needs finite numbers: {place}")
    return array


def _read_noise(noise: Any, n: int) -> Learned | Array:
    if isinstance(noise, Learned):
        return noise
    if isinstance(noise, str):
        if noise == "learned":
            return Learned()
        if noise == "robust":
            return Learned(robust=True)
        if noise == "exact":
            return jnp.zeros(())
        raise ValueError(f"`noise` is a standard deviation, 'exact', 'learned' or 'robust': got {noise!r}.")
    level = _numbers("noise", noise)
    if level.shape not in {(), (n,)} or np.any(level < 0):
        raise ValueError(
            f"`noise` needs one standard deviation, or one for each of the {n} points, none negative: "
            f"got shape {level.shape}, smallest {level.min() if level.size else 'none'}."
        )
    return _own(level)


def _read_weights(weights: Any, n: int) -> Array:
    found = _numbers("weights", weights)
    if found.shape != (n,) or not np.all(found > 0):
        raise ValueError(
            f"`weights` needs a positive number for each of the {n} points: got shape {found.shape}, smallest "
            f"{found.min() if found.size else 'none'}."
        )
    return _own(found)


def _own(array: np.ndarray) -> Array:
    """A copy, so that the caller may change the array afterwards."""
    return array_of(array)


def taken(item: Observation, part: np.ndarray) -> Observation:
    """Some values of an observation, with their noise and their weights."""
    of_each = lambda node: eqx.is_array(node) and node.ndim and node.shape[0] == len(item)
    fields = lambda o: (o.points, o.values, o.noise, o.weights)
    arrays = jax.tree.map(lambda node: node[part] if of_each(node) else node, fields(item))
    return eqx.tree_at(fields, item, arrays, is_leaf=lambda node: node is None)
