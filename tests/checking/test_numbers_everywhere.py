"""Unknown numbers in sources, in the values of conditions, and in nonlinear equations."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.equations import Linear
from pdedkl.inference.estimates import with_estimates
from pdedkl.operators.rows import value_of

LINE = pk.Domain(x=(0.0, 1.0))
X = LINE.coordinates("x")
U = pk.fields("u")
SHAPE = pk.Coefficient(lambda q: jnp.sin(3 * q[0]), name="shape")
INSIDE, SENSORS = np.linspace(0.05, 0.95, 9)[:, None], np.asarray([[0.1], [0.4], [0.8]])


def heated(q0):
    """`−u″ = q₀ shape` with sensors."""
    conditions = [pk.Sensors(SENSORS, np.sin(3 * SENSORS[:, 0]), noise=0.05)]
    points = pk.Points(source=9)
    return pk.Problem(LINE, -pk.D(X, X), q0 * SHAPE, conditions, points=points, silenced=["faces"])


def test_a_number_in_a_source_is_on_the_left():
    """With the number where it starts, the posterior is that of the source with this number."""
    stated = heated(pk.Parameter("q0", 5.0)).statements[-1].operator
    assert str(stated) == "-∂²/∂x² u - q0 shape(q)"
    sensors = pk.Observation(pk.identity, SENSORS, np.sin(3 * SENSORS[:, 0]), noise=0.05)
    source = 5.0 * np.sin(3 * INSIDE[:, 0])
    kernel, plain = pk.ard(LINE, lengthscale=0.7), -pk.D(X, X)
    one = pk.condition(kernel, [sensors, pk.Observation(stated, INSIDE, np.zeros(9), noise=0.1)])
    other = pk.condition(kernel, [sensors, pk.Observation(plain, INSIDE, source, noise=0.1)])
    np.testing.assert_allclose(one.predict(INSIDE).mean, other.predict(INSIDE).mean, rtol=1e-8)
    np.testing.assert_allclose(one.predict(INSIDE, stated).mean, other.predict(INSIDE, plain).mean - source, atol=1e-8)
    assert one.objective == pytest.approx(float(other.objective))


def test_its_uncertainty_is_that_of_a_joint_normal_distribution():
    """A number with a normal prior is a field that does not change: conditioning knows its covariance."""
    number = pk.Parameter("q0", 5.0, prior=pk.Normal(5.0, 2.0))
    data = [
        pk.Observation(pk.identity, SENSORS, np.sin(3 * SENSORS[:, 0]), noise=0.05),
        pk.Observation(heated(number).statements[-1].operator, INSIDE, np.zeros(9), noise=0.1),
    ]
    posterior = with_estimates(pk.condition(pk.ard(LINE, lengthscale=0.7), data))
    c = Linear(value_of("c()"))
    row = -(pk.D(X, X) @ U) - (2.0 * SHAPE) * c
    both = [
        pk.Observation(U, SENSORS, np.sin(3 * SENSORS[:, 0]), noise=0.05),
        pk.Observation(row, INSIDE, 5.0 * np.sin(3 * INSIDE[:, 0]), noise=0.1),
    ]
    joint = pk.condition(pk.ard(LINE, lengthscale=0.7).of(U) + pk.ard(LINE).of(c), both)
    std = 2.0 * float(joint.predict(SENSORS[:1], c).std[0])
    assert posterior.parameters["q0"].std == pytest.approx(std, rel=1e-3)
    np.testing.assert_allclose(posterior.predict(INSIDE).std, joint.predict(INSIDE, U).std, rtol=1e-3)


def test_a_condition_may_have_an_unknown_value():
    edge = pk.Parameter("edge", 0.5)
    statement = pk.Dirichlet(on=LINE.boundary(X), value=edge * pk.Coefficient(X)).stated(LINE)
    u = lambda q: jnp.asarray(2.0)
    assert statement.operator(u)(jnp.asarray([1.0])) == pytest.approx(1.5)
    data = [pk.Observation(statement.operator, np.asarray([[0.0], [1.0]]), np.zeros(2), noise=1e-6)]
    posterior = pk.condition(pk.ard(LINE), data)
    np.testing.assert_allclose(posterior.predict(np.asarray([[0.0], [1.0]])).mean, [0.0, 0.5], atol=1e-5)


@pytest.fixture(scope="module")
def reaction():
    """`0.01 u″ + k tanh u = f` with noise in all values."""
    domain = pk.Domain(x=(-0.7, 0.7))
    x, rng = domain.coordinates("x"), np.random.default_rng(0)
    exact = lambda z: np.sin(6 * z) ** 3
    bend = lambda z: 108 * np.sin(6 * z) * (2 * np.cos(6 * z) ** 2 - np.sin(6 * z) ** 2)
    inside, at = np.linspace(-0.7, 0.7, 32), np.linspace(-0.7, 0.7, 8)
    source = 0.01 * bend(inside) + 0.7 * np.tanh(exact(inside)) + 0.01 * rng.normal(size=32)
    k = pk.Parameter("k", 1.0, positive=True)
    data = [
        pk.Observation(U, at[:, None], exact(at) + 0.01 * rng.normal(size=8), noise=0.01, name="u"),
        pk.Observation(0.01 * (pk.D(x, x) @ U) + k * pk.tanh(U), inside[:, None], source, noise=0.01, name="f"),
    ]
    return exact, pk.fit(domain, data, model="gp", profile=pk.SquaredExponential(), progress=False)


def test_a_number_of_a_nonlinear_equation_is_found(reaction):
    exact, posterior = reaction
    found = posterior.parameters["k"]
    low, high = found.interval(0.99)
    assert low < 0.7 < high and 0.003 < found.std < 0.012 and found.identified
    assert posterior.unknowns() == {"k": found.estimate} and "k = " in repr(posterior)
    places = np.linspace(-0.6, 0.6, 13)
    u = posterior.predict(places[:, None])  # of the only field, whose name is not needed
    assert np.max(np.abs(u.mean - exact(places))) < 0.05
    with pytest.raises(ValueError, match="is for linear equations"):
        posterior.parameters.posterior(method="profile")


def test_a_posterior_with_such_a_number_is_stored(reaction, tmp_path):
    _, posterior = reaction
    posterior.save(tmp_path / "k.pdedkl")
    again = pk.load(tmp_path / "k.pdedkl")
    assert again.parameters["k"].interval(0.9) == posterior.parameters["k"].interval(0.9)


def test_numbers_of_nonlinear_problems_are_fields_of_no_coordinate():
    k, b = pk.Parameter("k", 1.0, positive=True), pk.Parameter("b", 0.0)
    equation = pk.D(X, X) @ U + k * U**2 - b * SHAPE == 0
    problem = pk.Problem(
        LINE,
        equations=[equation],
        conditions=[pk.Dirichlet(on=LINE.boundary(X), value=0.0), pk.Sensors(U, SENSORS, np.ones(3), noise=0.1)],
        points=pk.Points(source=9, boundary=2),
    )
    operator = problem.statements[-1].operator
    assert problem.fields == ("u",) and problem.unknown_functions == ("b()", "k()")
    assert [number.name for number in operator.numbers] == ["b", "k"]
    with pytest.raises(ValueError, match="is a factor, as in k"):
        pk.Problem(
            LINE,
            equations=[pk.Directional(X, [k]) @ U + U**2 == 0],
            conditions=[pk.Dirichlet(U, on=LINE.boundary(X), value=1.0)],
        )
