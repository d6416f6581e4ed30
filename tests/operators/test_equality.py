"""Operators are told apart by what they are, not by what they print."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.checking.refine import _noise
from pdedkl.observations import check_observations
from pdedkl.operators import same

DOMAIN = pk.Domain(x=[(0, 1)] * 5, t=(0, 1))
X, T = DOMAIN.coordinates("x", "t")
POINTS = np.random.default_rng(0).uniform(size=(8, 6))
VALUES = np.sin(POINTS.sum(axis=1))


class Speed:
    def at(self, q):
        return q[0]


def first(q):
    return q[0]


def second(q):
    return q[1]


SPEED = Speed()
MAKERS = {
    "identity": lambda: pk.identity,
    "derivative": lambda: pk.D(T),
    "other derivative": lambda: pk.D(X[0]),
    "sum": lambda: pk.D(T) - pk.Laplacian(X),
    "other order of the sum": lambda: -pk.Laplacian(X) + pk.D(T),
    "number": lambda: 2.0 * pk.Laplacian(X),
    "other number": lambda: (2.0 + 1e-15) * pk.Laplacian(X),
    "direction": lambda: pk.Directional(X, [1.0, 0, 0, 0, 0]),
    "other direction": lambda: pk.Directional(X, [0, 1.0, 0, 0, 0]),
    "function": lambda: pk.Coefficient(first, name="a") * pk.D(T),
    "other function": lambda: pk.Coefficient(second, name="a") * pk.D(T),
    "method": lambda: pk.Coefficient(SPEED.at, name="a") * pk.D(T),
    "lambda, made anew": lambda: pk.Coefficient(lambda q: q[0], name="a") * pk.D(T),
    "parameter": lambda: pk.Parameter("nu", 0.1) * pk.D(T),
    "positive parameter": lambda: pk.Parameter("nu", 0.1, positive=True) * pk.D(T),
    "diffusion": lambda: pk.Diffusion(X, np.eye(5)),
    "other diffusion": lambda: pk.Diffusion(X, 2 * np.eye(5)),
}


@pytest.mark.parametrize("left", MAKERS)
def test_operators_are_the_same_if_they_are_built_alike(left):
    for right, make in MAKERS.items():
        assert same(MAKERS[left](), make()) == (left == right != "lambda, made anew"), right


def observed(operator, **options):
    return pk.Observation(operator, POINTS, VALUES, **options)


@pytest.mark.parametrize(
    "one, other",
    [("direction", "other direction"), ("function", "other function"), ("diffusion", "other diffusion")],
)
def test_different_operators_that_print_alike_have_noise_levels_of_their_own(one, other):
    one, other = observed(MAKERS[one]()), observed(MAKERS[other]())
    assert one.name == other.name
    data = [one, other, observed(one.operator)]
    model = pk.Model(pk.ard(DOMAIN), data)
    assert list(model.noise()) == [one.name, f"{one.name} (2)"]
    posterior = pk.condition(model, data)
    assert [item.noise_name for item in posterior.observations] == [one.name, f"{one.name} (2)", one.name]
    # They keep their names, alone too; a new one that could be either is refused.
    pk.condition(model, posterior.observations[1])
    with pytest.raises(ValueError, match="Give each of these observations a name"):
        pk.condition(model, other)


def test_named_observations_share_what_they_name():
    data = [observed(MAKERS[name](), name="flux") for name in ("direction", "other direction")]
    assert list(pk.Model(pk.ard(DOMAIN), data).noise()) == ["flux"]


def test_validation_data_are_named_like_the_data_that_they_validate():
    one, other = observed(MAKERS["direction"]()), observed(MAKERS["other direction"]())
    (alone,) = check_observations([other], beside=check_observations([one, other]))
    assert alone.name == f"{one.name} (2)"


def test_the_noise_of_new_points_is_that_of_their_operator():
    one, other = (
        pk.Observation(MAKERS[name](), POINTS, VALUES, noise)
        for name, noise in (("direction", 0.1), ("other direction", 0.2))
    )
    posterior = pk.condition(pk.ard(DOMAIN), [one, other])
    assert _noise(posterior, other) == pytest.approx(0.04)
    assert _noise(posterior, observed(pk.D(T))) == 0.0


def test_the_values_of_the_source_are_counted_by_their_operator():
    from pdedkl.runs.measure import values_of

    data = [observed(MAKERS[name]()) for name in ("direction", "other direction")]
    assert values_of(data[1].operator, data) == len(POINTS)


def test_a_positive_parameter_is_not_taken_for_its_logarithm():
    nu = pk.Parameter("nu", 0.02, positive=True)
    posterior = pk.condition(pk.ard(DOMAIN), observed(pk.D(T) - nu * pk.Laplacian(X)))
    with pytest.raises(ValueError, match=r"learned Parameter\('nu', positive=True\).*positive=False"):
        posterior.predict(POINTS, pk.Parameter("nu") * pk.D(T))
    with pytest.raises(ValueError, match="positive=False"):
        pk.condition(posterior.model, observed(pk.Parameter("nu") * pk.D(T), noise=0.1))
    asked = pk.Parameter("nu", positive=True)  # where it starts does not matter here
    expected = 0.02 * posterior.predict(POINTS, pk.D(T)).mean
    np.testing.assert_allclose(posterior.predict(POINTS, asked * pk.D(T)).mean, expected, rtol=1e-12)


def test_a_coefficient_with_parameters_can_be_fitted():
    k = pk.Parameter("k", 0.5)
    rate = pk.Coefficient(lambda q, k: k * q[0], k)
    domain = pk.Domain(x=(0, 1))
    x = domain.coordinates("x")
    points = np.linspace(0, 1, 12)[:, None]
    # u = exp(x²/2) has u' = x u.
    u = pk.Observation(pk.identity, points, np.exp(points[:, 0] ** 2 / 2))
    f = pk.Observation(pk.D(x) - rate, points, jnp.zeros(12))
    posterior = pk.fit(domain, [u, f], model="gp", progress=False)
    assert float(posterior.model.coefficients["k"]) == pytest.approx(1.0, abs=1e-3)
