"""The examples and every Python block of the documents run, and the numbers they print are held."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import typer

import pdedkl.cli.main  # noqa: F401  (it adds the commands)
from pdedkl.cli.app import app

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```python" in path.read_text()
]


def test_heat_example():
    (error_u, coverage_u), (error_f, coverage_f) = runpy.run_path(str(ROOT / "examples" / "heat.py"))["main"]()
    assert error_u < 1e-3 and error_f < 2e-3
    assert coverage_u > 0.9 and coverage_f > 0.9


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_code_blocks_run(path, tmp_path, monkeypatch):
    """From top to bottom, later blocks building on earlier ones; one that begins with `# name.py` is that file too."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.S):
        if named := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / named[1]).write_text(block)
        exec(compile(block, str(path), "exec"), names)


COMMANDS = [
    (path.name, line.split("#")[0].split()[1:])
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for block in re.findall(r"```sh\n(.*?)```", path.read_text(), flags=re.S)
    for line in block.splitlines()
    if line.startswith("pdedkl ")
]


@pytest.mark.parametrize("name, arguments", COMMANDS, ids=lambda item: item if isinstance(item, str) else item[0])
def test_commands_are_understood(name, arguments):
    """As the command line reads them; that commands do what they say is tested with the command line."""
    commands = typer.main.get_command(app).commands
    commands[arguments[0]].make_context(arguments[0], list(arguments[1:]))
