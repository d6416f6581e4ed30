"""A run that is killed and resumed ends in the same numbers as one that was left alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from pdedkl.cli import main

SMALL = ["poisson", "--dim", "2", "--boundary", "30", "--source", "30", "--model", "gp"]


def numbers(folder) -> dict:
    metrics = json.loads((folder / "metrics.json").read_text())
    return {name: value for name, value in metrics.items() if not name.endswith("_seconds")}


def test_killed_and_resumed(tmp_path, capsys):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", "pdedkl", "solve", *SMALL, "--out", str(killed)]
    run = subprocess.Popen(command, stderr=subprocess.PIPE)
    while not (killed / "checkpoint").exists():
        assert run.poll() is None, run.stderr.read().decode()
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert not (killed / "metrics.json").exists()
    with pytest.raises(SystemExit, match="2"):
        main(["solve", *SMALL, "--out", str(killed)])
    assert "pdedkl resume" in capsys.readouterr().err
    main(["resume", str(killed)])
    main(["solve", *SMALL, "--out", str(whole)])
    assert numbers(killed) == numbers(whole)
    assert not (killed / "checkpoint").exists()
