"""Functions that do not change under swaps and reflections: their jets, what they tell apart, what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import pdedkl as pk
from pdedkl.embeddings import Normalisation, push_forward

BOX = pk.Domain(x=[(-1.0, 2.0)] * 4, t=(0.0, 2.0))
X, T = BOX.coordinates("x", "t")
ORBITS, EVEN = [(0, 2, 3), (1,), (4,)], [True, False, False]


def test_jets_equal_autodiff_of_the_composition():
    """With first-order, diagonal, mixed and variable second-order parts."""
    matrix = np.array([[2.0, 0.5, 0.1, 0.0], [0.5, -1.0, 0.3, 0.2], [0.1, 0.3, 0.7, 0.0], [0.0, 0.2, 0.0, 1.0]])
    operators = [
        pk.identity,
        pk.D(X[2]),
        pk.D(T) - 0.3 * pk.Laplacian(X) + 1.0,
        pk.Diffusion(X, matrix) + pk.Directional(X, lambda q: jnp.cos(X(q))),
        pk.Coefficient(lambda q: 1.0 + q[0] ** 2, name="a") * pk.D(X[0], X[0]) + pk.D(X[1]) @ pk.D(T),
    ]
    embedding, normalise = pk.Invariants(ORBITS, EVEN), Normalisation(BOX)
    q = jnp.asarray([0.3, -0.6, 1.7, 0.1, 0.4])
    g = lambda z: jnp.sin(jnp.sum(z * jnp.arange(1.0, z.shape[0] + 1.0))) + jnp.sum(z) ** 2

    def through(jet):
        value = 0.0 if jet.c is None else jet.c * g(jet.z)
        value += 0.0 if jet.drift is None else jnp.dot(jet.drift, jax.grad(g)(jet.z))
        return value if jet.diffusion is None else value + jnp.vdot(jet.diffusion, jax.hessian(g)(jet.z))

    @oracles.quick_jit
    def both():
        found = [through(push_forward(A.symbol(q), embedding, normalise, q)) for A in operators]
        return jnp.stack(found), jnp.stack([A(lambda p: g(embedding(normalise(p))))(q) for A in operators])

    got, expected = both()
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_they_do_not_change_under_the_symmetries_and_under_nothing_else():
    embedding, x = pk.Invariants(ORBITS, EVEN), np.array([0.3, -0.6, 0.9, 0.1, 0.4])
    h = embedding(jnp.asarray(x))
    for same in ([0.9, -0.6, 0.3, 0.1, 0.4], [0.1, -0.6, 0.3, 0.9, 0.4], [-0.3, -0.6, 0.9, -0.1, 0.4]):
        np.testing.assert_allclose(embedding(jnp.asarray(same)), h, atol=1e-14)
    for other in ([0.3, 0.6, 0.9, 0.1, 0.4], [0.3, -0.6, 0.9, 0.1, -0.4], [0.1, -0.6, 0.9, 0.1, 0.4]):
        assert np.max(np.abs(embedding(jnp.asarray(other)) - h)) > 0.1


def test_all_values_of_an_orbit_are_told_apart():
    """As many sums as inputs determine the inputs, up to their order."""
    slope = jax.jacobian(pk.Invariants([(0, 1, 2)]))(jnp.asarray([0.2, -0.5, 0.7]))
    assert slope.shape == (3, 3) and abs(np.linalg.det(slope)) > 1e-2


def test_of_large_orbits_the_first_sums_are_kept():
    embedding = pk.Invariants([tuple(range(40)), (40,)])
    assert embedding.latent_dim(41) == 6 and embedding.degrees == (1, 2, 3, 4, 5, 1)


@pytest.mark.parametrize(
    ("orbits", "even", "said"),
    [
        ([(0, 1), (1, 2)], None, "each input 0 … 3 in one list"),
        ([(0, 2)], None, "each input"),
        ([(0,), ()], None, "each input"),
        ([(0, 1)], [True, False], "one entry for each of 1 orbits: got 2"),
    ],
)
def test_what_is_no_partition_is_refused(orbits, even, said):
    with pytest.raises(ValueError, match=said):
        pk.Invariants(orbits, even)
