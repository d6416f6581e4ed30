"""One look for all pictures: page width, readable type, colours that everybody can tell apart."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito; without its yellow, which is too light for lines on white.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#222222",
)  # fmt: skip
PALETTE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)
GREY = "#6b7280"
VALUES, DEVIATIONS, ERRORS = "viridis", "cividis", "PuOr"

PAGE_CM = 16.0
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.7,
    "xtick.color": "#374151",
    "ytick.color": "#374151",
    "lines.linewidth": 1.4,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    "figure.dpi": 200,
    "svg.fonttype": "path",
    "text.usetex": False,
}

P = ParamSpec("P")
T = TypeVar("T")


def styled(function: Callable[P, T]) -> Callable[P, T]:
    """Run with the style, and leave the caller's own settings as they were."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        from matplotlib import rc_context

        with rc_context(STYLE):
            return function(*args, **kwargs)

    return run


def verbatim(text: str) -> str:
    """A name as plain text in a picture: dollar signs start no formula, and invalid Unicode is written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode().replace("$", r"\$")


def new(height_cm: float, width_cm: float = PAGE_CM) -> Figure:
    """An empty figure without a backend."""
    from .picture import Picture

    return Picture(figsize=(width_cm / 2.54, height_cm / 2.54), layout="constrained")


@styled
def as_bytes(figure: Figure, kind: str) -> bytes:
    """The picture as `png` or `svg`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    return buffer.getvalue()


def save(figure: Figure, folder: str | Path, name: str) -> tuple[Path, Path]:
    """Write `name.png` and `name.svg` into the folder. Each file is replaced completely or not at all."""
    if not name or Path(name).name != name:
        raise ValueError(f"`name` is the name of a file without its folder and ending, such as 'slice': got {name!r}.")
    paths = Path(folder) / f"{name}.png", Path(folder) / f"{name}.svg"
    for path in paths:
        write_atomically(path, as_bytes(figure, path.suffix[1:]))
        # The layout, which takes as long as drawing, is the same in the next format.
        figure.set_layout_engine("none")
    return paths
