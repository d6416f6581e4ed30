"""A figure that a notebook shows by itself."""

from __future__ import annotations

from matplotlib.figure import Figure

from . import style


class Picture(Figure):
    """A matplotlib figure without a backend. A notebook shows the PNG from `_repr_png_`."""

    def _repr_png_(self) -> bytes:
        return style.as_bytes(self, "png")
