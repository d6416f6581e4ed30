"""The command line, given anything: it ends with 0, 1, 2 or 130, without a traceback, and runs no foreign program."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from damage import choose, damaged_bytes, damaged_tree, fuzz
from watch import complaint

import pdedkl as pk
from pdedkl.cli import main
from pdedkl.runs import solve as solving
from pdedkl.training import Training

COMMANDS = ("solve", "resume", "search", "predict", "report", "compare", "problems", "new", "reproduce", "slove", "")
OPTIONS = (
    "--dim", "--model", "--recipe", "--boundary", "--initial", "--source", "--noise", "--sampler", "--data", "--seed",
    "--latent-dim", "--latent-dims", "--accuracy", "--time", "--profile", "--out", "-o", "--force", "--json",
    "--evaluations", "--only", "--acquisition", "--workers", "--help", "--version", "--nothing", "--", "-",
)  # fmt: skip
VALUES = (
    "", "x", "heat", "poisson", "heet", "gp", "paper", "sobol", "-1", "0", "2", "1.5", "nan", "inf", "1e999", "1-3",
    "3-1", "9" * 30, "9" * 5000, "run", "damaged", "missing", "points.csv", "run/config.json", "é[/red]", "a\x00b",
    "$x^$", "/", "x" * 300, "\udcff", "new.py", "--",
)  # fmt: skip
POINTS = "x1,x2,x[0],x[1]\n0.1,0.2,0.1,0.2\n0.3,0.4,0.3,0.4\n"  # by the names of tables and of Python
EVIL = "open('harmed', 'w').close()\n"


class NoTrainingError(ValueError):
    """A request that was understood: here ends what the fuzzer tries."""


def no_training(*_, **__):
    raise NoTrainingError


def quick_solve(problem, **_):
    return quick_fit(problem, problem.sample())


def quick_fit(problem, data, **_):
    """A posterior with the kernel's first parameters, as if it had been trained."""
    known = {"recipe": "default", "model": "gp", "seed": 0, "kernel": "inputs", "objective": 0.0, "left_out": 0.1}
    known |= {"candidates": (("inputs", 0.0),), "rejected": 0, "history": (), "seconds": 1.0}
    known |= {"trace_seconds": 0.0, "compile_seconds": 0.0, "validated": None, "stopped": None}
    training = Training(**known)
    return replace(pk.condition(pk.ard(problem.domain), data), training=training)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a finished run, points to predict at, and a program that nobody asked to run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(solving, "fit", quick_fit)
    monkeypatch.setattr(solving, "solve_problem", quick_solve)
    monkeypatch.setattr(solving, "pictures", lambda *_, **__: [])
    monkeypatch.setattr(solving, "write_report", lambda *_, **__: None)
    monkeypatch.setattr(pk, "search", no_training, raising=False)
    (tmp_path / "points.csv").write_text(POINTS)
    (tmp_path / "evil.py").write_text(EVIL)
    command = ["solve", "poisson", "--dim", "2", "--boundary", "8", "--source", "8", "--out", "run"]
    assert run(command) == 0
    monkeypatch.setattr(solving, "fit", no_training)
    monkeypatch.setattr(solving, "solve_problem", no_training)
    return tmp_path


def run(arguments: list[str]) -> int:
    """The status that the command ends with; what it raises would be one sentence and status 1."""
    out, error = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code or 0
        except NoTrainingError:
            code = 1
    told = [line for line in error.getvalue().splitlines() if line.startswith("pdedkl: ")]
    assert code in (0, 1, 2, 130), f"{arguments} ended with {code}"
    assert "Traceback" not in error.getvalue(), arguments
    assert code != 2 or len(told) == 1, f"{arguments} said {error.getvalue()[-500:]!r}"
    return int(code)


def arguments_of(rng: np.random.Generator) -> list[str]:
    """Words in any order, most of them in the place where they belong."""
    words = [choose(rng, COMMANDS), choose(rng, VALUES)]
    for _ in range(int(rng.integers(4))):
        words += [choose(rng, OPTIONS), choose(rng, VALUES)]
    if rng.integers(4) == 0:
        rng.shuffle(words)
    if "reproduce" in words:  # alone it would make all runs of the paper
        words += ["--only", "nothing"]
    return words


def damage_run(folder, rng: np.random.Generator) -> list[str]:
    """A copy of the run with one file damaged, and a command that reads it."""
    copy = folder / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "run", copy)
    (folder / "points.csv").write_text(POINTS)
    name = choose(rng, ("config.json", "config.json", "metrics.json", "metrics.json", "model.pdedkl", "points.csv"))
    path = folder / name if name == "points.csv" else copy / name
    if name.endswith(".json") and rng.integers(4):
        content = json.loads(path.read_text())
        if name == "config.json" and rng.integers(3) == 0:
            content |= {"problem": choose(rng, ("evil.py", "../evil.py", str(folder / "evil.py"))), "dim": None}
        elif name == "metrics.json" and rng.integers(3) == 0:
            path.unlink()
        content = damaged_tree(content, rng) if rng.integers(3) else content
        path.write_text(json.dumps(content))
    else:
        path.write_bytes(damaged_bytes(path.read_bytes(), rng))
    commands = {
        "predict": ["points.csv", "-o", "out.csv"],
        "compare": ["run", *["--json"] * int(rng.integers(2))],
        "resume": [],
        "report": [],
    }
    command = choose(rng, commands)
    return [command, "damaged", *commands[command]]


def test_command_line(folder):
    def make(rng) -> list[str]:
        return damage_run(folder, rng) if rng.integers(3) else arguments_of(rng)

    def use(arguments) -> None:
        try:
            run(arguments)
        except Exception as error:  # would be told in one sentence, with status 1; the file stands in the command
            if wrong := complaint(error, None):
                raise AssertionError(wrong) from error
        harmed = (folder / "harmed").exists()
        (folder / "harmed").unlink(missing_ok=True)
        assert not harmed, "a program was run"

    fuzz("command line", make, folder / "points.csv", use)
