"""Files that are written completely or not at all.

A file is written under a random name in the folder of its target, synced, and renamed. So a reader finds the old file
or the new one, and a link in place of the target is replaced, not followed. A killed process leaves its temporary file
behind. Temporary files are locked while they are written, so an unlocked one is a leftover that can be removed.
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
    """Replace a file by one with this content. Its folder is created if it does not exist."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file to write to. It replaces `path` when the block ends, and is deleted if the block raises an error.

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
    """Like `replacing`, for a path that a user gives: a link, pipe or device is written into, not replaced.

    It receives the content at the end of the block, and nothing if the block raises an error.
    """
    target = Path(path)
    if not target.is_symlink() and (target.is_file() or not target.exists()):
        with replacing(target) as file:
            yield file
        return
    with _named(target), tempfile.TemporaryFile() as spooled:
        yield spooled
        spooled.seek(0)
        stream = STREAMS.get(str(target))  # opening it by name would empty a file to which the stream appends
        with open(target if stream is None else stream, "wb", closefd=stream is None) as file:
            shutil.copyfileobj(spooled, file)


def sweep(folder: str | Path, name: str | None = None) -> None:
    """Remove temporary files that killed processes have left in a folder, for all target files or only for `name`."""
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
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer is running
            os.unlink(path)
        finally:
            os.close(descriptor)


def _created(target: Path) -> tuple[Path, BinaryIO]:
    """An empty, locked file beside the target. It is created again if another process removed it before the lock."""
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
    """Put the name of the target into errors of the system that have no file name or the temporary one."""
    try:
        yield
    except OSError as error:
        ours = error.filename is None or TEMPORARY.fullmatch(Path(os.fsdecode(error.filename)).name)
        if not ours or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error  # Python chooses the subclass by errno


def _sync_folder(folder: Path) -> None:
    """Make the renaming survive a loss of power, on systems that can sync folders."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
