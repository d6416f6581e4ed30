"""A run that is killed and resumed ends in the same numbers as one that was left alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

SMALL = ["poisson", "--dim", "2", "--boundary", "30", "--source", "30", "--model", "gp"]


def pdedkl(*arguments) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "pdedkl", *map(str, arguments)], stderr=subprocess.PIPE)


def numbers(folder) -> dict:
    metrics = json.loads((folder / "metrics.json").read_text())
    return {name: value for name, value in metrics.items() if not name.endswith("_seconds")}


def test_killed_and_resumed(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    run = pdedkl("solve", *SMALL, "--out", killed)
    while not (killed / "checkpoint").exists():
        assert run.poll() is None, run.stderr.read().decode()
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert not (killed / "metrics.json").exists()
    refused = pdedkl("solve", *SMALL, "--out", killed)
    assert b"pdedkl resume" in refused.communicate()[1] and refused.returncode == 2
    for run in (pdedkl("resume", killed), pdedkl("solve", *SMALL, "--out", whole)):
        _, error = run.communicate()
        assert run.returncode == 0, error.decode()
    assert numbers(killed) == numbers(whole)
    assert not (killed / "checkpoint").exists()
