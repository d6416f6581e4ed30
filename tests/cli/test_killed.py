"""A run that is killed or stopped, and resumed, ends in the same numbers as one that was left alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from test_interrupted import run, state

from pdedkl.cli import main

SMALL = ["poisson", "--dim", "2", "--boundary", "30", "--source", "30", "--model", "gp"]
SOLVE = [sys.executable, "-m", "pdedkl", "solve", *SMALL, "--out"]


def numbers(folder) -> dict:
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["peak_memory_bytes"] > 2**26  # measured: JAX alone takes more
    measured = ("_seconds", "_bytes")
    return {name: value for name, value in metrics.items() if not name.endswith(measured)}


@pytest.fixture(scope="module", autouse=True)
def page():
    """The page of a report takes longer than the run, and has tests of its own: here it is one word."""

    def report(folder, solved):
        (folder / "report.html").write_text("report")
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdedkl.runs.solve.report", report)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    main(["solve", *SMALL, "--out", str(folder)])
    return folder


def test_killed_and_resumed(whole, tmp_path, capsys):
    """Beside the run, whatever would change its folder is refused; once it is dead, nothing is."""
    killed = tmp_path / "killed"
    process = subprocess.Popen([*SOLVE, str(killed)], stderr=subprocess.PIPE)
    while not (killed / "checkpoint").exists():
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.05)
    process.send_signal(signal.SIGSTOP)
    before = {path.name: path.read_bytes() for path in killed.iterdir()}
    for command in (["solve", *SMALL, "--force", "--out"], ["resume"], ["report"], ["solve", *SMALL, "--out"]):
        with pytest.raises(SystemExit, match="1"):
            main([*command, str(killed)])
        assert f"in use by process {process.pid} on " in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in killed.iterdir()} == before
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (killed / "metrics.json").exists()
    (killed / f".metrics.json.{'0' * 16}.tmp").write_text("half")
    with pytest.raises(SystemExit, match="2"):
        main(["solve", *SMALL, "--out", str(killed)])
    assert "pdedkl resume" in capsys.readouterr().err
    main(["resume", str(killed)])
    assert numbers(killed) == numbers(whole)
    assert {path.name for path in killed.iterdir()} == {path.name for path in whole.iterdir()}


def test_a_stopped_run_predicts_and_goes_on_to_the_same_numbers(whole, tmp_path, capsys):
    stopped = tmp_path / "stopped"
    code, _ = run([*SOLVE, str(stopped)], [("phase", 2)])
    assert code == 130 and state(stopped) == (True, False, "interrupted") and (stopped / "checkpoint").exists()
    (tmp_path / "points.csv").write_text("x1,x2\n0.5,0.5\n")
    main(["predict", str(stopped), str(tmp_path / "points.csv"), "-o", str(tmp_path / "out.csv")])
    assert "stopped: these are predictions of its best model so far" in capsys.readouterr().err
    assert np.all(np.isfinite(np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)))
    main(["resume", str(stopped)])
    assert numbers(stopped) == numbers(whole) and numbers(whole)["stopped"] is None
    assert not (stopped / "checkpoint").exists() and (stopped / "report.html").exists()
    (stopped / "report.html").unlink()  # as if it had been skipped: resume makes it
    main(["resume", str(stopped)])
    assert (stopped / "report.html").exists()
