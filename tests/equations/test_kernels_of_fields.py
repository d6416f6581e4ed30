"""Covariances of rows over several fields, against automatic differentiation of a matrix-valued kernel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import quick_jit

import pdedkl as pk
from pdedkl.equations import compiled_term
from pdedkl.inference.engines import engine_of
from pdedkl.inference.staged import filled_system
from pdedkl.operators.tabulated import tabulated
from pdedkl.training.objective import Objective, value_and_gradient

DOMAIN = pk.Domain(x=[(0, 1), (-1, 1)], t=(0, 2))
X, T = DOMAIN.coordinates("x", "t")
U, V, P = pk.fields("u", "v", "p")
SPEED = pk.Coefficient(lambda q: 1.0 + 0.3 * jnp.sin(q[0]) * q[1], name="speed")
ROWS = {
    "a field": V,
    "divergence": pk.D(X[0]) @ U + pk.D(X[1]) @ V,
    "vorticity": pk.D(X[0]) @ V - pk.D(X[1]) @ U,
    "momentum": pk.D(T) @ U - 0.3 * (pk.Laplacian(X) @ U) + SPEED * (pk.D(X[0]) @ P) + 2.0 * V,
    "stress": -P + 0.2 * (pk.D(X[0]) @ U),
    "mixed": pk.D(X[0], X[1]) @ P + pk.Divergence(X, lambda q: 1 + q[0] ** 2) @ V,
    "elsewhere": U - pk.Shift(X[0], 0.4) @ V + pk.D(X[1]) @ U,
}


def kernel():
    rough = pk.ard(DOMAIN, pk.RationalQuadratic(1.2), lengthscale=[0.8, 1.1, 1.4])
    return (
        pk.ard(DOMAIN, lengthscale=[0.7, 0.9, 1.2]).of(U)
        + rough.of(V, P)
        + pk.additive(DOMAIN, lengthscale=0.8).of(P)
        + pk.ard(DOMAIN, variance=0.5).of(U, V, P, weights=[0.4, -1.1, 0.7])
    )


def plainly_written(q, q_):
    """The same matrix of covariances between u, v and p, without the library."""
    box = lambda p: (p - jnp.asarray([0.5, 0.0, 1.0])) / jnp.asarray([0.5, 1.0, 1.0])
    z, z_ = box(q), box(q_)
    scaled = lambda *lengths: (z - z_) / jnp.asarray(lengths)
    first = jnp.exp(-0.5 * jnp.sum(scaled(0.7, 0.9, 1.2) ** 2))
    second = (1 + 0.5 * jnp.sum(scaled(0.8, 1.1, 1.4) ** 2) / 1.2) ** -1.2
    third = jnp.mean(jnp.exp(-0.5 * scaled(0.8, 0.8, 0.8) ** 2))
    fourth = 0.5 * jnp.exp(-0.5 * jnp.sum((z - z_) ** 2))
    w = jnp.asarray([0.4, -1.1, 0.7])
    fixed = [jnp.asarray(e) for e in ([1.0, 0, 0], [0, 1.0, 1.0], [0, 0, 1.0])]
    parts = [(first, fixed[0]), (second, fixed[1]), (third, fixed[2]), (fourth, w)]
    return sum(k * jnp.outer(w, w) for k, w in parts)


def nested(row, other, q, q_):
    """`A A' K(q, q')` by automatic differentiation, entry by entry."""
    names = ("u", "v", "p")

    def with_second(i):
        def function(q):
            return other({n: lambda p, j=j: plainly_written(q, p)[i, j] for j, n in enumerate(names)})(q_)

        return function

    return row({n: with_second(i) for i, n in enumerate(names)})(q)


def pairs(row, other, q, q_):
    return jax.vmap(lambda a: jax.vmap(lambda b: nested(row, other, a, b))(q_))(q)


def points(n, seed=0):
    return np.random.default_rng(seed).uniform(DOMAIN.lower, DOMAIN.upper, size=(n, 3))


@pytest.mark.parametrize(
    "name, engine", [*((name, "closed-form") for name in ROWS), ("vorticity", "autodiff"), ("elsewhere", "autodiff")]
)
def test_covariances_are_those_of_the_matrix_valued_kernel(name, engine):
    made, left = engine_of(engine), compiled_term(ROWS[name])
    others = ["momentum", "elsewhere"] if engine == "closed-form" else ["stress"]
    rights = [compiled_term(ROWS[other]) for other in others]

    @quick_jit
    def both(k, q, q_):
        bases, rows = made.parameters(k), made.rows(k, left, q)
        found = [made.block(bases, rows, made.rows(k, right, q_)) for right in rights]
        wanted = [pairs(left, right, q, q_) for right in rights]
        return found, wanted, made.diagonal(bases, rows), jax.vmap(lambda a: nested(left, left, a, a))(q)

    found, wanted, own, variance = both(kernel(), jnp.asarray(points(2, 1)), jnp.asarray(points(2, 2)))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(own, variance, rtol=1e-9, atol=1e-9)


def test_conditioning_predicts_any_row():
    """Against the formula with the plainly written kernel."""
    rng = np.random.default_rng(0)
    data = [
        pk.Observation(ROWS["divergence"], points(4, 3), rng.normal(size=4), noise=0.1),
        pk.Observation(U, points(3, 4), rng.normal(size=3), noise=0.1),
        pk.Observation(ROWS["elsewhere"], points(3, 5), rng.normal(size=3), noise=0.1),
    ]
    posterior = pk.condition(kernel(), data)
    rows = [*(item.operator for item in data), compiled_term(ROWS["vorticity"])]
    at = [*(jnp.asarray(item.points) for item in data), jnp.asarray(points(2, 6))]

    @quick_jit
    def lower(at):
        return [[pairs(rows[i], rows[j], at[i], at[j]) for j in range(i + 1)] for i in range(len(rows))]

    blocks = lower(at)
    whole = np.block([[blocks[i][j] if j <= i else blocks[j][i].T for j in range(4)] for i in range(4)])
    gram, cross, prior = whole[:10, :10] + 0.01 * np.eye(10), whole[10:, :10], whole[10:, 10:]
    y = np.concatenate([item.values for item in data])
    found = posterior.predict(points(2, 6), ROWS["vorticity"])
    np.testing.assert_allclose(found.mean, cross @ np.linalg.solve(gram, y), rtol=1e-7)
    left = prior - cross @ np.linalg.solve(gram, cross.T)
    np.testing.assert_allclose(found.variance, np.diagonal(left), rtol=1e-6)
    np.testing.assert_allclose(posterior.covariance(points(2, 6), ROWS["vorticity"]), left, rtol=1e-6, atol=1e-9)
    assert posterior.sample(jax.random.key(0), points(2, 6), V, count=3).shape == (3, 2)
    q = points(1, 7)[0]
    np.testing.assert_allclose(posterior.mean(jnp.asarray(q), "v"), posterior.predict(q[None], V).mean[0], rtol=1e-9)
    iterative = pk.condition(kernel(), data, solver="iterative")
    np.testing.assert_allclose(iterative.predict(points(2, 6), V).mean, posterior.predict(points(2, 6), V).mean, 1e-5)


def test_the_evidence_is_differentiable_in_the_weights():
    rng = np.random.default_rng(0)
    data = [
        pk.Observation(ROWS["divergence"], points(5, 3), rng.normal(size=5), noise=0.1),
        pk.Observation(V, points(4, 4), rng.normal(size=4), noise=0.1),
    ]
    model = pk.Model(kernel(), data)
    gradient = quick_jit(eqx.filter_grad(pk.negative_log_evidence, has_aux=True))(model, data)[0]
    slope = gradient.kernel.components[-1].mixing.weights
    where = lambda m: m.kernel.components[-1].mixing.weights

    evidence = quick_jit(pk.negative_log_evidence)

    def value(step):
        return float(evidence(eqx.tree_at(where, model, where(model).at[1].add(step)), data)[0])

    np.testing.assert_allclose(slope[1], (value(1e-5) - value(-1e-5)) / 2e-5, rtol=1e-6)
    objective = Objective(model, data)
    staged, one = value_and_gradient(objective, objective.start()), objective.value(objective.start())
    np.testing.assert_allclose(float(staged[0]), float(one[0]), rtol=1e-10)


def test_two_fields_without_a_common_row_are_two_problems():
    rng = np.random.default_rng(1)
    q, r, y, z = points(6, 1), points(5, 2), rng.normal(size=6), rng.normal(size=5)
    k, m = pk.ard(DOMAIN, lengthscale=0.9), pk.ard(DOMAIN, pk.Matern52(), lengthscale=1.3)
    heat = pk.D(T) - 0.1 * pk.Laplacian(X)
    both = pk.condition(
        k.of(U) + m.of(V), [pk.Observation(heat @ U, q, y, 0.01), pk.Observation(pk.D(X[0]) @ V, r, z, 0.01)]
    )
    first = pk.condition(k, pk.Observation(heat, q, y, 0.01))
    second = pk.condition(m, pk.Observation(pk.D(X[0]), r, z, 0.01))
    at = points(4, 3)
    for field, alone in ((U, first), (V, second)):
        found, wanted = both.predict(at, field), alone.predict(at)
        np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-9)
        np.testing.assert_allclose(found.variance, wanted.variance, rtol=1e-8)
    np.testing.assert_allclose(both.objective, first.objective + second.objective, rtol=1e-12)


def test_stored_coefficients_are_those_of_a_function():
    """Rows with numbers stored for each point have the covariances of the function that made them."""
    q = points(9, 1)
    a = pk.Coefficient(lambda p: jnp.sin(p[0]) + p[2] ** 2, name="a")
    b = pk.Coefficient(lambda p: jnp.exp(-p[1]), name="b")
    operators = (pk.Laplacian(X), pk.D(T) + SPEED * pk.identity)
    numbers = np.stack([jax.vmap(a)(q), jax.vmap(b)(q)], axis=1)
    stored = tabulated(operators, q, numbers, "F'")
    written = a * operators[0] + b * operators[1]
    rng = np.random.default_rng(0)
    for k in (pk.ard(DOMAIN), pk.deep(DOMAIN, pk.MLP(3, 2, width=5, depth=1, key=jax.random.key(0)))):
        y, at = rng.normal(size=9), points(3, 2)
        for solver in ("dense", "iterative"):
            found = pk.condition(k, pk.Observation(stored, q, y, 0.1), solver=solver)
            wanted = pk.condition(k, pk.Observation(written, q, y, 0.1), solver=solver)
            np.testing.assert_allclose(found.predict(at).mean, wanted.predict(at).mean, rtol=1e-8)
        order = rng.permutation(9)[:5]
        here = found.predict(q[order], stored)
        np.testing.assert_allclose(here.mean, wanted.predict(q[order], written).mean, rtol=1e-8)
    with pytest.raises(ValueError, match="has no finite value"):
        found.predict(at, stored)


def test_tables_find_points_of_a_grid_and_points_that_are_there_twice():
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 7), np.linspace(-1, 1, 7), [0.5]), axis=-1).reshape(-1, 3)
    q = np.concatenate([grid, grid[:3]])
    stored = tabulated((pk.identity,), q, np.concatenate([np.arange(49.0), np.arange(3.0)])[:, None], "F'")
    np.testing.assert_array_equal(jax.vmap(stored(lambda p: jnp.ones(())))(jnp.asarray(grid)), np.arange(49.0))


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (lambda: pk.condition(kernel(), [pk.Observation(pk.identity, points(3), np.ones(3))]), "say of which 1 is"),
        (lambda: pk.condition(pk.ard(DOMAIN), [pk.Observation(U, points(3), np.ones(3))]), r"of\(u\)"),
        (
            lambda: pk.condition(pk.ard(DOMAIN).of(U), [pk.Observation(U + V, points(3), np.ones(3))]),
            "the field v, which is not known here: there is u",
        ),
        (lambda: pk.ard(DOMAIN) + pk.ard(DOMAIN).of(U), "named fields or of none"),
        (lambda: pk.ard(DOMAIN).of(U, V, weights=[1.0]), "a finite number for each"),
        (lambda: pk.condition(kernel(), [pk.Observation(U * V, points(3), np.ones(3))]), "not linear in its fields"),
        (
            lambda: pk.Model(kernel(), [pk.Observation(U, points(3), np.ones(3))], mean=pk.ConstantMean(1.0)),
            "prior mean zero",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_a_sentence(wrong, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        wrong()


def test_predictions_of_several_fields_need_a_field():
    posterior = pk.condition(kernel(), [pk.Observation(U, points(3), np.ones(3), 0.1)])
    with pytest.raises(ValueError, match="say of which"):
        posterior.predict(points(2))
    with pytest.raises(TypeError, match="A row is a sum of operators"):
        posterior.covariance(points(2), U * V)
    with pytest.raises(ValueError, match="give one of u, v, p"):
        posterior.mean(jnp.zeros(3))
    assert "u, v, p" in repr(posterior)


def test_rows_that_a_component_does_not_enter_cost_nothing():
    """Their jets have no parts, and the matrices of the component do not contain them."""
    data = [
        pk.Observation(ROWS["divergence"], points(12, 3), np.ones(12), noise=0.1),
        pk.Observation(P, points(9, 4), np.ones(9), noise=0.1),
    ]
    independent = pk.ard(DOMAIN).of(U) + pk.ard(DOMAIN).of(V) + pk.ard(DOMAIN, lengthscale=0.6).of(P)
    system = filled_system(pk.Model(independent, data), data)[0]
    assert [part.sections[0].z.shape[0] for part in system.parts] == [12, 12, 10] and len(system.parts[0].sections) == 1
    objective = Objective(pk.Model(independent, data), data)
    value, gradient, _ = value_and_gradient(objective, objective.start())
    one = jax.value_and_grad(lambda x: objective.value(x)[0])(objective.start())
    np.testing.assert_allclose(float(value), float(one[0]), rtol=1e-10)
    np.testing.assert_allclose(gradient, one[1], rtol=1e-8, atol=1e-10)
