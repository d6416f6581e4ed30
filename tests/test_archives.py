"""Damaged NPZ files: one sentence that names the file, whatever is wrong, and no more memory than the limit allows."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from pdedkl import archives
from pdedkl.archives import ArchiveError, opened
from pdedkl.tables import TableError, read_table
from pdedkl.training.journal import Journal

NUMBERS = np.arange(12.0).reshape(3, 4)


def npy(array=NUMBERS, **options) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def with_header(text: str, content: bytes = NUMBERS.tobytes(), version: int = 1) -> bytes:
    """An NPY file with any header."""
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode("latin1") + content


def zipped(*members: tuple[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def edited(content: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    at = content.rindex(signature) + offset
    return content[:at] + value + content[at + len(value) :]


def header(shape="(3, 4)", descr="'<f8'", order="False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


class Code:
    """What a pickle would run."""

    def __reduce__(self):
        return os.abort, ()


GOOD = zipped(("u.npy", npy()))
DEFLATED = zipped(("u.npy", npy(np.zeros(10_000))), kind=zipfile.ZIP_DEFLATED)
DIRECTORY, END = b"PK\x01\x02", b"PK\x05\x06"
LIE = edited(edited(DEFLATED, DIRECTORY, 24, b"\xff\xff\xff\x7f"), b"PK\x03\x04", 22, b"\xff\xff\xff\x7f")
DAMAGED = {
    "empty": b"",
    "text": b"x,u\n1,2\n",
    "an NPY file": npy(),
    "half": GOOD[: len(GOOD) // 2],
    "cut": GOOD[:-1],
    "the end alone": GOOD[-22:],
    "a wrong sum": GOOD.replace(NUMBERS[2].tobytes(), NUMBERS[1].tobytes()),
    "a wrong stream": DEFLATED[:80] + bytes(20) + DEFLATED[100:],
    "a shorter announcement": edited(DEFLATED, DIRECTORY, 24, struct.pack("<L", 100)),
    "a longer announcement": LIE,
    "a directory elsewhere": edited(GOOD, END, 16, struct.pack("<L", 2**31)),
    "a directory before the file": edited(GOOD, END, 12, struct.pack("<L", 2**20)),
    "a directory of gigabytes": edited(GOOD, END, 12, b"\xfe\xff\xff\xff"),
    "a zip64 end": GOOD[:-22] + b"PK\x06\x07" + struct.pack("<LQL", 0, 2**60, 1) + GOOD[-22:],
    "a member elsewhere": edited(GOOD, DIRECTORY, 42, struct.pack("<L", 2**31)),
    "a method that nobody knows": edited(GOOD, DIRECTORY, 10, struct.pack("<H", 77)),
    "a newer version": edited(GOOD, DIRECTORY, 6, struct.pack("<H", 200)),
    "encrypted": edited(edited(GOOD, DIRECTORY, 8, b"\x01\x00"), b"PK\x03\x04", 6, b"\x01\x00"),
    "a name that is no text": edited(edited(GOOD, DIRECTORY, 8, b"\x00\x08"), DIRECTORY, 46, b"\xff"),
    "bzip2": zipped(("u.npy", npy()), kind=zipfile.ZIP_BZIP2),
    "lzma": zipped(("u.npy", npy()), kind=zipfile.ZIP_LZMA),
    "twice": GOOD[:-22].replace(GOOD[GOOD.rindex(DIRECTORY) : -22], b"") + 2 * GOOD[GOOD.rindex(DIRECTORY) : -22]
    + edited(edited(GOOD[-22:], END, 8, b"\x02\x00\x02\x00"), END, 12, struct.pack("<L", 2 * 51)),
    "objects": zipped(("u.npy", npy(np.array([Code()], dtype=object), allow_pickle=True))),
    "a pickle": zipped(("u.npy", pickle.dumps(Code()))),
    "no header": zipped(("u.npy", b"")),
    "half a header": zipped(("u.npy", npy()[:9])),
    "an unknown version": zipped(("u.npy", with_header(header(), version=9))),
    "a huge header": zipped(("u.npy", with_header(header("(" + "1," * 200_000 + ")"), version=2))),
    "a header of gigabytes": zipped(("u.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + header().encode())),
    "a nested header": zipped(("u.npy", with_header("(" * 3000 + ")" * 3000))),
    "a nested shape": zipped(("u.npy", with_header(header("(" * 900 + "3,4" + ")" * 900)))),
    "spaces": zipped(("u.npy", with_header("{'shape': (3, 4)" + " " * 4000))),
    "a header that computes": zipped(("u.npy", with_header(header("(3, 2+2)")))),
    "a header that is no dictionary": zipped(("u.npy", with_header("[1, 2]"))),
    "a header that is no text": zipped(("u.npy", with_header("\xff" * 10))),
    "an entry twice": zipped(("u.npy", with_header("{'descr': '<f8', 'descr': '<f8', 'shape': (3, 4)}"))),
    "a shape below zero": zipped(("u.npy", with_header(header("(-3, -4)")))),
    "a shape beyond all": zipped(("u.npy", with_header(header("(99999999999999999999, 3)")))),
    "a shape that is longer": zipped(("u.npy", with_header(header("(3, 5)")))),
    "a shape that is shorter": zipped(("u.npy", with_header(header("(3, 3)")))),
    "too many axes": zipped(("u.npy", with_header(header("(" + "1," * 70 + "12)")))),
    "records": zipped(("u.npy", npy(np.zeros(3, dtype=[("a", float)])))),
    "an unknown kind": zipped(("u.npy", with_header(header(descr="'<f7'")))),
    "nothing each": zipped(("u.npy", with_header(header("(1000000000000000000,)", "'<U0'"), b""))),
    "text that is none": zipped(("u.npy", with_header(header("(3,)", "'<U8'"), b"\xff" * 96))),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_archives(name, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(DAMAGED[name])
    tracemalloc.start()
    with pytest.raises(ArchiveError) as caught, opened(path) as archive:
        for key in archive.names:
            archive.array(key)
    with pytest.raises(TableError, match=r"data\.npz is not a readable NPZ file.*numpy\.savez"):
        read_table(path, ["u"])
    with pytest.raises(ValueError, match=r"data\.npz is no checkpoint that can be read.*delete it"):
        Journal(path, "")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(path) in str(caught.value) and "pickle=" not in str(caught.value) and most < 2**24


def test_a_folder_a_pipe_and_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path, tmp_path / "pipe.npz"):
        with pytest.raises(ArchiveError, match="it is a folder or a device"), opened(path):
            pass
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"), opened(tmp_path / "nothing.npz"):
        pass


def test_what_is_unpacked_is_limited(tmp_path, monkeypatch):
    """A megabyte of zeros takes a kilobyte; the limit counts what comes out, over all the arrays that are asked for."""
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(2**17), b=np.zeros(2**17))
    assert path.stat().st_size < 5000
    monkeypatch.setattr(archives, "MOST_BYTES", 1.5 * 2**20)
    with opened(path) as archive:
        assert archive.names == ["a", "b"] and archive.array("a").shape == (2**17,)
        with pytest.raises(ArchiveError, match="more than the limit of 2 GiB"):
            archive.array("b")


def test_a_real_bomb_is_refused_at_once(tmp_path):
    """Three gigabytes are announced and there: nothing of them is unpacked."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("u.npy", "w", force_zip64=True) as member:
        member.write(with_header(header("(3, 4)"), b""))
        for _ in range(8):
            member.write(bytes(2**20))
    content = path.read_bytes()
    path.write_bytes(edited(content, DIRECTORY, 24, struct.pack("<L", 3 * 2**30)))
    with pytest.raises(TableError, match="more than the limit of 2 GiB"):
        read_table(path, ["u"])


def test_rows_without_numbers_are_no_rows(tmp_path):
    path = tmp_path / "empty.npz"
    path.write_bytes(zipped(("u.npy", with_header(header("(99999999999, 0)"), b""))))
    with pytest.raises(TableError, match=r"empty\.npz has no rows"):
        read_table(path, ["u"])


def test_a_sparse_file_is_not_read(tmp_path):
    path = tmp_path / "sparse.npz"
    with open(path, "wb") as file:
        file.truncate(40 * 2**30)
    with pytest.raises(ArchiveError, match="it is not a zip archive"), opened(path):
        pass


@pytest.mark.parametrize(
    "array",
    [
        NUMBERS, np.asfortranarray(NUMBERS), np.asarray(3.0), np.zeros((0, 2)), np.asarray("text é"), np.arange(3),
        np.array([True, False]), NUMBERS.astype(">f4"), np.array(["a", "bcd"]), np.array([1j]), np.array([b"ab", b"c"]),
        np.arange(3, dtype="u1"), NUMBERS.astype("f2"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(array, save, tmp_path):
    path = tmp_path / "good.npz"
    save(path, **{"a/b": array, "../c": NUMBERS})
    with opened(path) as archive:
        found = archive.array("a/b")
        assert archive.names == ["a/b", "../c"]
        np.testing.assert_array_equal(archive.array("../c"), NUMBERS)
    assert found.dtype == array.dtype and found.flags.writeable
    np.testing.assert_array_equal(found, array)


def test_headers_of_other_writers_are_read(tmp_path):
    for text in (header(), '{"shape": (3,4), "fortran_order": False, "descr": "<f8"}', header() + " " * 100):
        (tmp_path / "a.npz").write_bytes(zipped(("u.npy", with_header(text)), ("notes.txt", b"not an array")))
        with opened(tmp_path / "a.npz") as archive:
            assert archive.names == ["u"]
            np.testing.assert_array_equal(archive.array("u"), NUMBERS)


def test_the_error_travels_between_processes():
    error = ArchiveError("data.npz", "it was cut short.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == (
        "data.npz is not a readable NPZ file: it was cut short."
    )  # fmt: skip
