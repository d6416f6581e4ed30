"""Unknown functions in equations: their kernels, where Newton's method starts, and what is found with error bars."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.training.objective import trainable

BOX = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 1.0))
X, T = BOX.coordinates("x", "t")
LINE = pk.Domain(x=(0.0, 1.0))
Z = LINE.coordinates("x")
U = pk.fields("u")
Q = np.random.default_rng(0).uniform(size=(6, 3))


def conductivity(z):
    return np.exp(0.6 * np.sin(2 * np.pi * z) + 0.3)


def potential():
    """`(a u′)′ = −4` with `u = 0` at both ends, by quadrature."""
    grid = np.linspace(0, 1, 4001)
    both = np.stack([1 / conductivity(grid), 4 * grid / conductivity(grid)])
    sums = np.concatenate([np.zeros((2, 1)), np.cumsum(0.5 * (both[:, 1:] + both[:, :-1]) / 4000, axis=1)], axis=1)
    return grid, sums[1, -1] / sums[0, -1] * sums[0] - sums[1]


@pytest.fixture(scope="module")
def darcy():
    """A conductivity from 30 noisy values of `u`."""
    a, (grid, u) = pk.unknown("a", positive=True), potential()
    rng = np.random.default_rng(3)
    at = rng.uniform(size=(24, 1))
    values = np.interp(at[:, 0], grid, u) + 0.01 * np.std(u) * rng.normal(size=24)
    conditions = [pk.Dirichlet(U, on=LINE.boundary(Z), value=0.0), pk.Sensors(U, at, values)]
    equation = pk.D(Z) @ (a * (pk.D(Z) @ U)) == -4.0
    problem = pk.Problem(LINE, equations=[equation], conditions=conditions, points=pk.Points(source=24, boundary=2))
    smooth = pk.SquaredExponential()
    return a, problem, pk.fit(problem, problem.sample(), model="gp", profile=smooth, progress=False)


def test_a_conductivity_is_found_with_its_error_bars(darcy):
    a, problem, posterior = darcy
    places = np.linspace(0.0, 1.0, 41)[:, None]
    found, truth = posterior.predict(places, a), conductivity(places[:, 0])
    lower, upper = found.interval(0.99)
    assert np.linalg.norm(found.mean - truth) < 0.05 * np.linalg.norm(truth)
    assert np.mean((lower < truth) & (truth < upper)) > 0.8 and np.all(lower > 0)
    assert posterior.verdict.status == "calibrated" and problem.unknown_functions == ("log_a",)
    assert np.all(np.asarray(posterior.calibration.factors) >= 1.0)


def test_intervals_of_a_positive_function_are_those_of_its_logarithm(darcy):
    a, _, posterior = darcy
    places = np.linspace(0.1, 0.9, 5)[:, None]
    found, logarithm = posterior.predict(places, a), posterior.predict(places, pk.log(a))
    np.testing.assert_allclose(found.interval(0.9), np.exp(logarithm.interval(0.9)), rtol=1e-12)
    mean = np.exp(logarithm.mean + 0.5 * logarithm.variance)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(found.variance, mean**2 * np.expm1(logarithm.variance), rtol=1e-8)


def test_a_flux_is_linearised_at_the_means_of_its_rows(darcy):
    a, posterior = darcy[0], darcy[2].uncalibrated()
    place = np.array([[0.2]])
    slope = pk.D(Z) @ U
    flux, rows = posterior.predict(place, a * slope), (pk.log(a), slope)
    means = [float(posterior.predict(place, row).mean[0]) for row in rows]
    covariance = np.array([[posterior.covariance(place, r.row, place, s.row)[0, 0] for s in rows] for r in rows])
    gradient = np.exp(means[0]) * np.array([means[1], 1.0])
    assert flux.mean[0] == pytest.approx(np.exp(means[0]) * means[1], rel=1e-6)
    assert flux.variance[0] == pytest.approx(gradient @ covariance @ gradient, rel=0.05)


def test_a_posterior_with_an_unknown_function_is_stored(darcy, tmp_path):
    a, _, posterior = darcy
    posterior.save(tmp_path / "a.pdedkl")
    places = np.linspace(0.1, 0.9, 5)[:, None]
    again = pk.load(tmp_path / "a.pdedkl").predict(places, a)
    np.testing.assert_array_equal(again.mean, posterior.predict(places, a).mean)


def test_a_function_of_some_coordinates_does_not_change_along_the_others():
    v = pk.unknown("v", over=X)
    kernel = pk.ard(BOX, lengthscale=[0.5, 0.7, 0.9]).of(U) + pk.ard(BOX, lengthscale=[0.5, 0.7, 0.9]).of(v)
    data = [pk.Observation(U + pk.D(X[0]) @ v, Q, np.ones(6), noise=0.1)]
    posterior = pk.condition(kernel, data)
    assert np.all(posterior.predict(Q, pk.D(T) @ v).variance == 0.0)
    moved = Q + np.array([0.0, 0.0, 0.25])
    np.testing.assert_allclose(posterior.predict(moved, v).mean, posterior.predict(Q, v).mean, rtol=1e-12)
    by_autodiff = pk.condition(pk.Model(kernel, data, engine="autodiff"), data)
    slope = pk.D(X[0]) @ v
    found, expected = (p.covariance(Q[:3], v, Q[3:], slope) for p in (posterior, by_autodiff))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_names_say_of_which_coordinates_a_function_is():
    names = [pk.unknown("k", over=part).row.names[0] for part in (X, [X[1], T], X[0:1], [T, X])]
    assert names == ["k(x)", "k(x[1], t)", "k(x[0])", "k(x, t)"]
    assert str(pk.unknown("k", positive=True, over=X[0], around=2.0)) == "2 exp(log_k(x[0]))"
    with pytest.raises(ValueError, match="is a function of y"):
        pk.ard(BOX).of("v(y)")
    with pytest.raises(ValueError, match="fields of the same coordinates"):
        pk.ard(BOX).of("u", "v(x)")
    with pytest.raises(TypeError, match="`over` needs coordinates"):
        pk.unknown("k", over="x")
    with pytest.raises(ValueError, match="is for positive functions"):
        pk.unknown("k", around=2.0)


def test_a_number_is_a_constant_of_variance_one_that_training_leaves():
    kernel = pk.ard(BOX, variance=3.0).of("c()")
    assert kernel.between("c()", jnp.zeros(3), "c()", jnp.ones(3)) == 1.0 and kernel.functions == ()
    assert not any(jax.tree.leaves(trainable(kernel)))


def test_a_linear_source_is_that_of_the_prior_of_both():
    """`u″ = s` with wide priors: conditioning gives `s` as `u″` of a posterior without the field `s`."""
    s, at = pk.unknown("s"), np.linspace(0.0, 1.0, 12)[:, None]
    values = pk.Observation(U, at, np.sin(3 * at[:, 0]), noise=1e-3)
    equation = pk.Observation(pk.D(Z, Z) @ U - s, at, np.zeros(12), noise=1e-6)
    kernel = pk.ard(LINE)
    wide = pk.ard(LINE, variance=1e8, lengthscale=0.1).of(s)
    posterior = pk.condition(kernel.of(U) + wide, [values, equation])
    plain = pk.condition(kernel.of(U), [values])
    found, expected = posterior.predict(at, s), plain.predict(at, pk.D(Z, Z) @ U)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-4)
    np.testing.assert_allclose(found.std, expected.std, rtol=1e-3)


def test_what_measurements_leave_open_is_named(darcy):
    from pdedkl.checking.functions import left_open

    _, _, posterior = darcy
    outside = np.linspace(4.0, 5.0, 20)[:, None]
    inside = np.linspace(0.1, 0.9, 180)[:, None]
    assert left_open(posterior, inside) == ((), ())
    everywhere, somewhere = left_open(posterior, np.concatenate([inside, outside]))
    assert not everywhere and any("log_a in 10% of the domain, x 4" in text for text in somewhere)
    everywhere, _ = left_open(posterior, outside)
    assert any("The data say little about log_a" in text for text in everywhere)


def test_a_problem_without_measurements_asks_for_them():
    a = pk.unknown("a", positive=True)
    with pytest.warns(pk.ProblemWarning, match="Give measurements that determine what is unknown"):
        pk.Problem(
            LINE,
            equations=[pk.D(Z) @ (a * (pk.D(Z) @ U)) == 1.0],
            conditions=[pk.Dirichlet(U, on=LINE.boundary(Z), value=0.0)],
        )


def test_an_initial_state_may_be_unknown():
    start = pk.unknown("start", over=X)
    condition = pk.Initial(U, T, value=start)
    statement = condition.stated(BOX)
    assert set(statement.operator.names) == {"u", "start(x)"}
    with pytest.raises(TypeError, match="say of which field"):
        pk.Initial(T, value=start).stated(BOX)
