"""One process at a time in a folder: the second is told who holds it, and the lock of a dead one is free at once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from pdedkl import locks
from pdedkl.locks import BusyError, locked

HOLD = "import sys; from pdedkl.locks import locked\nwith locked(sys.argv[1]):\n    print('held', flush=True); input()"


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_is_refused_and_changes_nothing(holder, tmp_path):
    before = (tmp_path / "run" / locks.NAME).read_bytes()
    who = f"process {holder.pid} on {socket.gethostname()}"
    with pytest.raises(BusyError, match=f"run is in use by {who}.*Nothing was changed"), locked(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / locks.NAME).read_bytes() == before


def test_the_lock_of_a_killed_process_is_free_at_once(holder, tmp_path):
    holder.kill()
    holder.wait()
    assert (tmp_path / "run" / locks.NAME).exists()
    with locked(tmp_path / "run"):
        (tmp_path / "run" / "kept").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["kept"]


def test_an_ended_block_leaves_the_folder_to_others(tmp_path):
    for _ in range(2):
        with locked(tmp_path / "run"), pytest.raises(BusyError), locked(tmp_path / "run"):
            pass


def test_folders_that_nothing_was_put_into_are_not_left(tmp_path):
    with pytest.raises(RuntimeError, match="mistake"), locked(tmp_path / "runs" / "one"):
        raise RuntimeError("mistake")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("plant", [lambda path, victim: path.symlink_to(victim), lambda path, _: os.mkfifo(path)])
def test_a_planted_lock_is_not_written_to(plant, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "run").mkdir()
    plant(tmp_path / "run" / locks.NAME, victim)
    with pytest.raises(OSError, match="lock"), locked(tmp_path / "run"):
        pass
    assert victim.read_text() == "precious"


def test_without_locks_of_the_system_a_dead_process_is_taken_over(monkeypatch, tmp_path):
    monkeypatch.setattr(locks, "fcntl", None)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    file = tmp_path / locks.NAME
    for holder in (f"{os.getpid()} {socket.gethostname()}", "1 another-machine", f"1 {socket.gethostname()}"):
        file.write_text(holder)
        with pytest.raises(BusyError, match=f"delete .*{locks.NAME}"), locked(tmp_path):
            pass
        assert file.read_text() == holder
    file.write_text(f"{dead.pid} {socket.gethostname()}\n")
    with locked(tmp_path), pytest.raises(BusyError), locked(tmp_path):
        pass
    assert not file.exists()
