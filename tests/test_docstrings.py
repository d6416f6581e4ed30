"""Every public name says what it gives, what it takes and what it returns, with an example that runs.

The examples build on those of `api.py`, which stand at its top. Training has tests of its own, so `fit`, `solve` and
`search` are replaced here: their examples have to be calls that their signatures accept.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from functools import cached_property

import pytest

import pdedkl as pk
from pdedkl import api, problems
from pdedkl.searching.space import Space

FENCED = re.compile(r"```python\n(.*?)```", re.S)


def public():
    """Functions, classes and their public methods, by name; also those of `pdedkl.problems`."""
    found = {name: getattr(api, name) for name in api.__all__ if not inspect.ismodule(getattr(api, name))}
    found |= {f"problems.{name}": getattr(problems, name) for name in ("built_in", "from_file", "template")}
    for name, item in list(found.items()):
        if not inspect.isclass(item):
            continue
        for member in dir(item):
            owner = next((base for base in item.__mro__ if member in vars(base)), object)
            if not member.startswith("_") and owner.__module__.startswith("pdedkl"):
                static = inspect.getattr_static(item, member)
                if isinstance(static, property | cached_property) or inspect.isroutine(getattr(item, member)):
                    found[f"{name}.{member}"] = static
    return found


PUBLIC = public()
CALLED = {
    name: item for name, item in PUBLIC.items() if not isinstance(item, property | cached_property) and callable(item)
} | {name: item.__func__ for name, item in PUBLIC.items() if isinstance(item, classmethod | staticmethod)}


def documents(name):
    """The docstring of a name, then those of the methods that it overrides."""
    if "." not in name or name.startswith("problems."):
        return [inspect.getdoc(PUBLIC[name]) or ""]
    owner, member = name.split(".")
    bases = [vars(base)[member] for base in getattr(api, owner).__mro__ if member in vars(base)]
    return [inspect.cleandoc(getattr(item, "__doc__", None) or "") for item in bases]


def wanting(name, document):
    """What a docstring still needs."""
    item, found = CALLED[name], []
    if not document.strip() or document.startswith("**"):
        found.append("a first sentence")
    if not inspect.isclass(item) and not callable(item):
        return found
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):
        return found
    method = "." in name and not name.startswith("problems.")
    skipped = {"self", "cls"} if method else set()
    parameters = [p for p in signature.parameters if p not in skipped and not p.startswith("_")]
    listed = document.partition("**Arguments:**")[2].partition("**Returns:**")[0]
    found += [f"`{p}` under **Arguments:**" for p in parameters if not re.search(rf"^- .*`\*{{0,2}}{p}`", listed, re.M)]
    if (
        not inspect.isclass(item)
        and signature.return_annotation not in (None, "None")
        and "**Returns:**" not in document
    ):
        found.append("**Returns:**")
    if "!!! example" not in document or not FENCED.search(document):
        found.append("an example")
    return found


@pytest.mark.parametrize("name", sorted(CALLED))
def test_it_lists_arguments_and_returns_with_an_example(name):
    if name == "identity":
        assert inspect.getdoc(PUBLIC[name])
        return
    best = min((wanting(name, document) for document in documents(name)), key=len)
    assert not best, f"The docstring of {name} needs {', '.join(best)}."


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - set(CALLED)))
def test_a_property_says_what_it_is(name):
    assert any(document.strip() for document in documents(name))


class Accepted:
    """A call that the signature accepts, and what it would give."""

    def __init__(self, function, result):
        self.function, self.result = function, result

    def __call__(self, *args, **kwargs):
        inspect.signature(self.function).bind(*args, **kwargs)
        return self.result


def example(document):
    return [inspect.cleandoc(block) for block in FENCED.findall(document)]


@pytest.fixture(scope="module")
def names():
    """What the examples at the top of `api.py` define."""
    found: dict[str, object] = {}
    for block in example(inspect.getdoc(api) or ""):
        exec(compile(block, "api.py", "exec"), found)
    history = [pk.Evaluation({"latent_dim": h}, objective, 1.0) for h, objective in ((1, 3.0), (2, 1.0), (3, 2.0))]
    found["searched"] = pk.Search(Space.of([1, 2, 3]), history, _trained=found["posterior"])
    return found


@pytest.mark.parametrize("name", sorted(CALLED))
def test_examples_run(name, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained = Accepted(pk.fit, names["posterior"])
    searched = Accepted(pk.search, names["searched"])
    training = pk.Training(
        "default", "dkl", 0, "inputs", 0.0, (), 0.0, None, 0, None, 1.0, 0.1, 0.1, (),
        rounds=(pk.Round(20, "inputs", 0.01, "calibrated", 1.0),),
    )  # fmt: skip
    solved = Accepted(pk.solve, replace(names["posterior"], training=training))
    monkeypatch.setattr(api, "solve", solved)
    monkeypatch.setattr(api, "fit", trained)
    monkeypatch.setattr(api, "search", searched)
    for document in documents(name):
        for block in example(document):
            exec(compile(block, name, "exec"), dict(names))
