"""What a page computes from a packed posterior, against the posterior itself."""

from __future__ import annotations

import base64

import browser
import equinox as eqx
import jax
import jax.numpy as jnp
import models
import numpy as np
import pytest
from models import DOMAIN, MODELS

import pdedkl as pk
from pdedkl.reports import explorer, packing
from pdedkl.reports.packing import NotShownError, pack

TEST = models.points(16, seed=99)


def test_the_page_predicts_what_the_posterior_predicts():
    jobs = {}
    for name in MODELS:
        data, arrays = pack(models.posterior(name))
        assert data["deviation"]["kind"] == "exact"
        jobs[name] = {"data": data, "arrays": arrays, "points": TEST.tolist()}
    found = browser.values(jobs)
    for name in MODELS:
        expected = models.posterior(name).predict(TEST)
        size = np.max(np.abs(expected.mean))
        np.testing.assert_allclose(found[name]["mean"], expected.mean, rtol=0, atol=1e-9 * size, err_msg=name)
        np.testing.assert_allclose(found[name]["std"], expected.std, rtol=1e-6, err_msg=name)


def test_rows_are_stored_once_where_they_are_the_same():
    def terms(name):
        data, _ = pack(models.posterior(name))
        return [component["terms"][0] for component in data["components"]]

    rotated = terms("projection")[0]["parts"][1]
    assert rotated["diffusion"]["shape"] == [1, 3] and not rotated["full"]  # one diagonal for all rows
    varying = terms("matern on a network + ard, matrices that vary")[1]["parts"][1]
    assert varying["diffusion"]["shape"] == [12, 10] and varying["full"]  # a lower triangle for each row
    assert [term["inputs"] for term in terms("ridges + additive")] == [None, [0]]


def test_many_rows_give_an_upper_bound(monkeypatch):
    monkeypatch.setattr(packing, "LEAST_RANK", 12)
    posterior = models.posterior("ard")
    data, arrays = pack(posterior, most_bytes=0)
    form = data["deviation"]
    assert form["kind"] == "low-rank" and form["rank"] == 12 and form["ratio"] >= 1
    numbers = np.frombuffer(base64.b64decode(arrays))
    root = numbers[form["root"]["at"] :][: 12 * data["rows"]].reshape(12, -1)
    with_data = np.asarray(jax.jit(jax.vmap(lambda q: posterior._with_data(q, posterior.sections)))(jnp.asarray(TEST)))
    prior = float(np.exp(posterior.model.kernel.components[0].base.log_variance).sum())
    upper = np.sqrt(prior - np.sum((with_data @ root.T) ** 2, axis=1))
    exact = posterior.predict(TEST).std
    assert np.all(upper >= exact * (1 - 1e-9)) and np.median(upper / exact) < 1.5
    found = browser.values({"": {"data": data, "arrays": arrays, "points": TEST.tolist()}})
    np.testing.assert_allclose(found[""]["std"], upper, rtol=1e-9)


class Cubic(pk.Embedding):
    """An embedding of a user's own."""

    @property
    def input_dim(self):
        return None

    def latent_dim(self, input_dim):
        return input_dim

    def forward(self, x):
        return x


def test_what_cannot_be_shown_is_said():
    q = models.points(3, 0)
    own = pk.condition(pk.deep(DOMAIN, Cubic()), [pk.Observation(pk.identity, q, np.ones(3), 0.1)])
    with pytest.raises(NotShownError, match="Cubic"):
        pack(own)
    guess = eqx.tree_at(lambda p: p.model.mean, models.posterior("ard"), pk.FunctionMean(models.exact))
    assert "FunctionMean" in explorer(guess, DOMAIN).missing
