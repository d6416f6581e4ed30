"""The picture of a search: objective over latent dimension."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import write_atomically
from .evaluation import Evaluation
from .space import Parameters, Space
from .surrogate import Surrogate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
BLUE, RED, GREY = "#2f6690", "#c8553d", "#8a8f98"


def draw(space: Space, history: Sequence[Evaluation], best: Evaluation, surrogate: Surrogate) -> Figure:
    """Evaluated points, the surrogate's mean and its 95 % band. Colours show the parameters other than latent_dim."""
    from matplotlib.figure import Figure  # not pyplot, which would change the user's backend
    from matplotlib.ticker import MaxNLocator

    slices = _slices(history, best)
    figure = Figure(figsize=(7.2, 4.3), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    dims = space.axes[0][1]
    grid = np.linspace(dims[0], dims[-1], 301)
    for others, colour in slices:
        own = others == _others(best.parameters)
        mean, deviation = surrogate.predict([{"latent_dim": h, **others} for h in grid])
        label = _name(others) or "surrogate mean"
        axes.plot(grid, mean, color=colour, linewidth=1.6 if own else 0.9, alpha=1 if own else 0.55, label=label)
        if own:
            band = (mean - 1.96 * deviation, mean + 1.96 * deviation)
            axes.fill_between(grid, *band, color=colour, alpha=0.15, linewidth=0, label="its 95 % band")
        points = [e for e in history if e.objective is not None and _others(e.parameters) == others]
        found = np.array([(e.parameters["latent_dim"], e.objective) for e in points], float)
        axes.plot(*found.T, "o", color=colour, markeredgecolor="white", markersize=7, zorder=3, label=_once(others))
    h = best.parameters["latent_dim"]
    label = f"best: {h}" + (f", {_name(_others(best.parameters))}" if _others(best.parameters) else "")
    axes.plot(h, best.rank, "*", color=RED, markeredgecolor="white", markersize=17, zorder=4, label=label)
    if failed := [e.parameters["latent_dim"] for e in history if e.objective is None]:
        bottom = axes.get_xaxis_transform()
        axes.plot(failed, [0.03] * len(failed), "x", color=GREY, transform=bottom, zorder=3, label="failed")
    _dress(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlim(dims[0] - 0.5, dims[-1] + 0.5)
    if len(slices) > 1:
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend(frameon=False, fontsize=8)
    return figure


def save(figure: Figure, path: Path) -> None:
    if path.suffix not in FORMATS:
        raise ValueError(f"A picture is stored as {', '.join(FORMATS)}: got {str(path)!r}.")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:])
    write_atomically(path, buffer.getvalue())


def _dress(axes: Any) -> None:
    axes.set_xlabel("latent dimension")
    axes.set_ylabel("negative log marginal likelihood")
    axes.grid(axis="y", color="#e4e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
    axes.tick_params(colors="#4a4f57")


def _slices(history: Sequence[Evaluation], best: Evaluation) -> list[tuple[Parameters, Any]]:
    """The values of the other parameters in successful trainings, sorted, and a colour for each."""
    from matplotlib import colormaps

    found = [_others(item.parameters) for item in history if item.objective is not None]
    distinct = sorted({tuple(item.items()) for item in found})
    if len(distinct) == 1:
        return [(_others(best.parameters), BLUE)]
    shades = colormaps["viridis"](np.linspace(0.0, 0.88, len(distinct)))
    return [(dict(item), shade) for item, shade in zip(distinct, shades)]


def _others(parameters: Parameters) -> Parameters:
    return {name: value for name, value in parameters.items() if name != "latent_dim"}


def _name(others: Parameters) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in others.items())


def _once(others: Parameters) -> str | None:
    """The label of the points if all have the same colour; `None` if the labels of the lines explain the colours."""
    return None if others else "evaluated"
