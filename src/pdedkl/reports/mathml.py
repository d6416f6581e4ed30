"""MathML that may go into a page as it is: presentation elements and no others."""

from __future__ import annotations

from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
ELEMENTS = frozenset([
    "math", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
    "munder", "munderover", "none",
])  # fmt: skip
ATTRIBUTES = frozenset([
    "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth", "dir", "display", "displaystyle",
    "fence", "form", "height", "largeop", "linethickness", "lspace", "mathsize", "mathvariant", "maxsize", "minsize",
    "movablelimits", "rowalign", "rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "symmetric",
    "voffset", "width", "xmlns",
])  # fmt: skip


def checked(text: str) -> str:
    """The same text, if it is one `<math>` element; a page must not run what a formula brings along."""
    if not text.strip():
        return ""
    try:
        tree = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"`mathml` needs one well-formed <math> element, without named entities: {error}.") from None
    elements = [node.tag.removeprefix(NAMESPACE) for node in tree.iter()]
    attributes = {name for node in tree.iter() for name in node.attrib}
    if elements[0] != "math" or (foreign := sorted(set(elements) - ELEMENTS | attributes - ATTRIBUTES)):
        raise ValueError(
            f"`mathml` needs a <math> element of presentation MathML: got <{elements[0]}>"
            + (f" with {', '.join(foreign)}." if elements[0] == "math" else ".")
        )
    return text
