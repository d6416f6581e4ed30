"""What a posterior predicts at points, and the ways to take it elsewhere: intervals, tables, grids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..grids import axes_of
from ..shown import Rows, Shown, known, listed, span

if TYPE_CHECKING:
    import pandas
    import xarray


class Through(eqx.Module):
    """A function `F` of a normal variable at each point, by its mean and its standard deviation there."""

    operator: Any
    mean: np.ndarray
    std: np.ndarray

    def __call__(self, points: np.ndarray, away: float) -> np.ndarray:
        """`F` of what is so many standard deviations above the mean."""
        values = jnp.asarray(self.mean + away * self.std)[:, None]
        return np.asarray(jax.vmap(self.operator.at)(jnp.asarray(points), values))


class Prediction(Shown, eqx.Module):
    """Mean and variance of `A u` at each of `n` points. It unpacks into `mean, variance, clamped`.

    **Arguments:**

    - `mean`: the posterior mean at each point.
    - `variance`: the posterior variance at each point, without the noise of measurements.
    - `clamped`: how many variances were negative because of rounding. They are set to zero.
    - `points`: the points, an array of shape `(n, d)`.
    - `names`: the name of each coordinate, such as `x[0]` and `t`.
    - `what`: what was predicted, as text, such as `u`.
    - `through`: for a positive function, say, how intervals come from those of its logarithm.

    !!! example
        ```python
        found = posterior.predict(points)
        lower, upper = found.interval(0.95)
        table = found.to_pandas()
        ```
    """

    mean: np.ndarray
    variance: np.ndarray
    clamped: int
    points: np.ndarray
    names: tuple[str, ...] = eqx.field(static=True)
    what: str = eqx.field(default="u", static=True)
    through: Through | None = None

    @property
    def std(self) -> np.ndarray:
        """The standard deviation at each point."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """The central interval that should hold the truth with probability `level`.

        **Arguments:**

        - `level`: a probability between 0 and 1.

        **Returns:** the lower and the upper ends, an array each.

        !!! example
            ```python
            lower, upper = posterior.predict(points).interval(0.9)
            ```
        """
        if not 0 < level < 1:
            raise ValueError(f"`level` is a probability between 0 and 1: got {level}.")
        away = float(jax.scipy.special.ndtri(0.5 + 0.5 * level))
        if self.through is not None:
            ends = self.through(self.points, -away), self.through(self.points, away)
            return np.minimum(*ends), np.maximum(*ends)
        half = away * self.std
        return self.mean - half, self.mean + half

    def to_pandas(self, level: float = 0.95) -> pandas.DataFrame:
        """A table with one row for each point: its coordinates, `mean`, `std`, and the interval from `lower` to
        `upper`.

        It needs pandas: `pip install "pdedkl[pandas]"`.

        **Arguments:**

        - `level`: the probability of the interval.

        **Returns:** a `pandas.DataFrame`.

        !!! example
            ```python
            table = posterior.predict(points).to_pandas()
            assert list(table) == ["x[0]", "x[1]", "t", "mean", "std", "lower", "upper"]
            ```
        """
        try:
            import pandas
        except ImportError:
            raise ImportError('to_pandas() needs pandas: pip install "pdedkl[pandas]".') from None
        columns = self._columns(level)
        table = pandas.DataFrame(dict(zip(self.names, np.asarray(self.points).T)) | columns)
        table.attrs = {"of": self.what, "level": level}
        return table

    def to_xarray(self, level: float = 0.95) -> xarray.Dataset:
        """A grid with its coordinates: `mean`, `std`, `lower` and `upper` over each coordinate that varies.

        The points have to form a grid: a point for every combination of the values of its coordinates, in any order.
        `domain.grid` makes one. It needs xarray: `pip install "pdedkl[xarray]"`.

        **Arguments:**

        - `level`: the probability of the interval.

        **Returns:** an `xarray.Dataset`. Coordinates with a single value are kept as numbers.

        !!! example
            ```python
            grid = posterior.predict(domain.grid({"x[0]": 5, "t": 3})).to_xarray()
            assert grid["mean"].dims == ("x[0]", "t")
            ```
        """
        try:
            import xarray
        except ImportError:
            raise ImportError('to_xarray() needs xarray: pip install "pdedkl[xarray]".') from None
        columns = self._columns(level)
        axes, rows = axes_of(np.asarray(self.points), self.names)
        varying = [name for name, values in axes.items() if len(values) > 1]
        coordinates = {name: values if len(values) > 1 else values[0] for name, values in axes.items()}
        data = {name: (varying, np.asarray(column)[rows]) for name, column in columns.items()}
        return xarray.Dataset(data, coordinates, attrs={"of": self.what, "level": level})

    def _columns(self, level: float) -> dict[str, np.ndarray]:
        lower, upper = self.interval(level)
        columns = {"mean": self.mean, "std": self.std, "lower": lower, "upper": upper}
        if taken := sorted(set(columns) & set(self.names)):
            raise ValueError(
                f"The coordinate {taken[0]!r} has the name of a column of this table: use prediction.points, "
                "prediction.mean and prediction.std, or give the coordinate another name in the Domain."
            )
        return columns

    def __iter__(self) -> Iterator[Any]:
        return iter((self.mean, self.variance, self.clamped))

    def __getitem__(self, item: int | slice) -> Any:
        return (self.mean, self.variance, self.clamped)[item]

    def _described(self) -> tuple[str, Rows] | None:
        if not known(self.mean, self.variance) or not np.size(self.mean):
            return None
        rows = {"mean": span(self.mean), "std": span(self.std), "inputs": listed(self.names)}
        if self.clamped:
            rows["rounding"] = f"{self.clamped} variances were negative because of rounding, and are set to zero"
        return f"Prediction of {self.what} at {np.size(self.mean)} points", rows
