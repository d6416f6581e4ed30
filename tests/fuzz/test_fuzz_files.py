"""Damaged files of every kind that the library reads. PDEDKL_FUZZ_CASES says how many, PDEDKL_FUZZ_SEED which."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from damage import choose, damaged_array, damaged_bytes, damaged_tree, fuzz
from safetensors.numpy import load_file
from safetensors.numpy import save as serialised
from watch import sentence

import pdedkl as pk
from pdedkl import saving
from pdedkl.runs.folder import CONFIG, Config, Folder
from pdedkl.saving.file import KEY, checksum
from pdedkl.searching.evaluation import Evaluation
from pdedkl.searching.space import Space
from pdedkl.searching.state import State
from pdedkl.tables import read_table
from pdedkl.training.journal import Journal, _digest, recorded
from pdedkl.training.robust import with_weights
from pdedkl.verdicts import Comparison, Verdict

DOMAIN = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 2.0))
X, T = DOMAIN.coordinates()
POINTS = np.random.default_rng(0).uniform(size=(4, 3))


# ── model files ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.pdedkl"
    matrix = np.array([[2.0, 0.3], [0.3, -1.0]])
    operator = pk.D(T) - pk.Parameter("nu", positive=True) * pk.Diffusion(X, matrix)
    observations = [
        pk.Observation(pk.identity, POINTS, POINTS[:, 0], 0.1, "u"),
        pk.Observation(operator, POINTS, POINTS[:, 1], "learned", "source"),
    ]
    kernel = pk.deep(DOMAIN, pk.Affine.drawn(3, 2, key=jax.random.key(0)), pk.Matern52()) + pk.ard(DOMAIN)
    fresh = [pk.Observation(item.operator, POINTS[::-1], POINTS[:, 2], 0.1) for item in observations]
    compared = Comparison("u", 5, 1.0, 0.1, float("nan"), 1.0, 0.95, (0.1, 0.2, 0.3), 0.2)
    posterior = pk.condition(kernel, with_weights(observations, [np.array([1.0, 0.5, 1.2, 0.1]), None]))
    verdict = Verdict("not calibrated", ("Why.",), 0.1, "noise", "More.", "fresh values", (compared,))
    replace(posterior.calibrated(fresh), verdict=verdict).save(path, extra={"note": "text"})
    return path


def load_and_predict(path) -> None:
    saving.describe(path)
    posterior = pk.load(path)
    try:
        found = posterior.predict(POINTS[:2])
    except ValueError as error:  # points that are far outside a domain, as the file has it
        assert type(error) is ValueError and sentence(str(error))
    else:
        assert np.all(np.isfinite([found.mean, found.variance])), f"{path.name} predicts {found}"


def test_model_files(model, tmp_path):
    content, header, tensors = model.read_bytes(), saving.describe(model), load_file(model)

    def mended(header, tensors) -> bytes:
        """By someone who knows the format: with a checksum that fits."""
        if isinstance(header, dict):
            header = {name: value for name, value in header.items() if name != "sha256"}
            header["sha256"] = checksum(header, tensors)
        return serialised(tensors, metadata={KEY: json.dumps(header)})

    def make(rng) -> bytes:
        match int(rng.integers(4)):
            case 0:
                return damaged_bytes(content, rng)
            case 1:
                name = choose(rng, tensors)
                return mended(header, tensors | {name: numbers(damaged_array(tensors[name], rng))})
            case 2:  # deep in the tree, where most of it is
                return mended(header | {"posterior": damaged_tree(header["posterior"], rng)}, tensors)
            case _:
                return mended(damaged_tree(header, rng), tensors)

    refused = fuzz("model", make, tmp_path / "model.pdedkl", load_and_predict)
    assert refused > 0


def numbers(array: np.ndarray) -> np.ndarray:
    return np.zeros(1, np.float32) if array.dtype.kind == "U" else array


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

COLUMNS = {"x": POINTS[:, 0], "u": POINTS[:, 1], "v": POINTS[:, 2]}


def read_columns(path) -> None:
    table = read_table(path, ["x", "u"])
    assert len(table.rows) and all(np.all(np.isfinite(column)) for column in table.columns.values())
    assert all(len(column) == len(table.rows) for column in table.columns.values())


def test_text_tables(tmp_path):
    lines = ["x,u,v", *(",".join(map(repr, row)) for row in POINTS.tolist()), ""]
    texts = ["\n".join(lines), "\r\n".join(lines).replace(",", ";"), "\ufeff" + "\n\n".join(lines).replace(",", "\t")]
    fuzz("csv", lambda rng: damaged_bytes(choose(rng, texts).encode(), rng), tmp_path / "table.csv", read_columns)


def zipped(arrays, compressed: bool) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def test_npz_tables(tmp_path):
    def make(rng) -> bytes:
        compressed = bool(rng.integers(2))
        if rng.integers(3) == 0:
            name = choose(rng, COLUMNS)
            return zipped(COLUMNS | {name: damaged_array(COLUMNS[name], rng)}, compressed)
        return damaged_bytes(zipped(COLUMNS, compressed), rng)

    fuzz("npz", make, tmp_path / "table.npz", read_columns)


def test_parquet_tables(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(COLUMNS), buffer)
    fuzz("parquet", lambda rng: damaged_bytes(buffer.getvalue(), rng), tmp_path / "table.parquet", read_columns)


# ── checkpoints ───────────────────────────────────────────────────────────────────────────────────────────────────


def first_state():
    return {"x": np.zeros(3), "value": np.asarray(np.inf), "step": np.asarray(0), "done": np.asarray(False)}


def one_step(state):
    step = state["step"] + 1
    return state | {"x": state["x"] + 1, "step": step, "done": np.asarray(bool(step >= 3))}


def go_on(path) -> None:
    recorded(path)
    journal = Journal(path, "key", 0.0)
    for name in ("one", "two"):
        assert np.all(np.isfinite(journal.run(name, first_state, one_step)["x"]))


def test_checkpoints(tmp_path):
    path = tmp_path / "run.checkpoint"
    steps = iter(range(100))
    journal = Journal(path, "key", 0.0, {"solver": "dense", "trained_values": 8})
    journal.run("one", first_state, one_step)
    journal.run("two", first_state, one_step, stopped=lambda: next(steps) > 1)
    content = path.read_bytes()
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "digest"}

    def make(rng) -> bytes:
        if rng.integers(2):
            return damaged_bytes(content, rng)
        changed, name = dict(arrays), choose(rng, arrays)
        match int(rng.integers(4)):
            case 0:
                del changed[name]
            case 1:
                changed[choose(rng, ("x", "finished/one", "finished/one/x/y", "current/three/x", "é/b/c"))] = np.ones(2)
            case 2 if name in ("plan", "log"):
                changed[name] = np.frombuffer(damaged_bytes(changed[name].tobytes(), rng), np.uint8)
            case _ if name in ("plan", "log"):
                tree = damaged_tree(json.loads(changed[name].tobytes()), rng)
                changed[name] = np.frombuffer(json.dumps(tree).encode(), np.uint8)
            case _:
                changed[name] = damaged_array(changed[name], rng)
        return zipped(changed | {"digest": np.asarray(_digest(changed))}, bool(rng.integers(2)))

    assert fuzz("checkpoint", make, path, go_on) > 0


# ── searches and runs ─────────────────────────────────────────────────────────────────────────────────────────────


def damaged_json(rng, content) -> bytes:
    if rng.integers(3) == 0:
        return damaged_bytes(json.dumps(content).encode(), rng)
    return json.dumps(damaged_tree(content, rng)).encode()


def test_searches(tmp_path):
    path, options = tmp_path / "search.json", {"seed": 0, "data": "abc"}
    state = State(path, options, Space.of([1, 2, 3]))
    state.proposed = [{"latent_dim": 2}, {"latent_dim": 1}, {"latent_dim": 3}]
    state.done = {0: Evaluation({"latent_dim": 2}, -1.5, 3.0, None), 1: Evaluation({"latent_dim": 1}, None, 1.0, "No.")}
    state.write()
    content = json.loads(path.read_text())

    def go_on(path) -> None:
        found = State(path, options, Space.of([1, 2, 3]))
        assert len(found.history) + len(found.pending) == len(found.proposed) <= 3

    assert fuzz("search", lambda rng: damaged_json(rng, content), path, go_on) > 0


def test_run_configurations(tmp_path):
    path = tmp_path / CONFIG
    content = vars(Config("heat", dim=2, boundary=8, data=("data/1-u.csv",), accuracy=0.1))

    def read(path) -> None:
        config = Folder(path.parent).config()
        assert isinstance(config.problem, str) and isinstance(config.seed, int) and isinstance(config.data, tuple)
        assert config.own in (True, False) and all(isinstance(name, str) for name in config.data)

    assert fuzz("config", lambda rng: damaged_json(rng, content | {"data": list(content["data"])}), path, read) > 0
