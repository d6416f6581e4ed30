"""The minimum of an objective and the covariance of unknown numbers, against other ways of computing them."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.inference.estimates import slopes_at
from pdedkl.training import starts
from pdedkl.training.curvature import Line, settled, widened
from pdedkl.training.gauss_newton import widened_by_weights
from pdedkl.training.ladder import climbed
from pdedkl.training.objective import Objective, value_and_gradient
from pdedkl.training.phases import Trained

LINE = pk.Domain(x=(0.0, 1.0))
X = LINE.coordinates("x")
INSIDE, SENSORS = np.linspace(0.05, 0.95, 8)[:, None], np.linspace(0.0, 1.0, 12)[:, None]


def data(operator, k=2.0, noise=0.05):
    """Values of `u = 1 + sin 3x`, and of `k u − u''/2`."""
    f = k * (1 + np.sin(3 * INSIDE[:, 0])) + 4.5 * np.sin(3 * INSIDE[:, 0])
    values = 1 + np.sin(3 * SENSORS[:, 0]) + noise * np.random.default_rng(0).normal(size=len(SENSORS))
    return [pk.Observation(operator, INSIDE, f, noise=0.01), pk.Observation(pk.identity, SENSORS, values, noise=noise)]


def objective_of(operator, **more):
    observations = data(operator, **more)
    return Objective(starts.model_of(starts.on_inputs(LINE, 1.0), observations), observations)


def minimum(objective):
    start = objective.start()
    return settled(Trained(objective, start, float(value_and_gradient(objective, start)[0])))


K = pk.Parameter("k", 1.0, positive=True)


@pytest.fixture(scope="module")
def found():
    return minimum(objective_of(K * pk.identity - 0.5 * pk.D(X, X)))


def test_it_is_a_minimum(found):
    gradient = np.asarray(value_and_gradient(found.trained.objective, found.trained.x)[1])
    assert np.linalg.norm(found.transform.T @ gradient) < 0.1
    assert found.moved > 0


def test_the_covariance_is_the_inverse_of_second_differences_of_values(found):
    """The Hessian from values of the objective alone, in the coordinates as they are."""
    objective, x = found.trained.objective, found.trained.x
    value = jax.jit(lambda x: objective.value(x)[0])
    steps = 0.05 / np.sqrt(np.diag(np.linalg.inv(found.transform @ found.transform.T)))
    moves = np.diag(steps)
    at = lambda move: float(value(jnp.asarray(x + move)))
    hessian = np.asarray([[at(a + b) - at(a - b) - at(b - a) + at(-a - b) for b in moves] for a in moves])
    hessian /= 4 * np.outer(steps, steps)
    np.testing.assert_allclose(found.covariance()[0, 0], np.linalg.inv(hessian)[-1, -1], rtol=0.05)


def test_the_line_is_the_best_of_everything_else(found):
    """On a valley of known height: two standard deviations cost two nats where the distribution is normal."""
    line = Line(found, 0)
    for away in (-2.0, 2.0):
        held = line.at(away)
        np.testing.assert_allclose(held.raw, found.trained.x[-1] + away * line.std, atol=1e-9)
        assert 1.6 < held.rise < 2.4
    np.testing.assert_allclose(widened(found, np.asarray([5.0])), found.covariance(), rtol=0.02)


def test_a_curved_valley_is_no_certainty():
    """`(k + b) u`: with `k` by its logarithm the valley is curved, so its curvature at one point is not its length."""
    b = pk.Parameter("b", 0.5)
    found = minimum(objective_of(K * pk.identity + b * pk.identity - 0.5 * pk.D(X, X)))
    covariance = widened(found, np.asarray([10.0, 5.0]))
    assert np.sqrt(covariance[1, 1]) > 1.0
    assert np.all(np.sqrt(np.diagonal(covariance)) <= [10.0, 5.0])


def test_the_ladder_goes_most_of_a_far_way():
    far = pk.Parameter("k", 1e-2, positive=True)
    operator = far * pk.identity - 0.5 * pk.D(X, X)
    assert abs(climbed(objective_of(operator, k=20.0))[-1] - np.log(20.0)) < 1.0
    free = pk.Parameter("b", 0.0)
    assert climbed(objective_of(free * pk.identity - 0.5 * pk.D(X, X), k=-3.0))[-1] < -1.0


def test_weights_widen_what_is_known_of_a_number():
    """`K + J S Jᵀ/γ`: slopes `J` of the posterior mean by differences, the function on the latent space held."""
    observations = data(K * pk.identity - 0.5 * pk.D(X, X))
    kernel = pk.deep(LINE, pk.Affine(np.asarray([[1.0], [0.4]])))
    objective = Objective(starts.model_of(kernel, observations), observations, prior_strength=0.1)
    x, prior = objective.start(), np.asarray([5.0])
    posterior = pk.condition(objective.model(x), objective.observations)
    slopes = np.concatenate([slopes_at(posterior, item.operator, item.points) for item in objective.observations])

    def mean(w):
        moved = replace(posterior, model=objective.model(np.concatenate([w, x[objective.weight_count :]])))
        return np.concatenate([moved.predict(item.points, item.operator).mean for item in objective.observations])

    w, step = x[: objective.weight_count], 1e-5
    jacobian = np.stack([(mean(w + h) - mean(w - h)) / (2 * step) for h in step * np.eye(len(w))], axis=1)
    gram = np.asarray(posterior.solver.factor) @ np.asarray(posterior.solver.factor).T
    found = [
        np.linalg.inv(np.eye(1) / 25.0 + slopes.T @ np.linalg.solve(K, slopes))
        for K in (gram + 10.0 * jacobian @ jacobian.T, gram)
    ]
    expected = found[0] - found[1]
    assert expected[0, 0] > 1e-3 * found[1][0, 0]
    np.testing.assert_allclose(widened_by_weights(objective, x, slopes, prior), expected, rtol=1e-2)
    none = objective_of(K * pk.identity - 0.5 * pk.D(X, X))
    assert np.all(widened_by_weights(none, none.start(), slopes, prior) == 0)
