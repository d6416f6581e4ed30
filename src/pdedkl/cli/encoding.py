"""Text for terminals that cannot show every character, without control characters."""

from __future__ import annotations

import codecs
import sys
import unicodedata

ERRORS = "pdedkl"
PLAIN = {
    "–": "-", "−": "-", "—": "-", "…": "...", "∂": "d", "Δ": "Laplace ", "Σ": "sum ", "μ": "mu", "×": "x", "∈": "in",
    "≤": "<=", "≥": ">=", "·": "*", "’": "'", "“": '"', "”": '"', "╭": "+", "╮": "+", "╰": "+", "╯": "+", "─": "-",
    "│": "|",
}  # fmt: skip


def forgive() -> None:
    """Make printing never fail: a character that cannot be encoded becomes plain letters, or its code number."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ERRORS)


def clean(text: str) -> str:
    """The user's text on one line, with control characters of the terminal escaped."""
    return "".join(c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode() for c in text)


def shown(text: str, encoding: str) -> str:
    """Clean text in the characters of an encoding. For tables: replacing characters later would shift the columns."""
    return clean(text).encode(encoding, ERRORS).decode(encoding)


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    known = PLAIN.get(character) or unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return known or character.encode("ascii", "backslashreplace").decode()


codecs.register_error(ERRORS, _plainly)
