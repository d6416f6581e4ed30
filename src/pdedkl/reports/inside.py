"""Pictures of the model: how it was trained, which inputs matter to it, its latent coordinates."""

from __future__ import annotations

from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Domain
from ..embeddings import LatentJet
from ..inference import Posterior
from ..training.monitor import Step
from .results import Results
from .style import BLACK, PALETTE, VALUES, new, styled, verbatim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIRS = 4
SLOPES = 256


@styled
def training_history(history: tuple[Step, ...]) -> Figure:
    """Objective and noise levels over the steps of a run. All phases have the same width in the picture."""
    if not history:
        raise ValueError("The history is empty: only a posterior from pdedkl.fit has one.")
    phases = [(name, list(steps)) for name, steps in groupby(history, key=lambda step: step.phase)]
    names = list(dict.fromkeys(name for step in history for name in step.noise))
    figure = new(10.5)
    top, bottom = figure.subplots(2, 1, sharex=True)
    for number, (_, steps) in enumerate(phases):
        where = number + (np.arange(len(steps)) + 0.5) / len(steps)
        marker = "." if len(steps) < 60 else ""
        top.plot(where, [step.objective for step in steps], marker=marker, color=BLACK, markersize=3)
        for name, colour, dashes in zip(names, PALETTE * 3, ("-", "--", "-.", ":") * 6):
            level = [step.noise.get(name, np.nan) for step in steps]
            bottom.plot(where, level, dashes, color=colour, label=_noise_name(name) if number == 0 else None)
        for axes in (top, bottom) if number % 2 == 0 else ():
            axes.axvspan(number, number + 1, color="#f3f4f6", linewidth=0)
    _limit(top, [np.array([step.objective for step in steps]) for _, steps in phases])
    top.set_ylabel("objective")
    bottom.set_ylabel("noise level")
    if names:
        bottom.set_yscale("log")
        bottom.legend()
    few = len(phases) <= 10
    room = max(1, 95 // len(phases)) if few else 200  # characters
    named = [f"{fill(name, room, break_long_words=False)}\n{len(steps)} steps" for name, steps in phases]
    bottom.set_xlim(0, len(phases))
    bottom.set_xticks(np.arange(len(phases)) + 0.5, named, rotation=0 if few else 90)
    for axes in (top, bottom):
        axes.tick_params(axis="x", length=0)
    return figure


def _limit(axes: Any, objectives: list[np.ndarray]) -> None:
    """Show at least the better half of every phase. The first objectives of a phase may be far above all later ones."""
    finite = [part[np.isfinite(part)] for part in objectives]
    finite = [part for part in finite if len(part)]
    if finite:
        low, high = min(float(part.min()) for part in finite), max(float(np.median(part)) for part in finite)
        pad = 0.1 * (high - low) or 1.0
        axes.set_ylim(low - pad, high + 2 * pad)


def _noise_name(name: str) -> str:
    return verbatim(f"of {'u' if name == '1' else name}")


@eqx.filter_jit
def _slopes(posterior: Posterior, points: Float[Array, "n d"], field: str | None) -> Float[Array, "n d"]:
    return jax.vmap(jax.grad(lambda q: posterior.mean(q, field)))(points)


def sensitivity(posterior: Posterior, problem: Any, n: int = SLOPES, seed: int = 0) -> np.ndarray:
    """`(E (∂m/∂q_i)²)^½` times the width of input `i`: how much `u` changes across the domain, to first order.

    Of several fields it is the largest, each relative to the largest change of its own.
    """
    points = jnp.asarray(problem.interior(n, seed))
    width = problem.domain.upper - problem.domain.lower
    names = posterior.model.kernel.fields
    slopes = [np.asarray(_slopes(posterior, points, name)) for name in names or (None,)]
    found = [np.sqrt(np.mean(slope**2, axis=0)) * width for slope in slopes]
    if len(found) == 1:
        return np.asarray(found[0])
    return np.asarray(np.max([each / (np.max(each) or 1.0) for each in found], axis=0))


@styled
def which_inputs_matter(domain: Domain, strengths: np.ndarray) -> Figure:
    """The sensitivity to each input as bars, coloured by their named group."""
    names, many = [verbatim(name) for name in domain.coordinate_names], domain.dim > 12
    figure = new(7.0)
    axes = figure.add_subplot()
    begin = 0
    for (name, size), colour in zip(domain.layout, PALETTE * domain.dim):
        where = np.arange(begin, begin + size)
        axes.bar(where, strengths[where], color=colour, width=0.75, label=verbatim(name))
        begin += size
    axes.set_xticks(range(domain.dim))
    skip = -(-domain.dim // 60)
    shown = [name if i % skip == 0 else "" for i, name in enumerate(names)]
    axes.set_xticklabels(shown, rotation=90 if many else 0)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, domain.dim - 0.4)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.set_ylabel("rms slope × width of the input")
    if len(domain.layout) > 1:
        axes.legend(ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), handlelength=1)
    return figure


@styled
def latent_coordinates(posterior: Posterior, results: Results) -> Figure:
    """The most important latent coordinates, at most four, in pairs, coloured by predicted `u`.

    They belong to the component that contributes most to the mean, and are ranked by how much it changes along each.
    """
    order, z = _latent(posterior, results.points)
    u = results.fields[0].found.mean
    kept = np.sort(order)
    z, k = z[:, kept], len(kept)
    if k == 1:
        figure = new(7.5)
        axes = figure.add_subplot()
        axes.plot(z[:, 0], u, ".", color=PALETTE[0], markersize=3.5, rasterized=True)
        axes.set(xlabel=f"latent {kept[0] + 1}", ylabel="predicted u")
        return figure
    figure = new(6.5 if k == 2 else 14.0, 9.0 if k == 2 else 16.0)
    grid = figure.subplots(k - 1, k - 1, squeeze=False, sharex="col", sharey="row")
    points: Any = None
    for row in range(1, k):
        for column in range(k - 1):
            axes = grid[row - 1, column]
            if column >= row:
                axes.set_visible(False)
                continue
            points = axes.scatter(z[:, column], z[:, row], c=u, cmap=VALUES, s=6, lw=0, rasterized=True)
            if row == k - 1:
                axes.set_xlabel(f"latent {kept[column] + 1}")
            if column == 0:
                axes.set_ylabel(f"latent {kept[row] + 1}")
    bar = figure.colorbar(points, ax=grid, label="predicted u", shrink=0.7, aspect=28)
    bar.outline.set_linewidth(0.5)
    return figure


def _latent(posterior: Posterior, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates to show, and all latent coordinates of the points, for the most important component."""
    components, q = posterior.model.kernel.components, jnp.asarray(points)
    if posterior.model.engine != "closed-form":
        # Rows of this engine hold operators instead of jets, so coordinates are ranked by the spread of the points.
        z = np.asarray(jax.vmap(components[0].latent)(q))
        return _worth_showing(z.std(axis=0)), z
    found = [
        [np.asarray(part) for part in _contribution(posterior, number, q[:SLOPES])] for number in range(len(components))
    ]
    best = int(np.argmax([values.std() for _, values, _ in found]))
    some, _, slopes = found[best]
    reach = np.sqrt(np.mean(slopes**2, axis=0)) * some.std(axis=0)
    return _worth_showing(reach), np.asarray(jax.vmap(components[best].latent)(q))


def _worth_showing(reach: np.ndarray) -> np.ndarray:
    """The first two coordinates, and up to two more with a change of the mean above 1 % of the largest."""
    order = np.argsort(-reach, kind="stable")[:PAIRS]
    return np.array([i for rank, i in enumerate(order) if rank < 2 or reach[i] > 0.01 * reach[order[0]]])


@eqx.filter_jit
def _contribution(posterior: Posterior, number: int, points: Array) -> tuple[Array, Array, Array]:
    """Latent coordinates, the contribution of one component to the mean, and the gradient of this contribution."""
    component = posterior.model.kernel.components[number]

    def mean(z: Array) -> Array:
        jet = LatentJet(z, jnp.ones(()), None, None)
        parts = [jax.vmap(lambda row: component.base.pair(jet, row))(rows[number]) for rows in posterior.sections]
        return jnp.dot(jnp.concatenate(parts), posterior.alpha)

    z = jax.vmap(component.latent)(points)
    return z, *jax.vmap(jax.value_and_grad(mean))(z)
