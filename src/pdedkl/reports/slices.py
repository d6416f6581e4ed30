"""One picture of a posterior: a curve with its band along one coordinate, or maps over two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..grids import fixed_point, grid_points, index_of
from ..inference import Posterior
from ..operators import Operator
from ..operators.base import Identity
from ..shown import over
from .figures import GRID, band_panel, map_panel
from .results import values_of
from .style import DEVIATIONS, ERRORS, GREY, VALUES, new, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS_OF_A_CURVE = 401
# Finer where a ball is cut out of the plane, so that its edge is smooth.
FINE_GRID = 3 * GRID
# Up to this number, the fixed coordinates are named in the title.
NAMED = 4


@styled
def plotted(
    posterior: Posterior,
    coordinates: Sequence[Any],
    at: Any,
    operator: Operator,
    exact: Callable[[Any], Any] | None,
    domain: Domain | None,
    level: float,
) -> Figure:
    """The picture of `Posterior.plot`."""
    names = posterior.model.kernel.names
    lower, upper = _box(posterior, domain)
    chosen = _chosen(coordinates, names)
    origin = fixed_point(at, names, 0.5 * (lower + upper))
    if exact is not None and not callable(exact):
        raise TypeError(f"`exact` needs to be a function of the point q, such as problem.exact: got {exact!r}.")
    count = POINTS_OF_A_CURVE if len(chosen) == 1 else GRID if domain is None else FINE_GRID
    axes = {index: np.linspace(lower[index], upper[index], count) for index in chosen}
    points = grid_points(axes, origin)
    inside = np.ones(len(points), bool) if domain is None else np.asarray(domain.contains(jnp.asarray(points)))
    if not np.any(inside):
        raise ValueError(f"No point of this picture lies in the domain {domain}: choose others with `at`.")
    found = posterior.predict(points, operator)
    lines = {"prediction": found.mean, "half": found.interval(level)[1] - found.mean}
    if exact is not None:
        lines["truth"] = values_of(operator(exact), points)
    shown = {name: np.where(inside, values, np.nan) for name, values in lines.items()}
    draw = _curve if len(chosen) == 1 else _plane
    figure = draw(shown, list(axes.values()), [names[k] for k in chosen], found.what, level)
    if len(names) == 1 and isinstance(operator, Identity):
        _add_data(figure, posterior)
    if len(chosen) == 1:
        figure.axes[0].legend(loc="best")
    if len(chosen) == 2 or len(names) > 1:
        figure.suptitle(_title(found.what, names, chosen, origin, at), parse_math=False, fontsize=9)
    return figure


def _curve(shown: dict[str, Any], axes: list[np.ndarray], names: list[str], what: str, level: float) -> Figure:
    figure = new(8.0)
    place, (across,), mean = figure.add_subplot(), axes, shown["prediction"]
    band_panel(place, across, mean, (mean - shown["half"], mean + shown["half"]), shown.get("truth"), level)
    place.set_xlim(across[0], across[-1])
    place.set_xlabel(names[0], parse_math=False)
    place.set_ylabel(what, parse_math=False)
    return figure


def _plane(shown: dict[str, Any], axes: list[np.ndarray], names: list[str], what: str, level: float) -> Figure:
    maps = [("prediction", shown["prediction"], VALUES)]
    if "truth" in shown:
        maps.append(("prediction − truth", shown["prediction"] - shown["truth"], ERRORS))
    maps.append((f"{100 * level:g} % interval, ±", shown["half"], DEVIATIONS))
    figure = new(7.6 if len(maps) == 3 else 9.2)
    across, up = axes
    for place, (title, values, colours) in zip(figure.subplots(1, len(maps), sharey=True), maps):
        # A scale from zero shows how much the width varies, and does not magnify rounding errors.
        start = 0.0 if colours == DEVIATIONS else None
        map_panel(figure, place, across, up, values.reshape(len(across), len(up)).T, title, colours, start)
        place.set_xlabel(names[0], parse_math=False)
        if np.any(np.isnan(values)):
            place.set_aspect("equal")
    figure.axes[0].set_ylabel(names[1], parse_math=False)
    return figure


def _add_data(figure: Figure, posterior: Posterior) -> None:
    """Add the observed values. Only for one coordinate, where the curve shows the whole domain."""
    same = [item for item in posterior.observations if isinstance(item.operator, Identity)]
    if same:
        q, y = (np.concatenate([np.asarray(getattr(o, name)) for o in same]) for name in ("points", "values"))
        style: dict[str, Any] = {"color": GREY, "markersize": 4, "zorder": 3, "label": "data"}
        figure.axes[0].plot(q[:, 0], y, ".", **style)


def _box(posterior: Posterior, domain: Domain | None) -> tuple[np.ndarray, np.ndarray]:
    if domain is None:
        return posterior.model.kernel.box
    if not isinstance(domain, Domain) or domain.layout != posterior.model.kernel.layout:
        wanted = over(posterior.model.kernel.layout)
        raise TypeError(f"`domain` needs to be a Domain with the posterior's coordinates, {wanted}: got {domain!r}.")
    return domain.lower, domain.upper


def _chosen(coordinates: Sequence[Any], names: Sequence[str]) -> list[int]:
    if not coordinates:
        return [0] if len(names) == 1 else [0, len(names) - 1]
    found = [index for wanted in coordinates for index in index_of(wanted, names)]
    if len(found) not in (1, 2) or len(set(found)) < len(found):
        example = ", ".join(repr(name) for name in dict.fromkeys((names[0], names[-1])))
        raise ValueError(
            f"A picture is along one coordinate or over two different ones, as in plot({example}): "
            f"got {len(found)} of them, {', '.join(names[k] for k in found[:4])}{' …' * (len(found) > 4)}."
        )
    return found


def _title(what: str, names: Sequence[str], chosen: Sequence[int], origin: np.ndarray, at: Any) -> str:
    fixed = [k for k in range(len(names)) if k not in chosen]
    if not fixed:
        return what
    if len(fixed) <= NAMED:
        return f"{what} at {', '.join(f'{names[k]} = {origin[k]:.4g}' for k in fixed)}"
    return f"{what}, the other {len(fixed)} coordinates {'in the middle' if at is None else 'as given by `at`'}"
