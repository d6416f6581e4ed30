"""Arrays from NPZ archives that may be damaged. Nothing is unpickled, and never more bytes are read than announced.

An NPZ file is a zip archive of NPY files: a header that describes an array, then its numbers. Both formats are old and
lenient, and their readers raise a dozen kinds of errors. Here a damaged file raises an `ArchiveError` of one sentence.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from .parsing import shortened

MOST_BYTES = 2**31  # unpacked from one archive
LIMIT = f"the limit of {MOST_BYTES / 2**30:g} GiB"
MOST_DIRECTORY_BYTES = 2**24  # of the list of members, at the end of an archive: some 100,000 members
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
# Errors that the readers of zip archives raise for damaged files.
KNOWN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, TypeError, LookupError, OverflowError,
    NotImplementedError, RuntimeError, OSError,
)  # fmt: skip
END, END_64 = b"PK\x05\x06", b"PK\x06\x07"

_QUOTED = r"['\"]"
_ENTRIES = (
    rf"{_QUOTED}descr{_QUOTED}\s*:\s*{_QUOTED}(?P<kind>[<>|=]?[?bBiufcSUO]\d{{0,9}}){_QUOTED}"
    rf"|{_QUOTED}fortran_order{_QUOTED}\s*:\s*(?P<order>True|False)"
    rf"|{_QUOTED}shape{_QUOTED}\s*:\s*\((?P<shape>[\d,\s]*)\)"
)
# The dictionary of an NPY header, in any order. NumPy would evaluate it as Python.
HEADER = re.compile(rf"\s*\{{\s*(?:(?:{_ENTRIES})\s*(?:,\s*)?){{3}}\}}\s*")
MOST_HEADER = 4096
CHUNK = 2**20


class ArchiveError(ValueError):
    """An archive that cannot be read. The message names the file and `what` is wrong with it."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(path, what)
        self.path, self.what = path, what.rstrip(".")

    def __str__(self) -> str:
        return f"{self.path} is not a readable NPZ file: {self.what}."


class Archive:
    """The arrays of an open NPZ file, by name."""

    def __init__(self, path: Path, members: zipfile.ZipFile) -> None:
        self.path, self._file, self._unpacked = path, members, 0
        self._members = {item.filename: item for item in members.infolist() if item.filename.endswith(".npy")}
        if len(self._members) < sum(item.filename.endswith(".npy") for item in members.infolist()):
            raise ArchiveError(path, "two of its arrays have the same name")

    @property
    def names(self) -> list[str]:
        return [name.removesuffix(".npy") for name in self._members]

    def array(self, name: str) -> np.ndarray:
        """The array of this name, which has to be one of `names`."""
        member = self._members[f"{name}.npy"]
        if member.flag_bits & ENCRYPTED:
            raise ArchiveError(self.path, "it is encrypted")
        if member.compress_type not in PLAIN:
            raise ArchiveError(self.path, "it is compressed in a way that numpy.savez does not use")
        self._unpacked += member.file_size
        if self._unpacked > MOST_BYTES:
            raise ArchiveError(self.path, f"it unpacks to more than {LIMIT}; save fewer numbers in one file")
        with _one_sentence(self.path), self._file.open(member) as stream:
            return _array(self.path, name, stream, member.file_size)


@contextmanager
def opened(path: str | Path) -> Iterator[Archive]:
    """Open an NPZ file for reading.

    **Arguments:**

    - `path`: the file, which needs to be a regular one.

    **Returns:** a context manager that gives an `Archive`. A damaged file raises an `ArchiveError` that names it; a
    file that cannot be opened raises an `OSError`.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ArchiveError(path, "it is a folder or a device")
    with path.open("rb") as file:
        _check_end(path, file)
        with _one_sentence(path):
            members = zipfile.ZipFile(file)
        with members:
            yield Archive(path, members)


def _check_end(path: Path, file: IO[bytes]) -> None:
    """Look at the end of the archive, which says how long its list of members is, before that list is read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 2**16 - 22))
    tail = file.read()
    at = tail.rfind(END)
    if at < 0 or len(tail) < at + 22:
        raise ArchiveError(path, "it is not a zip archive, or was cut short")
    if (
        tail[max(0, at - 20) : at].startswith(END_64)
        or struct.unpack_from("<L", tail, at + 12)[0] > MOST_DIRECTORY_BYTES
    ):
        raise ArchiveError(path, f"it announces more than {MOST_BYTES / 2**30:g} GiB or too many arrays")


def _array(path: Path, name: str, stream: IO[bytes], size: int) -> np.ndarray:
    start = stream.read(8)
    if len(start) < 8 or not start.startswith(b"\x93NUMPY") or start[6] not in (1, 2, 3):
        raise ArchiveError(path, f"{name!r} is not an NPY file")
    long = start[6] > 1
    length = int.from_bytes(stream.read(4 if long else 2), "little")
    found = HEADER.fullmatch(stream.read(length).decode("utf-8")) if length <= MOST_HEADER else None
    if found is None or None in (found["kind"], found["order"], found["shape"]):
        raise ArchiveError(path, f"the header of {name!r} does not describe an array of numbers or text")
    if "O" in found["kind"]:
        raise ArchiveError(path, f"the array {name!r} holds Python objects; save plain numbers or text")
    kind = np.dtype(found["kind"])
    shape = tuple(int(part) for part in found["shape"].split(",") if part.strip())
    if kind.itemsize == 0 or len(shape) > 32:
        raise ArchiveError(path, f"the header of {name!r} does not describe an array of numbers or text")
    # The shape must match the bytes in the archive, so that a wrong header cannot make us allocate more memory.
    content = size - (12 if long else 10) - length
    if math.prod(shape) * kind.itemsize != content:
        raise ArchiveError(path, f"{name!r} needs {math.prod(shape) * kind.itemsize} bytes and has {content}")
    buffer = bytearray(content)
    view, at = memoryview(buffer), 0
    while at < content and (count := stream.readinto(view[at : at + CHUNK])):  # type: ignore[attr-defined]
        at += count
    if at < content or stream.read(1):
        raise ArchiveError(path, f"{name!r} was cut short")
    numbers = np.frombuffer(buffer, dtype=kind)
    if kind.kind == "U" and np.any(numbers.view(kind.byteorder + "u4") > 0x10FFFF):
        raise ArchiveError(path, f"{name!r} holds numbers where text should be")
    return numbers.reshape(shape, order="F" if found["order"] == "True" else "C")


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    """Turn every known error in the block into an `ArchiveError` about the file."""
    try:
        yield
    except ArchiveError:
        raise
    except KNOWN as error:
        raise ArchiveError(path, f"it is damaged ({shortened(error) or type(error).__name__})") from None
