"""A picture of the inputs that act together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..inference.shares import Interactions
from .style import BLUE, GREY, ORANGE, RED, new, styled, verbatim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Sets with a smaller share are not drawn, and at most so many are.
LEAST, MOST = 1e-4, 60
# The area of an input with all of the variance, and the width of the line of such a pair, in points.
AREA, WIDTH, THINNEST = 900.0, 9.0, 0.6


@styled
def which_inputs_act_together(found: Interactions) -> Figure:
    """The inputs on a circle. Areas are what inputs do alone, lines between them what they do in pairs.

    Triples are triangles. Areas and widths grow with the root of the share, so that small ones can be seen.
    """
    count = len(found.names)
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    figure = new(11.0)
    axes = figure.add_subplot()
    together = [(own, share) for own, share in zip(found.sets, found.share) if len(own) > 1 and share > LEAST]
    for own, share in reversed(together[:MOST]):
        x, y = place[list(own)].T
        if len(own) == 2:
            axes.plot(x, y, color=BLUE, linewidth=max(WIDTH * np.sqrt(share), THINNEST), solid_capstyle="round")
        else:
            axes.fill(x, y, color=ORANGE, alpha=0.15 + 0.6 * float(np.sqrt(share)), linewidth=THINNEST)
    alone = np.asarray([item.share for item in found.alone])
    axes.scatter(
        place[:, 0], place[:, 1], s=12 + AREA * np.sqrt(np.clip(alone, 0, 1)) / 6, color=RED, zorder=3, linewidth=0
    )
    skip = -(-count // 60)
    for i in range(0, count, skip):
        x, y = 1.16 * place[i]
        axes.text(x, y, verbatim(found.names[i]), ha="center", va="center", color=GREY)
    axes.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.3, 1.3))
    axes.set_axis_off()
    return figure
