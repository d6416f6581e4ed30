"""The template as it is written, and the same without the exact solution."""

from __future__ import annotations

import json

from pdedkl.cli import main

FEW = ["--model", "gp", "--boundary", "20", "--initial", "10", "--source", "30"]


def test_the_template_runs_as_it_stands_and_without_an_exact_solution(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["new", "mine.py"])
    capsys.readouterr()
    text = (tmp_path / "mine.py").read_text()
    (tmp_path / "unknown.py").write_text(text.replace("    exact=exact,\n", ""))
    found = {}
    for name in ("mine", "unknown"):
        main(["solve", f"{name}.py", *FEW, "--out", name, "--json"])
        found[name] = json.loads(capsys.readouterr().out)
    (tmp_path / "mine.py").unlink()  # a run keeps what it needs
    (tmp_path / "points.csv").write_text("x[0],x[1],t\n0.5,0.5,0.5\n")
    main(["predict", "mine", "points.csv", "-o", "out.csv"])
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 2
    assert found["mine"]["error_u"] < 0.1 and found["unknown"]["error_u"] is None
    assert found["unknown"]["error_f"] == found["mine"]["error_f"] is not None
