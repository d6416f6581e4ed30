"""The template as it is written, and the same without the exact solution."""

from __future__ import annotations

import json

import quick

from pdedkl.cli import main

FEW = ["--model", "gp", "--profile", "squared-exponential", "--boundary", "20", "--initial", "10", "--source", "30"]


def test_the_template_runs_as_it_stands_and_without_an_exact_solution(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["new", "mine.py"])
    capsys.readouterr()
    text = (tmp_path / "mine.py").read_text()
    (tmp_path / "unknown.py").write_text(text.replace("    exact=exact,\n", ""))
    found = {}
    for name in ("mine", "unknown"):
        with monkeypatch.context() as patch:
            if name == "unknown":  # pictures without a truth are tested with the reports
                patch.setattr("pdedkl.runs.solve.report", lambda folder, solved: [])
            main(["solve", f"{name}.py", *FEW, "--out", name, "--json"])
        found[name] = json.loads(capsys.readouterr().out)
    (tmp_path / "mine.py").unlink()  # a run keeps what it needs
    (tmp_path / "points.csv").write_text("x[0],x[1],t\n0.5,0.5,0.5\n")
    main(["predict", "mine", "points.csv", "-o", "out.csv"])
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 2
    assert found["mine"]["error_u"] < 0.1 and found["unknown"]["error_u"] is None
    assert found["unknown"]["error_f"] == found["mine"]["error_f"] is not None


FUNCTIONS = """
import pdedkl as pk
domain = pk.Domain(x=(0, 1), t=(0, 1))
x, t = domain.coordinates()
wall = pk.Robin(on=domain.boundary(x), a=lambda q: 2.0 + q[1], b=1.0, value=0.0)
operator = pk.D(t) - pk.Divergence(x, lambda q: 1.0 + q[0])
problem = pk.Problem(domain, operator, source=1.0, conditions=[pk.Initial(t, value=1.0), wall])
"""


def test_a_condition_without_data_may_have_functions(tmp_path, monkeypatch, no_report):
    """Error bars are calibrated with it all the same, so that the model needs its functions."""

    def fit(problem, data, **_):
        return quick.fit(problem, data).calibrated(problem.fresh(5, purpose="calibration"))

    monkeypatch.setattr("pdedkl.runs.solve.fit", fit)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    (tmp_path / "points.csv").write_text("x,t\n0.5,0.5\n")
    main(["solve", "mine.py", "--boundary", "0", "--initial", "8", "--source", "8", "--out", "run"])
    main(["predict", "run", "points.csv", "-o", "out.csv"])
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 2


EQUATIONS = """
import pdedkl as pk
domain = pk.Domain(x=(0, 1))
(x,) = domain.coordinates()
u = pk.fields("u")
walls = pk.Dirichlet(u, on=domain.boundary(x), value=0.0)
problem = pk.Problem(domain, equations=[pk.D(x, x) @ u + u**3 == 1.0], conditions=[walls])
"""


def test_a_nonlinear_equation_is_solved_reported_and_predicted(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(EQUATIONS)
    run = tmp_path / "run"
    main(["solve", str(tmp_path / "mine.py"), "--out", str(run), "--model", "gp", "--source", "15"])
    said = capsys.readouterr().out
    assert "Newton's method" in said and "iteration 1" in said
    found = json.loads((run / "metrics.json").read_text())
    assert found["iterations"][-1]["residual"] < 1e-6 and found["n_f"] == 15 and found["parts"] == ["u", "f"]
    page = (run / "report.html").read_text()
    assert "<h2>Newton's method</h2>" in page and "explorer-data" in page
    (tmp_path / "places.csv").write_text("x\n0.25\n0.5\n")
    main(["predict", str(run), str(tmp_path / "places.csv"), "-o", str(tmp_path / "u.csv")])
    assert (tmp_path / "u.csv").read_text().splitlines()[0] == "x,u,u_std"
