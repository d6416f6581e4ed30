"""Model files with numbers that nobody can predict with, of sizes that do not fit, or nested without end."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from test_damaged_files import COMPONENT, POINTS, changed, part, put, saved, says

import pdedkl as pk
from pdedkl import saving
from pdedkl.saving import file as saved_file
from pdedkl.training import Step, Training

__all__ = ["saved"]  # a fixture


# ── numbers that nobody can predict with ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
def test_arrays_that_are_not_finite_are_refused(saved, tmp_path, value):
    """One number of each array in turn, with a checksum that fits."""
    names = sorted(load_file(saved))
    assert len(names) > 20
    for name in names:

        def edit(_, tensors, name=name):
            tensors[name].reshape(-1)[-1:] = value

        with pytest.raises(ValueError, match=says(f"{name!r} needs finite numbers and holds {value}")) as caught:
            pk.load(changed(saved, tmp_path / "changed.pdedkl", edit))
        assert str(tmp_path / "changed.pdedkl") in str(caught.value)


@pytest.mark.parametrize("value", [1e308, -1e308, 1e160, -800.0, 0.0, 5e-324])
def test_no_loaded_model_predicts_nan(saved, tmp_path, value):
    """Arrays of finite numbers that overflow: refused, or predicted with."""
    refused = 0
    for name in sorted(load_file(saved)):

        def edit(_, tensors, name=name):
            tensors[name][...] = value

        try:
            posterior = pk.load(changed(saved, tmp_path / "changed.pdedkl", edit))
        except ValueError as error:
            assert str(tmp_path / "changed.pdedkl") in str(error)
            refused += 1
        else:
            found = posterior.predict(POINTS)
            assert np.all(np.isfinite([found.mean, found.variance])), name
    assert refused >= 1


@pytest.mark.parametrize("value", [1e160, 0.0, -1.0])
def test_factors_of_error_bars_are_sensible(saved, tmp_path, value):
    good = tmp_path / "calibrated.pdedkl"
    pk.load(saved).calibrated().save(good)

    def edit(_, tensors):
        tensors["calibration.factors"][...] = value

    with pytest.raises(ValueError, match=says("a factor that is not between 0 and 1e+30")):
        pk.load(changed(good, tmp_path / "changed.pdedkl", edit))


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_numbers_of_the_header_are_finite(saved, tmp_path, number):
    edit = put(*COMPONENT, "base", "groups", value=[[0, {"float": number}]])
    with pytest.raises(ValueError, match=says("none of the forms")):
        pk.load(changed(saved, tmp_path / "changed.pdedkl", edit))


def test_a_training_may_have_seen_infinite_objectives(saved, tmp_path):
    step = Step("projection", 0, np.inf, np.nan, {"u": 1.0}, 1.0, 1.0, np.inf)
    training = Training(
        recipe="default", model="gp", seed=0, kernel="ard", objective=np.inf, left_out=np.nan, validated=None,
        rejected=0, trace_seconds=0.0, candidates=(("ard", np.inf),), stopped=None, seconds=1.0, compile_seconds=0.0,
        history=(step,),
    )  # fmt: skip
    posterior = dataclasses.replace(pk.load(saved), training=training)
    posterior.save(tmp_path / "trained.pdedkl")
    assert repr(pk.load(tmp_path / "trained.pdedkl").training) == repr(training)


# ── size and depth ────────────────────────────────────────────────────────────────────────────────────────────────


GIANT = 5 * 2**30  # doubles, 40 GiB


def sparse(saved, path, edit):
    """The saved file, with an array `alpha` of 40 GiB of nothing."""
    content = saved.read_bytes()
    outer = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    outer["alpha"]["shape"] = [GIANT]
    header = json.loads(outer["__metadata__"]["pdedkl"])
    edit(header)
    outer["__metadata__"]["pdedkl"] = json.dumps(header)
    end = 0
    for entry in (entry for name, entry in outer.items() if name != "__metadata__"):
        entry["data_offsets"] = [end, end := end + 8 * math.prod(entry["shape"])]
    text = json.dumps(outer).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + end)
    return path


@pytest.mark.parametrize(
    "edit, words",
    [
        (lambda header: None, "40.0 GiB and its header describes 0.0 GiB"),
        (lambda header: part(header, "alpha").update(shape=[GIANT]), "40.0 GiB of numbers, and 1.0 GiB of memory"),
    ],
    ids=["its header knows of less", "its header knows of all"],
)
def test_a_file_of_forty_gigabytes_is_refused_by_its_size(saved, tmp_path, edit, words, monkeypatch):
    monkeypatch.setattr(saved_file, "available_bytes", lambda: 2**30)
    path = sparse(saved, tmp_path / "sparse.pdedkl", edit)
    begin = time.monotonic()
    with pytest.raises(ValueError, match=says(str(path), words)):
        pk.load(path)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("levels", [250, 900, 100_000])
def test_headers_inside_headers_are_refused(saved, tmp_path, levels):
    path = tmp_path / "deep.pdedkl"
    header = saving.describe(saved)
    text = json.dumps(header | {"extra": "HERE"}).replace('"HERE"', "[" * levels + "]" * levels)
    save_file(load_file(saved), path, metadata={"pdedkl": text})
    for read in (pk.load, saving.describe):
        with pytest.raises(ValueError, match=says(str(path), "at most 200 nested levels")):
            read(path)


def test_an_extra_that_is_too_deep_is_refused_before_it_is_written(saved, tmp_path):
    deep: list = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(ValueError, match="at most 200 nested levels"):
        pk.load(saved).save(tmp_path / "new.pdedkl", extra={"deep": deep})
    assert not any(tmp_path.iterdir())
