"""Files are written whole or not at all, and nobody else's name is followed or taken."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pdedkl.files import TEMPORARY, filling, replacing, sweep, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_an_interrupted_write_leaves_the_old_file(broken, tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old" and names(tmp_path) == ["run.ckpt"]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_planted_link_is_not_followed(tmp_path):
    """Whatever name is guessed from the target and the process, nothing is written through it."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f".out.csv.{os.getpid()}.tmp", ".out.csv.tmp", "out.csv"):
        (tmp_path / name).symlink_to(victim)
    write_atomically(tmp_path / "out.csv", b"new")
    assert victim.read_text() == "precious" and not (tmp_path / "out.csv").is_symlink()


def test_a_killed_writer_leaves_nothing_for_the_next_start(tmp_path):
    code = (
        "import os, sys; from pdedkl.files import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "model"
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == -9
    (left,) = names(tmp_path)
    assert TEMPORARY.fullmatch(left)
    sweep(tmp_path, "another")
    assert names(tmp_path) == [left]
    write_atomically(path, b"whole")
    assert names(tmp_path) == ["model"] and path.read_bytes() == b"whole"


def test_the_file_of_a_living_writer_is_not_swept(tmp_path):
    with replacing(tmp_path / "model") as file:
        file.write(b"whole")
        sweep(tmp_path)
        assert len(names(tmp_path)) == 1
    assert (tmp_path / "model").read_bytes() == b"whole"


def test_a_mode_that_was_set_stays(tmp_path):
    path = tmp_path / "secret"
    write_atomically(path, b"one")
    path.chmod(0o600)
    write_atomically(path, b"two")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_with_the_name_of_the_file():
    with pytest.raises(OSError, match=r"[Nn]o space.*'/dev/full'"), filling("/dev/full") as file:
        file.write(b"much")


def test_a_pipe_is_written_into_and_a_link_through(tmp_path):
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    with filling(link) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_text() == "new"
    with pytest.raises(RuntimeError), filling(link) as file:
        file.write(b"half")
        raise RuntimeError
    assert target.read_text() == "new"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with filling(pipe) as file:
        file.write(b"through")
    reader.join(10)
    assert found == [b"through"] and pipe.is_fifo()
