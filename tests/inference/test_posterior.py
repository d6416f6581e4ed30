"""The posterior, against tinygp, against itself by other ways, and against exact solutions."""

from __future__ import annotations

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import at_points, quick_jit
from test_evidence import heat_observations

import pdedkl as pk
from pdedkl.inference.evidence import linear_system
from pdedkl.inference.rows import ROUNDING


def observed(name, u, q, d):
    operator = cases.operators(d)[name]
    return pk.Observation(operator, q, at_points(operator(u), q), "exact")


@quick_jit
def full_gram(model, observations):
    system = linear_system(model, observations)
    return jnp.block([[system.engine.block(system.parameters, a, b) for b in system.sections] for a in system.sections])


TINYGP = {
    "squared exponential": tinygp.kernels.ExpSquared(distance=tinygp.kernels.distance.L2Distance()),
    "matern 5/2": tinygp.kernels.Matern52(distance=tinygp.kernels.distance.L2Distance()),
    "rational quadratic": tinygp.kernels.RationalQuadratic(alpha=1.3, distance=tinygp.kernels.distance.L2Distance()),
}


@pytest.mark.parametrize("profile", TINYGP)
@pytest.mark.parametrize("d", (1, 3, 10))
def test_plain_regression_equals_tinygp(profile, d):
    box, q, test = cases.domain(d), cases.points(d, 40), cases.points(d, 25, seed=1)
    y, noise = np.sin(q.sum(1)), np.linspace(0.05, 0.2, 40)
    lengthscale = np.linspace(0.5, 1.5, d)
    kernel = pk.ard(box, cases.profiles()[profile], variance=1.7, lengthscale=lengthscale)
    posterior = pk.condition(kernel, [pk.Observation(pk.identity, q, y, noise)])

    scale = (box.upper - box.lower) / 2 * lengthscale

    @quick_jit
    def by_tinygp(scale, q, noise, y, test):
        kernel = tinygp.transforms.Linear(1 / scale, 1.7 * TINYGP[profile])
        log_evidence, there = tinygp.GaussianProcess(kernel, q, diag=noise**2).condition(y, test, diag=0.0)
        return log_evidence, there.loc, there.variance, there.covariance

    log_evidence, mean, variance, covariance = by_tinygp(*map(jnp.asarray, (scale, q, noise, y, test)))
    prediction = posterior.predict(test)
    assert float(posterior.objective) == pytest.approx(-float(log_evidence), rel=1e-8)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(prediction.variance, variance, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(posterior.covariance(test), covariance, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("engine", ("closed-form", "autodiff"))
def test_operators_commute_with_conditioning(engine):
    """The paper's relation: the mean of `A u` is `A` of the mean of `u`, and likewise for the covariance."""
    d, observations = 3, heat_observations()
    kernel = cases.kernel(d, "squared exponential", "affine")
    posterior = pk.condition(pk.Model(kernel, observations, mean=pk.FunctionMean(jnp.sum), engine=engine), observations)
    heat = posterior.model.bound(observations[-1].operator)
    q = jnp.asarray(cases.points(d, 4, seed=9))

    mean = quick_jit(jax.vmap(heat(posterior.mean)))(q)
    np.testing.assert_allclose(posterior.predict(q, heat).mean, mean, rtol=1e-8, atol=1e-8)

    def nested(p, p_):
        return heat(lambda s: heat(lambda s_: posterior.kernel(s, s_))(p_))(p)

    covariance = quick_jit(jax.vmap(lambda p: jax.vmap(lambda p_: nested(p, p_))(q)))(q)
    got = posterior.covariance(q, heat)
    np.testing.assert_allclose(got, covariance, rtol=1e-7, atol=1e-7 * np.abs(covariance).max())
    np.testing.assert_allclose(posterior.predict(q, heat).variance, np.diagonal(got), rtol=1e-7)
    crossed = quick_jit(jax.vmap(lambda p: jax.vmap(lambda p_: heat(lambda s: posterior.kernel(s, p_))(p))(q[:2])))(q)
    np.testing.assert_allclose(posterior.covariance(q, heat, q[:2], pk.identity), crossed, rtol=1e-7, atol=1e-9)


def test_both_engines_give_the_same_posterior():
    observations, test = heat_observations(), cases.points(3, 6, seed=5)
    kernel = cases.kernel(3, "matern 7/2", "identity") + cases.kernel(3, "squared exponential", "tanh")
    heat = observations[-1].operator
    closed, autodiff = (
        pk.condition(pk.Model(kernel, observations, engine=engine), observations)
        for engine in ("closed-form", "autodiff")
    )
    assert float(closed.objective) == pytest.approx(float(autodiff.objective), rel=1e-9)
    for operator in (pk.identity, heat):
        a, b = closed.predict(test, operator), autodiff.predict(test, operator)
        np.testing.assert_allclose(a.mean, b.mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(a.variance, b.variance, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "name, profile",
    [
        ("third", "matern 9/2"),
        ("KdV", "squared exponential"),
        ("biharmonic", "squared exponential"),
        ("biharmonic", "matern 9/2"),
    ],
)
def test_high_order_operators_by_the_autodiff_engine(name, profile):
    """Covariances against operators applied to the kernel, and the paper's relation for the mean."""
    d = 2
    operator, q = cases.high_order(d)[name], jnp.asarray(cases.points(d, 3))
    kernel = pk.ard(cases.domain(d), cases.profiles()[profile], lengthscale=1.1)
    observations = (pk.Observation(operator, q, np.ones(3), 0.1), pk.Observation(pk.identity, q, np.zeros(3), 0.1))
    model = pk.Model(kernel, observations, engine="autodiff")

    @quick_jit
    def blocks(model, q):
        system = linear_system(model, observations)
        first, second = system.sections
        crossed = jax.vmap(lambda p: jax.vmap(lambda p_: operator(lambda s: kernel(s, p_))(p))(q))(q)
        return *(system.engine.block(system.parameters, first, other) for other in (second, first)), crossed

    got, both, reference = map(np.asarray, blocks(model, q))
    np.testing.assert_allclose(got, reference, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(both, both.T, rtol=1e-9, atol=1e-9 * np.abs(both).max())
    assert np.linalg.eigvalsh(both).min() > 0
    posterior = pk.condition(model, observations)
    mean = quick_jit(jax.vmap(operator(posterior.mean)))(q)
    np.testing.assert_allclose(posterior.predict(q, operator).mean, mean, rtol=1e-7, atol=1e-7)


def test_third_derivative_covariance_by_hand():
    """`∂³ ∂'³ e^{-r²/2} = −H_6(r) e^{-r²/2}` in one dimension, coincident points included."""
    box = pk.Domain(x=[(-1, 1)])
    x = box.coordinates("x")
    third = pk.D(x[0], x[0], x[0])
    q = np.array([[0.0], [0.3], [0.9]])
    observations = (pk.Observation(third, q, np.zeros(3), "exact"),)
    system = linear_system(pk.Model(pk.ard(box), observations, engine="autodiff"), observations)
    got = system.engine.block(system.parameters, system.sections[0], system.sections[0])
    r = q - q.T
    hermite = r**6 - 15 * r**4 + 45 * r**2 - 15
    np.testing.assert_allclose(got, -hermite * np.exp(-(r**2) / 2), rtol=1e-10)


@settings(deadline=None, max_examples=8)
@given(st.data())
def test_gram_matrices_of_mixed_observations_are_positive(data):
    d = data.draw(st.sampled_from((1, 2, 3, 10)))
    names = data.draw(st.lists(st.sampled_from(list(cases.operators(d))), min_size=1, max_size=3))
    shape = data.draw(st.sampled_from(("identity", "residual", "additive")))
    profile = data.draw(st.sampled_from(list(cases.profiles())))
    kernel = cases.kernel(d, profile, shape)
    observations = []
    for name in names:
        n = data.draw(st.integers(1, 8))
        q = cases.points(d, n, data.draw(st.integers(0, 100)))
        q = q[data.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))]  # duplicates are welcome
        observations.append(pk.Observation(cases.operators(d)[name], q, np.zeros(n), "exact"))
    K = np.asarray(full_gram(pk.Model(kernel, observations), observations))
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-13 * np.abs(K).max())
    eigenvalues = np.linalg.eigvalsh(0.5 * (K + K.T))
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


def test_batches_give_the_same_as_all_at_once():
    posterior = pk.condition(cases.kernel(3, "squared exponential", "residual"), heat_observations())
    q = cases.points(3, 101, seed=3)
    whole, parts = posterior.predict(q), posterior.predict(q, batch_size=13)
    np.testing.assert_allclose(whole.mean, parts.mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(whole.variance, parts.variance, rtol=1e-9, atol=1e-12)


def test_joint_samples_have_the_posterior_moments():
    posterior = pk.condition(cases.kernel(3, "squared exponential", "residual"), heat_observations())
    q, x = cases.points(3, 5, seed=3), cases.domain(3).coordinates("x")
    draws = posterior.sample(jax.random.key(0), q, pk.Laplacian(x), count=20_000)
    covariance = posterior.covariance(q, pk.Laplacian(x))
    deviation = np.sqrt(np.diagonal(covariance))
    assert draws.shape == (20_000, 5)
    assert np.max(np.abs(draws.mean(0) - posterior.predict(q, pk.Laplacian(x)).mean) / deviation) < 0.05
    assert np.max(np.abs(np.cov(draws.T) - covariance) / np.outer(deviation, deviation)) < 0.05


def test_exact_observations_are_interpolated_and_duplicates_work():
    box, q = cases.domain(2), cases.points(2, 6)
    twice = np.concatenate([q, q[:3]])
    y = np.sin(twice.sum(1))
    posterior = pk.condition(pk.ard(box, lengthscale=0.5), [pk.Observation(pk.identity, twice, y, "exact")])
    prediction = posterior.predict(twice)
    assert posterior.jitter > 0
    np.testing.assert_allclose(prediction.mean, y, atol=1e-6)
    assert np.all(prediction.variance >= 0) and np.all(prediction.variance < 1e-6)


def test_negative_variances_are_clamped_and_counted():
    """A factor that is a little too small stands for rounding: the data then explain more than there was."""
    box, q = cases.domain(2), cases.points(2, 30)
    exact = pk.condition(pk.ard(box, lengthscale=0.5), [pk.Observation(pk.identity, q, np.sin(q[:, 0]), "exact")])
    rounded = eqx.tree_at(lambda posterior: posterior.solver.factor, exact, (1 - 1e-6) * exact.solver.factor)
    prediction = rounded.predict(q)
    assert prediction.clamped == 30
    np.testing.assert_allclose(prediction.variance, ROUNDING, rtol=1e-10)  # of a prior variance of 1


@pytest.mark.parametrize("name", ("laplacian", "divergence", "wave", "variable", "heat"))
def test_a_known_solution_is_found(name):
    """Values on the rim and source values inside determine u; its error is far below what the values alone allow."""
    d, u = 2, lambda q: jnp.sin(1.3 * q[0] + 0.4) * jnp.exp(-0.5 * q[1])
    rim, inside, test = cases.points(d, 60), cases.points(d, 80, seed=1), cases.points(d, 200, seed=2)
    box = cases.domain(d)
    side = np.arange(60) % 4
    rim[side == 0, 0], rim[side == 1, 0] = box.lower[0], box.upper[0]
    rim[side == 2, 1], rim[side == 3, 1] = box.lower[1], box.upper[1]
    kernel = pk.ard(box, variance=1.0, lengthscale=2.0)
    values = observed("identity", u, rim, d)
    truth = np.asarray(at_points(u, test))
    error = lambda data: np.linalg.norm(pk.condition(kernel, data).predict(test).mean - truth) / np.linalg.norm(truth)
    with_source = error([values, observed(name, u, inside, d)])
    assert with_source < 1e-6
    assert with_source < 0.1 * error([values])


def test_error_falls_with_the_number_of_points():
    """Matérn 5/2 in one dimension: from source values at n points the error falls at least like n^-2."""
    box = pk.Domain(x=[(0, 1)])
    x = box.coordinates("x")
    u = lambda q: jnp.sin(3 * q[0])
    test = np.linspace(0, 1, 101)[:, None]
    truth = np.sin(3 * test[:, 0])
    errors = []
    for n in (10, 20, 40, 80):
        inside, ends = np.linspace(0.0, 1.0, n)[:, None], np.array([[0.0], [1.0]])
        data = [
            pk.Observation(pk.identity, ends, at_points(u, ends), "exact"),
            pk.Observation(pk.Laplacian(x), inside, at_points(pk.Laplacian(x)(u), inside), "exact"),
        ]
        posterior = pk.condition(pk.ard(box, pk.Matern52(), lengthscale=3.0), data)
        errors.append(np.max(np.abs(posterior.predict(test).mean - truth)))
    rates = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(rates > 1.8), rates


def test_intervals_cover_draws_of_the_prior():
    """The truth is a draw of the prior itself, so 90 % intervals must hold it about nine times in ten."""
    box = cases.domain(2)
    x, t = box.coordinates("x", "t")
    heat = pk.D(t) - pk.Laplacian(x)
    kernel = pk.ard(box, lengthscale=0.6)
    q, inside, test = cases.points(2, 15), cases.points(2, 15, seed=1), cases.points(2, 30, seed=2)
    blind = [pk.Observation(pk.identity, q[:1], [0.0], 1e3)]  # next to nothing is known: a draw of the prior
    prior = pk.condition(kernel, blind)
    rows = [(q, pk.identity), (inside, heat), (test, pk.identity)]
    joint = np.block([[prior.covariance(*a, *b) for b in rows] for a in rows])
    root = np.linalg.cholesky(joint + 1e-10 * np.diag(np.diagonal(joint)))
    rng, covered = np.random.default_rng(0), []
    for _ in range(60):
        draw = root @ rng.normal(size=60)
        noisy = draw[:30] + 0.05 * rng.normal(size=30)
        data = [pk.Observation(pk.identity, q, noisy[:15], 0.05), pk.Observation(heat, inside, noisy[15:], 0.05)]
        low, high = pk.condition(kernel, data).predict(test).interval(0.9)
        covered.append(np.mean((low <= draw[30:]) & (draw[30:] <= high)))
    assert 0.86 < np.mean(covered) < 0.94


def test_an_unknown_coefficient_enters_the_prediction():
    """The model's value of a parameter is used when its operator is predicted, not the one it was made with."""
    observations = heat_observations()
    model = pk.Model(cases.kernel(3, "squared exponential", "residual"), observations)
    moved = eqx.tree_at(lambda m: m.coefficients["nu"], model, jnp.log(5.0))
    q, heat = cases.points(3, 4), observations[-1].operator
    by_name = pk.condition(moved, observations).predict(q, heat).mean
    x, t = cases.domain(3).coordinates("x", "t")
    by_value = pk.condition(moved, observations).predict(q, pk.D(t) - 5.0 * pk.Laplacian(x)).mean
    np.testing.assert_allclose(by_name, by_value, rtol=1e-10)
