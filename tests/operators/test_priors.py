"""Priors and bounds of unknown numbers: densities, and the scales on which they are learned."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import pdedkl as pk
from pdedkl.operators.priors import Support

PARAMETERS = {
    "normal": (pk.Parameter("a", prior=pk.Normal(1.0, 0.3)), stats.norm(1.0, 0.3)),
    "log-normal": (pk.Parameter("a", prior=pk.LogNormal(0.2, 0.5)), stats.lognorm(0.5, scale=0.2)),
    "uniform": (pk.Parameter("a", prior=pk.Uniform(-1.0, 3.0)), stats.uniform(-1.0, 4.0)),
    "bounds": (pk.Parameter("a", bounds=(0.5, 2.0)), stats.uniform(0.5, 1.5)),
    "cut off": (
        pk.Parameter("a", prior=pk.Normal(1.0, 0.5), bounds=(0.5, 2.0)),
        stats.truncnorm(-1.0, 2.0, 1.0, 0.5),
    ),
    "wide": (pk.Parameter("a", 0.2, positive=True), stats.lognorm(5.0, scale=0.2)),
    "free": (pk.Parameter("a", 2.0), stats.cauchy(2.0, 20.0)),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_density_on_the_learned_scale_is_that_of_the_value(name):
    parameter, truth = PARAMETERS[name]
    raws = np.asarray(parameter.raw) + np.linspace(-1.5, 1.5, 7)
    energies = np.asarray(jax.vmap(parameter._energy)(jnp.asarray(raws)))
    slopes = np.asarray(jax.vmap(jax.grad(lambda r: jnp.asarray(parameter.support.value(r))))(jnp.asarray(raws)))
    expected = -truth.logpdf(np.asarray(parameter.support.value(raws))) - np.log(np.abs(slopes))
    np.testing.assert_allclose(energies - energies[0], expected - expected[0], atol=1e-9)


@pytest.mark.parametrize("name", ["normal", "log-normal", "uniform", "bounds", "wide"])
def test_the_spread_is_the_standard_deviation_on_the_learned_scale(name):
    from pdedkl.inference.estimates import prior_spreads

    parameter, _ = PARAMETERS[name]
    middle = float(parameter.raw)
    density = lambda r: float(jnp.exp(-(parameter._energy(jnp.asarray(r)) - parameter._energy(jnp.asarray(middle)))))
    whole, second = (
        integrate.quad(lambda r, k=k: (r - middle) ** k * density(r), middle - 40, middle + 40, points=[middle])[0]
        for k in (0, 2)
    )
    np.testing.assert_allclose(prior_spreads({"a": parameter})[0], np.sqrt(second / whole), rtol=1e-3)


@pytest.mark.parametrize("support", [Support(), Support(0.0), Support(-1.0), Support(upper=2.0), Support(-1.0, 2.0)])
def test_values_and_learned_numbers_belong_together(support):
    value = 0.7
    np.testing.assert_allclose(support.value(np.float64(support.raw(value))), value)
    for raw in (-50.0, 50.0):
        assert support.lower <= support.value(np.float64(raw)) <= support.upper


def test_a_parameter_starts_in_the_middle_of_what_is_known():
    assert float(pk.Parameter("a", prior=pk.LogNormal(0.2)).value) == pytest.approx(0.2)
    assert pk.Parameter("a", prior=pk.LogNormal(0.2)).positive
    assert float(pk.Parameter("a", bounds=(2.0, 4.0)).value) == pytest.approx(3.0)
    assert float(pk.Parameter("a").value) == 1.0
    assert [str(one) for one in pk.Parameter.vector("v", [1.0, 0.0])] == ["v[0]", "v[1]"]


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: pk.Parameter("a", 3.0, bounds=(0.0, 1.0)), "between 0 and 1"),
        (lambda: pk.Parameter("a", bounds=(1.0, 0.0)), "numbers between them"),
        (lambda: pk.Parameter("a", bounds=1.0), "two bounds"),
        (lambda: pk.Parameter("a", prior="normal"), "LogNormal"),
        (lambda: pk.Normal(0.0, -1.0), "positive number as `std`"),
        (lambda: pk.LogNormal(-1.0), "positive number as `median`"),
        (lambda: pk.Uniform(1.0, 1.0), "lower < upper"),
    ],
)
def test_what_makes_no_prior_is_refused(make, text):
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_one_name_is_one_unknown_with_one_prior():
    x = pk.Domain(x=(0, 1)).coordinates("x")
    operator = pk.Parameter("a", 1.0) * pk.D(x) + pk.Parameter("a", 1.0, prior=pk.Normal(1.0, 0.1)) * pk.identity
    with pytest.raises(ValueError, match="two forms"):
        pk.Observation(operator, np.zeros((1, 1)), np.zeros(1)).operator and pk.Model(
            pk.ard(pk.Domain(x=(0, 1))), pk.Observation(operator, np.zeros((1, 1)), np.zeros(1))
        )
