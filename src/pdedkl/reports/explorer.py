"""The slice explorer: the data with which the page draws mean and standard deviation of `u` over any two inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from ..domain import Domain
from ..inference import Posterior
from .packing import NotShownError, pack
from .style import DEVIATIONS, VALUES

COLOURS = 33


@dataclass(frozen=True)
class Explorer:
    """The data and scripts of a page's explorer. If there is no explorer, `missing` says why."""

    data: str = ""
    arrays: str = ""
    script: str = ""
    deviation: str = ""
    missing: str = ""


def explorer(posterior: Posterior, domain: Domain, start: Any = None, axes: tuple[int, int] | None = None) -> Explorer:
    """The explorer of a posterior. By default it starts at the centre with the first two inputs on the axes."""
    try:
        model, arrays = pack(posterior)
    except NotShownError as reason:
        return Explorer(missing=str(reason))
    middle = 0.5 * (domain.lower + domain.upper)
    page = {
        "model": model,
        "names": domain.coordinate_names,
        "lower": domain.lower.tolist(),
        "upper": domain.upper.tolist(),
        "start": np.asarray(middle if start is None else start).tolist(),
        "axes": list(axes or (0, min(1, domain.dim - 1))),
        "viridis": _colours(VALUES),
        "cividis": _colours(DEVIATIONS),
    }
    script = "\n".join(files(__package__).joinpath(name).read_text("utf-8") for name in ("model.js", "explorer.js"))
    # Inside a script element only "</" could end it early.
    data = json.dumps(page, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Explorer(data, arrays, script, _deviation(model["deviation"]))


def _colours(name: str) -> list[list[int]]:
    from matplotlib import colormaps

    return np.round(255 * colormaps[name](np.linspace(0, 1, COLOURS))[:, :3]).astype(int).tolist()


def _deviation(form: dict[str, Any]) -> str:
    if form["kind"] == "exact":
        return "exact"
    return (
        f"an upper bound: it is computed from the {form['rank']} most important directions of the data, "
        f"and is typically {form['ratio']:.2g} times the exact one"
    )
