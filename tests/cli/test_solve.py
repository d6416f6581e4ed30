"""`pdedkl solve` and what can be done with the folder it leaves, on a problem that trains in a second."""

from __future__ import annotations

import csv
import json
import os
import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import pdedkl as pk
from pdedkl.cli import main

SMALL = ["poisson", "--dim", "2", "--boundary", "30", "--source", "30", "--model", "gp"]
KEYS = {
    *("problem", "dim", "model", "recipe", "seed", "n_u", "n_f", "latent_dim", "error_u", "error_f", "coverage_u"),
    *("coverage_f", "z_rms_u", "z_rms_f", "nlpd_u", "crps_u", "sharpness_u", "objective", "jitter", "train_seconds"),
    *("compile_seconds", "peak_memory_bytes"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "poisson"
    main(["solve", *SMALL, "--seed", "3", "--out", str(folder)])
    return folder


def status(arguments) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(item) for item in arguments])
    return stopped.value.code


def test_the_folder_of_a_run(run):
    names = {path.name for path in run.iterdir()}
    assert names == {"config.json", "metrics.json", "history.csv", "model.pdedkl", "figures", "report.html"}
    metrics = json.loads((run / "metrics.json").read_text())
    assert set(metrics) >= KEYS
    assert [metrics[key] for key in ("problem", "dim", "model", "n_u", "n_f")] == ["poisson", 2, "gp", 30, 30]
    assert 0 < metrics["error_u"] < 1e-2 < metrics["line_u"]
    assert set(metrics["coverage_u"]) == {"0.5", "0.8", "0.9", "0.95", "0.99"}
    assert metrics["check"]["ruled_by"] in ("rounding", "noise", "points", "model")
    assert metrics["error_u"] / 10 < metrics["check"]["error_u"] < 10 * metrics["error_u"]
    assert metrics["calibration"]["source"] == "fresh values" and set(metrics["calibration"]["factors"]) == {
        "u",
        "Δ_x u",
    }
    # The check of the fit, and the one in the model file.
    verdict = pk.load(run / "model.pdedkl").verdict
    assert metrics["check"]["comparisons"][0]["error"] == verdict.comparisons[0].error
    assert metrics["verdict"]["status"] == metrics["check"]["status"] == verdict.status
    assert verdict.headline() in (run / "report.html").read_text()
    with open(run / "history.csv") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["objective"]) < float(rows[0]["objective"])
    assert {path.suffix for path in (run / "figures").iterdir()} == {".png", ".svg"}


def test_json_on_standard_output_is_the_file_and_nothing_else(run, capsys):
    main(["resume", str(run), "--json"])
    out = capsys.readouterr()
    assert out.out == (run / "metrics.json").read_text()
    assert "finished already" in out.err


def test_a_folder_that_holds_a_run_is_not_overwritten(run, capsys):
    before = (run / "metrics.json").read_bytes()
    assert status(["solve", *SMALL, "--out", run]) == 2
    assert "--force" in capsys.readouterr().err
    assert (run / "metrics.json").read_bytes() == before


def test_predictions_of_a_table_longer_than_a_block(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pdedkl.runs.predict.ROWS_PER_BLOCK", 4)
    points = np.random.default_rng(0).uniform(size=(10, 2))
    table = tmp_path / "points.csv"
    table.write_text("name,x[1],x[0]\n" + "".join(f"p{i},{q[1]!r},{q[0]!r}\n" for i, q in enumerate(points.tolist())))
    main(["predict", str(run), str(table), "-o", str(tmp_path / "out.csv")])
    found = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)
    posterior = pk.load(run / "model.pdedkl")
    x = pk.Domain(x=[(0, 1)] * 2).coordinates("x")
    u, f = posterior.predict(points), posterior.predict(points, pk.Laplacian(x))
    np.testing.assert_allclose(found, np.column_stack([points, u.mean, u.std, f.mean, f.std]), rtol=1e-7, atol=1e-9)
    assert "10 points" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text, words",
    [
        ("x[0]\n0.5\n", "no column 'x[1]'"),
        ("x1\n0.5\n", "no column 'x[0]'"),
        ("x0,x1\n0.5,0.5\n", "Rename x0, x1."),
        ("x[0],x[1]\n0.5,0.5\n0.5,half\n", "row 3, column 'x[1]': 'half' is not a number"),
        ("x[0],x[1]\n0.5\n", "row 2: 1 cells, and the header has 2"),
        ("x1,x2\n", "no rows"),
        ("", "needs the names of its columns"),
    ],
)
def test_tables_that_cannot_be_predicted(run, tmp_path, capsys, text, words):
    table = tmp_path / "points.csv"
    table.write_text(text)
    assert status(["predict", run, table, "-o", tmp_path / "out.csv"]) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["points.csv"]


SPELLINGS = {
    "plain": "x1,x2\n0.25,0.5\n0.75,1\n",
    "blank lines": "\n\nx1,x2\n\n0.25,0.5\n,\n0.75,1\n\n\n",
    "semicolons": "x1;x2\n0.25;0.5\n0.75;1\n",
    "tabs": "x1\tx2\n0.25\t0.5\n0.75\t1\n",
    "byte order mark": "\ufeffx1,x2\n0.25,0.5\n0.75,1\n",
    "windows": "x1,x2\r\n0.25,0.5\r\n0.75,1\r\n",
    "old mac": "x1,x2\r0.25,0.5\r0.75,1\r",
    "quoted": '"a; b; c; d","x1", "x2"\n"two\nlines","0.25",0.5\n,0.75,1\n',
    "spaces": " x1 , x2 \n 0.25 , 0.5 \n 0.75 , 1 \n",
}


@pytest.mark.parametrize("kind", [*SPELLINGS, "parquet", "npz"])
def test_tables_are_predicted_however_they_are_written(run, tmp_path, kind, monkeypatch):
    """And `Observation.from_table` reads the same ones."""
    monkeypatch.setattr("pdedkl.runs.predict.ROWS_PER_BLOCK", 1)
    columns = {"x1": [0.25, 0.75], "x2": [0.5, 1.0]}
    table = tmp_path / f"points.{kind if kind in ('parquet', 'npz') else 'csv'}"
    if kind == "parquet":
        parquet.write_table(pa.table(columns), table)
    elif kind == "npz":
        np.savez(table, **columns)
    else:
        text = SPELLINGS[kind].replace(', "x2"', ',"x2"')
        table.write_bytes(text.encode())
    main(["predict", str(run), str(table), "-o", str(tmp_path / "out.csv")])
    found = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(found[:, :2], [[0.25, 0.5], [0.75, 1.0]])
    read = pk.Observation.from_table(table, ["x1"], "x2")
    np.testing.assert_array_equal(read.points[:, 0], columns["x1"])


def test_predictions_into_what_is_no_file(run, tmp_path, capfd):
    """A pipe, a link and standard output are written into, and stay what they are."""
    table, pipe, link, target = (tmp_path / name for name in ("points.csv", "pipe", "link", "target"))
    table.write_text("x1,x2\n0.25,0.5\n")
    os.mkfifo(pipe)
    link.symlink_to(target)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    for out in (pipe, link, "/dev/stdout"):
        main(["predict", str(run), str(table), "-o", str(out)])
    reader.join(10)
    assert pipe.is_fifo() and link.is_symlink()
    assert found[0].startswith("x[0],x[1],u,") and target.read_text() == found[0] == capfd.readouterr().out


def test_a_planted_link_is_not_written_through(run, tmp_path):
    table, victim = tmp_path / "points.csv", tmp_path / "victim"
    table.write_text("x1,x2\n0.25,0.5\n")
    victim.write_text("precious")
    (tmp_path / f".out.csv.{os.getpid()}.tmp").symlink_to(victim)
    main(["predict", str(run), str(table), "-o", str(tmp_path / "out.csv")])
    assert victim.read_text() == "precious" and (tmp_path / "out.csv").stat().st_size > 20


def test_runs_side_by_side(run, capsys):
    main(["compare", str(run), str(run), "--json"])
    assert json.loads(capsys.readouterr().out)[str(run)]["model"] == "gp"
    assert status(["compare", run, run / "figures"]) == 2
    assert "is not the folder of a run" in capsys.readouterr().err


def test_a_report_made_anew(run, capsys):
    (run / "report.html").unlink()
    main(["report", str(run)])
    assert (run / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")


def test_measured_values_and_noise(tmp_path, capsys, no_report):
    """A table beside the sampled data; wrong tables are refused before a folder is made."""
    q = np.random.default_rng(1).uniform(size=(15, 2))
    u = np.sin(q.sum(1)) + np.cos(q.sum(1))
    table = tmp_path / "sensors.csv"
    table.write_text("x[0],x[1],u,noise\n" + "".join(f"{a},{b},{c},0.001\n" for (a, b), c in zip(q, u)))
    out = tmp_path / "run"
    main(["solve", *SMALL, "--noise", "0.01", "--data", str(table), "--out", str(out), "--json"])
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["n_u"] == 45 and metrics["error_u"] < 0.02
    table.write_text("x1,x2,u\n0.5,0.5,1\n3,0.5,1\n")
    assert status(["solve", *SMALL, "--data", table, "--out", tmp_path / "other"]) == 2
    assert "row 3" in capsys.readouterr().err and not (tmp_path / "other").exists()


def test_a_wanted_accuracy_reaches_training(run, tmp_path, no_report):
    main(["solve", *SMALL, "--seed", "3", "--accuracy", "0.3", "--out", str(tmp_path / "rough")])
    assert json.loads((tmp_path / "rough/config.json").read_text())["accuracy"] == 0.3
    count = lambda folder: len((folder / "history.csv").read_text().splitlines())
    assert count(tmp_path / "rough") < count(run)


def test_without_a_number_of_points_an_accuracy_takes_as_many_as_it_needs(no_report, tmp_path, capsys):
    folder = tmp_path / "free"
    main(["solve", "poisson", "--dim", "1", "--accuracy", "1e-3", "--time", "100", "--out", str(folder)])
    metrics = json.loads((folder / "metrics.json").read_text())
    last = metrics["rounds"][-1]
    assert last["values"] == metrics["n"] and metrics["stopped"] is None
    assert last["error"] == metrics["verdict"]["error_u"] <= 1e-3 and metrics["error_u"] <= 1e-3
    assert "estimated error" in capsys.readouterr().out
    assert not list(folder.glob("checkpoint*"))
    assert pk.load(folder / "model.pdedkl").training.rounds[-1].values == last["values"]
    main(["resume", str(folder)])
    assert "finished already" in capsys.readouterr().err


@pytest.mark.parametrize("wanted", [["0"], ["1.5"], ["0.1", "--recipe", "paper"]])
def test_an_accuracy_that_cannot_be_is_refused_before_anything_is_written(wanted, tmp_path, capsys):
    assert status(["solve", *SMALL, "--accuracy", *wanted, "--out", tmp_path / "none"]) == 2
    assert "`accuracy`" in capsys.readouterr().err and not (tmp_path / "none").exists()
