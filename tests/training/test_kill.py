"""A run that is killed again and again ends in the same bits as one that is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("one_run.py")
KILLS = 3
SEED = int(os.environ.get("PDEDKL_KILL_SEED", "0"))  # of when runs are killed
PATIENCE = 300.0  # seconds, for machines that are busy


def begin(environment, *arguments):
    return subprocess.Popen([sys.executable, SCRIPT, *map(str, arguments)], env=environment)


def written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def kill_after(process, checkpoint: Path, writes: int, delay: float) -> bool:
    """Kill a run `delay` seconds after it has written its checkpoint so many times; false if it has ended before."""
    deadline, last = time.monotonic() + PATIENCE, written(checkpoint)
    while writes and process.poll() is None and time.monotonic() < deadline:
        now = written(checkpoint)
        writes, last = writes - (now != last), now
        time.sleep(5e-4)
    time.sleep(delay)
    process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("recipe, model, most", [("default", "dkl", 5), ("paper", "gp", 9)])
def test_killed_runs_end_in_the_same_bits(recipe, model, most, environment, tmp_path):
    rng = np.random.default_rng(SEED)
    checkpoint, alone, killed = tmp_path / "run.ckpt", tmp_path / "alone.npy", tmp_path / "killed.npy"
    assert begin(environment, recipe, model, alone).wait(PATIENCE) == 0
    kills = []
    while len(kills) < KILLS:
        # The first write is the state a run begins with: from the second on, it has got further.
        plan = int(rng.integers(2, most)), float(rng.uniform(0, 0.03))
        if not kill_after(begin(environment, recipe, model, killed, checkpoint), checkpoint, *plan):
            break
        kills.append(plan)
    assert kills, f"nothing was killed with seed {SEED}"
    if not killed.exists():
        assert begin(environment, recipe, model, killed, checkpoint).wait(PATIENCE) == 0
    expected, found = np.load(alone), np.load(killed)
    np.testing.assert_array_equal(found, expected, err_msg=f"seed {SEED}, kills after (writes, seconds) {kills}")
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".ckpt"] == [checkpoint.name]
