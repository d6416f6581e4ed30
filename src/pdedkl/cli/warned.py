"""Warnings of pdedkl as sentences on standard error: each once, without the file and line that Python shows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .app import tell

PACKAGE = Path(__file__).parents[1]
Take = Callable[[str, type[Warning]], bool]


@contextmanager
def sentences() -> Iterator[None]:
    """Print warnings of pdedkl as sentences. A run builds its problem more than once, but tells its findings once."""
    told: set[str] = set()

    def take(text: str, category: type[Warning]) -> bool:
        if text not in told:
            told.add(text)
            tell(f"Warning: {_with_remedy(text, category)}")
        return True

    with _shown_by(take):
        yield


@contextmanager
def kept(name: str) -> Iterator[list[str]]:
    """The texts of warnings of one class of pdedkl, by its name. They are not printed."""
    found: list[str] = []

    def take(text: str, category: type[Warning]) -> bool:
        if category.__name__ == name:
            found.append(text)
        return category.__name__ == name

    with _shown_by(take):
        yield found


@contextmanager
def _shown_by(take: Take) -> Iterator[None]:
    """Give warnings of pdedkl to `take`. Those of other packages, and those it leaves, are shown as before."""
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Any, category: type[Warning], filename: str, *rest: Any, **more: Any) -> None:
            if not (_ours(category, filename) and take(str(message), category)):
                before(message, category, filename, *rest, **more)

        warnings.showwarning = show
        yield


def _ours(category: type[Warning], filename: str) -> bool:
    own_class = category.__module__.partition(".")[0] == __package__.partition(".")[0]
    return own_class or (category is UserWarning and PACKAGE in Path(filename).parents)


def _with_remedy(text: str, category: type[Warning]) -> str:
    """A finding about a problem ends with its name: add how to silence it."""
    if category.__name__ == "ProblemWarning" and (name := re.search(r"\[(\w+)\]$", text)):
        return f'{text} If this is meant: Problem(…, silenced=["{name[1]}"]).'
    return text
