"""What results look like in a terminal and in a notebook: a few lines that say what a person wants to know."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.searching.space import Space

DOMAIN = pk.Domain(x=[(0, 1)] * 50, t=(0, 1))
X, T = DOMAIN.coordinates()
POINTS = np.random.default_rng(0).uniform(size=(20, 51))
PROBLEM = pk.problems.built_in("heat", dim=50)


def training():
    return pk.Training(
        recipe="default", model="dkl", seed=3, kernel="deep", objective=-12.5, candidates=(("deep", -12.5),),
        left_out=1e-3, validated=None, rejected=0, stopped=None, seconds=12.34, trace_seconds=1.0,
        compile_seconds=2.0, history=(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def posterior():
    diffusivity = pk.Parameter("nu", 0.7, positive=True)
    data = [
        pk.Observation(pk.identity, POINTS, POINTS[:, 0], noise=0.01, name="u"),
        pk.Observation(pk.D(T) - diffusivity * pk.Laplacian(X), POINTS, POINTS[:, 1], name="f"),
    ]
    kernel = pk.ard(DOMAIN, lengthscale=5.0) + pk.deep(DOMAIN, pk.MLP(51, 3, width=8, key=jax.random.key(0)))
    found = pk.condition(kernel, data).calibrated()
    return dataclasses.replace(found, training=training())


def results(posterior):
    search = pk.Search(Space.of([1, 2, 3]), [pk.Evaluation({"latent_dim": 2}, -3.25, 4.0)])
    return {
        "posterior": (posterior, ["x[0:50], t", "40 values", "20 of u", "nu = 0.7", "log p(y)", "12.3 s", "left-out"]),
        "observation": (posterior.observations[1], ["20 points", "learned", "'f'", "51 coordinates"]),
        "problem": (PROBLEM, ["heat", "x ∈ [0, 1]^50", "Dirichlet condition", "200 boundary", "known"]),
        "prediction": (posterior.predict(POINTS), ["u at 20 points", "mean", "std", "x[0], x[1]", "more"]),
        "training": (training(), ["recipe default", "seed 3", "-12.50", "1.0e-03"]),
        "model": (posterior.model, ["SquaredExponential of 51 inputs", "3 features of MLP", "nu", "closed-form"]),
        "kernel": (posterior.model.kernel, ["variance 1", "length scale 5", "3 features of MLP"]),
        "component": (posterior.model.kernel.components[1], ["3 features of MLP", "length scale"]),
        "verification": (PROBLEM.verify(20), ["fits its exact solution"]),
        "search": (search, ["latent_dim 2", "-3.25", "1 of 3"]),
        "domain": (DOMAIN, ["x ∈ [0, 1]^50 × t ∈ [0, 1]"]),
        "coordinates": (X, ["x", "50 coordinates of 51"]),
        "region": (DOMAIN.boundary(X), ["the boundary of x"]),
        "condition": (PROBLEM.conditions[0], ["Dirichlet", "the boundary of x"]),
    }


@pytest.mark.parametrize("name", [
    "posterior", "observation", "problem", "prediction", "training", "model", "kernel", "component", "verification",
    "search", "domain", "coordinates", "region", "condition",
])  # fmt: skip
def test_a_result_says_what_it_is_in_a_few_lines(posterior, name):
    shown, words = results(posterior)[name]
    text = repr(shown)
    assert len(text.splitlines()) <= 8 and max(map(len, text.splitlines())) <= 230
    for word in words:
        assert word in text


def test_a_notebook_gets_the_same_as_a_table_with_everything_escaped(posterior):
    item = pk.Observation(pk.identity, POINTS, POINTS[:, 0], name="<script>alert('u')</script> & more")
    page = item._repr_html_()
    assert page.startswith("<table>") and "&lt;script&gt;" in page and "<script>" not in page and "&amp; more" in page
    for shown in (posterior, posterior.model, posterior.predict(POINTS), PROBLEM, training()):
        assert shown._repr_html_().startswith("<table>")
    named = pk.problems.built_in("poisson", dim=2).verify(5)
    assert named._repr_html_().startswith("<pre>")


def test_a_check_is_written_out(posterior):
    problem = pk.problems.built_in("poisson", dim=1)
    verdict = pk.condition(pk.ard(problem.domain), problem.sample(boundary=2, source=5)).check(problem, n=5)
    assert repr(verdict) == str(verdict) and "error of u" in repr(verdict)


def test_a_name_of_several_lines_stays_on_one():
    item = pk.Observation(pk.identity, POINTS, POINTS[:, 0], name="first\nsecond" + "!" * 500)
    assert len(repr(item).splitlines()) == 5


def test_inside_a_compiled_program_and_without_arrays_there_are_no_numbers_to_show(posterior):
    seen = []
    jax.make_jaxpr(lambda model: seen.append(repr(model)) or model.log_noise)(posterior.model)
    without = eqx.partition(posterior, eqx.is_array)[1]
    for text in (*seen, repr(without), repr(without.model), repr(without.observations[0]), repr(without.model.kernel)):
        assert "not known here" in text
