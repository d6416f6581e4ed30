"""The verdict that a fit ends with, and the warning that goes with it."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.checking.check import check, judged_by_the_data
from pdedkl.inference.comparing import clusters
from pdedkl.verdicts import Comparison

LINE = pk.Domain(x=(0, 1), t=(0, 0.2))
X, T = LINE.coordinates("x"), LINE.coordinates("t")
HEAT = pk.D(T) - pk.Laplacian(X)


def cooling(q):
    """A part of it is zero on the walls, so that nothing but the initial values could show it."""
    hidden = jnp.exp(-(jnp.pi**2) * q[1]) * jnp.sin(jnp.pi * q[0])
    return jnp.exp(-4 * q[1]) * jnp.sin(2 * q[0] + 1.0) + 0.3 * hidden


@pytest.fixture(scope="module")
def without_initial():
    """Heat without an initial condition, and what was heard while it was solved."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        problem = pk.Problem(LINE, HEAT, 0.0, [pk.Dirichlet(LINE.boundary(X), cooling)])
        posterior = pk.fit(problem, problem.sample(20, 12, seed=1), model="gp")
    return problem, posterior, heard


def test_what_is_not_determined_is_said_with_the_remedy(without_initial):
    _, posterior, heard = without_initial
    verdict = posterior.verdict
    assert verdict.status == "undetermined" and not verdict.calibrated
    assert any("Initial(t, value=…)" in reason for reason in verdict.reasons)
    assert verdict.to_json()["status"] == "undetermined" and str(verdict).startswith("Undetermined")
    (warned,) = [w for w in heard if w.category is pk.FitWarning]
    assert warned.filename == __file__ and "Initial(t, value=…)" in str(warned.message)


def test_error_bars_cover_what_is_not_determined(without_initial):
    problem, posterior, _ = without_initial
    q = problem.interior(200, seed=5)
    truth = np.asarray([cooling(p) for p in q])
    predicted = posterior.predict(q)
    z = (predicted.mean - truth) / predicted.std
    assert np.sqrt(np.mean(z**2)) < 3
    assert posterior.verdict.error_u > 0.03


def test_a_posterior_that_was_only_conditioned_is_unchecked():
    data = [pk.Observation(pk.identity, np.asarray([[0.5, 0.1]]), [1.0], 0.1)]
    verdict = pk.condition(pk.ard(LINE), data).verdict
    assert verdict.status == "unchecked" and not verdict.calibrated and np.isnan(verdict.error_u)
    assert "check(problem)" in verdict.reasons[0]


# ── bare domains ──────────────────────────────────────────────────────────────────────────────────────────────────

INTERVAL = pk.Domain(x=(0, 1))
Q = np.linspace(0, 1, 30)[:, None]


def measured(noise=0.02):
    return np.sin(6 * Q[:, 0]) + noise * np.random.default_rng(0).normal(size=30)


@pytest.fixture(scope="module")
def curve():
    with warnings.catch_warnings():
        warnings.simplefilter("error", pk.FitWarning)
        return pk.fit(INTERVAL, [pk.Observation(pk.identity, Q, measured())], model="gp")


def test_on_a_bare_domain_left_out_values_are_the_judge(curve):
    verdict = curve.verdict
    assert verdict.status == "calibrated" and verdict.compared_with == "left-out values"
    (comparison,) = verdict.comparisons
    assert comparison.name == "u" and 0.6 < comparison.z_rms < 1.5
    assert "keep some measured values back" in verdict.advice
    error = curve.predict(Q).mean - np.sin(6 * Q[:, 0])
    size = np.sqrt(np.mean(np.sin(6 * Q[:, 0]) ** 2))
    assert 0.3 < verdict.error_u / (np.sqrt(np.mean(error**2)) / size) < 3


def test_the_worst_left_out_cluster_is_named_by_its_place():
    step = np.where(Q[:, 0] < 0.62, 0.0, 1.0)
    stiff = pk.condition(pk.ard(INTERVAL, variance=1.0, lengthscale=1.0), [pk.Observation(pk.identity, Q, step, 0.01)])
    (comparison,), (left,) = judged_by_the_data(stiff, ()).comparisons, stiff.left_out_clusters()
    middles = [np.mean(Q[part]) for part in clusters(Q)]
    assert comparison.points == len(middles) == len(left.errors)
    assert comparison.worst == pytest.approx([middles[np.argmax(np.abs(left.errors))]])


def test_error_bars_that_had_to_be_widened_much_are_not_trusted():
    stiff = pk.condition(
        pk.ard(INTERVAL, variance=1.0, lengthscale=5.0), [pk.Observation(pk.identity, Q, measured(), 0.01)]
    )
    verdict = judged_by_the_data(stiff.calibrated(), ())
    assert verdict.status == "not calibrated" and "widened" in verdict.reasons[0]


def test_values_that_all_others_contradict_are_named(curve):
    wrong = measured()
    wrong[7] += 3.0
    posterior = pk.condition(curve.model, [pk.Observation(pk.identity, Q, wrong, name="u")])
    reasons = " ".join(judged_by_the_data(posterior, ()).reasons)
    assert "7" in reasons and "robust" in reasons


def compared(name, z, coverage, error=1e-3, claimed=1e-3, strict=True):
    return Comparison(name, 500, 1.0, error, claimed, z, coverage, (), error, strict)


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (compared("u", 1.0, 0.95), ""),
        (compared("u", 1.0, 0.89), "narrow"),
        (compared("u", 0.7, 0.99), "wide"),
        (compared("u", 1.0, 1.0, error=1e-7), ""),
        (compared("u", 0.1, 1.0, claimed=1e-6), ""),
        (compared("u", 2.1, 0.95, error=1e-7), "narrow"),
        (compared("u inside", 1.0, 0.82), ""),
        (compared("u inside", 1.0, 0.79), "narrow"),
        (compared("u inside", 0.7, 0.997), ""),
        (compared("u inside", 0.7, 0.999), "wide"),
        (compared("-Δ_x u", 0.3, 1.0), ""),
        (compared("-Δ_x u", 1.2, 0.85), "narrow"),
        (compared("-Δ_x u", 0.1, 1.0, strict=False), ""),
        (compared("-Δ_x u", 2.9, 0.71, strict=False), ""),
        (compared("-Δ_x u", 3.1, 0.71, strict=False), "narrow"),
    ],
)
def test_which_error_bars_hold(found, wrong):
    """Strictest for fresh values of `u`, less for estimated errors, and for others on one side only."""
    assert found.calibrated is not bool(wrong)
    assert (found.too_narrow, found.too_wide) == (wrong == "narrow", wrong == "wide")
    assert (wrong in found._in_words()) and bool(found._in_words()) is bool(wrong)


def test_errors_that_are_all_alike_are_not_called_too_wide_in_words():
    found = compared("u inside", 1.4, 1.0)
    assert not found.calibrated and "alike" in found._in_words() and "wide" not in found._in_words()


def test_an_equation_that_is_taken_for_noise_is_found():
    """A linear function plus one with a tiny length scale: the second explains every value of the equation alone."""
    square = pk.Domain(x=[(-1.0, 1.0)] * 2)
    x = square.coordinates("x")
    exact = lambda q: q[0] * (1 + jnp.sum(q**2))
    problem = pk.Problem(square, pk.Laplacian(x), lambda q: 8 * q[0], [pk.Dirichlet(square.boundary(x), exact)])
    data = problem.sample(source=60, boundary=40, seed=0)

    def verdict(lengthscale, variance):
        kernel = pk.additive(square, variance=[100.0, variance], lengthscale=[3.0, lengthscale])
        kernel = kernel + pk.ard(square, lengthscale=2.0) if lengthscale > 1 else kernel
        return pk.condition(pk.Model(kernel, data), data).calibrated(problem.fresh(200)).check(problem)

    noise = verdict(1e-4, 1e-12)
    assert noise.status == "not calibrated" and np.isnan(noise.error_u) and noise.ruled_by == "model"
    assert any("as good as unknown" in reason for reason in noise.reasons)
    assert not any("as good as unknown" in reason for reason in verdict(2.0, 1.0).reasons)


@pytest.mark.parametrize(("contrast", "seen"), [(50.0, True), (0.0, False)])
def test_digits_of_u_do_not_go_with_an_equation_that_is_missed(contrast, seen):
    """`∇·(a ∇u) = 0`, `u = x` on the boundary: a sum over inputs is sure of `u = x`, which needs a constant `a`."""
    square = pk.Domain(x=[(-1.0, 1.0)] * 2)
    x = square.coordinates("x")
    operator = pk.Divergence(x, lambda q: 1 + contrast * jnp.exp(-4 * jnp.sum(q**2)))
    problem = pk.Problem(square, operator, 0.0, [pk.Dirichlet(square.boundary(x), lambda q: q[0], noise=1e-7)])
    data = problem.sample(source=2, boundary=60, seed=0)[:1]
    kernel = pk.additive(square, variance=10.0, lengthscale=4.0)
    posterior = pk.condition(pk.Model(kernel, data), data)
    verdict = check(posterior, problem, open_questions=())
    assert any("both cannot be" in reason for reason in verdict.reasons) == seen
    if seen:
        assert verdict.status == "not calibrated" and np.isnan(verdict.error_u) and verdict.ruled_by == "model"


def test_error_bars_that_were_widened_many_times_are_not_trusted():
    """A kink: between two points the equation is far off, and the error of `u` is known only roughly."""
    rod = pk.Domain(x=(0.0, 1.0))
    x = rod.coordinates("x")
    problem = pk.Problem(rod, -pk.D(x, x), lambda q: jnp.abs(q[0] - 0.5), [pk.Dirichlet(rod.boundary(x), 0.0)])
    data = problem.sample(source=40, boundary=2, seed=0)
    narrow = pk.condition(pk.Model(pk.ard(rod, variance=1e-4, lengthscale=0.5), data), data)
    found = narrow.calibrated(problem.fresh(200, purpose="calibration"))
    assert float(np.max(np.asarray(found.calibration.factors))) > 10
    verdict = found.check(problem)
    assert verdict.status == "not calibrated" and any("widened" in reason for reason in verdict.reasons)
