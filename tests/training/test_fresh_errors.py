"""The error of `u` from residuals of fresh values, against the true one; tolerances of exact values."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.scales import with_tolerance
from pdedkl.training import starts
from pdedkl.training.fresh_errors import FreshErrors
from pdedkl.training.judging import Candidate
from pdedkl.training.objective import Objective, value_and_gradient
from pdedkl.training.phases import Trained
from pdedkl.training.tolerances import tightened

DOMAIN = pk.Domain(x=[(0.0, 1.0)] * 2)
X = DOMAIN.coordinates("x")
OPERATOR = -pk.Laplacian(X)
EXACT = lambda q: jnp.sin(3.0 * q[0] + q[1]) * jnp.exp(q[1])
WALLS = pk.Dirichlet(on=DOMAIN.boundary(X), value=EXACT)
PROBLEM = pk.Problem(DOMAIN, OPERATOR, OPERATOR(EXACT), [WALLS], EXACT)
DATA = with_tolerance(PROBLEM.sample(source=40, boundary=24, seed=0))


def trained(profile=None, factor=1.0, noise=1e-4, data=DATA):
    """A kernel as it comes, without any training."""
    model = starts.model_of(starts.on_inputs(DOMAIN, 1.0, profile, factor), data, noise)
    objective = Objective(model, data)
    return Trained(objective, objective.start(), float(value_and_gradient(objective, objective.start())[0]))


def true_error(found):
    places = PROBLEM.interior(300, 7)
    mean = pk.condition(found.model, found.objective.observations).predict(places).mean
    truth = PROBLEM.truth(places)
    return np.sqrt(np.mean((mean - truth) ** 2) / np.mean(truth**2))


KERNELS = {
    "too long": {"factor": 6.0, "noise": 1e-2},
    "too short": {"factor": 0.1},
    "rough": {"profile": pk.Matern52()},
    "good": {"factor": 1.0},
}


@pytest.fixture(scope="module")
def judge():
    return FreshErrors(trained(factor=0.7).model, PROBLEM, DATA, 0)


@pytest.mark.parametrize("name", KERNELS)
def test_residuals_show_the_error_of_any_kernel(judge, name):
    """The kernels' errors differ by a factor of 1,000; each is found to a factor of two."""
    assert not judge.open
    found = trained(**KERNELS[name])
    assert 0.5 < judge.of(Candidate(name, found)) / true_error(found) < 2.0


def test_where_a_few_hundred_values_determine_little_it_cannot_tell():
    domain = pk.Domain(x=[(0.0, 1.0)] * 12)
    x = domain.coordinates("x")
    exact = lambda q: jnp.sin(3.0 * jnp.sum(q))
    operator = -pk.Laplacian(x)
    walls = pk.Dirichlet(on=domain.boundary(x), value=exact)
    problem = pk.Problem(domain, operator, operator(exact), [walls], exact)
    data = with_tolerance(problem.sample(source=20, boundary=20, seed=0))
    plain = starts.model_of(starts.on_inputs(domain, 1.0, factor=0.2), data)
    assert FreshErrors(plain, problem, data, 0).open


def test_lower_tolerances_are_taken_where_the_evidence_grows():
    loose = trained(noise=1e-4)
    tight = tightened(loose)
    assert tight.value < loose.value - loose.tolerance
    assert true_error(tight) < 0.5 * true_error(loose)
    levels = {name: level / loose.model.noise()[name] for name, level in tight.model.noise().items()}
    assert all(level == pytest.approx(min(levels.values()), rel=0.1) and level < 0.11 for level in levels.values())


def test_learned_noise_is_no_tolerance():
    noisy = [pk.Observation(item.operator, item.points, item.values, "learned", item.name) for item in DATA]
    found = trained(data=noisy)
    assert tightened(found) is found


def test_tolerances_end_above_rounding_where_zeros_are_known():
    """Under a sum of functions of one input each the mixed derivative is zero whatever the data are."""
    zeros = pk.Observation(pk.D(X[0]) @ pk.D(X[1]), DATA[-1].points, np.zeros(len(DATA[-1])), "exact", "mixed")
    few = pk.Observation(pk.identity, DATA[0].points[::8], DATA[0].values[::8], "exact", "u")
    data = with_tolerance([few, zeros])
    objective = Objective(starts.model_of(starts.on_each_input(DOMAIN, 1.0), data, 1e-4), data)
    before = Trained(objective, objective.start(), float(value_and_gradient(objective, objective.start())[0]))
    after = tightened(before)
    assert all(level > 1e-10 * before.model.noise()[name] for name, level in after.model.noise().items())


def test_a_plain_kernel_without_finite_covariances_cannot_tell():
    model = trained().model
    broken = eqx.tree_at(lambda m: m.kernel.components[0].base.log_variance, model, jnp.full(1, 800.0))
    assert FreshErrors(broken, PROBLEM, DATA, 0).open
