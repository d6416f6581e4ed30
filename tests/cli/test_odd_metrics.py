"""`pdedkl compare` on files that no run has written, and on terminals of any width."""

from __future__ import annotations

import json

import pytest

from pdedkl.cli import main

METRICS = {
    "problem": "plate [/red] :smile:",
    "dim": 2,
    "model": "gp",
    "recipe": "default",
    "seed": 0,
    "n_u": 30,
    "n_f": 40,
    "kernel": "inputs",
    "error_u": 1.234e-5,
    "error_f": 5.678e-3,
    "coverage_u": {"0.95": 0.947},
    "coverage_f": None,
    "z_rms_u": 1.0,
    "z_rms_f": None,
    "constant_u": 0.5,
    "line_u": 0.25,
    "train_seconds": 12.0,
    "compile_seconds": 3.0,
    "check": None,
    "verdict": None,
    "stopped": None,
}
COMPARISON = {"name": "u", "points": 5, "coverage": 0.9, "error": 0.1, "claimed": 0.1, "z_rms": 1.0}
# As older versions wrote it.
CHECK = {"calibrated": True, "error_u": 0.1, "ruled_by": "noise", "advice": "More.", "comparisons": [COMPARISON]}
VERDICT = {"status": "undetermined", "reasons": ["No level."], "error_u": None}
WHOLE = CHECK | VERDICT | {"compared_with": "fresh values"}
WHOLE["comparisons"] = [COMPARISON | {"size": 1.0, "worst": [0.1, 0.2], "worst_error": 0.3}]
OLDER = {key: value for key, value in METRICS.items() if key not in ("verdict", "stopped")}


def write(folder, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return str(folder)


def status(*arguments) -> int:
    try:
        main([str(item) for item in arguments])
    except SystemExit as stopped:
        return stopped.code
    return 0


ODD = {
    **{f"without {key}": {k: v for k, v in METRICS.items() if k != key} for key in METRICS if key in OLDER},
    **{f"{key} is a list": METRICS | {key: [1]} for key in METRICS},
    **{f"{key} is true": METRICS | {key: True} for key in METRICS},
    "rounds are a number": METRICS | {"rounds": 3},
    "a round without values": METRICS | {"rounds": [{"kernel": "inputs"}]},
    "text for a number": METRICS | {"error_u": "0.1"},
    "coverage of text": METRICS | {"coverage_u": {"0.95": "much"}},
    "check without rows": METRICS | {"check": {k: v for k, v in CHECK.items() if k != "comparisons"}},
    "check of other rows": METRICS | {"check": CHECK | {"comparisons": [1]}},
    "check with a row without coverage": METRICS | {"check": CHECK | {"comparisons": [{"name": "u"}]}},
    "a status that is not there": METRICS | {"check": WHOLE | {"status": "fine"}},
    "reasons that are no list": METRICS | {"check": WHOLE | {"reasons": "because"}},
    "reasons that are no texts": METRICS | {"check": WHOLE | {"reasons": [1]}},
    "another cause": METRICS | {"check": WHOLE | {"ruled_by": "luck"}},
    "compared with a number": METRICS | {"check": WHOLE | {"compared_with": 1}},
    "a place of text": METRICS | {"check": WHOLE | {"comparisons": [COMPARISON | {"worst": ["a"]}]}},
    "a verdict without reasons": METRICS | {"verdict": {"status": "calibrated", "error_u": 0.1}},
    "a verdict of another status": METRICS | {"verdict": VERDICT | {"status": "fine"}},
    "a verdict with a wrong error": METRICS | {"verdict": VERDICT | {"error_u": "small"}},
    "huge": METRICS | {"train_seconds": 10**400},
    "infinite": json.dumps(METRICS).replace("1.234e-05", "1e999"),
    "NaN": json.dumps(METRICS).replace("1.234e-05", "NaN"),
    "empty": "",
    "cut": json.dumps(METRICS)[:-5],
    "list": "[]",
    "number": "3",
    "nested": "[" * 200_000,
    "nested tables": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "many digits": json.dumps(METRICS).replace("12.0", "1" * 5000),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_sentence_for_each_odd_file(kind, tmp_path, capsys):
    folder = write(tmp_path / "odd", ODD[kind])
    for more in ([], ["--json"]):
        assert status("compare", write(tmp_path / "good", METRICS), folder, *more) == 2
        out = capsys.readouterr()
        assert out.err.count("\n") == 1 and "odd/metrics.json" in out.err and out.out == ""


@pytest.mark.parametrize("content", [b"\xff\xfe{}", b'{"problem": "\xff"}'])
def test_other_encodings(content, tmp_path, capsys):
    folder = write(tmp_path / "odd", "")
    (tmp_path / "odd" / "metrics.json").write_bytes(content)
    assert status("compare", folder) == 2 and "odd/metrics.json" in capsys.readouterr().err


def test_a_file_that_is_far_too_large_is_not_read(tmp_path, capsys):
    write(tmp_path / "odd", "")
    with open(tmp_path / "odd" / "metrics.json", "wb") as file:
        file.truncate(2**40)
    assert status("compare", tmp_path / "odd") == 2 and "bytes" in capsys.readouterr().err


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_numbers_are_whole_at_any_width(width, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    long = tmp_path / "a run [b] of a longer name"
    assert status("compare", write(tmp_path / "one", METRICS), write(long, METRICS | {"check": CHECK})) == 0
    out = capsys.readouterr().out
    assert out.count("1.23e-05") == out.count("5.68e-03") == out.count("94.7%") == 2
    assert "…" not in out and "plate [/red] :smile:" in out and str(long) in out


@pytest.mark.parametrize("found", [OLDER, OLDER | {"check": CHECK}, METRICS | {"check": WHOLE, "verdict": VERDICT}])
def test_metrics_of_this_and_of_older_versions_are_read(found, tmp_path, capsys):
    assert status("compare", write(tmp_path / "run", found)) == 0 and "1.23e-05" in capsys.readouterr().out


def test_a_run_that_was_stopped_is_marked(tmp_path, capsys):
    assert status("compare", write(tmp_path / "run", METRICS | {"stopped": "interrupted"})) == 0
    assert "run (stopped)" in capsys.readouterr().out
    assert status("compare", write(tmp_path / "run", METRICS | {"stopped": "the time was up"})) == 0
    assert "run (the time was up)" in capsys.readouterr().out


def test_names_do_not_steer_the_terminal(tmp_path, capsys):
    assert status("compare", write(tmp_path / "run", METRICS | {"problem": "a\x1b]0;title\x07\nb"})) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out
