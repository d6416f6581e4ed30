"""Conditions: normals, one observation for all faces, and problems that are solved with them."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import quick_jit

import pdedkl as pk

# Many problems here lack conditions on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::pdedkl.problems.ProblemWarning")

BOX = pk.Domain(x=[(0, 1), (-1, 3)], t=(0, 1))
X, T = BOX.coordinates()
BALL = pk.Domain(x=pk.Ball([1.0, 0.0, -1.0], 2.0), t=(0, 1))
BX, BT = BALL.coordinates()


def u(q):
    return jnp.sin(q[0] + 0.5 * q[1]) * jnp.exp(-q[-1])


@quick_jit
def gradient(q):
    return jax.vmap(jax.grad(u))(q)


@quick_jit
def applied(operator, function, q):
    return jax.vmap(operator(function))(q)


def slopes(domain, condition, n=40):
    """The points and operator of a Neumann condition, with the operator applied to `u` there."""
    made = pk.Problem(domain, pk.D(domain.coordinates("t")), 0.0, [condition])
    first = made.sample(source=1, boundary=n if made.points.boundary else None)[0]
    return np.asarray(first.points), applied(first.operator, u, first.points), first


def test_all_faces_are_one_observation_with_the_normal_of_each():
    q, found, observation = slopes(BOX, pk.Neumann(BOX.boundary(X), 0.0))
    normal = np.zeros((40, 2))
    normal[q[:, 0] == 0, 0], normal[q[:, 0] == 1, 0] = -1, 1
    normal[q[:, 1] == -1, 1], normal[q[:, 1] == 3, 1] = -1, 1
    assert np.all(np.abs(normal).sum(axis=1) == 1) and len(observation) == 40
    np.testing.assert_allclose(found, np.sum(normal * gradient(q)[:, :2], axis=1), rtol=1e-13)


def test_conditions_on_single_faces_join_into_one_observation():
    sides = [(x, side) for x in X for side in ("lower", "upper")]
    values = [pk.Neumann(BOX.face(x, side), float(k)) for k, (x, side) in enumerate(sides)]
    data = pk.Problem(BOX, pk.D(T), 0.0, values).sample(source=1, boundary=40)
    assert [len(o) for o in data] == [40, 1]
    q = np.asarray(data[0].points)
    on = np.stack([q[:, 0] == 0, q[:, 0] == 1, q[:, 1] == -1, q[:, 1] == 3])
    np.testing.assert_array_equal(data[0].values, on.argmax(axis=0))


def test_on_a_ball_the_normal_is_radial():
    q, found, _ = slopes(BALL, pk.Neumann(BALL.boundary(BX), 0.0))
    normal = (q[:, :3] - [1.0, 0.0, -1.0]) / 2
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found, np.sum(normal * gradient(q)[:, :3], axis=1), rtol=1e-12)


def test_points_of_your_own_have_the_normals_of_their_faces():
    """Also at the start, which is a face of time and not of space."""
    own = np.array([[0.0, 0.5, 0.0], [0.3, 3.0, 0.7], [1.0, 2.0, 1.0]])
    q, found, _ = slopes(BOX, pk.Neumann(own, [1.0, 2.0, 3.0]))
    slope = gradient(q)
    np.testing.assert_allclose(found, [-slope[0, 0], slope[1, 1], slope[2, 0]], rtol=1e-13)


def test_normals_may_be_given():
    own = np.array([[0.0, 3.0, 0.2], [0.5, 0.5, 0.5]])
    given = np.array([[-1.0, 0.0, 0.0], [0.6, 0.8, 0.0]])
    _, found, _ = slopes(BOX, pk.Neumann(own, 0.0, normals=given))
    np.testing.assert_allclose(found, np.sum(given * gradient(own), axis=1), rtol=1e-13)
    _, found, _ = slopes(BOX, pk.Neumann(own, 0.0, normals=lambda q: jnp.stack([0.6, 0.8, 0.0])))
    np.testing.assert_allclose(found, gradient(own) @ np.array([0.6, 0.8, 0.0]), rtol=1e-13)
    mixed = pk.Domain(x=(0, 1), mu=(0, 1), t=(0, 1))
    corner = np.array([[1.0, 0.0, 0.5]])
    _, found, _ = slopes(mixed, pk.Neumann(corner, 0.0, normals=mixed.coordinates("x")))
    np.testing.assert_allclose(found, gradient(corner)[:, 0])


@pytest.mark.parametrize(
    "points, normals, message",
    [
        ([[0.5, 0.5, 0.5]], None, r"points\[0\] = .* lies on no face; give `normals`"),
        ([[0.0, -1.0, 0.5]], None, "lies where faces meet"),
        ([[0.0, 0.5, 0.5]], [[1.0, 0.0]], r"one normal for each point, .* shape \(1, 3\), got \(1, 2\)"),
        ([[0.0, 0.5, 0.5]], [[2.0, 0.0, 0.0]], r"length one: normals\[0\] has length 2"),
    ],
)
def test_normals_that_are_not_clear_are_refused(points, normals, message):
    with pytest.raises(ValueError, match=message):
        pk.Problem(BOX, pk.D(T), 0.0, [pk.Neumann(points, 0.0, normals=normals)])


def test_a_robin_problem_with_variable_coefficients_is_solved():
    """`∇·((1 + x y) ∇u) − u = f` with Robin, Neumann and Dirichlet faces; values are written out, not derived."""
    domain = pk.Domain(x=[(0, 1)] * 2)
    x = domain.coordinates("x")
    exact = lambda q: jnp.sin(q[0] + 2 * q[1])
    slope = lambda q: jnp.cos(q[0] + 2 * q[1])

    def source(q):
        return -(5 * (1 + q[0] * q[1]) + 1) * exact(q) + (q[1] + 2 * q[0]) * slope(q)

    problem = pk.Problem(
        domain=domain,
        operator=pk.Divergence(x, lambda q: 1 + q[0] * q[1]) - 1.0,
        source=source,
        conditions=[
            pk.Robin(
                domain.boundary(x[0]),
                lambda q: (1 + q[1]) * exact(q) + 3 * (2 * q[0] - 1) * slope(q),
                a=lambda q: 1 + q[1],
                b=3.0,
            ),
            pk.Neumann(domain.face(x[1], "lower"), lambda q: -2 * slope(q)),
            pk.Dirichlet(domain.face(x[1], "upper"), exact),
        ],
        exact=exact,
    )
    problem.verify().raise_if_wrong()
    data = [pk.Observation(o.operator, o.points, o.values, 1e-6) for o in problem.sample(60, 60, sampler="sobol")]
    assert [len(o) for o in data] == [30, 15, 15, 60]
    posterior = pk.condition(pk.ard(domain, lengthscale=2.0), data)
    new = problem.interior(100)
    np.testing.assert_allclose(posterior.predict(new).mean, problem.truth(new), atol=1e-4)


def test_a_model_on_a_ball_is_solved_and_saved_without_functions(tmp_path):
    """`Δu = 6` in the unit ball with `u = |x|²`: half the sphere's data are slopes. Normals are data, and saved."""
    domain = pk.Domain(x=pk.Ball([0.0, 0.0, 0.0]))
    x = domain.coordinates("x")
    sphere = domain.boundary(x)
    pole = np.array([[0.0, 0.0, 1.0]])
    problem = pk.Problem(
        domain,
        pk.Laplacian(x),
        6.0,
        [pk.Dirichlet(sphere, 1.0), pk.Neumann(sphere, 2.0), pk.Neumann(pole, 2.0, normals=pole)],
        exact=lambda q: jnp.sum(q**2),
    )
    assert problem.verify().ok
    data = [pk.Observation(o.operator, o.points, o.values, 1e-4) for o in problem.sample(40, 60, sampler="halton")]
    posterior = pk.condition(pk.ard(domain, variance=10.0, lengthscale=3.0), data)
    new = problem.interior(50)
    np.testing.assert_allclose(posterior.predict(new).mean, problem.truth(new), atol=5e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior.save(tmp_path / "ball.pdedkl")
    again = pk.load(tmp_path / "ball.pdedkl")
    np.testing.assert_array_equal(again.predict(new).mean, posterior.predict(new).mean)
    normal = again.observations[1].operator
    np.testing.assert_allclose(applied(normal, problem.exact, data[1].points), 2.0)


def test_a_periodic_condition_compares_opposite_faces():
    wave = lambda q: jnp.sin(2 * jnp.pi * q[0]) * q[1] + jnp.sin(jnp.pi * q[1] / 4)
    conditions = [pk.Periodic(X[0]), pk.Periodic(X[0], derivative=True), pk.Periodic(X[1], derivative=True)]
    found = pk.Problem(BOX, pk.D(T), 0.0, conditions, exact=wave).verify()
    assert [check.ok for check in found.checks] == [True, True, True, False]
    assert "periodic condition of ∂u/∂x[1]" in str(found)
    data = pk.Problem(BOX, pk.D(T), 0.0, conditions).sample(source=1, boundary=36)
    assert [len(o) for o in data] == [16, 16, 4, 1]  # the faces of x[0] are four times as long
    assert np.all(data[0].points[:, 0] == 0) and np.all(data[0].values == 0)
