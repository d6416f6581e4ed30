"""JSON that is damaged, too large or too deep: one sentence that names the file."""

from __future__ import annotations

import json
import os

import pytest

from pdedkl import parsing
from pdedkl.parsing import parse_json, read_json
from pdedkl.runs.folder import CONFIG, METRICS, Folder, RunError
from pdedkl.searching.space import Space
from pdedkl.searching.state import State

DAMAGED = {
    "empty": b"",
    "text": b"my notes",
    "half": b'{"problem": "heat"',
    "two": b"{} {}",
    "not text": b'{"problem": "\xff\xfe"}',
    "zeros": bytes(1000),
    "lists without end": b"[" * 100_000,
    "lists inside each other": b"[" * 100_000 + b"]" * 100_000,
    "a few too many lists": b"[" * 250 + b"]" * 250,
    "dictionaries inside each other": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "not a number": b'{"noise": NaN}',
    "an infinite number": b'{"noise": -Infinity}',
    "a number that overflows": b'{"noise": 1e999}',
    "a number of ten thousand digits": b"[" + b"9" * 10_000 + b"]",
    "half a character": rb'{"a": "\ud800',
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_json(name, tmp_path):
    path = tmp_path / CONFIG
    path.write_bytes(DAMAGED[name])
    (tmp_path / METRICS).write_bytes(DAMAGED[name])
    with pytest.raises(ValueError, match=r"config\.json needs to be JSON") as caught:
        read_json(path)
    assert type(caught.value) is ValueError
    with pytest.raises(RunError, match=r"config\.json needs to be JSON.*solve again"):
        Folder(tmp_path).config()
    with pytest.raises(RunError, match=r"metrics\.json needs to be JSON.*solve again"):
        Folder(tmp_path).metrics()
    with pytest.raises(ValueError, match=r"config\.json needs to be JSON.*delete it"):
        State(path, {}, Space.of([1, 2]))


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "sparse.json"
    path.touch()
    os.truncate(path, 40 * 2**30)
    with pytest.raises(ValueError, match=r"sparse\.json needs to be a JSON file of at most 64 MiB"):
        read_json(path)


def test_a_folder_a_pipe_and_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="is a folder or a device"):
            read_json(path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_json(tmp_path / "nothing")


def test_what_is_json_is_read(tmp_path):
    content = {"a": [1, 2.5, None, True, "é\u2028"], "b": {"c": -1e300}}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert read_json(tmp_path / "a.json") == content
    levels = parsing.MOST_LEVELS
    assert parse_json("[" * levels + "]" * levels, "text")
