"""A figure that a notebook shows without further ado."""

from __future__ import annotations

from matplotlib.figure import Figure

from . import style


class Picture(Figure):
    """A matplotlib figure that belongs to no backend. A notebook asks it for its own PNG."""

    def _repr_png_(self) -> bytes:
        return style.as_bytes(self, "png")
