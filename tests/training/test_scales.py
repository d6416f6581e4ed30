"""The size of data, and of values that are zero or as good as zero."""

from __future__ import annotations

import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.scales import (
    NOISE_OF_EXACT,
    about,
    conditions,
    constant_part,
    data_scales,
    exact_levels,
    signal_variance,
    without_rounding,
)

DOMAIN = pk.Domain(x=[(0.0, 2.0)] * 2, t=(-1.0, 1.0))
X, T = DOMAIN.coordinates()
RNG = np.random.default_rng(0)
POINTS = RNG.uniform(DOMAIN.lower, DOMAIN.upper, size=(200, 3))


def observe(values, name="u", operator=pk.identity, noise="learned", points=POINTS):
    return pk.Observation(operator, points[: len(values)], values, noise, name)


# ── values that have a size ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "u, f, expected",
    [
        ([1.0, 3.0], [2.0, 8.0], {"u": 1.0, "f": 3.0}),
        ([5.0, 5.0], [2.0, 8.0], {"u": 5.0, "f": 3.0}),
        ([-4.0], [2.0], {"u": 4.0, "f": 2.0}),
        ([0.0], [0.0], {"u": 1.0, "f": 1.0}),
    ],
    ids=["spread", "constant", "single", "all zero"],
)
def test_the_size_of_data(u, f, expected):
    found = data_scales([observe(u), observe(f, "f", pk.D(T))])
    assert found == pytest.approx(expected, rel=1e-12)


def test_observations_that_share_a_level_share_a_size():
    items = [observe([1.0, 1.0], "a", noise=pk.Learned("s")), observe([3.0, 3.0], "b", noise=pk.Learned("s"))]
    assert data_scales(items) == pytest.approx({"s": 1.0})


def test_the_variance_starts_from_values_of_u():
    source = observe([10.0, 10.0], "f", pk.D(T))
    assert signal_variance([observe([1.0, 3.0]), source]) == pytest.approx(5.0)
    assert signal_variance([observe([0.0])]) == 1.0


# ── zeros ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "operator", [pk.identity, pk.D(T), -pk.Laplacian(X), pk.D(T) - 0.1 * pk.Laplacian(X), pk.Shift(T, 0.5)], ids=str
)
def test_zeros_have_the_size_that_the_prior_expects(operator):
    """Against the standard deviation of the operator under a plain kernel; random functions scatter about it."""
    data = [observe(3.0 * RNG.normal(size=200)), observe(np.zeros(200), "zero", operator)]
    kernel = pk.ard(DOMAIN, variance=signal_variance(data), lengthscale=np.sqrt(3))
    far = [pk.Observation(pk.identity, POINTS[:1], np.zeros(1), noise=1e6)]
    expected = np.sqrt(np.mean(pk.condition(pk.Model(kernel, far), far).predict(POINTS[:8], operator).std ** 2))
    assert data_scales(data)["zero"] == pytest.approx(expected, rel=0.3)


def test_zeros_follow_the_units_of_values_and_coordinates():
    def sizes(unit_of_u, unit_of_x):
        domain = pk.Domain(x=[(0.0, 2.0 * unit_of_x)] * 3)
        x = domain.coordinates("x")
        u = unit_of_u * np.sin(np.arange(20.0))
        places = unit_of_x * POINTS
        return data_scales([observe(u, points=places), observe(np.zeros(20), "f", pk.Laplacian(x), points=places)])

    plain, scaled = sizes(1.0, 1.0), sizes(1e-9, 1e3)
    assert scaled["u"] == pytest.approx(1e-9 * plain["u"]) and scaled["f"] == pytest.approx(1e-15 * plain["f"])


def test_zeros_on_the_boundary_leave_the_source_to_tell_the_size():
    """`u = 0` on the boundary and `Δu = f`: the larger the box, the larger `u` is for the same `f`."""
    source = lambda width: observe(
        np.sin(np.arange(50.0)),
        "f",
        pk.Laplacian(pk.Domain(x=[(0, width)] * 3).coordinates("x")),
        points=width * POINTS,
    )
    one, ten = (signal_variance([observe(np.zeros(50), points=w * POINTS), source(w)]) for w in (1.0, 10.0))
    assert ten == pytest.approx(1e4 * one)


def test_levels_of_values_that_are_no_measurements():
    u, zero = observe([1.0, 2.0]), observe([0.0, 0.0], "f", pk.D(T))
    assert exact_levels([u, zero]) == {"f"}
    assert exact_levels([zero]) == set()
    shared = pk.Learned("s")
    assert exact_levels([observe([1.0], noise=shared), observe([0.0], "wall", noise=shared)]) == set()
    function = observe([1.0, 2.0], "wall", noise=pk.Learned(exact=True))
    assert exact_levels([u, function]) == {"wall"}


def test_values_that_are_all_the_same_are_no_measurements_if_there_are_enough():
    u = observe([1.0, 2.0])
    assert conditions([u, observe(np.ones(5), "f", pk.D(T)), observe(np.zeros(2), "g")]) == [1, 2]
    assert conditions([u, observe(np.ones(4), "f", pk.D(T))]) == []
    assert exact_levels([u, observe(np.ones(5), "f", pk.D(T))]) == {"f"}


# ── rounding ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rounding_is_taken_for_zero():
    wall = observe(np.sin(np.pi * np.arange(1.0, 9.0)), "wall")
    source = observe(np.linspace(1.0, 5.0, 20), "f", pk.Laplacian(X))
    assert 0 < np.max(np.abs(wall.values)) < 1e-14
    found = without_rounding([wall, source])
    assert not np.any(found[0].values) and found[1] is source


def test_small_numbers_in_other_units_are_no_rounding():
    """A diffusivity of 1e-12 makes source values of 1e-12, from a solution of size one."""
    u = observe(np.linspace(1.0, 2.0, 20))
    source = observe(1e-12 * np.linspace(1.0, 2.0, 20), "f", 1e-12 * pk.Laplacian(X))
    assert without_rounding([u, source]) == (u, source)
    plain = observe(source.values, "f", pk.Laplacian(X))
    assert not np.any(without_rounding([u, plain])[1].values)


# ── constants ─────────────────────────────────────────────────────────────────────────────────────────────────────

KELVIN = observe(300 + np.sin(np.arange(20.0)))


def test_a_constant_that_is_many_times_the_spread():
    assert constant_part([KELVIN]) == pytest.approx(300, abs=1)
    assert constant_part([observe(2 + np.sin(np.arange(20.0)))]) == 0
    assert constant_part([observe(np.full(4, 300.0))]) == 0, "of a few values nothing is known of their spread"
    rate = pk.D(T) + pk.Parameter("k", 1.0) * pk.identity
    assert constant_part([KELVIN, observe(np.ones(5), "f", rate)]) == 0, "k is not known, nor k times 300"


def test_values_about_a_constant():
    decay = observe(np.full(5, 600.0), "f", pk.D(T) + 2.0 * pk.identity)
    u, f = about([KELVIN, decay], pk.ConstantMean(300.0))
    np.testing.assert_allclose(u.values, np.sin(np.arange(20.0)), atol=1e-12)
    np.testing.assert_allclose(f.values, 0.0, atol=1e-12)
    assert about([KELVIN], pk.ZeroMean()) == (KELVIN,)


# In a process of its own, whose programs are optimised as users have them: with unoptimised ones two trainings that
# differ by rounding alone end a few percent apart in their error bars.
SHIFTED = """
import sys
import jax, jax.numpy as jnp, numpy as np, pdedkl as pk
jax.config.update("jax_enable_compilation_cache", False)
domain = pk.Domain(x=[(0.0, 2.0)] * 2, t=(-1.0, 1.0))
points = np.random.default_rng(0).uniform(domain.lower, domain.upper, size=(200, 3))
x, t = domain.coordinates()
operator = pk.D(t) - 0.1 * pk.Laplacian(x) + 2.0 * pk.identity
solution = lambda q: jnp.sin(q[0] + 0.5 * q[2])
source = jax.vmap(operator(solution))(points[:30])
values = jax.vmap(solution)(points[30:60]) + 0.01 * np.random.default_rng(1).normal(size=30)
values, source = values - jnp.mean(values), source - 2 * jnp.mean(values)

def fitted(constant):
    u = pk.Observation(pk.identity, points[30:60], values + constant, noise=0.01)
    return pk.fit(domain, [u, pk.Observation(operator, points[:30], source + 2 * constant)], model="gp", progress=False)

plain, shifted = fitted(0.0), fitted(300.0)
shifted.save(sys.argv[1])
for posterior in (shifted, pk.load(sys.argv[1])):
    for row, by in ((pk.identity, 300.0), (operator, 600.0), (pk.D(t), 0.0)):
        one, other = plain.predict(points[100:], row), posterior.predict(points[100:], row)
        np.testing.assert_allclose(other.mean - by, one.mean, atol=1e-5)
        np.testing.assert_allclose(other.std, one.std, rtol=1e-2)
"""


def test_a_fit_does_not_see_the_constant(tmp_path):
    """`u + 300` is fitted as `u` is, and the model that comes out, saved and loaded, predicts it."""
    command = [sys.executable, "-W", "ignore", "-c", SHIFTED, str(tmp_path / "model.pdedkl")]
    usual = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=usual)
    assert done.returncode == 0, done.stderr[-2000:]


# ── fits ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SQUARE = pk.Domain(x=[(0.0, 1.0)] * 2)
INSIDE = np.random.default_rng(1).uniform(size=(60, 2))
WALL = np.random.default_rng(2).uniform(size=(40, 2))
WALL[np.arange(40), np.arange(40) % 2] = np.arange(40) // 2 % 2
ELSEWHERE = np.random.default_rng(3).uniform(size=(100, 2))


def sines(q):
    return jnp.sin(jnp.pi * q[..., 0]) * jnp.sin(jnp.pi * q[..., 1])


def bubble(q):
    """Its Laplacian is a sum of functions of one coordinate each, which it is not."""
    return 16 * q[..., 0] * (1 - q[..., 0]) * q[..., 1] * (1 - q[..., 1])


@pytest.mark.parametrize("solution, model", [(sines, "gp"), (bubble, "dkl")])
def test_zero_on_the_boundary(solution, model):
    """Boundary values from the formula: rounding where sines are, zeros where there are none."""
    laplacian = pk.Laplacian(SQUARE.coordinates("x"))
    source = jnp.asarray([laplacian(solution)(jnp.asarray(q)) for q in INSIDE])
    data = [pk.Observation(pk.identity, WALL, solution(WALL)), pk.Observation(laplacian, INSIDE, source)]
    posterior = pk.fit(SQUARE, data, model=model)
    truth = np.asarray(solution(ELSEWHERE))
    assert np.linalg.norm(posterior.predict(ELSEWHERE).mean - truth) < 1e-3 * np.linalg.norm(truth)
    assert np.max(np.abs(posterior.predict(WALL).mean)) < 1e-3
    assert posterior.model.noise()["u"] < NOISE_OF_EXACT * 10
