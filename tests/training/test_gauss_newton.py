"""Gauss–Newton steps: the Jacobian against nested differentiation, the step against the joint Gaussian model."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.inference.cholesky import factorise, solve
from pdedkl.inference.evidence import linear_system
from pdedkl.inference.gram import assemble
from pdedkl.inference.staged import gram_of
from pdedkl.training.gauss_newton import TRUST, _begin, jacobian_of, price_of_weights, proposals
from pdedkl.training.objective import Objective, staged_system, value_and_gradient
from pdedkl.training.phases import _gauss_newton_step

DOMAIN = pk.Domain(x=[(0.0, 2.0)], t=(-1.0, 1.0))
X, T = DOMAIN.coordinates()
POINTS = np.random.default_rng(0).uniform(DOMAIN.lower, DOMAIN.upper, size=(9, 2))
OBSERVATIONS = (
    pk.Observation(pk.identity, POINTS[:5], np.sin(POINTS[:5].sum(axis=1)), noise=0.05),
    pk.Observation(pk.D(T) - pk.Laplacian(X) + 0.5, POINTS[5:7], np.cos(POINTS[5:7, 0]), noise=0.1),
    pk.Observation(pk.identity - pk.Shift(X, [2.0]), POINTS[7:], np.sin(POINTS[7:, 1]), noise=0.1),
)


def affine():
    return pk.deep(DOMAIN, pk.Affine.drawn(2, 2, key=jax.random.key(1)), lengthscale=[0.7, 1.1])


def residual():
    network = pk.Residual(2, 1, width=3, depth=1, activation="square", key=jax.random.key(2))
    return pk.deep(DOMAIN, network, variance=0.6)


KERNELS = {
    "affine": affine,
    "sum with squares": lambda: affine() + residual(),
}


class Found(NamedTuple):
    objective: Objective
    gram: np.ndarray
    noise: np.ndarray
    residual: np.ndarray
    alpha: np.ndarray
    jacobian: np.ndarray


@eqx.filter_jit
def linearised(objective, x):
    system = linear_system(objective.model(x), objective.observations)
    upper = assemble(lambda a, b: system.engine.block(system.parameters, a, b), system.sections)
    alpha = solve(factorise(upper, system.noise)[0], system.residual)
    return upper, system.noise, system.residual, alpha


def prepared(kernel: str, strength: float = 0.1) -> Found:
    objective = Objective(pk.Model(KERNELS[kernel](), OBSERVATIONS), OBSERVATIONS, strength)
    x = objective.start()
    upper, *rest = map(np.asarray, linearised(objective, x))
    _, system = staged_system(objective, x)
    filled = np.asarray(jacobian_of(objective, x, system, _begin(gram_of(system.parts), system)))
    jacobian = filled[np.asarray(system.place), : objective.weight_count]
    return Found(objective, np.triu(upper) + np.triu(upper, 1).T, *rest, jacobian)


@pytest.fixture(scope="module", params=KERNELS)
def found(request):
    return prepared(request.param)


def test_jacobian_of_the_mean_with_the_function_held_fixed(found):
    """`∂/∂w Σ_j α_j A A_j k(h_w(q), h(q_j))`: only the place moves where the function is evaluated."""
    objective = found.objective
    x, count = jnp.asarray(objective.start()), objective.weight_count
    fixed = objective.model(x).kernel

    def means(w):
        moved = objective.model(jnp.concatenate([w, x[count:]])).kernel

        def k(q, q_):
            return sum(a.base(a.latent(q), b.latent(q_)) for a, b in zip(moved.components, fixed.components))

        def covariance(left, right):
            one = lambda q, q_: left.operator(lambda p: right.operator(lambda p_: k(p, p_))(q_))(q)
            return jax.vmap(lambda q: jax.vmap(lambda q_: one(q, q_))(right.points))(left.points)

        rows = [jnp.concatenate([covariance(a, b) for b in OBSERVATIONS], axis=1) for a in OBSERVATIONS]
        return jnp.concatenate(rows) @ found.alpha

    expected = jax.jit(jax.jacfwd(means))(x[:count])
    assert found.jacobian.shape == (9, count)
    np.testing.assert_allclose(found.jacobian, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


def test_steps_solve_the_joint_gaussian_model(found):
    """Over the values `g` and the move `Δw`: least squares of `y − g − J Δw`, with both priors, as one dense solve."""
    evidences, steps, _ = map(np.asarray, proposals(found.objective, found.objective.start()))
    J, K, y, n = found.jacobian, found.gram, found.residual, len(found.residual)
    count = J.shape[1]
    assert evidences.shape == TRUST.shape and steps.shape == (len(TRUST), count)
    for trust, evidence, step in zip(TRUST * np.trace(K) / np.trace(J @ J.T), evidences, steps):
        design = np.concatenate([np.eye(n), J], axis=1) / np.sqrt(found.noise)[:, None]
        prior = np.zeros((n + count, n + count))
        prior[:n, :n], prior[n:, n:] = np.linalg.inv(K), np.eye(count) / trust
        joint = np.linalg.solve(design.T @ design + prior, design.T @ (y / np.sqrt(found.noise)))
        np.testing.assert_allclose(step, joint[n:], rtol=1e-5, atol=1e-7 * np.abs(joint[n:]).max())
        total = K + trust * J @ J.T + np.diag(found.noise)
        density = 0.5 * (y @ np.linalg.solve(total, y) + np.linalg.slogdet(total)[1] + n * np.log(2 * np.pi))
        np.testing.assert_allclose(evidence, density, rtol=1e-9)


def test_a_step_turns_a_direction_to_the_right_one():
    rng = np.random.default_rng(4)
    domain = pk.Domain(x=[(-1.0, 1.0)] * 2)
    points = rng.uniform(-1, 1, size=(30, 2))
    truth, start = np.array([1.0, 1.0]) / np.sqrt(2), np.array([np.cos(0.6), np.sin(0.6)])
    data = (pk.Observation(pk.identity, points, np.sin(3 * points @ truth), noise=1e-3),)
    objective = Objective(pk.Model(pk.deep(domain, pk.Affine(start[None]), lengthscale=0.5), data), data)
    x = objective.start()
    before = float(value_and_gradient(objective, x)[0])
    moved, after, rejected = _gauss_newton_step(objective, x, before)
    assert after < before and rejected == 0
    assert after == float(value_and_gradient(objective, moved)[0])
    np.testing.assert_array_equal(moved[objective.weight_count :], x[objective.weight_count :])
    angle = lambda y: np.arccos(abs(y[:2] @ truth) / np.linalg.norm(y[:2]))
    assert angle(moved) < angle(x)
    for _ in range(4):
        moved, after, _ = _gauss_newton_step(objective, moved, after)
    assert angle(moved) < 1e-3


# ── weights integrated out ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_the_price_of_weights_is_that_of_the_linearised_model(strength):
    """`½ log |I + J S Jᵀ K⁻¹ / γ|`, from matrices written out."""
    found = prepared("sum with squares", strength)
    K = found.gram + np.diag(found.noise)
    tangent = found.jacobian @ found.jacobian.T / strength
    expected = 0.5 * np.linalg.slogdet(np.eye(len(K)) + tangent @ np.linalg.inv(K))[1]
    assert price_of_weights(found.objective, found.objective.start()) == pytest.approx(expected, rel=1e-8)


def test_weights_without_a_prior_have_no_price():
    found = prepared("affine", 0.0)
    assert price_of_weights(found.objective, found.objective.start()) == 0.0
