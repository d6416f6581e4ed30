"""Kernels that are zero on faces and spheres, against nested automatic differentiation of `μ(q) μ(q') k(q, q')`."""

from __future__ import annotations

import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import pdedkl as pk
from pdedkl.inference.engines import ClosedForm
from pdedkl.operators import vanishing
from pdedkl.regions import Region
from pdedkl.sampling import draw

ENGINE = ClosedForm()


def multiplier(domain, *regions):
    return vanishing(domain, [piece for region in regions for piece in region.pieces])


def walls(d):
    """Both ends of the first coordinate, and the initial time."""
    domain = cases.domain(d)
    x = domain.coordinates("x")
    return multiplier(domain, domain.boundary(x[0]), *([] if d == 1 else [domain.initial(domain.coordinates("t"))]))


def written_out(d):
    """The same function by hand."""
    lower, upper = cases.domain(d).lower, cases.domain(d).upper

    def mu(q):
        first = 4 * (q[0] - lower[0]) * (upper[0] - q[0]) / (upper[0] - lower[0]) ** 2
        return first if d == 1 else first * (q[-1] - lower[-1]) / (upper[-1] - lower[-1])

    return mu


@pytest.mark.parametrize("d, shape", [(1, "identity"), (2, "affine")])
def test_covariances_equal_nested_autodiff(d, shape):
    kernel = cases.kernel(d, "squared exponential", shape)
    operators = [cases.operators(d)[name] for name in ("identity", "heat", "divergence")]
    operators += [cases.shifted(d)["coefficient here"]] if d == 2 else []
    q = jnp.asarray(cases.points(d, 2))
    plain, mu = oracles.kernel_function(kernel), written_out(d)
    k = lambda a, b: mu(a) * mu(b) * plain(a, b)

    @oracles.quick_jit
    def nested(operators, q):
        def pair(a, b):
            return jax.vmap(lambda p: jax.vmap(lambda p_: a(lambda s: b(lambda s_: k(s, s_))(p_))(p))(q))(q)

        return jnp.block([[pair(a, b) for b in operators] for a in operators])

    @oracles.quick_jit
    def closed(kernel, operators, q):
        rows = [ENGINE.rows(kernel, operator, q) for operator in operators]
        bases = ENGINE.parameters(kernel)
        return jnp.block([[ENGINE.block(bases, a, b) for b in rows] for a in rows])

    expected = np.asarray(nested(operators, q))
    found = np.asarray(closed(kernel.times(walls(d)), operators, q))
    size = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(found / np.outer(size, size), expected / np.outer(size, size), rtol=0, atol=1e-10)


def test_it_is_zero_on_faces_and_spheres_and_nowhere_else():
    domain = pk.Domain(x=pk.Ball([1.0, 0.0], 2.0), y=[(0.0, 1.0)] * 2, t=(0.0, 3.0))
    x, y, t = domain.coordinates()
    zero = [domain.boundary(x), domain.face(y[1], "upper"), domain.initial(t)]
    mu, rng = multiplier(domain, *zero), np.random.default_rng(0)
    for region in zero:
        on = draw(region, 50, rng, "uniform")
        assert mu.zero_at(on).all() and np.max(np.abs(oracles.at_points(mu, on))) < 1e-12
    for region in (domain.interior, domain.face(y[1], "lower"), domain.boundary(y[0]), domain.final(t)):
        off = draw(region, 50, rng, "uniform")
        assert not mu.zero_at(off).any() and np.min(oracles.at_points(mu, off)) > 0
    assert vanishing(domain, []) is None


@pytest.fixture(scope="module")
def solved():
    """`u = Π sin πx_i` from values of the source alone, with and without the walls in the kernel."""
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = domain.coordinates("x")
    exact = lambda q: jnp.prod(jnp.sin(jnp.pi * q))
    wall = pk.Dirichlet(on=domain.boundary(x), value=0.0)
    problem = pk.Problem(domain, -pk.Laplacian(x), lambda q: 2 * jnp.pi**2 * exact(q), [wall], exact=exact)
    data = problem.sample(source=50, boundary=8)
    kernel = pk.ard(domain, lengthscale=1.5).times(multiplier(domain, domain.boundary(x)))
    source = [item for item in data if not item.of_values]
    return problem, data, pk.condition(pk.Model(kernel, source), source)


def test_no_boundary_values_are_needed(solved):
    problem, _, posterior = solved
    inside, wall = (
        problem.interior(200),
        Region.from_cube(problem.statements[0].where, np.random.default_rng(0).random((40, 3))),
    )
    u, on_wall = posterior.predict(inside), posterior.predict(wall)
    truth = problem.truth(inside)
    assert np.max(np.abs(u.mean - truth)) < 1e-4
    assert np.all(on_wall.mean == 0) and np.all(on_wall.std == 0)
    with_lower = float(posterior.kernel(jnp.asarray(inside[0]), jnp.asarray(inside[0])))
    assert with_lower == pytest.approx(u.variance[0], rel=1e-3, abs=1e-13)


def test_a_model_file_keeps_it(solved, tmp_path):
    problem, _, posterior = solved
    posterior.save(tmp_path / "model.pdedkl")
    again, places = pk.load(tmp_path / "model.pdedkl"), problem.interior(20)
    np.testing.assert_array_equal(again.predict(places).variance, posterior.predict(places).variance)
    assert "zero on faces" in str(again)


def test_values_that_hold_by_themselves_are_not_compared(solved):
    problem, _, posterior = solved
    verdict = posterior.check(problem, n=50)
    assert (
        verdict.status in ("calibrated", "not calibrated")
        and [c.name for c in verdict.comparisons if c.name == "u"] == []
    )
    assert not np.isnan(verdict.error_u)


def test_a_fit_builds_zero_walls_in_where_that_is_better(solved):
    problem, data, _ = solved
    posterior = pk.fit(problem, data, model="gp", profile=pk.SquaredExponential(), progress=False)
    names = [name for name, _ in posterior.training.candidates]
    assert names == ["inputs", "inputs, zero on walls"] and posterior.training.kernel == names[1]
    assert [item.of_values for item in posterior.observations] == [False]
    places = problem.interior(200)
    u, truth = posterior.predict(places), problem.truth(places)
    assert np.max(np.abs(u.mean - truth)) < 1e-4
    assert posterior.verdict.calibrated, str(posterior.verdict)


def test_walls_that_are_measured_or_not_zero_are_not_built_in(solved):
    from pdedkl.training.walls import zero_walls

    problem, data, _ = solved
    domain, x = problem.domain, problem.domain.coordinates("x")
    assert zero_walls(problem, data).faces == ((0, 0.0, 1.0, ("lower", "upper")), (1, 0.0, 1.0, ("lower", "upper")))
    assert zero_walls(domain, data) is None
    some = [
        pk.Dirichlet(on=domain.boundary(x[0]), value=lambda q: jnp.sin(jnp.pi * x(q)[0])),
        pk.Dirichlet(on=domain.boundary(x[1]), value=1.0),
    ]
    other = pk.Problem(domain, problem.operator, problem.source, some, silenced=["contradiction"])
    assert zero_walls(other, other.sample(source=10, boundary=8)).faces == ((0, 0.0, 1.0, ("lower", "upper")),)
    assert zero_walls(other, other.sample(source=10, boundary=8, noise=0.1)) is None
