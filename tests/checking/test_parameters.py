"""What is said of unknown numbers: tables, intervals, what is not identified; profiles against normal ones."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.checking.parameters import described
from pdedkl.cli.tables import show_parameters
from pdedkl.runs.metrics import odd
from pdedkl.verdicts import Verdict

LINE = pk.Domain(x=(0.0, 1.0))
X = LINE.coordinates("x")
K = pk.Parameter("k", 1.0, positive=True)
TRUTH = 2.0


def fitted(operator, **more):
    """From noisy values of `u = 1 + sin 3x` and exact ones of `2u − u''/2`."""
    field = lambda q: jnp.sin(3 * q[0]) + 1.0
    at, inside = np.linspace(0.03, 0.97, 30)[:, None], np.linspace(0.05, 0.95, 15)[:, None]
    f = jax.vmap((TRUTH * pk.identity - 0.5 * pk.D(X, X))(field))(jnp.asarray(inside))
    values = np.asarray(jax.vmap(field)(at)) + 0.02 * np.random.default_rng(0).normal(size=30)
    data = [
        pk.Observation(operator, inside, f, noise="exact", name="equation"),
        pk.Observation(pk.identity, at, values, noise=0.02, name="sensors"),
    ]
    return pk.fit(LINE, data, model="gp", progress=False, **more)


@pytest.fixture(scope="module")
def known():
    return fitted(K * pk.identity - 0.5 * pk.D(X, X))


@pytest.fixture(scope="module")
def product():
    with pytest.warns(pk.FitWarning, match="only by their product"):
        return fitted(K * pk.Parameter("a", 1.0, positive=True) * pk.identity - 0.5 * pk.D(X, X))


def test_a_number_is_found_with_its_interval(known):
    (name, one), *none = known.parameters.items()
    low, high = one.interval(0.95)
    assert name == "k" and not none and one.identified and not known.parameters.findings
    assert low < TRUTH < high and 0.005 < one.std < 0.05
    assert one.interval(0.5)[0] > low and "identified" in str(known.parameters)
    assert f"k = {one.estimate:.4g} ± " in repr(known)


def test_a_profile_agrees_with_the_curvature_where_the_distribution_is_normal(known):
    found = known.parameters.posterior("profile")
    laplace, profile = known.parameters["k"], found["k"]
    assert profile.std == pytest.approx(laplace.std, rel=0.1)
    np.testing.assert_allclose(profile.interval(), laplace.interval(), atol=0.15 * laplace.std)
    curve = found.curves["k"]
    assert np.min(curve.rises) == 0 and np.all(np.diff(curve.values) > 0)
    assert found.plot().axes[0].get_xlabel() == "k"


def test_two_numbers_that_are_known_only_by_their_product(product):
    found = product.parameters
    assert not found["a"].identified and not found["k"].identified
    assert found.findings == (
        "The data know a and k only by their product: give one of them, or data that tell them apart.",
    )
    assert found["a"].estimate * found["k"].estimate == pytest.approx(TRUTH, rel=0.05)
    assert found.correlation[0, 1] < -0.99
    low, high = found.posterior("profile", names=["a"])["a"].interval()
    assert low < 0.1 and high > 20
    # What is not known of both does not widen u: it is known by their product.
    assert np.max(product.predict(np.linspace(0, 1, 9)[:, None]).std) < 0.1


def test_a_number_that_is_in_no_data_but_its_prior():
    """The second parameter multiplies what is zero in the data."""
    b = pk.Parameter("b", prior=pk.Normal(0.0, 2.0))
    nothing = pk.Coefficient(lambda q, b: 0.0 * b, b)
    with pytest.warns(pk.FitWarning, match="do not identify b"):
        posterior = fitted(K * pk.identity - 0.5 * pk.D(X, X) + nothing * pk.identity)
    b = posterior.parameters["b"]
    assert b.std == pytest.approx(2.0, rel=0.05) and not b.identified
    assert posterior.parameters["k"].identified


@pytest.mark.parametrize(
    "direction, word",
    [([1, -1], "product"), ([1, 1], "ratio"), ([1, 0], "do not identify k"), ([1, -0.3], "a combination")],
)
def test_what_is_left_open_is_named(direction, word):
    a, k = pk.Parameter("a", 1.0, positive=True), pk.Parameter("k", 1.0, positive=True)
    observation = pk.Observation(a * pk.identity - k * pk.D(X, X), np.asarray([[0.5]]), np.zeros(1))
    posterior = pk.condition(pk.ard(LINE), observation)
    unit = np.asarray(direction[::-1]) / np.linalg.norm(direction)
    covariance = 25.0 * np.outer(unit, unit) + 1e-4 * np.eye(2)
    (finding,) = described(posterior, np.zeros(2), covariance, "").findings
    assert word in finding


def test_metrics_hold_the_table(product, capsys):
    from rich.console import Console

    made = {"parameters": product.parameters._to_json()}
    show_parameters(Console(width=120), made)
    out = capsys.readouterr().out
    assert "not identified" in out and "only by their product" in out
    assert odd(made).startswith("it lacks")
    show_parameters(Console(width=120), {"parameters": None})
    assert capsys.readouterr().out == ""


def test_a_saved_model_has_the_same_table(known, tmp_path):
    known.save(tmp_path / "model.pdedkl")
    again = pk.load(tmp_path / "model.pdedkl")
    assert str(again.parameters) == str(known.parameters)
    places = np.linspace(0, 1, 5)[:, None]
    assert np.array_equal(again.predict(places).variance, known.predict(places).variance)


def test_intervals_are_doubted_where_error_bars_of_u_do_not_hold(known):
    doubted = replace(known, verdict=Verdict("not calibrated")).parameters
    assert "may be too narrow" in doubted.findings[0] and doubted["k"].identified


def test_an_unknown_method_is_refused(known):
    with pytest.raises(ValueError, match="profile"):
        known.parameters.posterior("exact")
    with pytest.raises(KeyError, match="there is k"):
        known.parameters.posterior("profile", names=["nu"])
    with pytest.raises(ValueError, match="probability"):
        known.parameters["k"].interval(95)


def test_chains_agree_with_the_curvature_where_the_distribution_is_normal(known, tmp_path):
    """And a run that was stopped goes on where it was."""
    options = {"chains": 1, "draws": 50, "warmup": 40, "seed": 1}
    found = known.parameters.posterior("nuts", **options, checkpoint=tmp_path / "chains")
    laplace = known.parameters["k"]
    assert found["k"].std == pytest.approx(laplace.std, rel=0.35)
    assert abs(found["k"].mean - laplace.mean) < laplace.std
    assert found.draws["k"].shape == (1, 50) and found.effective["k"] > 5
    assert found.plot().axes[0].get_xlabel() == "k"
    again = known.parameters.posterior("nuts", **options, checkpoint=tmp_path / "chains")
    assert np.array_equal(again.draws["k"], found.draws["k"])
