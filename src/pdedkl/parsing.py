"""JSON from files that may be damaged: limited in size and depth, with errors of one sentence."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

MOST_BYTES = 2**26  # of one file; the largest files of pdedkl have some hundred kilobytes
MOST_LEVELS = 200  # of nested lists and dictionaries; recursive readers need a few calls for each level


def read_json(path: str | Path) -> Any:
    """The content of a JSON file.

    **Arguments:**

    - `path`: the file, which needs to be a regular one.

    **Returns:** dictionaries, lists, text, finite numbers, truth values and None. Wrong content raises a `ValueError`
    that names the file; a file that cannot be opened raises an `OSError`.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} needs to be a JSON file, and is a folder or a device.")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path} needs to be a JSON file of at most {MOST_BYTES / 2**20:g} MiB, and is larger.")
    return parse_json(content, str(path))


def parse_json(text: str | bytes, what: str, finite: bool = True) -> Any:
    """The content of a JSON text. Anything else raises a `ValueError`, in which `what` names the text.

    Python writes `NaN` and `Infinity`, which are not JSON; they are read only if `finite` is false.
    """
    try:
        found = json.loads(text, parse_constant=_refused if finite else None, parse_float=_finite if finite else None)
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError as error:  # from the decoder, from a number, or from bytes that are not text
        raise ValueError(f"{what} needs to be JSON and is not: {shortened(error)}.") from None
    level = [found]
    for _ in range(MOST_LEVELS):
        level = [part for item in level if isinstance(item, dict | list) for part in _parts(item)]
        if not level:
            return found
    raise _too_deep(what)


def shortened(text: object, most: int = 200) -> str:
    """A text of at most about `most` characters, for error messages: the middle of a longer one is left out."""
    whole = str(text).rstrip(".")
    return whole if len(whole) <= most else f"{whole[: most // 2]} … {whole[-most // 2 :]}"


def _parts(item: dict[str, Any] | list[Any]) -> Any:
    return item.values() if isinstance(item, dict) else item


def _too_deep(what: str) -> ValueError:
    return ValueError(f"{what} needs to be JSON with at most {MOST_LEVELS} nested levels, and has more.")


def _refused(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:20]} is too large for a number")
    return value
