"""What may happen to whoever reads a damaged file: it works, or ends in a documented error that names the file.

Documented are the library's own errors, `ValueError`, `TypeError` and what the system says of files, each with one
sentence. All others are faults, also those derived from `ValueError`, such as `UnicodeDecodeError`. Whatever comes out,
no program is run and no other file is opened.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jax

import pdedkl

DOCUMENTED = (ValueError, TypeError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
FORBIDDEN = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pickle.find_class", "socket.connect",
)  # fmt: skip
LONGEST = 2000

# Modules, which may be imported late; what says how much memory there is; and where compiled programs are kept.
_ALLOWED = [
    str(Path(folder).resolve())
    for folder in (sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), *pdedkl.__path__, "/proc", "/sys", "/dev")
]
_active: _Watch | None = None


@dataclass
class Outcome:
    error: BaseException | None = None
    wrong: str = ""


@dataclass
class _Watch:
    folder: str
    seen: list[str]


def _audit(event: str, arguments: tuple) -> None:
    if _active is None:
        return
    if event.startswith(FORBIDDEN):
        _active.seen.append(f"{event} {arguments!r}"[:200])
    if event == "open" and isinstance(arguments[0], str | bytes):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        compiled = jax.config.jax_compilation_cache_dir or _active.folder
        if not path.startswith((_active.folder, os.path.realpath(compiled), *_ALLOWED)):
            _active.seen.append(f"opened {path}")


sys.addaudithook(_audit)


@contextmanager
def watched(path: Path) -> Iterator[Outcome]:
    """Watch the block. Its outcome says what it raised, and what was wrong with that."""
    global _active
    outcome, _active = Outcome(), _Watch(os.path.realpath(path.parent), [])
    watch = _active
    try:
        yield outcome
    except Exception as error:
        outcome.error = error
        outcome.wrong = complaint(error, path)
    finally:
        _active = None
    if watch.seen:
        outcome.wrong = f"{outcome.wrong} {'; '.join(watch.seen)}"


def complaint(error: Exception, path: Path | None) -> str:
    """What is wrong with an error, if anything; it needs to name the file, where one is given."""
    kind, text = type(error), str(error)
    if kind not in DOCUMENTED and not kind.__module__.startswith("pdedkl."):
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{kind.__name__} is no documented error: {text[:200]!r} at {Path(where.filename).name}:{where.lineno}"
    if path is not None and path.name not in text:
        return f"the message does not name the file: {text[:300]!r}"
    if not sentence(text):
        return f"the message is no sentence: {text[-300:]!r}"
    return ""


def sentence(text: str) -> bool:
    ended = text.rstrip().endswith((".", "?"))
    return ended and len(text.split()) > 4 and len(text) < LONGEST and "allow_pickle" not in text
