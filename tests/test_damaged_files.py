"""A model file that is foreign, cut short, newer or changed is refused with a sentence that says so."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import pdedkl as pk
from pdedkl import saving
from pdedkl.saving import file as saved_file
from pdedkl.training.robust import with_weights
from pdedkl.verdicts import Comparison, Verdict

DOMAIN = pk.Domain(x=[(0, 1)] * 2, t=(0, 2))
X, T = DOMAIN.coordinates()
POINTS = np.random.default_rng(0).uniform(size=(4, 3))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.pdedkl"
    matrix = np.array([[2.0, 0.3], [0.3, -1.0]])
    operator = pk.D(T) - pk.Diffusion(X, matrix) + pk.Directional(X, [1.0, 2.0])
    observations = [
        pk.Observation(pk.identity, POINTS, POINTS[:, 0], 0.1),
        pk.Observation(operator, POINTS, POINTS[:, 1], "learned", "source"),
    ]
    weighted = with_weights(observations, [np.ones(4), None])
    posterior = pk.condition(pk.ard(DOMAIN, pk.Matern52()), weighted)
    compared = Comparison("u", 5, 1.0, 0.1, 0.1, 1.0, 0.95, (0.1, 0.2, 0.3), 0.2)
    replace(posterior, verdict=Verdict("calibrated", comparisons=(compared,))).save(path, extra={"note": "text"})
    return path


def says(*words):
    """A pattern for messages that hold these words in this order."""
    return "(?s)" + ".*".join(map(re.escape, words))


def changed(saved, path, edit):
    """The saved file with its header or arrays edited by someone who also mends the checksum."""
    header, tensors = saving.describe(saved), load_file(saved)
    header.pop("sha256")
    edit(header, tensors)
    saved_file.write(path, header, tensors)
    return path


def part(header, *names):
    """Follow the fields of the posterior's tree."""
    node = header["posterior"]
    for name in names:
        node = node[name] if isinstance(name, int) else node["fields"][name]
    return node


def put(*names, value):
    """Replace a field."""

    def edit(header, _):
        part(header, *names[:-1])["fields"][names[-1]] = value

    return edit


COMPONENT = ("model", "kernel", "components", 0)
OPERATOR = ("observations", 1, "operator")


def unknown_kind(header, _):
    part(header, *COMPONENT)["is"] = "os.system"


def another_kind(header, _):
    header["posterior"] = part(header, "model")


def wrong_class(header, _):
    part(header, "model")["fields"]["mean"] = part(header, *COMPONENT, "embedding")


def missing_field(header, _):
    del part(header, "model")["fields"]["engine"]


def missing_array(_, tensors):
    del tensors["alpha"]


def extra_array(_, tensors):
    tensors["more"] = np.zeros(2)


def shorter_array(_, tensors):
    tensors["alpha"] = tensors["alpha"][:-1].copy()


def shorter_array_in_both(header, tensors):
    tensors["alpha"] = tensors["alpha"][:-1].copy()
    part(header, "alpha")["shape"] = [7]


def smaller_factor(header, tensors):
    tensors["solver.factor"] = tensors["solver.factor"][:-1, :-1].copy()
    part(header, "solver", "factor")["shape"] = [7, 7]


def smaller_system(header, tensors):
    shorter_array_in_both(header, tensors)
    smaller_factor(header, tensors)


def single_precision(_, tensors):
    tensors["alpha"] = tensors["alpha"].astype(np.float32)


def used_twice(header, _):
    part(header, "model")["fields"]["kernel"]["fields"]["components"].append(part(header, *COMPONENT))


def longer_direction(header, tensors):
    node = part(header, *OPERATOR, "terms", -1, "vector")
    node["shape"], tensors[node["tensor"]] = [3], np.zeros(3)


def directions_of_another_length(header, tensors):
    node = part(header, *OPERATOR, "terms", 1, "operator", "a", "weights")
    node["shape"], tensors[node["tensor"]] = [1], np.zeros(1)


def more_lengthscales(header, tensors):
    node = part(header, *COMPONENT, "log_lengthscale")
    node["shape"], tensors[node["tensor"]] = [4], np.zeros(4)


def negative_noise(_, tensors):
    tensors["observations.0.noise"] = np.asarray(-0.1)


def negative_weight(_, tensors):
    tensors["observations.0.weights"][2] = -1.0


def fewer_weights(header, tensors):
    tensors["observations.0.weights"] = np.ones(3)
    part(header, "observations", 0, "weights")["shape"] = [3]


def endless_weight(_, tensors):
    tensors["observations.0.weights"][2] = np.inf


def no_jets(header, tensors):
    for name in [name for name in tensors if name.startswith("sections.1")]:
        del tensors[name]
    part(header, "sections").pop()


def jets_of_fewer_points(header, tensors):
    for node in (part(header, "sections", 0, 0, "z"), part(header, "sections", 0, 0, "c")):
        tensors[node["tensor"]] = tensors[node["tensor"]][:-1].copy()
        node["shape"][0] -= 1


def unknown_function(header, _):
    header["functions"]["speed"] = {"in": "speed(q)", "values": 1.0}


def header_entry(header, _):
    header["more"] = 1


EDITS = {
    "an unknown kind": (unknown_kind, "unknown kind 'os.system'"),
    "not a posterior": (another_kind, "not describe a posterior, but a Model"),
    "a part of another kind": (wrong_class, "mean needs Mean", "IdentityEmbedding"),
    "a missing field": (missing_field, "a Model with fields ['kernel'", "'engine'"),
    "an extra field": (put("model", "more", value=1), "the file has", "'more'"),
    "a missing array": (missing_array, "'alpha'", "not there"),
    "an extra array": (extra_array, "more belongs to no part"),
    "a shorter array": (shorter_array, "'alpha' needs shape (8,) and has (7,)"),
    "a shorter array and header": (shorter_array_in_both, "8 values", "`alpha` have shape (7,)"),
    "a smaller factor": (smaller_factor, "8 values", "`factor` of the solver has shape (7, 7)"),
    "a smaller system": (smaller_system, "8 values", "(7,)"),
    "single precision": (single_precision, "'alpha'", "F64", "F32"),
    "an array used twice": (used_twice, "used twice"),
    "an unknown form": (put("model", "engine", value={"pickle": "gASV"}), "none of the forms", "pickle"),
    "an unknown engine": (put("model", "engine", value="fast"), "engine 'fast' is none of closed-form, autodiff"),
    "a number for a name": (put("observations", 0, "name", value=3), "name needs str", "3"),
    "a truth value for a number": (put(*COMPONENT, "base", "profile", "p", value=True), "p needs int", "True"),
    "a Matérn that is not there": (put(*COMPONENT, "base", "profile", "p", value=7), "p = 2, 3 or 4", "p = 7"),
    "a coordinate that is not there": (put(*OPERATOR, "terms", 0, "indices", value=[9]), "(9,)", "3 coordinates"),
    "groups that are not there": (put(*COMPONENT, "base", "groups", value=[[0, 5]]), "groups ((0, 5),)", "3 latent"),
    "groups without variances": (put(*COMPONENT, "base", "groups", value=[[0], [1]]), "1 variances"),
    "a list that is not one": (put(*COMPONENT, "base", "groups", value=[[0, "1"]]), "groups needs Groups"),
    "another layout": (put(*COMPONENT, "normalisation", "layout", value=[["x", 2]]), "3 coordinates for the layout"),
    "other names": (put(*COMPONENT, "normalisation", "layout", value=[["y", 2], ["t", 1]]), "different domains"),
    "no observations": (put("observations", value=[]), "belongs to no part"),
    "a sum of nothing": (put(*OPERATOR, "terms", value=[]), "an empty Sum"),
    "an unknown noise level": (put("observations", 1, "name", value="f"), "no noise level 'f'"),
    "a noise below zero": (negative_noise, "noise level below zero"),
    "a weight below zero": (negative_weight, "a weight that is not positive"),
    "a weight without end": (endless_weight, "'observations.0.weights' needs finite numbers and holds inf"),
    "fewer weights than values": (fewer_weights, "weights needs", "an array of shape (3,)"),
    "a status that is not there": (put("verdict", "status", value="fine"), "status 'fine' is none of calibrated"),
    "a cause that is not there": (put("verdict", "ruled_by", value="luck"), "cause 'luck' is none of rounding"),
    "an error below zero": (put("verdict", "error_u", value=-1.0), "error of u below zero"),
    "reasons that are no text": (put("verdict", "reasons", value=[1]), "reasons needs"),
    "a verdict that is none": (put("verdict", value="calibrated"), "verdict needs Verdict", "'calibrated'"),
    "a coverage above one": (put("verdict", "comparisons", 0, "coverage", value=1.5), "errors and coverage"),
    "a comparison of nothing": (put("verdict", "comparisons", 0, "points", value=0), "a comparison of 0 values"),
    "a longer direction": (longer_direction, "2 coordinates", "(3,)"),
    "a matrix without its directions": (directions_of_another_length, "directions and weights that fit"),
    "more length scales": (more_lengthscales, "shape (3,) with 4 length scales"),
    "fewer jets": (no_jets, "2 observations have 1 lists of jets"),
    "jets of fewer points": (jets_of_fewer_points, "need shapes [(4, 3)] and have [(3, 3)]"),
    "a function that is not there": (unknown_function, "still needs 'speed'"),
    "an extra entry": (header_entry, "needs the entries", "'more'"),
    "a newer version": (lambda h, _: h.update(version=3), "version 3", "reads version 2", "update pdedkl"),
    "an older version": (lambda h, _: h.update(version=1), "version 1", "Solve again", "the pdedkl that wrote it"),
    "a version that is no number": (lambda h, _: h.update(version="1"), "the format version 2", "'1'"),
    "another format": (lambda h, _: h.update(format="other"), "its format is 'pdedkl-posterior'"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_changed_file_is_refused(saved, tmp_path, name):
    edit, *words = EDITS[name]
    path = changed(saved, tmp_path / "changed.pdedkl", edit)
    with pytest.raises(ValueError, match=says(*words)) as caught:
        pk.load(path)
    assert str(path) in str(caught.value)


@pytest.fixture(scope="module")
def periodic(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "periodic.pdedkl"
    pk.condition(pk.ard(DOMAIN), [pk.Observation(pk.identity - pk.Shift(T, 2.0), POINTS, POINTS[:, 0], 0.1)]).save(path)
    return path


def fewer_terms(header, tensors):
    part(header, "sections", 0)[0].pop()
    for name in [name for name in tensors if name.startswith("sections.0.0.1")]:
        del tensors[name]


def longer_move(header, tensors):
    node = part(header, "observations", 0, "operator", "terms", 1, "operator", "move")
    node["shape"], tensors[node["tensor"]] = [4], np.ones(4)


@pytest.mark.parametrize(
    "edit, words",
    [
        (fewer_terms, ("need shapes [[(4, 3), (4, 3)]]", "[[(4, 3)]]")),
        (longer_move, ("a move of shape (4,)",)),
    ],
)
def test_a_changed_file_with_a_shift_is_refused(periodic, tmp_path, edit, words):
    with pytest.raises(ValueError, match=says("does not fit together", *words)):
        pk.load(changed(periodic, tmp_path / "changed.pdedkl", edit))


def test_an_unchanged_copy_is_accepted(saved, tmp_path):
    assert changed(saved, tmp_path / "copy.pdedkl", lambda *_: None).read_bytes() == saved.read_bytes()


def test_a_field_that_a_later_version_adds_takes_its_default(saved, tmp_path):
    def older(header, _):
        for name in ("training", "verdict"):
            part(header)["fields"].pop(name)

    loaded = pk.load(changed(saved, tmp_path / "old.pdedkl", older))
    assert loaded.training is None and loaded.verdict.status == "unchecked"


def test_every_flipped_byte_is_noticed(saved, tmp_path):
    """Some of them make another foreign file, the rest fail their checksum."""
    content, path = saved.read_bytes(), tmp_path / "flipped.pdedkl"
    places = [*range(64), *np.random.default_rng(0).integers(len(content), size=200), len(content) - 1]
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            pk.load(path)


def test_every_truncation_is_noticed(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "short.pdedkl"
    for size in (0, 4, 8, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        for read in (pk.load, saving.describe):
            with pytest.raises(ValueError, match=says(str(path), "cut short", "posterior.save(path)")):
                read(path)


def test_foreign_files_are_refused(saved, tmp_path):
    path = tmp_path / "foreign"
    for read in (pk.load, saving.describe):
        with pytest.raises(FileNotFoundError, match="no model file"):
            read(path)
        with pytest.raises(ValueError, match="is a folder"):
            read(tmp_path)
    path.write_text("a text file, longer than the header of a safetensors file")
    with pytest.raises(ValueError, match=says("not a model file", "posterior.save(path)")):
        pk.load(path)
    for metadata in (None, {"format": "pt"}):
        save_file({"weight": np.zeros(2)}, path, metadata=metadata)
        with pytest.raises(ValueError, match=says("something else", "no entry 'pdedkl'")):
            pk.load(path)
    for text, words in {
        "{not JSON": ("needs to be JSON",),
        "[" * 100_000: ("needs to be JSON",),
        "[1, 2]": ("its format is",),
        json.dumps(saving.describe(saved) | {"sha256": None}): ("do not match their checksum",),
    }.items():
        save_file({"weight": np.zeros(2)}, path, metadata={"pdedkl": text})
        with pytest.raises(ValueError, match=says(*words)):
            pk.load(path)
