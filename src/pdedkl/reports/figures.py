"""Pictures of predictions: against the truth, their calibration, and over slices of the domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from .. import metrics
from ..domain import Domain
from ..equations import Nonlinear
from ..inference import Posterior, Prediction
from ..inference.rows import values_of_fields
from ..operators import Operator
from ..operators.base import Scaled
from ..operators.derivatives import Partial
from ..operators.rows import by_field
from .results import Results, exact_of, values_of
from .style import BLUE, DEVIATIONS, ERRORS, GREY, PALETTE, RED, VALUES, new, styled, verbatim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID = 61
ARROWS = 15
LEVELS = np.linspace(0.01, 0.99, 50)


@styled
def predicted_against_true(results: Results) -> Figure:
    """Predicted over true values of fields and equations, with 95 % intervals; where the truth is known."""
    shown = [(part.label, part.found, part.truth) for part in results.known() if part.truth is not None]
    if not shown:
        raise ValueError("Nothing is known to compare with: the problem has no exact solution and no source.")
    figure = new(10.5 if len(shown) == 1 else 12.5 / 2 * len(shown))
    grid = figure.subplots(2, len(shown), squeeze=False, sharex="col", height_ratios=(3, 1.25))
    for column, (name, found, truth) in enumerate(shown):
        _one_comparison(grid[0, column], grid[1, column], name, found, truth)
    grid[0, 0].set_ylabel("predicted")
    grid[1, 0].set_ylabel("predicted − true")
    return figure


def _one_comparison(values: Any, errors: Any, name: str, found: Prediction, truth: np.ndarray) -> None:
    half = float(ndtri(0.975)) * found.std
    bars: dict[str, Any] = {"fmt": ".", "color": BLUE, "markersize": 3, "elinewidth": 0.5, "alpha": 0.55}
    low, high = float(min(truth.min(), found.mean.min())), float(max(truth.max(), found.mean.max()))
    pad = 0.04 * (high - low) or 1.0
    values.plot([low - pad, high + pad], [low - pad, high + pad], color=GREY, linewidth=0.9, zorder=0)
    values.errorbar(truth, found.mean, half, rasterized=True, **bars)
    values.set_ylim(low - pad, high + pad)
    error = metrics.relative_l2(found.mean, truth)
    covered = metrics.coverage(found.mean, found.std, truth, (0.95,))["0.95"]
    kind = "relative error" if error.relative else "rms error"
    values.set_title(f"{name}: {kind} {error.value:.1e}\n95 % intervals hold {100 * covered:.0f} % of the truth")
    errors.axhline(0.0, color=GREY, linewidth=0.9, zorder=0)
    errors.errorbar(truth, found.mean - truth, half, rasterized=True, **bars)
    # Most intervals fit into the picture. A few that are much wider would make all the others too small.
    reach = 1.1 * float(np.quantile(np.abs(found.mean - truth) + half, 0.99)) or 1.0
    errors.set_ylim(-reach, reach)
    errors.set_xlabel("true")


@styled
def calibration(results: Results) -> Figure:
    """The fraction of true values inside central intervals, over the level of the intervals."""
    figure = new(8.5, 11)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.9)
    shown = results.known()
    for part, colour, dashes in zip(shown, PALETTE * len(shown), ("-", "--", "-.", ":") * len(shown)):
        assert part.truth is not None
        inside = metrics.coverage(part.found.mean, part.found.std, part.truth, tuple(LEVELS))
        axes.plot(LEVELS, list(inside.values()), dashes, color=colour, label=verbatim(part.label))
    if not shown:
        raise ValueError("Nothing is known to compare with: the problem has no exact solution and no source.")
    axes.text(0.72, 0.66, "perfect", color=GREY, rotation=45, transform_rotates_text=True, rotation_mode="anchor")
    axes.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="level of the interval", ylabel="truth inside", aspect="equal")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.03))
    return figure


@styled
def slice_maps(
    posterior: Posterior, problem: Any, seed: int = 0, axes: tuple[int, int] | None = None, field: int = 0
) -> Figure:
    """Prediction, error and standard deviation over two inputs, the others fixed at a random interior point.

    The two inputs are chosen at random unless `axes` names them. With one input it is a curve with its 95 % band. Of
    several fields it is that of the given number.
    """
    domain: Domain = problem.domain
    origin = np.asarray(problem.interior(1, seed))[0]
    if domain.dim == 1:
        return _curve(posterior, problem, field)
    a, b = _axes(domain, seed) if axes is None else axes
    across, up, points = plane_of(domain, origin, a, b, GRID)
    found = posterior.predict(points, values_of_fields(posterior)[field])
    truth = _truth(posterior, problem, field, points)
    maps = [("prediction", found.mean, VALUES)]
    if truth is not None:
        maps.append(("prediction − truth", found.mean - truth, ERRORS))
    maps.append(("standard deviation", found.std, DEVIATIONS))
    figure = new(6.4)
    for place, (title, values, colours) in zip(figure.subplots(1, len(maps), sharey=True), maps):
        map_panel(figure, place, across, up, values.reshape(GRID, GRID), title, colours)
        place.set_xlabel(verbatim(domain.coordinate_names[a]))
    figure.axes[0].set_ylabel(verbatim(domain.coordinate_names[b]))
    return figure


def _axes(domain: Domain, seed: int) -> tuple[int, int]:
    a, b = sorted(np.random.default_rng([seed, 2]).choice(domain.dim, 2, replace=False).tolist())
    return a, b


def map_panel(
    figure: Any,
    axes: Any,
    across: Any,
    up: Any,
    values: np.ndarray,
    title: str,
    colours: str,
    start: float | None = None,
) -> None:
    """One quantity over two inputs. Its colour bar begins at `start`, and entries that are NaN stay white."""
    from matplotlib.ticker import MaxNLocator

    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    low = low if start is None else start
    if colours == ERRORS:
        high = max(abs(low), abs(high)) or 1.0
        low = -high
    if not high > low:
        high = low + (abs(low) or 1.0) * 1e-6
    filled = axes.contourf(across, up, values, np.linspace(low, high, 25), cmap=colours, extend="neither")
    filled.set_rasterized(True)
    if colours == VALUES:
        lines: dict[str, Any] = {"colors": "white", "linewidths": 0.5, "linestyles": "solid", "alpha": 0.6}
        axes.contour(across, up, values, np.linspace(low, high, 9)[1:-1], **lines)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    axes.set_title(title)
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    bar = figure.colorbar(filled, ax=axes, orientation="horizontal", pad=0.03, aspect=22, ticks=MaxNLocator(4))
    bar.outline.set_linewidth(0.5)
    bar.ax.tick_params(labelsize=8)


def _curve(posterior: Posterior, problem: Any, field: int) -> Figure:
    domain: Domain = problem.domain
    across = np.linspace(domain.lower[0], domain.upper[0], 301)
    found = posterior.predict(across[:, None], values_of_fields(posterior)[field])
    truth = _truth(posterior, problem, field, across[:, None])
    figure = new(8.0)
    axes = figure.add_subplot()
    band_panel(axes, across, found.mean, found.interval(0.95), truth)
    axes.set(xlabel=verbatim(domain.coordinate_names[0]), ylabel=verbatim(found.what))
    axes.legend()
    return figure


def _truth(posterior: Posterior, problem: Any, field: int, points: np.ndarray) -> np.ndarray | None:
    return values_of(exact_of(problem, posterior.model.kernel.fields, field), points)


def plane_of(domain: Domain, origin: np.ndarray, a: int, b: int, count: int) -> tuple[np.ndarray, ...]:
    """The values of two inputs on the sides of a grid, and its points; the other inputs are fixed."""
    across, up = (np.linspace(domain.lower[i], domain.upper[i], count) for i in (a, b))
    points = np.tile(origin, (count * count, 1))
    points[:, a], points[:, b] = (plane.ravel() for plane in np.meshgrid(across, up))
    return across, up, points


def vector_in_the_plane(problem: Any) -> tuple[int, int, int, int] | None:
    """Two fields that are a vector in the plane, and the two inputs of that plane; `None` if there are none.

    They are, if some row has the slope of the one along the one input beside the slope of the other along the other: a
    divergence or a curl.
    """
    names = getattr(problem, "fields", ())
    if len(names) < 2:
        return None
    planes = [problem.domain.coordinates(name).indices for name, size in problem.domain.layout if size == 2]
    for statement in problem.statements:
        operator = statement.operator
        for row in operator.rows if isinstance(operator, Nonlinear) else (operator,):
            slopes = {name: _slope(part) for name, part in by_field(row, names).items()}
            for plane in planes:
                found = [name for name in names if slopes.get(name) in plane]
                if len(found) == 2 and {slopes[name] for name in found} == set(plane):
                    return names.index(found[0]), names.index(found[1]), *plane
    return None


def _slope(operator: Operator) -> int | None:
    """The input of a first derivative, or of a multiple of one."""
    inner = operator.operator if isinstance(operator, Scaled) else operator
    return inner.indices[0] if isinstance(inner, Partial) and inner.order == 1 else None


@styled
def arrows(posterior: Posterior, problem: Any, vector: tuple[int, int, int, int], seed: int = 0) -> Figure:
    """Two fields as arrows over the plane, coloured by their length; other inputs are fixed at an interior point."""
    first, second, a, b = vector
    domain: Domain = problem.domain
    across, up, points = plane_of(domain, np.asarray(problem.interior(1, seed))[0], a, b, ARROWS)
    fields = values_of_fields(posterior)
    u, v = (posterior.predict(points, fields[number]).mean.reshape(ARROWS, ARROWS) for number in (first, second))
    figure = new(9.0)
    axes = figure.add_subplot()
    drawn = axes.quiver(across, up, u, v, np.hypot(u, v), cmap=VALUES, pivot="mid")
    names = posterior.model.kernel.fields
    bar = figure.colorbar(drawn, ax=axes, label=verbatim(f"length of ({names[first]}, {names[second]})"), aspect=28)
    bar.outline.set_linewidth(0.5)
    axes.set(xlabel=verbatim(domain.coordinate_names[a]), ylabel=verbatim(domain.coordinate_names[b]), aspect="equal")
    return figure


def band_panel(
    axes: Any,
    across: np.ndarray,
    mean: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray],
    truth: np.ndarray | None = None,
    level: float = 0.95,
) -> None:
    """A curve with its band, and the truth if it is known."""
    axes.fill_between(across, *interval, color=BLUE, alpha=0.2, linewidth=0, label=f"{100 * level:g} % interval")
    axes.plot(across, mean, color=BLUE, label="prediction")
    if truth is not None:
        axes.plot(across, truth, "--", color=RED, label="truth")
