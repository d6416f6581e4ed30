"""Solving without the Gram matrix, against solving with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import at_points, quick_jit

import pdedkl as pk
from pdedkl.inference import iterative, memory
from pdedkl.inference.iterative import Iterative, pivoted_columns, preconditioner_of, product
from pdedkl.inference.solver import Factorised

DOMAIN = pk.Domain(x=[(0, 1)] * 2)
X = DOMAIN.coordinates("x")
LAPLACIAN = pk.Laplacian(X)
OPERATORS = (pk.identity, pk.D(X[0]), LAPLACIAN)
PLACES = np.random.default_rng(9).uniform(size=(30, 2))


def wave(q):
    return jnp.sin(2 * q[0] + q[1])


def observations(noise, seed=0, sizes=(150, 250)):
    rng = np.random.default_rng(seed)
    found = []
    for operator, n, size in zip((pk.identity, LAPLACIAN), sizes, (1.0, 5.0)):
        q = rng.uniform(size=(n, 2))
        values = np.asarray(at_points(operator(wave), q)) + size * noise * rng.normal(size=n)
        found.append(pk.Observation(operator, q, values, size * noise))
    return found


@quick_jit
def assembled(gram):
    return jnp.block([[gram.block(a, b) for b in gram.sections] for a in gram.sections])


def both(kernel, data):
    return (pk.condition(kernel, data, solver=name) for name in ("dense", "iterative"))


def differences(dense, other):
    """Of means, relative to the largest; of standard deviations, relative to each."""
    means, stds = [], []
    for operator in OPERATORS:
        a, b = dense.predict(PLACES, operator), other.predict(PLACES, operator)
        means.append(np.max(np.abs(a.mean - b.mean)) / np.max(np.abs(a.mean)))
        stds.append(np.max(np.abs(b.std / a.std - 1)))
    return max(means), max(stds)


@pytest.mark.parametrize("noise", (1e-1, 1e-2, 1e-3))
def test_means_and_standard_deviations_are_those_of_the_factorisation(noise):
    dense, other = both(pk.ard(DOMAIN, lengthscale=0.7), observations(noise))
    assert isinstance(dense.solver, Factorised)
    assert isinstance(other.solver, Iterative)
    mean, std = differences(dense, other)
    assert mean < 1e-8
    assert std < 1e-5
    assert float(other.objective) == pytest.approx(float(dense.objective), abs=1e-3)
    covariance = dense.covariance(PLACES, pk.identity, PLACES[:7], LAPLACIAN)
    found = other.covariance(PLACES, pk.identity, PLACES[:7], LAPLACIAN)
    np.testing.assert_allclose(found, covariance, atol=1e-6 * np.max(np.abs(covariance)))
    q = jnp.asarray(PLACES[0])
    assert float(other.mean(q)) == pytest.approx(float(dense.mean(q)), rel=1e-8)
    assert float(other.kernel(q, q)) == pytest.approx(float(dense.kernel(q, q)), rel=1e-5)


@pytest.fixture
def limit(monkeypatch):
    """Other limits for one test; programs that were compiled with them are forgotten."""

    def set_limits(**limits):
        for name, value in limits.items():
            monkeypatch.setattr(iterative, name, value)
        jax.clear_caches()

    yield set_limits
    jax.clear_caches()


def test_steps_make_up_for_a_poor_preconditioner(limit):
    """A rough kernel, and far fewer columns than it would need."""
    limit(MOST_COLUMNS=40)
    kernel = pk.ard(DOMAIN, pk.Matern52(), lengthscale=0.5)
    dense, other = both(kernel, observations(0.3, sizes=(60, 100)))
    assert float(other.solver.steps) > 20
    assert float(other.solver.error) < 1e-6
    mean, std = differences(dense, other)
    assert mean < 1e-8
    assert std < 1e-5


def test_a_variance_is_never_too_small_when_steps_run_out(limit):
    limit(MOST_COLUMNS=20, MOST_STEPS=6)
    with pytest.warns(UserWarning, match="did not converge in 6 steps"):
        dense, other = both(pk.ard(DOMAIN, pk.Matern52(), lengthscale=0.51), observations(0.3, sizes=(60, 100)))
    exact, found = (posterior.predict(PLACES).variance for posterior in (dense, other))
    assert np.all(found >= exact * (1 - 1e-9))
    assert np.max(found / exact) > 1.01


def test_noise_that_rounding_would_drown_is_raised_and_reported():
    kernel = pk.ard(DOMAIN, lengthscale=0.7)
    assert float(pk.condition(kernel, observations(1e-3), solver="iterative").jitter) == 0.0
    exact = [pk.Observation(o.operator, o.points, o.values, "exact") for o in observations(0.0, sizes=(20, 20))]
    dense, found = both(kernel, exact)
    assert float(found.jitter) == iterative.LEAST_NOISE
    np.testing.assert_allclose(found.predict(PLACES).mean, dense.predict(PLACES).mean, atol=1e-5)


@pytest.mark.parametrize("tile", (7, 64, 1000))
def test_a_product_is_that_of_the_assembled_matrix(tile, monkeypatch):
    monkeypatch.setitem(iterative.TILE, jax.default_backend(), tile)
    gram = pk.condition(pk.ard(DOMAIN), observations(1e-2, sizes=(33, 50))).gram
    matrix = np.asarray(assembled(gram))
    v = np.random.default_rng(1).normal(size=(83, 3))

    @quick_jit
    def found(gram, v):
        return product(gram.block, gram.sections, v), gram.column(jnp.asarray(40)), gram.diagonal()

    whole, column, diagonal = found(gram, jnp.asarray(v))
    np.testing.assert_allclose(whole, matrix @ v, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(column, matrix[:, 40], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diagonal(matrix), rtol=1e-12)


def test_columns_leave_less_than_the_noise_and_the_preconditioner_inverts_them():
    gram = pk.condition(pk.ard(DOMAIN, lengthscale=0.7), observations(1e-2, sizes=(100, 200))).gram
    matrix = np.asarray(assembled(gram))
    scale = gram.noise**-0.5
    found, complete = pivoted_columns(gram, scale, 300)
    assert complete
    assert not pivoted_columns(gram, scale, 5)[1]
    columns = np.asarray(found)
    scaled = np.asarray(scale)[:, None] * matrix * np.asarray(scale)
    remainder = scaled - columns @ columns.T
    assert np.max(np.abs(remainder)) < 1e-4
    assert np.sum(np.any(columns != 0, axis=0)) < 200
    M = columns @ columns.T + np.eye(300)
    made, v = preconditioner_of(jnp.asarray(columns)), np.random.default_rng(2).normal(size=(300, 4))
    np.testing.assert_allclose(M @ np.asarray(made.solve(jnp.asarray(v))), v, atol=1e-7)
    root = np.asarray(made.root(jnp.asarray(v)))
    np.testing.assert_allclose(np.sum(root**2, axis=0), np.sum(v * np.linalg.solve(M, v), 0))
    assert float(made.log_determinant()) == pytest.approx(np.linalg.slogdet(M)[1], rel=1e-10)


def test_memory_decides_and_says_so(monkeypatch):
    data = observations(1e-2, sizes=(20, 30))
    assert isinstance(pk.condition(pk.ard(DOMAIN), data).solver, Factorised)
    for there in ("total_bytes", "available_bytes"):
        monkeypatch.setattr(memory, there, lambda: 50_000)
    with pytest.warns(UserWarning, match="50 values need 3 matrices of 50 × 50.*conjugate gradients"):
        found = pk.condition(pk.ard(DOMAIN), data)
    assert isinstance(found.solver, Iterative)
    with pytest.raises(MemoryError, match="at most"):
        pk.condition(pk.ard(DOMAIN), data, solver="dense")


def test_what_a_solver_cannot_do_is_said():
    data = observations(1e-2, sizes=(20, 30))
    with pytest.raises(ValueError, match="Unknown solver 'lu': choose one of auto, dense, iterative"):
        pk.condition(pk.ard(DOMAIN), data, solver="lu")
    mesh = jax.make_mesh((1,), ("rows",))
    with pytest.raises(ValueError, match="mesh"):
        pk.condition(pk.ard(DOMAIN), data, solver="dense", mesh=mesh)


def test_it_is_saved_calibrated_and_loaded(tmp_path):
    found = pk.condition(pk.ard(DOMAIN, lengthscale=0.7), observations(1e-2), solver="iterative")
    assert found.calibrated().calibration is None
    fresh = [pk.Observation(o.operator, o.points, o.values, "exact") for o in observations(0.0, seed=5, sizes=(50, 50))]
    found = found.calibrated(fresh)
    found.save(tmp_path / "model.pdedkl")
    again = pk.load(tmp_path / "model.pdedkl")
    for operator in OPERATORS:
        a, b = found.predict(PLACES, operator), again.predict(PLACES, operator)
        np.testing.assert_array_equal(a.mean, b.mean)
        np.testing.assert_array_equal(a.variance, b.variance)


SHARED = """
import sys
import jax
if len(sys.argv) > 2:
    jax.distributed.initialize(f"localhost:{sys.argv[2]}", 2, int(sys.argv[3]))
import numpy as np
import pdedkl as pk
from test_iterative import DOMAIN, PLACES, evidence, observations

data, kernel = observations(0.3, sizes=(60, 101)), pk.ard(DOMAIN, pk.Matern52(), lengthscale=0.5)
mesh = jax.make_mesh((jax.device_count(),), ("rows",))
assert jax.device_count() == 4
found = pk.condition(kernel, data, mesh=mesh)
parts = evidence(kernel, data, mesh)
np.savez(sys.argv[1], *found.predict(PLACES)[:2], np.asarray(found.alpha), float(found.objective), *parts)
"""


def evidence(kernel, data, mesh=None):
    """The evidence without the matrix, and its gradient with respect to variance and length scales."""
    function = lambda model: pk.negative_log_evidence(model, data, solver="iterative", mesh=mesh)
    (value, _), gradient = eqx.filter_jit(eqx.filter_value_and_grad(function, has_aux=True))(pk.Model(kernel, data))
    component = gradient.kernel.components[0]
    return [float(value), np.asarray(component.base.log_variance), np.asarray(component.log_lengthscale)]


def shared(tmp_path, processes):
    """What four devices compute, of one process or of two."""
    here = os.path.dirname(__file__)
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={4 // processes}",
        "PYTHONPATH": os.pathsep.join([here, os.path.dirname(here), os.environ.get("PYTHONPATH", "")]),
    }
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    files = [tmp_path / f"{processes}-{i}.npz" for i in range(processes)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SHARED, str(file), *([port, str(i)] if processes > 1 else [])],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, file in enumerate(files)
    ]
    errors = [process.communicate(timeout=240)[1] for process in running]
    for process, error in zip(running, errors):
        assert process.returncode == 0, error[-3000:]
    return [list(np.load(file).values()) for file in files]


@pytest.fixture(scope="module")
def one_device():
    data, kernel = observations(0.3, sizes=(60, 101)), pk.ard(DOMAIN, pk.Matern52(), lengthscale=0.5)
    alone = pk.condition(kernel, data, solver="iterative")
    return [*alone.predict(PLACES)[:2], np.asarray(alone.alpha), float(alone.objective), *evidence(kernel, data)]


@pytest.mark.parametrize("processes", (1, 2))
def test_four_devices_compute_what_one_does(processes, one_device, tmp_path):
    for found in shared(tmp_path, processes):
        for a, b in zip(one_device, found):
            assert np.max(np.abs(a - b)) <= 1e-8 * np.max(np.abs(a))
