"""The table of the paper, from runs that are there; what is missing is run, what is there is not run again."""

from __future__ import annotations

import csv
import json

import pytest

import pdedkl.runs.solve
from pdedkl.jobs import Serial
from pdedkl.runs.folder import CONFIG, METRICS, Config, Folder, RunError
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
    runs.run(Serial(), say=lambda text: pytest.fail(f"{text} was there already"))
    lines = (runs.out / "table.md").read_text().splitlines()
    assert lines[0].count("|") == len(METHODS) + 4
    assert lines[2].startswith("| heat-50 | – | 1.5e-02 / 2.7e-02 | 2.0e-01 / 5.0e-01 | 2.0e-02 / 5.0e-01 |")
    with open(runs.out / "table.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["error_u"]) for row in rows] == pytest.approx([0.2, 0.02, 0.002, 0.0002])
    page = (runs.out / "table.html").read_text()
    assert page.startswith("<!doctype html>") and "<td>2.0e-04 / 5.0e-01</td>" in page


@pytest.fixture
def solved(monkeypatch):
    """The folders that are solved, in their order."""
    folders = []

    def solve(folder, **_):
        folders.append(folder.path.name)
        folder.write_json(METRICS, {"error_u": 0.5, "error_f": 0.5})

    monkeypatch.setattr(pdedkl.runs.solve, "solve", solve)
    return folders


def test_missing_runs_are_made_and_unfinished_ones_resumed(runs, solved):
    stopped, missing = (Folder(runs.out / "heat-50" / name) for name in ("gp-1", "paper-2"))
    (stopped / METRICS).unlink()
    stopped.write_json(CONFIG, {"problem": "heat", "dim": 50, "model": "gp", "seed": 1})
    before = (stopped / CONFIG).read_text()
    (missing / METRICS).unlink()
    assert runs.errors()["heat-50", "gp"] is None
    said = []
    runs.run(Serial(), say=said.append)
    assert solved == ["gp-1", "paper-2"] and (stopped / CONFIG).read_text() == before
    assert missing.config() == Config("heat", 50, recipe="paper", seed=2, version=pdedkl.__version__)
    assert said[-1] == "2/2  heat-50, PDE-DKL as in the paper, seed 2" and runs.errors()["heat-50", "gp"] is not None


def test_a_run_that_fails_is_named(runs, monkeypatch):
    def failing(folder, **_):
        raise MemoryError("no memory")

    (runs.out / "heat-50" / "gp-1" / METRICS).unlink()
    monkeypatch.setattr(pdedkl.runs.solve, "solve", failing)
    with pytest.raises(RunError, match="heat-50, PDE-GP, seed 1 failed: MemoryError: no memory"):
        runs.run(Serial(), say=lambda _: None)


def test_workers_that_write_elsewhere_are_told_apart(runs, solved, monkeypatch):
    class Elsewhere(Serial):
        def run(self, function, jobs):
            yield from ((job, None) for job in jobs)

    (runs.out / "heat-50" / "gp-1" / METRICS).unlink()
    with pytest.raises(RunError, match=r"seed 1 was solved on a machine where .* is another folder: .* share"):
        runs.run(Elsewhere(), say=lambda _: None)
