"""The rows of all observations, in a form that does not depend on the problem.

A covariance depends on operators, points and embeddings only through latent jets. So jets are joined over all
observations: those of values (`c` alone) make one section, all others a second one, with zeros for the parts that they
lack. Latent coordinates are sorted into groups, and groups of one size make one part. Sections and groups are filled up
with zeros to the next of a few sizes. A jet of zeros has no covariance with anything, so this changes no result.

A program that is compiled for one problem then serves all others of about the same size, whatever their equations are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..compilation import library_for
from ..embeddings import LatentJet
from ..kernels import BaseKernel, Profile, sum_over_groups, variances
from .engines import Autodiff, Engine, Stacked, terms_of

# A term of a row: the number of the observation, and that of the term.
Term = tuple[int, int]
# Kinds of rows, in the order in which they are joined.
FULL, GIVEN = (False, True), (True, False)


class Part(eqx.Module):
    """One term of a kernel: `block(parameters, left, right)` between rows, and the rows of all observations.

    Of several fields a term may enter a few rows only, and has only these: `own` are their numbers among all joined
    jets, and `among` the numbers of all jets among its own. A number that is too large stands for nothing.
    """

    block: Callable = eqx.field(static=True)
    parameters: Any
    sections: tuple[Any, ...]
    own: Int[Any, " m"] | None = None
    among: Int[Any, " n"] | None = None

    def bare(self) -> Part:
        """The same without the numbers, so that programs do not depend on how many jets there are in all."""
        return Part(self.block, self.parameters, self.sections)


class Layout(NamedTuple):
    """Where the rows of the observations are among the joined jets.

    Row `i` is the sum of the jets `place[i]`; −1 stands for nothing. `owner[j]` is the row that the jet `j` belongs to,
    −1 if it is only there to fill up. The first `first` jets are those of given rows; it is `None` where no order of
    sections brings them there. `pieces` are the terms in each section, with the numbers of jets; `None` fills up.
    """

    place: np.ndarray
    owner: np.ndarray
    first: int | None
    pieces: tuple[tuple[tuple[Term | None, int], ...], ...]

    @property
    def plain(self) -> bool:
        """Whether each row is one jet, and the given rows come first."""
        return self.place.shape[1] == 1 and self.first is not None


class Groups(eqx.Module):
    """`Σ_g σ_g² φ(|z_g − z'_g|²/2)` over groups of one size. A group without variance is only there to fill up."""

    profile: Profile
    variance: Float[Any, " g"]


class Rows(eqx.Module):
    """Latent jets of many points, as functions of each group see them; a part that is `None` is zero for all."""

    z: Float[Any, "n g k"]
    c: Float[Any, " n"]
    drift: Float[Any, "n g k"] | None = None
    diffusion: Float[Any, "n g *k"] | None = None

    def by_group(self) -> LatentJet:
        """Jets with the groups as the leading axis."""
        c = jnp.broadcast_to(self.c, (self.z.shape[1], *self.c.shape))
        first = lambda a: None if a is None else jnp.moveaxis(a, 1, 0)
        return LatentJet(jnp.moveaxis(self.z, 1, 0), c, first(self.drift), first(self.diffusion))


def size_of(count: int) -> int:
    """The smallest usual size that is at least `count`: 0 to 8, then four to each power of two, and eight from 128."""
    if count <= 8:
        return count
    power = 1 << (count - 1).bit_length()
    unit = power // (8 if power <= 128 else 16)
    return -(-count // unit) * unit


def layout_of(
    counts: Sequence[tuple[int, int]], full: Sequence[bool], given: int = 0, stacked: Sequence[bool] = ()
) -> Layout:
    """The layout of observations with `(points, terms)` each, the first `given` of them given.

    Those that are `full` make one section and the others another one. All terms of those that are `stacked` are one
    piece, one row after the other.
    """
    stacked = stacked or [False] * len(counts)
    terms = [(i, t) for i, (_, several) in enumerate(counts) for t in range(1 if stacked[i] else several)]
    chosen = {
        (kind, known): [(i, t) for i, t in terms if full[i] is kind and (i < given) is known]
        for kind in FULL
        for known in GIVEN
    }
    others_first = chosen[True, True] and (
        not chosen[False, True] or (chosen[False, False] and not chosen[True, False])
    )
    order = [kind for kind in (FULL[::-1] if others_first else FULL) if chosen[kind, True] or chosen[kind, False]]
    starts = np.cumsum([0, *(n for n, _ in counts)])
    place = np.full((starts[-1], max(several for _, several in counts)), -1)
    owner: list[np.ndarray] = []
    sections = []
    lengths = []
    at = 0
    for kind in order:
        pieces: list[tuple[Term | None, int]] = []
        for known in GIVEN:
            begin = at
            for i, t in chosen[kind, known]:
                n, several = counts[i][0], counts[i][1] if stacked[i] else 1
                place[starts[i] : starts[i + 1], t : t + several] = at + np.arange(n * several).reshape(n, several)
                owner.append(np.repeat(np.arange(starts[i], starts[i + 1]), several))
                pieces.append(((i, t), n * several))
                at += n * several
            if spare := size_of(at - begin) - (at - begin):
                owner.append(np.full(spare, -1))
                pieces.append((None, spare))
                at += spare
            lengths.append((known, at - begin))
        sections.append(tuple(pieces))
    kept = [known for known, length in lengths if length]
    first = sum(length for known, length in lengths if known) if kept == sorted(kept, reverse=True) else None
    return Layout(place, np.concatenate(owner), first, tuple(sections))


def joined(engine: Engine, parameters: Any, sections: Sequence[Any], given: int = 0) -> tuple[tuple[Part, ...], Layout]:
    """The parts of a kernel with the rows of all observations, and their layout."""
    if isinstance(engine, Autodiff):
        return _as_they_are(engine, parameters, sections, given)
    stacked = [isinstance(section[0], Stacked) for section in sections]
    whole = lambda jets: (jets.flat(),) if isinstance(jets, Stacked) else terms_of(jets)
    rows = [tuple(map(whole, section)) for section in sections]
    full = [any(jet.order > 0 for jets in row for jet in jets) for row in rows]
    counts = [
        section[0].shape if one else (len(row[0][0].z), len(row[0]))
        for row, section, one in zip(rows, sections, stacked)
    ]
    layout = layout_of(counts, full, given, stacked)
    xp = library_for((parameters, sections))
    parts = []
    for k, base in enumerate(parameters):
        jets = {(i, t): jet for i, row in enumerate(rows) for t, jet in enumerate(row[k])}
        pieces, own, among = _entered(layout, jets)
        parts += _parts(base, [_column(each, jets, full, xp) for each in pieces], xp, own, among)
    return tuple(parts), layout


Pieces = tuple[tuple[tuple[Term | None, int], ...], ...]


def _entered(layout: Layout, jets: dict[Term, LatentJet]) -> tuple[Pieces, np.ndarray | None, np.ndarray | None]:
    """The pieces that a component enters, the numbers of their jets among all, and those of all jets among them."""
    if not any(jet.nothing for jet in jets.values()) or all(jet.nothing for jet in jets.values()):
        return layout.pieces, None, None
    total, at = len(layout.owner), 0
    sections, own = [], []
    for pieces in layout.pieces:
        kept: list[tuple[Term | None, int]] = []
        count = 0
        for term, n in pieces:
            if term is not None and not jets[term].nothing:
                kept.append((term, n))
                own.append(at + np.arange(n))
                count += n
            at += n
        if spare := size_of(count) - count:
            kept.append((None, spare))
            own.append(np.full(spare, total))
        if kept:
            sections.append(tuple(kept))
    numbers = np.concatenate(own)
    among = np.full(total + 1, len(numbers))
    among[numbers] = np.arange(len(numbers))
    return tuple(sections), numbers, among[:-1]


def _as_they_are(
    engine: Engine, parameters: Any, sections: Sequence[Any], given: int
) -> tuple[tuple[Part, ...], Layout]:
    """Rows of automatic differentiation hold operators, so there is nothing to join."""
    counts = [len(jax.tree.leaves(section)[0]) for section in sections]
    starts = np.cumsum([0, *counts])
    rows = np.arange(starts[-1])
    pieces = tuple((((i, 0), n),) for i, n in enumerate(counts))
    return (Part(engine.block, parameters, tuple(sections)),), Layout(rows[:, None], rows, int(starts[given]), pieces)


class _Column(NamedTuple):
    """All jets of one section, one below the other, before they are grouped."""

    z: Any
    c: Any
    drift: Any
    diffusion: Any


def _column(
    pieces: Sequence[tuple[Term | None, int]], jets: dict[Term, LatentJet], full: Sequence[bool], xp: Any
) -> _Column:
    members = [jets[term] for term, _ in pieces if term is not None]
    h = members[0].z.shape[-1]
    square = any(jet.diffusion is not None and jet.diffusion.ndim == 3 for jet in members)

    def joined_part(name: str, *tail: int) -> Any:
        found = []
        for term, n in pieces:
            value = None if term is None else getattr(jets[term], name)
            if value is None:
                found.append(np.zeros((n, *tail)))
            else:
                value = xp.asarray(value)
                found.append(value if value.ndim == 1 + len(tail) else value[..., None] * np.eye(h))
        return xp.concatenate(found) if len(found) > 1 else found[0]

    z, c = joined_part("z", h), joined_part("c")
    if not any(full[term[0]] for term, _ in pieces if term is not None):
        return _Column(z, c, None, None)
    return _Column(z, c, joined_part("drift", h), joined_part("diffusion", *((h, h) if square else (h,))))


def _parts(
    base: BaseKernel, columns: Sequence[_Column], xp: Any, own: np.ndarray | None, among: np.ndarray | None
) -> list[Part]:
    """One part for the groups of each size."""
    found = []
    for numbers, members in base.by_size():
        count = size_of(len(numbers))
        spare = count - len(numbers)
        variance = xp.pad(xp.exp(xp.asarray(base.log_variance))[numbers], (0, spare))
        parameters = Groups(base.profile, variance)
        sections = tuple(_grouped(column, members, spare, xp) for column in columns)
        found.append(Part(block_of_groups, parameters, sections, own, among))
    return found


def _grouped(column: _Column, members: np.ndarray, spare: int, xp: Any) -> Rows:
    groups, k = members.shape
    # A group of no coordinates, that of a constant, gets one that is zero everywhere.
    more = max(size_of(k), 1) - k
    everything = groups == 1 and np.array_equal(members[0], np.arange(column.z.shape[-1]))

    def filled(a: Any) -> Any:
        return xp.pad(a, ((0, 0), (0, spare), *[(0, more)] * (a.ndim - 2))) if spare or more else a

    def of_vectors(a: Any) -> Any:
        return None if a is None else filled(a[:, None] if everything else a[:, members])

    def of_matrices(a: Any) -> Any:
        if a is None or a.ndim == 2:
            return of_vectors(a)
        if k == 1:
            return of_vectors(xp.diagonal(a, axis1=1, axis2=2))
        return filled(a[:, None] if everything else a[:, members[:, :, None], members[:, None, :]])

    return Rows(of_vectors(column.z), column.c, of_vectors(column.drift), of_matrices(column.diffusion))


def block_of_groups(groups: Groups, left: Rows, right: Rows) -> Float[Array, "m n"]:
    """The covariances of rows."""
    return sum_over_groups(groups.profile, groups.variance, left.by_group(), right.by_group())


def variances_of_groups(groups: Groups, rows: Rows) -> Float[Array, " n"]:
    """The variance of each row."""
    of_each = jax.vmap(lambda variance, jets: variance * variances(groups.profile, jets))
    return jnp.sum(of_each(groups.variance, rows.by_group()), axis=0)
