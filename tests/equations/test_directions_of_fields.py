"""Embeddings of several fields: each has directions of its own, and steps of their weights see all rows."""

import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk
from pdedkl.equations import compiled_term
from pdedkl.inference.cholesky import factorise, solve
from pdedkl.inference.evidence import linear_system
from pdedkl.inference.gram import assemble
from pdedkl.inference.staged import gram_of
from pdedkl.training import starts
from pdedkl.training.gauss_newton import _begin, jacobian_of
from pdedkl.training.objective import Objective, staged_system

SQUARE = pk.Domain(x=[(-1, 1)] * 2)
X = SQUARE.coordinates("x")
U, V = pk.fields("u", "v")


def test_the_jacobian_of_the_mean_sees_the_weights_of_all_fields():
    """`∂/∂w Σ_j α_j cov_w,0(A u(q), A_j u(q_j))`: only the place moves where the functions are evaluated."""
    rng = np.random.default_rng(0)
    at = lambda n: rng.uniform(-1, 1, size=(n, 2))
    own = lambda seed: pk.deep(SQUARE, pk.Affine.drawn(2, 2, key=jax.random.key(seed)), lengthscale=0.9)
    kernel = own(1).of(U) + own(2).of(V) + own(3).of(U, V, weights=[0.3, -0.8])
    rows = [U, compiled_term(pk.D(X[0]) @ U + pk.Laplacian(X) @ V), compiled_term(V - 2.0 * U)]
    data = [pk.Observation(row, at(3), rng.normal(size=3), noise=0.1) for row in rows]
    objective = Objective(pk.Model(kernel, data), data)
    x, count = objective.start(), objective.weight_count
    system = linear_system(objective.model(x), objective.observations)
    block = lambda a, b: system.engine.block(system.parameters, a, b)
    alpha = solve(factorise(assemble(block, system.sections), system.noise)[0], system.residual)

    def mean(w):
        model = objective.model(jnp.concatenate([w, x[count:]]))
        parts = []
        for item in objective.observations:
            left = system.engine.rows(model.kernel, item.operator, item.points)
            parts.append(jnp.concatenate([block(left, right) for right in system.sections], axis=1) @ alpha)
        return jnp.concatenate(parts)

    wanted = jax.jacrev(mean)(x[:count])
    _, staged = staged_system(objective, x)
    found = np.asarray(jacobian_of(objective, x, staged, _begin(gram_of(staged.parts), staged)))
    assert count == 3 * 6
    np.testing.assert_allclose(found[np.asarray(staged.place), :count], wanted, rtol=1e-8, atol=1e-10)


def test_each_field_has_its_own_directions():
    """Two functions of one direction each, in six dimensions, from values of sums and differences."""
    cube = pk.Domain(x=[(-1, 1)] * 6)
    rng = np.random.default_rng(1)
    a, b = (row / np.linalg.norm(row) for row in rng.normal(size=(2, 6)))
    first, second = (lambda q: np.sin(2 * q @ a)), (lambda q: np.cos(3 * q @ b))
    p, q = rng.uniform(-1, 1, size=(2, 60, 6))
    data = [
        pk.Observation(compiled_term(U + V), p, first(p) + second(p), noise="exact", name="sum"),
        pk.Observation(compiled_term(U - V), q, first(q) - second(q), noise="exact", name="difference"),
        pk.Observation(U, p[:10], first(p[:10]), noise="exact"),
    ]
    posterior = pk.fit(cube, data, model="linear", progress=False)
    assert posterior.training.kernel == "projection"
    at = rng.uniform(-1, 1, size=(100, 6))
    for field, truth, direction in ((U, first, a), (V, second, b)):
        assert np.max(np.abs(posterior.predict(at, field).mean - truth(at))) < 1e-2
        rows, _ = starts.directions_of(posterior.model.kernel, str(field))
        assert abs(rows[0] @ direction) > 0.999
