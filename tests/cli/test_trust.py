"""A run folder that somebody else has made: no command runs a program that the run did not begin with."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
import quick

from pdedkl.cli import main

PROBLEM = """
import pdedkl as pk

domain = pk.Domain(x=[(0, 1)] * 2)
x = domain.coordinates("x")
problem = pk.Problem(
    domain, {operator}, lambda q: q[0], [pk.Dirichlet(on=domain.boundary(x), value=0.5)], name="mine"
)
"""
PLAIN, WITH_FUNCTION = "pk.Laplacian(x)", "pk.Coefficient(lambda q: 1 + q[0], name='k') * pk.Laplacian(x)"
EVIL = "open({marker!r}, 'w')\n"


def status(*arguments) -> int:
    try:
        main([str(item) for item in arguments])
    except SystemExit as stopped:
        return stopped.code
    return 0


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Two runs that were stopped: one with an operator that a model file holds, one with a Python function in it."""
    home = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdedkl.runs.solve.fit", lambda *a, **k: quick.fit(*a, stopped="interrupted", **k))
        patch.setattr("pdedkl.runs.solve.report", lambda folder, solved: [])
        for name, operator in (("plain", PLAIN), ("function", WITH_FUNCTION)):
            (home / "mine.py").write_text(PROBLEM.format(operator=operator))
            assert status("solve", home / "mine.py", *quick.FEW, "--out", home / name) == 130
    (home / "mine.py").unlink()
    (home / "points.csv").write_text("x1,x2\n0.5,0.5\n")
    return home


@pytest.fixture
def home(solved, tmp_path, quick_fit, no_report):
    shutil.copytree(solved, tmp_path / "home")
    return tmp_path / "home"


def edit(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def named(how):
    def plant(folder, evil):
        edit(folder, problem=how(folder, evil))

    return plant


def linked(folder, evil):
    (folder / "problem.py").unlink()
    (folder / "problem.py").symlink_to(evil)


def linked_with_its_digest(folder, evil):
    linked(folder, evil)
    edit(folder, digest=hashlib.sha256(evil.read_bytes()).hexdigest())


def changed(folder, evil):
    (folder / "problem.py").write_bytes(evil.read_bytes())


def without_digest(folder, evil):
    changed(folder, evil)
    edit(folder, digest=None)


def inside(folder, evil):
    shutil.copy(evil, folder / "data.py")
    edit(folder, problem="data.py", digest=hashlib.sha256(evil.read_bytes()).hexdigest())


PLANTED = {
    "absolute": named(lambda folder, evil: str(evil)),
    "above": named(lambda folder, evil: "../evil.py"),
    "dotted": named(lambda folder, evil: f"./../{folder.name}/../evil.py"),
    "link": linked,
    "link with its digest": linked_with_its_digest,
    "changed": changed,
    "no digest": without_digest,
    "another file of the folder": inside,
}


@pytest.mark.parametrize("how", PLANTED)
def test_another_program_than_the_runs_own_is_not_run(how, home, capsys):
    marker, folder = home / "ran", home / "function"
    evil = home / "evil.py"
    evil.write_text(EVIL.format(marker=str(marker)) + (folder / "problem.py").read_text())
    PLANTED[how](folder, evil)
    predict = ["predict", folder, home / "points.csv", "-o", home / "out.csv"]
    for command in (["resume", folder], ["report", folder], predict):
        assert status(*command) == 2
        assert "--trust" in capsys.readouterr().err
    assert not marker.exists() and not (home / "out.csv").exists()
    assert status(*predict, "--trust") == 0
    assert marker.exists() and (home / "out.csv").exists()


@pytest.mark.parametrize("name", ["plain", "function"])
def test_the_runs_own_problem_needs_no_trust(name, home):
    assert status("predict", home / name, home / "points.csv", "-o", home / "out.csv") == 0
    assert status("report", home / name) == 0
    assert status("resume", home / name) == 0


def test_predictions_run_no_program_where_the_model_has_no_functions(home):
    """Nor do they need one."""
    folder = home / "plain"
    (folder / "problem.py").write_text(EVIL.format(marker=str(home / "ran")))
    edit(folder, digest=hashlib.sha256((folder / "problem.py").read_bytes()).hexdigest())
    assert status("predict", folder, home / "points.csv", "-o", home / "out.csv") == 0
    assert status("compare", folder) == 0
    assert not (home / "ran").exists()


def test_modules_that_lie_in_the_folder_are_not_imported(home, capsys):
    folder = home / "function"
    (folder / "helper.py").write_text(EVIL.format(marker=str(home / "ran")))
    (folder / "problem.py").write_text("import helper\n" + (folder / "problem.py").read_text())
    edit(folder, digest=hashlib.sha256((folder / "problem.py").read_bytes()).hexdigest())
    assert status("resume", folder) == 2
    assert "helper" in capsys.readouterr().err and not (home / "ran").exists()


def test_a_file_that_needs_its_neighbours_is_refused_before_anything_is_written(tmp_path, capsys):
    (tmp_path / "helper_of_mine.py").write_text("")
    (tmp_path / "mine.py").write_text("import helper_of_mine\n" + PROBLEM.format(operator=PLAIN))
    assert status("solve", tmp_path / "mine.py", "--out", tmp_path / "run") == 2
    assert "A run keeps only this one file" in capsys.readouterr().err and not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["../secret.csv", "/etc/passwd", "data/1-link.csv"])
def test_tables_elsewhere_are_not_read(name, home, capsys):
    folder = home / "plain"
    (home / "secret.csv").write_text("x1,x2,u\n0.5,0.5,1\n")
    (folder / "data").mkdir()
    (folder / "data" / "1-link.csv").symlink_to(home / "secret.csv")
    edit(folder, data=[name])
    assert status("resume", folder) == 2
    assert "--trust" in capsys.readouterr().err


NO_CONFIGURATIONS = {
    "empty": "",
    "list": "[]",
    "no problem": "{}",
    "number": '{"problem": 3}',
    "text for a number": '{"problem": "heat", "dim": "2"}',
    "true": '{"problem": "heat", "seed": true}',
    "text for a list": '{"problem": "heat", "data": "x"}',
    "numbers for names": '{"problem": "heat", "data": [1]}',
    "NaN": '{"problem": "heat", "noise": NaN}',
    "unknown": '{"problem": "heat", "run": "rm"}',
    "nested": "[" * 200_000,
}


@pytest.mark.parametrize("kind", NO_CONFIGURATIONS)
def test_configurations_that_are_none(kind, home, capsys):
    (home / "plain" / "config.json").write_text(NO_CONFIGURATIONS[kind])
    for command in (["resume", home / "plain"], ["report", home / "plain"]):
        assert status(*command) == 2
        assert "config.json" in capsys.readouterr().err


def test_pictures_are_not_written_through_a_link(home, capsys, monkeypatch):
    monkeypatch.undo()
    folder = home / "plain"
    (home / "elsewhere").mkdir()
    (folder / "figures").symlink_to(home / "elsewhere")
    monkeypatch.setattr(
        "pdedkl.runs.solve.pictures", lambda *_: [type("Picture", (), {"name": "truth", "figure": None})]
    )
    monkeypatch.setattr("pdedkl.runs.solve.write_report", lambda *_, **__: None)
    assert status("report", folder) == 1
    assert "figures is a link" in capsys.readouterr().err and not any((home / "elsewhere").iterdir())
