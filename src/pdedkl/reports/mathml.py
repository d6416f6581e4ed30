"""MathML for a page: parsed, checked against a list, and written again. The given text never reaches the page."""

from __future__ import annotations

from html import escape
from typing import Any, NoReturn
from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
# Elements that may contain only text, because a browser parses their content as HTML.
TOKENS = frozenset(["mi", "mn", "mo", "ms", "mspace", "mtext"])
ELEMENTS = TOKENS | frozenset([
    "math", "merror", "mfrac", "mmultiscripts", "mover", "mpadded", "mphantom", "mprescripts", "mroot", "mrow", "msqrt",
    "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtr", "munder", "munderover", "none",
])  # fmt: skip
ATTRIBUTES = frozenset([
    "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth", "dir", "display", "displaystyle",
    "fence", "form", "height", "largeop", "linethickness", "lspace", "mathsize", "mathvariant", "maxsize", "minsize",
    "movablelimits", "rowalign", "rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "symmetric",
    "voffset", "width",
])  # fmt: skip
MOST_CHARACTERS, MOST_LEVELS = 100_000, 100


def checked(text: str) -> str:
    """One `<math>` element with the same formula, in presentation MathML only.

    **Arguments:**

    - `text`: the formula as MathML. Comments and processing instructions are left out.

    **Returns:** the formula, written again from its elements, attributes and text; `""` for an empty one. Anything that
    is not on the lists above raises a `ValueError` that names it, so that a formula cannot bring code into a page.
    """
    if not isinstance(text, str):
        raise TypeError(f"`mathml` needs a string with one <math> element: got {type(text).__name__}.")
    if not text.strip():
        return ""
    if len(text) > MOST_CHARACTERS:
        _refuse(f"of at most {MOST_CHARACTERS} characters", f"{len(text)}")
    writer = _Writer()
    parser = ElementTree.XMLParser(target=writer)
    try:
        parser.feed(text.strip())
        parser.close()
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise ValueError(f"`mathml` needs one well-formed <math> element, without named entities: {error}.") from None
    return "".join(writer.written)


class _Writer:
    """Writes what a parser reads, element by element, and refuses what is not on the lists."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.open: list[str] = []

    def doctype(self, *_: Any) -> NoReturn:
        _refuse("without a document type", "<!DOCTYPE …>")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.removeprefix(NAMESPACE)
        if name not in ELEMENTS or (name == "math") == bool(self.open):
            _refuse("of presentation MathML", f"<{name}>")
        if self.open and self.open[-1] in TOKENS:
            _refuse(f"with nothing but text in <{self.open[-1]}>", f"<{name}>")
        if len(self.open) == MOST_LEVELS:
            _refuse(f"with at most {MOST_LEVELS} elements inside each other", "more")
        if foreign := sorted(set(attributes) - ATTRIBUTES):
            _refuse("with attributes of presentation MathML", f"{', '.join(foreign)} in <{name}>")
        self.open.append(name)
        given = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
        self.written.append(f"<{name}{given}>")

    def end(self, _: str) -> None:
        self.written.append(f"</{self.open.pop()}>")

    def data(self, text: str) -> None:
        self.written.append(escape(text))

    def close(self) -> None:
        """Nothing is left to do."""


def _refuse(needed: str, found: str) -> NoReturn:
    raise ValueError(f"`mathml` needs one <math> element {needed}: got {found}. Leave it out of the formula.")
