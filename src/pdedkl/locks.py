"""One process at a time in a folder.

The lock is a file in the folder that the system unlocks when its process ends, even if it is killed. Where files cannot
be locked, the existence of the file is the lock. If its process has ended, the lock is taken over.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class BusyError(RuntimeError):
    """Another process is using a folder. The message says which process."""


@contextlib.contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Lock a folder for this process. It is created if necessary, and then removed at the end if it is still empty.

    **Arguments:**

    - `folder`: the folder that only one process may change.

    **Returns:** a context manager. It raises `BusyError` if another process has locked the folder.
    """
    path = Path(folder)
    made = [part for part in (path, *path.parents) if not part.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = _taken(path / NAME)
        try:
            yield
        finally:
            _left(path / NAME, descriptor)
    finally:
        for part in made:
            with contextlib.suppress(OSError):
                part.rmdir()


def _taken(file: Path) -> int:
    """The descriptor of the lock file, locked by this process.

    If its last holder removed the file in the meantime, it is opened again.
    """
    while True:
        descriptor = _opened(file)
        try:
            if not _lock(descriptor):
                raise _busy(file, _read(descriptor))
            if _same(file, descriptor):
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _opened(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{file} is not a regular file and cannot be a lock: remove it.")
    return descriptor


def _lock(descriptor: int) -> bool:
    """Try to lock the file. Returns whether this process has the lock."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system without locks
    return not _alive(_read(descriptor))


def _left(file: Path, descriptor: int) -> None:
    """Remove and unlock the file.

    It is removed first, since another process may lock it afterwards. Windows cannot remove an open file.
    """
    if os.name == "posix":
        file.unlink(missing_ok=True)
    os.close(descriptor)
    if os.name != "posix":
        file.unlink(missing_ok=True)


def _read(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 500)


def _alive(holder: bytes) -> bool:
    """Whether the process that a lock file names may still be running. On another machine this is not known: true."""
    number, _, host = holder.decode(errors="replace").strip().partition(" ")
    if not number.isdecimal() or host != socket.gethostname():
        return bool(holder.strip())
    if os.name != "posix" or int(number) == os.getpid():
        return True
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it is running, as another user
    return True


def _same(file: Path, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(file, follow_symlinks=False), os.fstat(descriptor))
    return False


def _busy(file: Path, holder: bytes) -> BusyError:
    number, _, host = holder.decode(errors="replace").strip().partition(" ")
    who = f"process {number} on {host}" if number.isdecimal() and host else "another process"
    return BusyError(
        f"{file.parent} is in use by {who}: wait until it has ended, or name another folder. Nothing was changed."
        + ("" if fcntl is not None else f" If it has ended already, delete {file}.")
    )
