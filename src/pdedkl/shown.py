"""Short descriptions: a few lines in a terminal, a small table in a notebook."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

# The most characters of one line; the rest becomes "…".
WIDTH = 200

Rows = dict[str, str]


class Shown(abc.ABC):
    """Gives a class its `__repr__` and its table for notebooks, from one title and a few named lines."""

    @abc.abstractmethod
    def _described(self) -> tuple[str, Rows] | None:
        """A title and named rows; `None` while JAX traces a program, where numbers are not known."""

    def __repr__(self) -> str:
        found = self._described()
        if found is None:
            return f"<{type(self).__name__} whose numbers are not known here>"
        title, rows = found
        width = max(map(len, rows), default=0)
        return "\n".join([shortened(title), *(f"  {name:<{width}}  {shortened(text)}" for name, text in rows.items())])

    def _repr_html_(self) -> str | None:
        found = self._described()
        if found is None:
            return None
        title, rows = found
        left = 'style="text-align:left"'
        body = "".join(
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(shortened(text))}</td></tr>"
            for name, text in rows.items()
        )
        return f"<table><caption {left}><b>{escape(shortened(title))}</b></caption><tbody>{body}</tbody></table>"


class Written:
    """For results that `str` describes in full: the same text in a terminal and in a notebook."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def known(*values: Any) -> bool:
    """Whether all leaves are numbers: no tracers, no shapes in place of arrays, no `None`."""
    import jax  # here, because commands that only show verdicts of finished runs do not need it

    leaves = jax.tree.leaves(values, is_leaf=lambda leaf: leaf is None)
    return all(
        isinstance(leaf, np.ndarray | np.generic | jax.Array | bool | int | float)
        and not isinstance(leaf, jax.core.Tracer)
        for leaf in leaves
    )


def shortened(text: str, width: int = WIDTH) -> str:
    """One line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 2].rstrip(' ,;')} …"


def listed(items: Sequence[str], most: int = 4) -> str:
    """The first `most` items, and the number of the others."""
    more = len(items) - most
    return ", ".join([*items[:most], *([f"and {more} more"] if more > 0 else [])])


def span(values: Any) -> str:
    """The smallest and the largest of some numbers; one number if both print the same."""
    numbers = np.asarray(values, dtype=float)
    low, high = f"{numbers.min():.4g}", f"{numbers.max():.4g}"
    return low if low == high else f"{low} to {high}"


def over(layout: Sequence[tuple[str, int]]) -> str:
    """The coordinates of a space in short form: `x[0:50], t`."""
    return ", ".join(f"{name}[0:{size}]" if size > 1 else name for name, size in layout)


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
