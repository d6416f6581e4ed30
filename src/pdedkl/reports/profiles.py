"""Pictures of unknown numbers: the posterior density of each, beside its prior and the normal approximation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .style import BLUE, GREY, RED, new, styled, verbatim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Pictures in a row, and points of a curve.
ACROSS, POINTS = 3, 200
# The range of a picture, in standard deviations of the normal approximation.
WIDE = 4.0


@styled
def drawn(parameters: Mapping[str, Any], curves: Mapping[str, Any], draws: Mapping[str, np.ndarray]) -> Figure:
    """`exp(−rise)` along each number where there is a profile, a histogram where there are draws, the normal
    approximation in grey, and the 95 % interval."""
    rows = -(-len(parameters) // ACROSS)
    figure = new(5.0 * max(rows, 1))
    every = figure.subplots(max(rows, 1), min(ACROSS, max(len(parameters), 1)), squeeze=False).ravel()
    for axes, (name, one) in zip(every, parameters.items()):
        raw = np.linspace(one.raw - WIDE * one.raw_std, one.raw + WIDE * one.raw_std, POINTS)
        values = np.asarray(one.support.value(raw), dtype=float)
        axes.plot(values, np.exp(-0.5 * ((raw - one.raw) / one.raw_std) ** 2), "--", color=GREY, label="normal")
        if name in curves:
            axes.plot(curves[name].values, np.exp(-curves[name].rises), ".-", color=BLUE, label="profile")
        if name in draws:
            heights, edges = np.histogram(draws[name], bins=40)
            axes.stairs(heights / heights.max(), edges, color=BLUE, label="draws")
        for end in one.interval(0.95):
            if np.isfinite(end):
                axes.axvline(end, color=RED, linewidth=0.8)
        axes.set_xlabel(verbatim(name))
        axes.set_yticks([])
    for axes in every[len(parameters) :]:
        axes.set_visible(False)
    every[0].set_ylabel("likelihood times prior")
    every[0].legend()
    return figure
