"""Files that are written whole or not at all.

A file is written under a random name in the folder of its target, synced, and renamed. So a reader finds the old file
or the new one, and a name that somebody else has put there, a link say, is never followed. A process that is killed
leaves its temporary file behind. It is locked while it is written, so the next one that starts knows it for a leftover.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows has no such locks: leftovers stay there
    fcntl = None  # type: ignore[assignment]

TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


def write_atomically(path: str | Path, content: bytes) -> None:
    """Replace a file by one with this content, and make its folder where there is none."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file to write to. It takes the place of `path` when the block ends, and is gone if the block raises.

    **Arguments:**

    - `path`: the name that the file will have. A link of that name is replaced, not followed.

    **Returns:** a context manager that gives the open binary file.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {target.name} into: make it first.")
    sweep(target.parent, target.name)
    with _named(target):
        temporary, file = _created(target)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if target.is_file() and not target.is_symlink():
                    shutil.copymode(target, temporary)
                os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)


@contextlib.contextmanager
def filling(path: str | Path) -> Iterator[BinaryIO]:
    """Like `replacing`, for a path that a user names: what is no regular file is written into, not replaced.

    A link, a pipe or a device such as `/dev/stdout` gets the content at the end of the block, and nothing if that
    raises.
    """
    target = Path(path)
    if not target.is_symlink() and (target.is_file() or not target.exists()):
        with replacing(target) as file:
            yield file
        return
    with _named(target), tempfile.TemporaryFile() as spooled:
        yield spooled
        spooled.seek(0)
        stream = STREAMS.get(str(target))  # opened by name, a file that a stream is appended to would be emptied
        with open(target if stream is None else stream, "wb", closefd=stream is None) as file:
            shutil.copyfileobj(spooled, file)


def sweep(folder: str | Path, name: str | None = None) -> None:
    """Remove the temporary files that killed processes have left in a folder, of all files or of one."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in entries:
            ours = TEMPORARY.fullmatch(entry.name) and (name is None or entry.name.startswith(f".{name}."))
            if ours and entry.is_file(follow_symlinks=False):
                _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer lives
            os.unlink(path)
        finally:
            os.close(descriptor)


def _created(target: Path) -> tuple[Path, BinaryIO]:
    """An empty file beside the target, locked; made anew where somebody swept it away before it was locked."""
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        file = open(temporary, "xb")  # noqa: SIM115  the caller closes it
        if fcntl is None:
            return temporary, file
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(temporary), os.fstat(file.fileno())):
                return temporary, file
        file.close()


@contextlib.contextmanager
def _named(target: Path) -> Iterator[None]:
    """A full disk is reported by the system without the file's name, and others with the temporary one: say which."""
    try:
        yield
    except OSError as error:
        ours = error.filename is None or TEMPORARY.fullmatch(Path(os.fsdecode(error.filename)).name)
        if not ours or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error  # of the class that belongs to the number


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a loss of power, where folders can be synced."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
