"""What users get wrong, and what they ask for help with: one sentence, and the right exit status."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from pdedkl.cli import main
from pdedkl.locks import locked


def told(arguments, capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(item) for item in arguments])
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if line.startswith("pdedkl: ")]
    assert len(lines) == 1 and "Traceback" not in error
    return stopped.value.code, lines[0]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["solve"], "Missing argument 'problem'"),
        (["slove", "heat"], "'slove'"),
        (["solve", "heet"], "heat"),
        (["solve", "heat", "--dim", "0"], "--dim"),
        (["solve", "heat", "--model", "svm"], "'svm'"),
        (["solve", "parametric-heat", "--dim", "7"], "dimension"),
        (["solve", "poisson", "--dim", "100000"], "2000000 points of 100000 coordinates need"),
        (["search", "heat", "--dim", "100000"], "points of 100001 coordinates need"),
        (["solve", "nowhere.py"], "nowhere.py"),
        (["solve", "heat", "--dim", "2", "--data", "nowhere.csv"], "nowhere.csv"),
        (["resume", "nowhere"], "nowhere is not the folder of a run"),
        (["predict", "nowhere", "points.csv", "-o", "out.csv"], "points.csv"),
        (["search", "heat", "--latent-dims", "some"], "--latent-dims"),
        (["search", "heat", "--scheduler", "nowhere::"], "Dask scheduler"),
        (["reproduce", "--only", "heat-11"], "heat-10"),
        (["reproduce", "--scheduler", "nowhere::"], "Dask scheduler"),
    ],
)
def test_mistakes_in_asking(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    begin = time.monotonic()
    code, line = told(arguments, capsys)
    assert code == 2 and words in line
    assert not any(tmp_path.iterdir())
    assert time.monotonic() - begin < 15


@pytest.mark.parametrize(
    "text, words",
    [
        ("problem = (", "line 1"),
        ("import pdedkl as pk\nproblem = pk.Problm()\n", "line 2"),
        ("x = 1\n", "`problem`"),
        ("problem = 3\n", "int"),
    ],
)
def test_problem_files_that_are_none(text, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    code, line = told(["solve", "mine.py"], capsys)
    assert code == 2 and words in line and "mine.py" in line
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_run_that_fails_ends_with_one_sentence_and_status_1(tmp_path):
    """The operator is only evaluated at sampled points, so this file is read without complaint."""
    program = "import pdedkl.cli.solve as s\nfrom pdedkl.cli import main\n"
    program += "s._run = lambda *_: 1 / 0\nmain(['solve', 'poisson', '--dim', '2', '--out', 'run'{}])\n"
    done = [
        subprocess.run(
            [sys.executable, "-c", program.format(extra)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        for extra in ("", ", '--force', '--debug'")
    ]
    assert [item.returncode for item in done] == [1, 1]
    assert done[0].stderr.splitlines()[-1] == "pdedkl: division by zero (ZeroDivisionError; --debug shows where)"
    assert "Traceback" not in done[0].stderr and "Traceback" in done[1].stderr


def test_help_does_not_wait_for_jax():
    program = "import sys\nfrom pdedkl.cli import main\nmain(['--help'])\nassert 'jax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pdedkl solve heat" in done.stdout


def test_the_built_in_problems_are_listed_with_their_equations(capsys):
    main(["problems"])
    out = capsys.readouterr().out
    assert all(word in out for word in ("poisson", "parametric-heat", "advection-diffusion-reaction", "Δu"))


@pytest.mark.parametrize(
    "command", ["", "solve", "resume", "search", "problems", "new", "predict", "report", "compare", "reproduce"]
)
def test_help_shows_flags_as_flags(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main([command, "--help"] if command else ["--help"])
    out = capsys.readouterr().out
    assert "bool" not in out and "--help" in out and max(map(len, out.splitlines())) <= 80


def test_a_new_problem_is_not_written_through_a_link(capsys, tmp_path):
    (tmp_path / "mine.py").symlink_to(tmp_path / "elsewhere.py")
    code, line = told(["new", tmp_path / "mine.py"], capsys)
    assert code == 2 and "exists already" in line and not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize(
    "command", [["search", "heat", "--dim", "2"], ["reproduce", "--only", "heat-10"], ["solve", "heat"]]
)
def test_folders_in_use_are_left_alone(command, capsys, tmp_path):
    with locked(tmp_path / "busy"):
        code, line = told([*command, "--out", tmp_path / "busy"], capsys)
        assert code == 1 and f"busy is in use by process {os.getpid()} on " in line
        assert [path.name for path in (tmp_path / "busy").iterdir()] == [".lock"]
