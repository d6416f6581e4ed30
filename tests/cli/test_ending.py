"""How a run ends: when its time is up, with which verdict, and with which warnings."""

from __future__ import annotations

import json
import warnings

import pytest
import quick

import pdedkl as pk
from pdedkl.cli import main
from pdedkl.cli.solve import Profile
from pdedkl.inference import Posterior
from pdedkl.runs.inputs import PROFILES
from pdedkl.training.records import FitWarning
from pdedkl.verdicts import Comparison, Verdict, from_json

LINE = ["poisson", "--dim", "1", "--boundary", "2", "--source", "6"]
UNDETERMINED = Verdict(
    "undetermined", ("No condition fixes the level of u.",), 0.25, "points", "", "fresh values",
    (Comparison("u", 500, 1.0, 0.3, 0.1, float("inf"), 0.5, (0.1, 0.2), 0.9),),
)  # fmt: skip
NARROW = Verdict("not calibrated", ("Error bars of u are too narrow.",), 0.25, "points", "Add points.", "fresh values")
OPEN = """
import pdedkl as pk
domain = pk.Domain(x=(0, 1))
x = domain.coordinates("x")
wall = pk.Neumann(on=domain.boundary(x), value=0.0)
problem = pk.Problem(domain, pk.Laplacian(x), source=1.0, conditions=[wall], name="open"{more})
"""


def status(*arguments) -> int:
    try:
        main([str(item) for item in arguments])
    except SystemExit as stopped:
        return stopped.code
    return 0


def metrics(folder) -> dict:
    return json.loads((folder / "metrics.json").read_text())


@pytest.fixture
def fits(monkeypatch, no_report):
    """What `fit` is called with; the next results can be set."""
    calls, results = [], []

    def fit(problem, data, **options):
        calls.append(options)
        options["checkpoint"].write_text("state")
        return quick.fit(problem, data, **(results.pop(0) if results else {}))

    monkeypatch.setattr("pdedkl.runs.solve.fit", fit)
    fit.calls, fit.results = calls, results
    return fit


def test_a_run_whose_time_was_up_is_finished_and_can_be_continued(fits, tmp_path, capsys):
    fits.results += [{"stopped": "the time was up", "verdict": NARROW}, {"verdict": NARROW}]
    run, points = tmp_path / "run", tmp_path / "points.csv"
    points.write_text("x[0]\n0.5\n")
    assert status("solve", *LINE, "--time", "7.5", "--profile", "matern-7/2", "--out", run) == 0
    assert fits.calls[0]["seconds"] == 7.5 and fits.calls[0]["profile"] == pk.Matern72()
    assert metrics(run)["stopped"] == "the time was up" and (run / "checkpoint").exists()
    assert f"pdedkl resume {run}" in capsys.readouterr().err
    assert status("predict", run, points, "-o", tmp_path / "out.csv") == 0
    assert status("report", run) == 0 and "stopped" not in capsys.readouterr().err
    assert status("resume", run) == 0
    assert fits.calls[1]["seconds"] == 7.5 and fits.calls[1]["profile"] == pk.Matern72()
    assert metrics(run)["stopped"] is None and not (run / "checkpoint").exists()
    assert status("resume", run) == 0 and len(fits.calls) == 2
    assert "finished already" in capsys.readouterr().err


def test_ctrl_c_ends_with_130_and_the_end_of_the_time_does_not(fits, tmp_path, capsys):
    fits.results += [{"stopped": "interrupted", "verdict": NARROW}]
    assert status("solve", *LINE, "--time", "7", "--out", tmp_path / "run") == 130
    assert metrics(tmp_path / "run")["stopped"] == "interrupted" and "Stopped." in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, words",
    [
        (["--time", "0"], "`seconds` needs a positive number"),
        (["--time", "-3"], "`seconds` needs a positive number"),
        (["--time", "nan"], "`seconds` needs a positive number"),
        (["--time", "inf"], "`seconds` needs a positive number"),
        (["--time", "soon"], "--time"),
        (["--profile", "smooth"], "matern-5/2"),
        (["--profile", "matern-5/2", "--recipe", "paper"], "`profile` is for the default recipe"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(options, words, fits, tmp_path, capsys):
    assert status("solve", *LINE, *options, "--out", tmp_path / "none") == 2
    assert words in capsys.readouterr().err and not (tmp_path / "none").exists() and not fits.calls


def test_a_profile_that_is_too_rough_is_refused_early(fits, tmp_path, capsys):
    text = OPEN.replace("{more}", "").replace("pk.Laplacian(x)", "pk.D(x, x, x)").replace("Neumann", "Dirichlet")
    (tmp_path / "third.py").write_text(text)
    ask = ["solve", tmp_path / "third.py", "--engine", "autodiff", "--out", tmp_path / "run", "--profile"]
    assert status(*ask, "matern-5/2") == 2
    assert "differentiable 2 times" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_profiles_have_the_same_names_everywhere(tmp_path, fits, capsys):
    assert sorted(Profile) == sorted(PROFILES)
    assert status("solve", *LINE, "--out", tmp_path / "run") == 0
    config = json.loads((tmp_path / "run/config.json").read_text())
    (tmp_path / "run/config.json").write_text(json.dumps(config | {"profile": "smooth"}))
    (tmp_path / "run/metrics.json").unlink()
    assert status("resume", tmp_path / "run") == 2 and "no profile 'smooth'" in capsys.readouterr().err


@pytest.mark.parametrize("verdict", [UNDETERMINED, NARROW], ids=lambda verdict: verdict.status)
def test_the_verdict_of_the_fit_is_everywhere(verdict, fits, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Posterior, "check", None)  # it is not computed again
    monkeypatch.setenv("COLUMNS", "200")
    fits.results += [{"verdict": verdict}]
    run = tmp_path / "run"
    assert status("solve", *LINE, "--out", run) == 0
    assert str(verdict) in capsys.readouterr().out
    assert status("resume", run, "--json") == 0
    out = capsys.readouterr()
    assert str(verdict).splitlines()[:2] == [line for line in out.err.splitlines() if line in str(verdict)][:2]
    found = metrics(run)
    assert found["verdict"] == {"status": verdict.status, "reasons": list(verdict.reasons), "error_u": 0.25}
    assert found["check"]["status"] == verdict.status and str(from_json(found["check"])) == str(verdict)
    assert str(pk.load(run / "model.pdedkl").verdict) == str(verdict)
    assert verdict.headline() in repr(pk.load(run / "model.pdedkl"))


def test_an_error_that_is_not_known_is_not_stated_as_known():
    assert "the error of u is not known" in UNDETERMINED.headline() and "2.5e-01" in UNDETERMINED.headline()
    assert "the error of u is about" not in str(UNDETERMINED)


def test_a_fit_without_a_verdict_is_checked(fits, tmp_path, capsys):
    assert status("solve", *LINE, "--out", tmp_path / "run") == 0
    assert metrics(tmp_path / "run")["verdict"]["status"] in ("calibrated", "not calibrated")


def test_findings_about_a_problem_are_told_once_and_as_sentences(fits, tmp_path, capsys, recwarn):
    path = tmp_path / "open.py"
    path.write_text(OPEN.replace("{more}", ""))
    assert status("solve", path, "--boundary", "2", "--source", "6", "--out", tmp_path / "run") == 0
    told = capsys.readouterr().err
    assert told.count("No condition fixes the level of u") == 1
    assert 'Problem(…, silenced=["level"])' in told
    assert "ProblemWarning" not in told and "open.py:" not in told and "warnings.warn" not in told
    path.write_text(OPEN.replace("{more}", ', silenced=["level"]'))
    assert status("solve", path, "--boundary", "2", "--source", "6", "--out", tmp_path / "quiet") == 0
    assert "No condition fixes" not in capsys.readouterr().err
    assert not [item for item in recwarn if issubclass(item.category, pk.problems.ProblemWarning)]


def test_warnings_about_a_fit_are_told_once(tmp_path, capsys, monkeypatch, no_report):
    def fit(problem, data, **_):
        texts = [NARROW.headline(), *NARROW.reasons, NARROW.advice, "Left-out values are poor."]
        warnings.warn(" ".join(texts), FitWarning, stacklevel=1)
        warnings.warn("Conjugate gradients did not converge.", stacklevel=2)
        return quick.fit(problem, data, verdict=NARROW)

    monkeypatch.setattr("pdedkl.runs.solve.fit", fit)
    assert status("solve", *LINE, "--out", tmp_path / "run") == 0
    out = capsys.readouterr()
    both = out.out + out.err
    for sentence in (NARROW.headline(), *NARROW.reasons, NARROW.advice, "Left-out values are poor."):
        assert both.count(sentence) == 1, sentence
    assert "Warning: Left-out values are poor.\n" in out.err
    assert "Warning: Conjugate gradients did not converge.\n" in out.err
    assert "FitWarning" not in both and "UserWarning" not in both


def test_warnings_of_others_are_left_to_python(fits, tmp_path, recwarn):
    path = tmp_path / "open.py"
    path.write_text(OPEN.replace("{more}", ', silenced=["level"]') + "import warnings; warnings.warn('my own')\n")
    assert status("solve", path, "--boundary", "2", "--source", "6", "--out", tmp_path / "run") == 0
    assert "my own" in [str(item.message) for item in recwarn]
