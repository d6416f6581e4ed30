"""A saved model predicts the same bits again, in this process and in another; a file that is not whole is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import pdedkl as pk
from pdedkl import files, saving
from pdedkl.inference.estimates import with_estimates
from pdedkl.inference.iterative import Iterative, Preconditioner
from pdedkl.operators import vanishing
from pdedkl.operators.normals import GivenNormals, OutwardNormal
from pdedkl.operators.offset import with_offset
from pdedkl.operators.tabulated import tabulated
from pdedkl.saving import registry
from pdedkl.training.newton import Iteration
from pdedkl.training.robust import with_weights
from pdedkl.verdicts import Comparison, Verdict

DOMAIN = pk.Domain(x=[(0, 1)] * 2, t=(0, 2))
X, T = DOMAIN.coordinates()
Q = pk.Coordinates("q", (0, 1, 2), DOMAIN.layout)
POINTS = np.random.default_rng(0).uniform(size=(12, 3))
VALUES = np.sin(POINTS.sum(axis=1))
TEST = np.random.default_rng(1).uniform(size=(3, 3))
KEYS = jax.random.split(jax.random.key(3), 4)
NU = pk.Parameter("nu", 0.1, positive=True)
BOUNDED = pk.Parameter("b", prior=pk.Normal(1.0, 0.3), bounds=(0.5, None))
ANGLE = pk.Parameter("c", prior=pk.Uniform(0.0, 1.0))
MATRIX = np.array([[2.0, 0.3], [0.3, -1.0]])


def observe(operator, noise=0.1, name=None, n=4):
    return pk.Observation(operator, POINTS[:n], VALUES[:n], noise, name)


def speed(q):
    return 1.0 + 0.5 * jnp.sin(q[0])


def wave(q, c):
    return c * q[0]


SPEED = pk.Coefficient(speed)
WAVE = pk.Coefficient(wave, NU, name="wave")
VELOCITY, TENSOR = (lambda q: -X(q)), (lambda q: 1.0 + q[0] ** 2)
FUNCTIONS = {"speed": speed, "wave": wave, "vector": VELOCITY, "a": TENSOR, "sum": jnp.sum}

MLP = pk.MLP(3, 2, width=5, depth=1, activation="tanh", key=KEYS[0])
DEEP = pk.deep(DOMAIN, pk.Residual(3, 3, width=4, depth=1, key=KEYS[1]), pk.Matern72(), groups=[(0, 1), (2,)])
BEHIND = pk.Bottleneck(3, pk.Residual(2, 2, width=4, depth=1, key=KEYS[2]), key=KEYS[3])

U = pk.fields("u")

ZERO = vanishing(DOMAIN, [*DOMAIN.boundary(X[0]).pieces, *DOMAIN.initial(T).pieces])

VERDICT = Verdict(
    "not calibrated", ("Error bars of u are too narrow.",), 0.25, "points", "Add points.", "fresh values",
    (Comparison("u", 500, 1.0, 0.3, 0.1, float("inf"), 0.5, (0.1, 0.2, 0.3), 0.9),),
)  # fmt: skip

# Kernel, observations, mean, engine: every kind of thing that a file holds occurs in one of these.
MODELS = {
    "ard": (
        pk.ard(DOMAIN, pk.Matern52(), lengthscale=[0.5, 1.0, 2.0]),
        [
            observe(pk.identity, np.linspace(0.1, 0.2, 4)),
            observe(pk.D(T) - NU * pk.Laplacian(X) + 1.0, "learned", "source"),
        ],
        pk.ConstantMean(0.3),
        "closed-form",
    ),
    "sum of additive and deep": (
        pk.additive(DOMAIN, pk.RationalQuadratic(1.3)).times(ZERO) + DEEP + pk.deep(DOMAIN, MLP),
        [
            observe(pk.identity, "exact"),
            observe(
                pk.Directional(X, [1.0, -0.1])
                + pk.Diffusion(X, MATRIX)
                + pk.Divergence(X, [1.0, 2.0])
                + pk.D(X[0]) @ pk.D(T)
                + pk.Diffusion(X, 3.0)
                + pk.Directional(X, OutwardNormal(DOMAIN, X))
                + pk.Directional(Q, GivenNormals(jnp.asarray(POINTS), jnp.asarray(POINTS))),
                pk.Learned("shared", 0.1 + 0.2),
            ),
        ],
        None,
        "closed-form",
    ),
    "functions": (
        pk.deep(DOMAIN, BEHIND) + pk.deep(DOMAIN, pk.Affine.drawn(3, 2, key=KEYS[0])),
        [
            observe((2.0 * SPEED * pk.D(T)) @ (SPEED * pk.D(X[0]) + WAVE)),
            observe(pk.Directional(X, VELOCITY) - pk.Divergence(X, TENSOR) + pk.Diffusion(X, SPEED)),
        ],
        pk.FunctionMean(jnp.sum),
        "closed-form",
    ),
    "priors": (
        pk.ard(DOMAIN),
        [
            observe(pk.identity),
            observe(pk.Parameter("a", prior=pk.LogNormal(0.3)) * pk.D(T) + BOUNDED * pk.D(X[0]) + ANGLE * pk.identity),
        ],
        None,
        "closed-form",
    ),
    "periodic": (
        pk.ard(DOMAIN) + pk.deep(DOMAIN, pk.Invariants([(0, 1), (2,)], [True, False])),
        [observe(pk.identity), observe(pk.Directional(X, [NU, 0.0]) - NU * pk.Shift(X[0], 1.0) @ pk.D(X[0]))],
        pk.NetworkMean(DOMAIN, pk.MLP(3, 1, width=4, depth=1, activation="tanh", key=KEYS[2]), 0.5, ZERO),
        "closed-form",
    ),
    "field": (
        pk.ard(DOMAIN).of(U) + pk.ard(DOMAIN, pk.Matern52()).of(U, weights=[0.5]),
        [
            observe(tabulated([pk.identity, pk.D(T)], POINTS, np.ones((12, 2)), "F'")),
            observe((pk.D(X[0]) @ pk.exp(SPEED) ** 2) * U + pk.sqrt(SPEED) * (pk.D(T) @ U)),
            observe(pk.identity - pk.Number("mu", 0.1) * pk.D(X[0])),
        ],
        None,
        "closed-form",
    ),
    "integral": (
        pk.ard(DOMAIN),
        [
            observe(with_offset(pk.identity, NU * SPEED), 0.1),
            observe(pk.Integral(DOMAIN.interior, over=X, nodes=2) @ pk.D(X[0]), 0.1),
        ],
        pk.ConstantMean(0.3),
        "closed-form",
    ),
    "autodiff": (
        pk.ard(DOMAIN),
        [observe(pk.identity, 0.01), observe(NU * pk.D(X[0], X[0], T) + SPEED * pk.Directional(X, [1.0, 2.0]), 0.1)],
        None,
        "autodiff",
    ),
}


def conditioned(name):
    kernel, observations, mean, engine = MODELS[name]
    posterior = pk.condition(pk.Model(kernel, observations, mean, engine), observations)
    return with_estimates(posterior) if name == "priors" else posterior


def says(*words):
    """A pattern for messages that hold these words in this order."""
    return "(?s)" + ".*".join(map(re.escape, words))


def save_quietly(posterior, path, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", saving.FunctionsNotSaved)
        posterior.save(path, **more)


def functions_of(path):
    return {name: FUNCTIONS[name] for name in saving.describe(path)["functions"]}


def assert_same_bits(a, b):
    """Equal trees, and the static parts equal too, so that nothing compiles again."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        same = one is other if callable(one) else np.asarray(one).tobytes() == np.asarray(other).tobytes()
        assert same and (callable(one) or (one.shape, one.dtype) == (other.shape, other.dtype))


def predictions(posterior):
    """Mean, variance, covariance and samples, of `u` and of an operator."""
    operator = posterior.observations[-1].operator
    return [
        *posterior.predict(TEST)[:2],
        *posterior.predict(TEST, operator)[:2],
        posterior.covariance(TEST, pk.identity, POINTS[:2], operator),
        posterior.sample(jax.random.key(5), TEST, operator, count=2),
    ]


@pytest.fixture(scope="module")
def posteriors():
    found = {name: conditioned(name) for name in MODELS}
    fresh = [pk.Observation(item.operator, POINTS[4:], VALUES[4:], 0.1) for item in found["ard"].observations]
    checked = replace(found["ard"].calibrated(fresh), verdict=VERDICT)
    first, *others = found["periodic"].observations
    weighted = with_weights([first, *others], [np.linspace(1e-3, 1.2, len(first)), *[None] * len(others)])
    return found | {"ard": checked, "periodic": pk.condition(found["periodic"].model, weighted)}


@pytest.fixture(scope="module")
def saved(posteriors, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "ard.pdedkl"
    posteriors["ard"].save(path, extra={"seed": 3, "metrics": {"error": 0.1}})
    return path


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_restores_every_bit(posteriors, tmp_path, name):
    posterior, path = posteriors[name], tmp_path / "model.pdedkl"
    save_quietly(posterior, path)
    loaded = pk.load(path, functions=functions_of(path))
    assert_same_bits(posterior, loaded)
    assert str(loaded.observations) == str(posterior.observations)
    assert loaded.verdict.to_json() == posterior.verdict.to_json() or name != "ard"  # NaN is not NaN
    assert repr(loaded) == repr(posterior) and repr(loaded.verdict) == repr(posterior.verdict)
    if name in ("ard", "periodic"):
        for a, b in zip(predictions(posterior), predictions(loaded), strict=True):
            assert a.tobytes() == b.tobytes()
    save_quietly(loaded, tmp_path / "again.pdedkl")
    assert (tmp_path / "again.pdedkl").read_bytes() == path.read_bytes()


FRESH = """
import sys
import quick_programs
import jax, jax.numpy as jnp, numpy as np
import pdedkl as pk

TEST, POINTS = np.load(sys.argv[2]), np.load(sys.argv[3])
X = pk.Domain(x=[(0, 1)] * 2, t=(0, 2)).coordinates("x")
functions = {
    "speed": lambda q: 1.0 + 0.5 * jnp.sin(q[0]), "wave": lambda q, c: c * q[0], "vector": lambda q: -X(q),
    "a": lambda q: 1.0 + q[0] ** 2, "sum": jnp.sum,
}
posterior = pk.load(sys.argv[1], functions=functions)
operator = posterior.observations[-1].operator
np.savez(
    sys.argv[4],
    *posterior.predict(TEST)[:2],
    *posterior.predict(TEST, operator)[:2],
    posterior.covariance(TEST, pk.identity, POINTS[:2], operator),
    posterior.sample(jax.random.key(5), TEST, operator, count=2),
)
"""


def test_another_process_predicts_the_same_bits(posteriors, tmp_path):
    posterior = posteriors["functions"]
    save_quietly(posterior, tmp_path / "model.pdedkl")
    np.save(tmp_path / "test.npy", TEST)
    np.save(tmp_path / "points.npy", POINTS)
    names = ["model.pdedkl", "test.npy", "points.npy", "out.npz"]
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", FRESH, *(str(tmp_path / name) for name in names)]
    other = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths})
    expected = predictions(posterior)
    assert other.wait(timeout=300) == 0
    with np.load(tmp_path / "out.npz") as got:
        for a, b in zip(expected, got.values(), strict=True):
            assert a.tobytes() == b.tobytes()


def test_every_class_that_a_file_may_hold_is_in_these_tests(posteriors):
    # test_how_a_model_was_trained_is_kept, and test_it_is_saved_calibrated_and_loaded of iterative solvers
    seen: set[type] = {pk.Round, pk.Step, pk.Training, Iteration, Iterative, Preconditioner}

    def visit(node):
        if isinstance(node, tuple | list):
            for item in node:
                visit(item)
        elif is_dataclass(node):
            seen.add(type(node))
            for field in fields(node):
                visit(getattr(node, field.name))

    visit(list(posteriors.values()))
    assert {cls for tag, cls in registry._CLASSES.items() if not tag.startswith("user:")} - seen == set()


def test_how_a_model_was_trained_is_kept(posteriors, tmp_path):
    step = pk.Step("adam", 3, 1.5, float("inf"), {"u": 0.1}, 0.2, 15.0, float("nan"))
    newton = Iteration("look 1", 0.1, 1.0, 0.5, -3.0)
    report = pk.Training(
        "default", "dkl", 0, "ard", 1.5, (("ard", 1.5),), 0.1, None, 0, None, 0.2, 0.1, 0.05, (step, step),
        rounds=(pk.Round(20, "network: inputs", float("nan"), "not calibrated", 1.5),),
        iterations=(newton,),
    )  # fmt: skip
    replace(posteriors["ard"], training=report).save(tmp_path / "model.pdedkl")
    loaded = pk.load(tmp_path / "model.pdedkl").training
    assert repr(loaded) == repr(report) and loaded.iterations == (newton,)


def test_describe_reads_the_header_alone(saved):
    header = saving.describe(saved)
    assert header["format"] == "pdedkl-posterior" and header["version"] == 2 and header["pdedkl"] == pk.__version__
    assert header["extra"] == {"seed": 3, "metrics": {"error": 0.1}} and header["functions"] == {}
    assert header["summary"]["coefficients"] == {"nu": pytest.approx(0.1)}
    assert header["summary"]["verdict"] == "not calibrated"
    assert [item["noise"] for item in header["summary"]["observations"]] == ["one for each point", "learned: source"]
    assert all(array.dtype == np.float64 for array in load_file(saved).values())


# Functions ------------------------------------------------------------------------------------------------------------


def test_saving_warns_of_functions_and_says_how_to_give_them_again(posteriors, tmp_path):
    path = tmp_path / "model.pdedkl"
    with pytest.warns(saving.FunctionsNotSaved) as caught:
        saving.save(posteriors["functions"], path)
    assert caught[0].filename == __file__
    for part in ("'sum' (in the prior mean)", "'speed' (in speed(q))", "'vector' (in v(q)·∇_x)", "functions={'sum': …"):
        assert part in str(caught[0].message)
    assert list(saving.describe(path)["functions"]) == ["sum", "speed", "wave", "vector", "a"]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"speed": None}, ("needs a function", "'speed'", "None")),
        ({"speed": "missing"}, ("still needs 'speed' (in speed(q))", "functions={'sum': …, 'speed': …")),
        ({"typo": speed}, ("has no function ['typo']", "speed")),
        ({"speed": lambda q: 2.0 * speed(q)}, ("'speed'", "not the one it was saved with", "expected 1.2")),
        ({"vector": speed}, ("'vector'", "shape (4, 2)", "shape (4,)")),
        ({"wave": speed}, ("'wave'", "could not be called")),
    ],
    ids=lambda item: next(iter(item)) if isinstance(item, dict) else "",
)
def test_other_functions_are_refused(posteriors, tmp_path, change, words):
    path = tmp_path / "model.pdedkl"
    save_quietly(posteriors["functions"], path)
    given = {name: fn for name, fn in (FUNCTIONS | change).items() if fn != "missing"}
    with pytest.raises(ValueError, match=says(*words)):
        pk.load(path, functions=given)


def test_functions_of_one_name_are_numbered(tmp_path):
    first, second = (lambda q: 1.0 + q[0]), (lambda q: 2.0 + q[0])
    operator = pk.Coefficient(first) * pk.D(T) + pk.Coefficient(second) * pk.D(X[0]) + pk.Coefficient(first)
    path = tmp_path / "model.pdedkl"
    save_quietly(pk.condition(pk.ard(DOMAIN), [observe(operator)]), path)
    loaded = pk.load(path, functions={"a": first, "b": second})
    fns = [term.coefficient.fn for term in loaded.observations[0].operator.terms]
    assert fns == [first, second, first]


class Halved(pk.Embedding):
    """`h(x) = x / 2`."""

    factor: jax.Array

    @property
    def input_dim(self):
        return None

    def latent_dim(self, input_dim):
        return input_dim

    def forward(self, x):
        return pk.embeddings.dense(pk.embeddings.Linear(self.factor * jnp.eye(3), None), x)


def test_own_classes_are_saved_once_registered(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))
    monkeypatch.setattr(registry, "_TAGS", dict(registry._TAGS))
    posterior = pk.condition(pk.deep(DOMAIN, Halved(jnp.asarray(0.5))), [observe(pk.identity)])
    path = tmp_path / "model.pdedkl"
    with pytest.raises(TypeError, match=says("cannot hold the Halved", "register('Halved', Halved)")):
        posterior.save(path)
    assert not path.exists()
    saving.register("halved", Halved)
    posterior.save(path)
    assert_same_bits(posterior, pk.load(path))
    registry._CLASSES.pop("user:halved")
    with pytest.raises(ValueError, match=says("your own class 'halved'", "register('halved'")):
        pk.load(path)
    with pytest.raises(ValueError, match="part of pdedkl"):
        saving.register("mlp", pk.MLP)
    with pytest.raises(TypeError, match="takes a dataclass"):
        saving.register("number", int)


# Writing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target, error", [("replace", OSError("disk full")), ("fsync", KeyboardInterrupt())])
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(
    posteriors, saved, tmp_path, monkeypatch, target, error
):
    path = tmp_path / "model.pdedkl"
    path.write_bytes(b"the old file")

    def fail(*_):
        raise error

    monkeypatch.setattr(files.os, target, fail)
    with pytest.raises(type(error)):
        posteriors["ard"].save(path)
    assert path.read_bytes() == b"the old file" and os.listdir(tmp_path) == ["model.pdedkl"]
    monkeypatch.undo()
    posteriors["ard"].save(path, extra=saving.describe(saved)["extra"])
    assert path.read_bytes() == saved.read_bytes() and os.listdir(tmp_path) == ["model.pdedkl"]


@pytest.mark.parametrize(
    "extra, error, words",
    [
        ([1], TypeError, ("`extra` needs to be a dictionary", "list")),
        ({"a": object()}, ValueError, ("JSON", "object")),
        ({"a": float("nan")}, ValueError, ("finite numbers",)),
    ],
)
def test_extra_is_json(posteriors, tmp_path, extra, error, words):
    with pytest.raises(error, match=says(*words)):
        saving.save(posteriors["ard"], tmp_path / "model.pdedkl", extra=extra)
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_saved_is_refused_before_anything_is_written(posteriors, tmp_path):
    posterior, path = posteriors["ard"], tmp_path / "model.pdedkl"
    with pytest.raises(FileNotFoundError, match="create it"):
        posterior.save(tmp_path / "none" / "model.pdedkl")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        posterior.save(tmp_path)
    with pytest.raises(TypeError, match=says("64-bit", "alpha is float32")):
        eqx.tree_at(lambda p: p.alpha, posterior, posterior.alpha.astype(jnp.float32)).save(path)
    with pytest.raises(ValueError, match=says("does not fit together", "alpha")):
        eqx.tree_at(lambda p: p.alpha, posterior, posterior.alpha[:-1]).save(path)
    with pytest.raises(TypeError, match="Posterior can be saved"):
        saving.save(posterior.model, path)
    assert os.listdir(tmp_path) == []
