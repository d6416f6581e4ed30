"""Fresh values choose the kernel and the strength of the prior, and are not conditioned on."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import ridge
from scipy.stats import norm

import pdedkl as pk
from pdedkl.training.journal import Journal
from pdedkl.training.judging import Candidate
from pdedkl.training.monitor import Monitor
from pdedkl.training.objective import Objective
from pdedkl.training.phases import Trainer
from pdedkl.training.starts import model_of
from pdedkl.training.validation import Validation


def fresh(n: int = 30, name: str = "u") -> pk.Observation:
    points = np.random.default_rng(99).uniform(0, 1, (n, ridge.DIM))
    return pk.Observation(pk.identity, points, ridge.solution(points), name=name)


def test_the_score_is_the_density_of_fresh_values():
    data = ridge.observations()
    model = pk.Model(pk.ard(ridge.DOMAIN), data)
    score = Validation([fresh()], data).score(model)
    found = pk.condition(model, data).predict(fresh().points)
    spread = np.sqrt(found.variance + float(model.noise()["u"]) ** 2)
    assert score.density == pytest.approx(-np.mean(norm.logpdf(np.asarray(fresh().values), found.mean, spread)))
    off = np.asarray(fresh().values) - found.mean
    scale = np.std(np.concatenate([np.asarray(item.values) for item in data if item.name == "u"]))
    assert score.error == pytest.approx(np.sqrt(np.mean(off**2)) / scale)


def test_fresh_values_overrule_the_evidence():
    """Where `u` was measured it depends on one input, and elsewhere on another one as well.

    The evidence knows the measurements alone and prefers the kernel that sees one input. Fresh values, from everywhere,
    prefer the kernel that sees all inputs and is less sure of itself.
    """

    def u(points):
        return np.sin(3 * points[:, 0]) + np.maximum(points[:, 1] - 0.4, 0.0)

    rng = np.random.default_rng(5)
    where, elsewhere = rng.uniform(0, [1.0, 0.4, 0.4], (30, ridge.DIM)), rng.uniform(0, 1, (30, ridge.DIM))
    data = [pk.Observation(pk.identity, where, u(where) + 0.01 * rng.normal(size=30), name="u")]
    validation = Validation([pk.Observation(pk.identity, elsewhere, u(elsewhere), name="u")], data)
    kernels = {
        "one input": pk.deep(ridge.DOMAIN, pk.IdentityEmbedding(), groups=[(0,)]),
        "all inputs": pk.ard(ridge.DOMAIN),
    }
    trainer = Trainer(Journal(None, ""), Monitor())
    trained = {
        name: trainer.fit_kernel(name, Objective(model_of(kernel, data), data), iterations=5)
        for name, kernel in kernels.items()
    }

    def best(chooser):
        return min((Candidate(name, found, chooser) for name, found in trained.items()), key=lambda c: c.rank).name

    assert best(None) == "one input" and best(validation) == "all inputs"


def test_fit_reports_the_error_of_fresh_values_and_is_not_conditioned_on_them():
    data = ridge.observations()
    found = pk.fit(ridge.DOMAIN, data, validation=fresh())
    assert sum(map(len, found.observations)) == sum(map(len, data))
    assert 0 < found.training.validated < 1e-4 and ridge.error(found) < 1e-4


def test_where_something_is_left_to_explain_other_strengths_of_the_prior_are_tried():
    data = ridge.observations()[0]
    noisy = pk.Observation(pk.identity, data.points, data.values + 0.3 * jnp.sin(100 * jnp.arange(len(data))), name="u")
    found = pk.fit(ridge.DOMAIN, noisy, model="linear", latent_dim=1, validation=fresh())
    names = [name for name, _ in found.training.candidates]
    assert names == ["inputs", "projection", "projection, prior 1", "projection, prior 0.01"]
    assert pk.fit(ridge.DOMAIN, noisy, model="linear", latent_dim=1).training.validated is None


def test_a_noise_level_that_is_never_trained_is_an_error():
    with pytest.raises(ValueError, match="noise level 'elsewhere' to learn"):
        pk.fit(ridge.DOMAIN, ridge.observations(), validation=fresh(name="elsewhere"))
