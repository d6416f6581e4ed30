"""Integrals as rows: against sums over nodes, automatic differentiation and known areas; as data."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk

BOX = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 2.0))
X, T = BOX.coordinates("x", "t")
POINTS = np.random.default_rng(0).uniform(size=(12, 3)) * [1.0, 1.0, 2.0]
VALUES = np.sin(2 * POINTS[:, 0]) + POINTS[:, 1] * POINTS[:, 2]
FACE = BOX.face(X[0], "upper")


def kernel():
    return pk.ard(BOX, lengthscale=1.2)


@pytest.fixture(scope="module")
def posterior():
    flow = pk.Integral(FACE, over=X, nodes=3) @ pk.D(X[0])
    data = [
        pk.Observation(pk.identity, POINTS, VALUES, noise=0.01),
        pk.Observation(flow, POINTS[:3], np.full(3, 2 * np.cos(2.0)), noise=0.01),
    ]
    return pk.condition(kernel(), data)


@pytest.mark.parametrize("inner", [pk.identity, pk.D(X[1]), pk.Coefficient(lambda q: q[0] * q[2]) * pk.identity])
def test_a_prediction_is_the_sum_over_nodes_of_the_joint_posterior(posterior, inner):
    mean = pk.Integral(BOX.interior, over=X, average=True, nodes=3) @ inner
    found = posterior.predict(POINTS[:2], mean)
    for point, value, variance in zip(POINTS, found.mean, found.variance):
        nodes = np.column_stack([mean.nodes, np.full(9, point[2])])
        weights = np.asarray(mean.weights)
        assert value == pytest.approx(weights @ posterior.predict(nodes, inner).mean, rel=1e-10)
        assert variance == pytest.approx(weights @ posterior.covariance(nodes, inner) @ weights, rel=1e-7)


def test_covariances_agree_with_automatic_differentiation(posterior):
    other = pk.condition(pk.Model(kernel(), posterior.observations, engine="autodiff"), posterior.observations)
    both = pk.Integral(BOX.interior, over=X, nodes=2) - 2.0 * pk.identity
    for operator in (both, pk.Integral(BOX.interior, nodes=2)):
        found, expected = (p.predict(POINTS[:2], operator) for p in (posterior, other))
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9)
        np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-7)
    assert posterior.objective == pytest.approx(float(other.objective), rel=1e-10)


def test_the_evidence_in_stages_is_that_of_one_program(posterior):
    model = posterior.model
    value, _ = pk.negative_log_evidence(model, posterior.observations)
    assert float(value) == pytest.approx(float(posterior.objective), rel=1e-12)


def test_areas_and_volumes():
    ball = pk.Domain(x=pk.Ball([0.0, 0.0], 2.0))
    disk = ball.coordinates("x")
    one = lambda q: jnp.ones(())
    expected = [(BOX.interior, 2.0), (FACE, 2.0), (BOX.boundary(X), 8.0), (ball.interior, 4 * np.pi)]
    for region, size in [*expected, (ball.boundary(disk), 4 * np.pi)]:
        q = jnp.zeros(region.domain.dim)
        assert pk.Integral(region)(one)(q) == pytest.approx(size)
        assert pk.Integral(region, average=True)(one)(q) == pytest.approx(1.0)
    assert pk.Integral(BOX.interior)(lambda q: q[0] ** 3 * q[2])(jnp.zeros(3)) == pytest.approx(0.5)
    part = pk.Domain(x=[(0.0, 0.5), (0.0, 1.0)], t=(0.0, 1.0))
    assert pk.Integral(part)(lambda q: q[0])(jnp.zeros(3)) == pytest.approx(0.125)


def test_a_total_is_data_and_a_quantity(posterior, tmp_path):
    total = pk.Integral(BOX.interior, nodes=3)
    before = posterior.quantity(total)
    known = pk.Observation(total, None, [before.mean + before.std], noise=0.1 * before.std)
    after = pk.condition(kernel(), [*posterior.observations, known])
    found = after.quantity(total)
    gain = 1 / (1 + 0.01)
    assert found.mean == pytest.approx(before.mean + gain * before.std, rel=1e-6)
    assert found.std == pytest.approx(before.std * np.sqrt(1 - gain), rel=1e-4)
    low, high = found.interval(0.95)
    assert low < found.mean < high and "95 %" in str(found)
    after.save(tmp_path / "total.pdedkl")
    assert pk.load(tmp_path / "total.pdedkl").quantity(total) == found


def test_a_value_at_a_point_is_a_quantity(posterior):
    found = posterior.quantity(pk.identity, at=POINTS[0])
    assert found.mean == posterior.predict(POINTS[:1]).mean[0]
    with pytest.raises(ValueError, match="has another value at each point"):
        posterior.quantity(pk.D(T))


def test_integrals_of_rows_of_several_fields():
    u, v = pk.fields("u", "v")
    both = pk.ard(BOX).of(u) + pk.ard(BOX).of(v)
    data = [pk.Observation(u + v, POINTS, VALUES, noise=0.01), pk.Observation(u, POINTS, VALUES, noise=0.01)]
    posterior = pk.condition(both, data)
    total = lambda term: posterior.quantity(pk.Integral(BOX.interior, nodes=2) @ term)
    assert total(u + 2 * v).mean == pytest.approx(total(u).mean + 2 * total(v).mean, rel=1e-8)


def test_what_is_refused():
    total = pk.Integral(BOX.interior)
    with pytest.raises(ValueError, match="An integral acts last"):
        pk.D(T) @ total
    with pytest.raises(ValueError, match="depends on the point"):
        pk.Coefficient(T) * total
    with pytest.raises(TypeError, match="needs a region"):
        pk.Integral(X)
    with pytest.raises(TypeError, match="`over` needs coordinates"):
        pk.Integral(BOX.interior, over="x")
    with pytest.raises(ValueError, match="faces of several coordinates"):
        pk.Integral(BOX.boundary(X), over=X[0])
