"""What users call their files and problems is printed and drawn as it is, and costs no run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import quick

from pdedkl.cli import main
from pdedkl.reports import save, training_history
from pdedkl.training.monitor import Step

PROBLEM = """
import pdedkl as pk

domain = pk.Domain(x=(0, 1))
x = domain.coordinates("x")
problem = pk.Problem(
    domain, pk.D(x, x), lambda q: q[0], [pk.Dirichlet(on=domain.boundary(x), value=0.0)], name={name!r}
)
"""
SMALL = ["poisson", "--dim", "1", "--boundary", "2", "--source", "6"]


def status(*arguments) -> int:
    try:
        main([str(item) for item in arguments])
    except SystemExit as stopped:
        return stopped.code
    return 0


@pytest.mark.parametrize(
    "name", ["plate [/red]", "[b]plate", "plate :smile: [link=x]", r"\[x] $\frac$ 100 %", "x\x1b[2J"]
)
def test_names_are_no_markup(name, tmp_path, capsys, quick_fit, no_report):
    file, out = tmp_path / "mine [i].py", tmp_path / "o[b]x" / "a:smile:[/]"
    file.write_text(PROBLEM.format(name=name))
    assert status("solve", file, "--boundary", 2, "--source", 6, "--out", out) == 0
    shown = capsys.readouterr().out
    assert name.replace("\x1b", "\\x1b") in shown and "\x1b" not in shown
    (out / "report.html").write_text("there")
    assert status("resume", out) == 0
    told = capsys.readouterr()
    assert f"{out} is finished already." in told.err and f"Report: {out / 'report.html'}\n" in told.out


def steps(*names):
    return tuple(Step("inputs", i, -1.0 * i, 1.0, dict.fromkeys(names, 0.1), i, 1.0, 1.0) for i in range(3))


@pytest.mark.parametrize("name", ["a$b", r"$\frac{", "$x$ {[b]", r"a\$b$c", "caf\udce9"])
def test_names_in_pictures_are_no_formulas(name, tmp_path):
    r"""Matplotlib reads `$…$` as a formula; of `$\frac{$` it makes an error."""
    save(training_history(steps(name, "u")), tmp_path, "training")
    assert name.isascii() is (name in (tmp_path / "training.svg").read_text())


def test_a_table_with_a_formula_for_a_name(tmp_path, monkeypatch):
    def learned(problem, data, **options):
        """A history with the names of all learned noise levels, as training has it."""
        found, names = quick.fit(problem, data, **options), [item.noise_name for item in data if item.noise_name]
        assert any("$" in name for name in names)
        return replace(found, training=replace(found.training, history=steps(*names)))

    monkeypatch.setattr("pdedkl.runs.solve.fit", learned)
    name, out = r"$\frac{$ [b].csv", tmp_path / "run"
    (tmp_path / name).write_text("x1,u\n" + "".join(f"{i / 9},{i / 9}\n" for i in range(10)))
    assert status("solve", *SMALL, "--data", tmp_path / name, "--out", out) == 0
    assert (out / "report.html").exists() and name in (out / "figures" / "training.svg").read_text()


def test_a_picture_that_fails_costs_no_run(tmp_path, capsys, monkeypatch, quick_fit):
    """Model, metrics and all other pictures are there. The status is 1, since not all that was asked for is."""

    def fail(*_, **__):
        assert (tmp_path / "run" / "metrics.json").exists() and (tmp_path / "run" / "model.pdedkl").exists()
        raise RuntimeError("no [red] ink")

    monkeypatch.setattr("pdedkl.reports.figures.slice_maps", fail)
    assert status("solve", *SMALL, "--out", tmp_path / "run") == 1
    told = capsys.readouterr()
    assert "slice (RuntimeError: no [red] ink)" in told.err and "Report: " in told.out
    assert (tmp_path / "run" / "report.html").exists()
    assert not (tmp_path / "run" / "figures" / "slice.png").exists()
    assert (tmp_path / "run" / "figures" / "truth.png").exists()


def test_a_page_that_fails_costs_no_run(tmp_path, capsys, monkeypatch, quick_fit):
    def fail(*_, **__):
        raise ValueError("no page")

    monkeypatch.setattr("pdedkl.runs.solve.write_report", fail)
    monkeypatch.setattr("pdedkl.runs.solve.pictures", lambda *_: [])
    assert status("solve", *SMALL, "--out", tmp_path / "run") == 1
    assert "report.html (ValueError: no page)" in capsys.readouterr().err
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["stopped"] is None


# ── standard output ───────────────────────────────────────────────────────────────────────────────────────────────


def command(*arguments, **environment):
    full = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-m", "pdedkl", *arguments], capture_output=True, env=full, check=False)


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_a_terminal_that_knows_only_ascii(environment):
    for arguments, code in ((["problems"], 0), (["solve", "--help"], 0), (["compare", "nichts-für-Ölaf"], 2)):
        done = command(*arguments, **environment)
        assert done.returncode == code, done.stderr
        assert (done.stdout + done.stderr).isascii() and b"Traceback" not in done.stderr
        assert arguments != ["problems"] or b"du/dt - Laplace u = f" in done.stdout


def test_json_on_a_terminal_that_knows_only_ascii(tmp_path, quick_fit, no_report, capsys):
    (tmp_path / "mine.py").write_text(PROBLEM.format(name="Wärme"))
    assert status("solve", tmp_path / "mine.py", "--boundary", 2, "--source", 6, "--out", tmp_path / "run") == 0
    done = command("compare", str(tmp_path / "run"), "--json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout.decode("ascii"))[str(tmp_path / "run")]["problem"] == "Wärme"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "pdedkl", "--help"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("pdedkl: could not write to standard output: No space left")


def test_a_file_that_cannot_grow_is_named(tmp_path):
    """A limit on the size of files stands in for a full disk."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "import pdedkl.cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "pdedkl.cli.main(['new', sys.argv[1]])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "mine.py")], capture_output=True, text=True)
    assert done.returncode == 2 and f"File too large: '{tmp_path / 'mine.py'}'" in done.stderr
    assert not any(tmp_path.iterdir())
