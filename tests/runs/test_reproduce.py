"""The table of the paper, from runs that are there; what is missing is run, what is there is not run again."""

from __future__ import annotations

import csv
import json
import subprocess

import pytest

from pdedkl.runs import reproduce
from pdedkl.runs.folder import RunError
from pdedkl.runs.reproduce import METHODS, ROWS, Reproduction

HEAT = {"heat-50": ROWS["heat-50"]}


@pytest.fixture
def runs(tmp_path):
    """Three seeds of each method, all finished."""
    for number, method in enumerate(METHODS):
        for seed in range(3):
            folder = tmp_path / "heat-50" / f"{method}-{seed}"
            folder.mkdir(parents=True)
            metrics = {"error_u": 10.0 ** -(number + 1) * (seed + 1), "error_f": 0.5}
            (folder / "metrics.json").write_text(json.dumps(metrics))
    return Reproduction(tmp_path, HEAT, seeds=3)


def test_the_table_has_the_papers_figures_and_medians_of_ours(runs):
    runs.run(say=lambda text: pytest.fail(f"{text} was there already"))
    lines = (runs.out / "table.md").read_text().splitlines()
    assert lines[0].count("|") == len(METHODS) + 4
    assert lines[2].startswith("| heat-50 | – | 1.5e-02 / 2.7e-02 | 2.0e-01 / 5.0e-01 | 2.0e-02 / 5.0e-01 |")
    with open(runs.out / "table.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["error_u"]) for row in rows] == pytest.approx([0.2, 0.02, 0.002, 0.0002])
    page = (runs.out / "table.html").read_text()
    assert page.startswith("<!doctype html>") and "<td>2.0e-04 / 5.0e-01</td>" in page


def test_missing_runs_are_made_and_unfinished_ones_resumed(runs, monkeypatch):
    (runs.out / "heat-50" / "gp-1" / "metrics.json").unlink()
    (runs.out / "heat-50" / "gp-1" / "config.json").write_text("{}")
    (runs.out / "heat-50" / "paper-2" / "metrics.json").unlink()
    assert runs.errors()["heat-50", "gp"] is None
    commands = []

    def run(command, **_):
        commands.append(command[3:])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(reproduce.subprocess, "run", run)
    runs.run(say=lambda _: None)
    resumed, made = commands
    assert resumed == ["resume", str(runs.out / "heat-50" / "gp-1")]
    assert made[:6] == ["solve", "heat", "--dim", "50", "--recipe", "paper"]
    assert made[6:] == ["--seed", "2", "--out", str(runs.out / "heat-50" / "paper-2")]


def test_a_run_that_fails_is_named(runs, monkeypatch):
    (runs.out / "heat-50" / "gp-1" / "metrics.json").unlink()
    failed = lambda command, **_: subprocess.CompletedProcess(command, 1, "", "pdedkl: no memory\n")
    monkeypatch.setattr(reproduce.subprocess, "run", failed)
    with pytest.raises(RunError, match="heat-50 with PDE-GP failed: pdedkl: no memory"):
        runs.run(say=lambda _: None)
