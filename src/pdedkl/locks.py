"""One process at a time in a folder.

The lock is a file in the folder that the system unlocks when its process ends, however that happens. Where files cannot
be locked, its presence is the lock, and that of a process that is gone is taken over.
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
    """Another process is at work in a folder; the message says which."""


@contextlib.contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Hold a folder for this process. It is made if need be, and removed at the end if nothing was put into it.

    **Arguments:**

    - `folder`: the folder that only one process may change.

    **Returns:** a context manager. It raises `BusyError` where another process holds the folder.
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
    """The descriptor of the lock file, ours now; opened anew where its last holder has removed it meanwhile."""
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
        raise OSError(f"{file} is no regular file and cannot be a lock: remove it.")
    return descriptor


def _lock(descriptor: int) -> bool:
    """Whether the file is ours now."""
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
    """Remove the file before it is unlocked, since afterwards it may be another's. Windows removes no open file."""
    if os.name == "posix":
        file.unlink(missing_ok=True)
    os.close(descriptor)
    if os.name != "posix":
        file.unlink(missing_ok=True)


def _read(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 500)


def _alive(holder: bytes) -> bool:
    """Whether the process that a lock file names may still run. One of another machine may."""
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
        pass  # it runs, for another user
    return True


def _same(file: Path, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(file, follow_symlinks=False), os.fstat(descriptor))
    return False


def _busy(file: Path, holder: bytes) -> BusyError:
    number, _, host = holder.decode(errors="replace").strip().partition(" ")
    who = f"process {number} on {host}" if number.isdecimal() and host else "another process"
    return BusyError(
        f"{file.parent} is in use by {who}: wait until that has ended, or name another folder. Nothing was changed."
        + ("" if fcntl is not None else f" If it has ended already, delete {file}.")
    )
