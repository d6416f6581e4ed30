"""Evidence and gradient without the Gram matrix, against those with it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_iterative import DOMAIN, X, limit, observations  # noqa: F401

import pdedkl as pk
from pdedkl.inference import estimated, memory
from pdedkl.training.objective import trainable


def learned(noise, sizes):
    """Noise levels that are learned, started at their true size."""
    return [
        pk.Observation(o.operator, o.points, o.values, pk.Learned(name, float(jnp.max(o.noise))))
        for o, name in zip(observations(noise, sizes=sizes), "uf")
    ]


def value_and_gradient(model, data, solver):
    function = eqx.filter_jit(eqx.filter_value_and_grad(pk.negative_log_evidence, has_aux=True))
    (value, info), gradient = function(model, data, solver=solver)
    return float(value), np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(gradient)]), float(info.jitter)


KERNELS = {
    "plain": (pk.ard(DOMAIN, lengthscale=0.7), 1e-2),
    "deep": (pk.deep(DOMAIN, pk.Residual(2, 2, width=8, depth=1, key=jax.random.key(1)), lengthscale=0.7), 1e-1),
}


@pytest.mark.parametrize(("kernel", "noise"), KERNELS.values(), ids=KERNELS)
def test_value_and_gradient_are_those_of_the_factorisation(kernel, noise):
    data = learned(noise, (150, 170))
    model = pk.Model(kernel, data)
    (value, gradient, _), (found, slope, jitter) = (value_and_gradient(model, data, s) for s in ("dense", "iterative"))
    assert jitter == 0.0
    assert found == pytest.approx(value, abs=1e-3)
    np.testing.assert_allclose(slope, gradient, atol=1e-5 * np.max(np.abs(gradient)))


def test_what_a_poor_preconditioner_leaves_is_estimated(limit, monkeypatch):  # noqa: F811
    """Fewer columns than would be needed: by the preconditioner alone the log-determinant would be wrong by 50."""
    data = learned(0.3, (60, 100))
    model = pk.Model(pk.ard(DOMAIN, pk.Matern52(), lengthscale=0.5), data)
    value, gradient, _ = value_and_gradient(model, data, "dense")
    limit(MOST_COLUMNS=100)
    monkeypatch.setattr(estimated, "PROBES", 200)
    found, slope, _ = value_and_gradient(model, data, "iterative")
    alone = pk.condition(model, data, solver="iterative").solver.log_determinant()
    exact = 2 * float(jnp.sum(jnp.log(jnp.diagonal(pk.condition(model, data, solver="dense").solver.factor))))
    assert exact - float(alone) > 20
    assert found == pytest.approx(value, abs=1.0)
    assert float(pk.condition(model, data, solver="iterative").objective) == pytest.approx(found, rel=1e-12)
    np.testing.assert_allclose(slope, gradient, atol=0.05 * np.max(np.abs(gradient)))


def test_the_gradient_is_the_derivative_of_the_value():
    """Where the preconditioner is complete both are exact; the same signs in each call make it a function."""
    data = learned(1e-1, (60, 70))
    model = pk.Model(pk.ard(DOMAIN, lengthscale=0.7), data)
    moving, fixed = eqx.partition(model, trainable(model))
    flat, build = jax.flatten_util.ravel_pytree(moving)
    value = eqx.filter_jit(
        lambda x: pk.negative_log_evidence(eqx.combine(build(x), fixed), data, solver="iterative")[0]
    )
    gradient = jax.grad(value)(flat)
    direction = np.random.default_rng(0).normal(size=flat.shape)
    h = 1e-3
    difference = float(value(flat + h * direction) - value(flat - h * direction)) / (2 * h)
    assert float(gradient @ direction) == pytest.approx(difference, rel=1e-4)


def test_memory_decides(monkeypatch):
    data = learned(1e-1, (20, 30))
    model = pk.Model(pk.ard(DOMAIN, lengthscale=0.7), data)
    exact, _ = eqx.filter_jit(pk.negative_log_evidence)(model, data, solver="dense")
    for there in ("total_bytes", "available_bytes"):
        monkeypatch.setattr(memory, there, lambda: 60_000)
    with pytest.warns(UserWarning, match="50 values need 4 matrices of 50 × 50.*conjugate gradients"):
        found, _ = eqx.filter_jit(pk.negative_log_evidence)(model, data)
    assert float(found) == pytest.approx(float(exact), abs=1e-3)
    with pytest.raises(MemoryError, match="at most"):
        pk.negative_log_evidence(model, data, solver="dense")
    with pytest.raises(ValueError, match="Unknown solver"):
        pk.negative_log_evidence(model, data, solver="lu")


def test_a_coefficient_of_the_operator_has_the_same_gradient():
    """What training moves reaches the rows, and the mean of the data, as well as the kernel."""
    u, f = observations(1e-1, sizes=(60, 70))
    operator = pk.Parameter("speed", 1.3, positive=True) * pk.D(X[0]) + pk.Laplacian(X)
    data = [u, pk.Observation(operator, f.points, f.values, f.noise)]
    model = pk.Model(pk.ard(DOMAIN, lengthscale=0.7), data)
    (_, gradient, _), (_, found, _) = (value_and_gradient(model, data, solver) for solver in ("dense", "iterative"))
    np.testing.assert_allclose(found, gradient, atol=1e-6 * np.max(np.abs(gradient)))
