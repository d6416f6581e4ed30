"""Symmetries of a problem: found where everything stated has them, and not where one thing breaks them."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.training import recipes
from pdedkl.training import symmetries as module
from pdedkl.training.symmetries import symmetries

BOX = pk.Domain(x=[(-1.0, 1.0)] * 3, t=(0.0, 1.0))
X, T = BOX.coordinates("x", "t")
HEAT = pk.D(T) - pk.Laplacian(X)
BUMP = lambda q: jnp.exp(-jnp.sum(X(q) ** 2))
START, WALLS = pk.Initial(T, value=BUMP), pk.Dirichlet(on=BOX.boundary(X), value=0.0)
WHOLE = ((0, 1, 2), (3,)), (True, False)


def found(operator=HEAT, source=0.0, conditions=(START, WALLS), domain=BOX):
    problem = pk.Problem(domain, operator, source, conditions, silenced=["contradiction", "faces", "initial"])
    invariants = symmetries(problem)
    return None if invariants is None else (invariants.orbits, invariants.even)


def test_swaps_and_reflections_are_found():
    assert found() == WHOLE


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"source": lambda q: q[0]}, (((0,), (1, 2), (3,)), (False, True, False))),
        ({"source": lambda q: jnp.cos(q[0])}, (((0,), (1, 2), (3,)), (True, True, False))),
        ({"source": lambda q: q[0] + q[1] + q[2]}, (((0, 1, 2), (3,)), (False, False))),
        ({"source": lambda q: q[0] * q[1] + q[3]}, (((0, 1), (2,), (3,)), (False, True, False))),
        ({"operator": HEAT + 2.0 * pk.D(X[1])}, (((0, 2), (1,), (3,)), (True, False, False))),
        ({"operator": HEAT - pk.D(X[0]) @ pk.D(X[1])}, (((0, 1), (2,), (3,)), (False, True, False))),
        ({"operator": pk.D(T) - pk.Diffusion(X, [1.0, 2.0, 1.0])}, (((0, 2), (1,), (3,)), (True, True, False))),
        (
            {"conditions": (START, WALLS, pk.Neumann(on=BOX.face(X[0], "upper"), value=0.0))},
            (((0,), (1, 2), (3,)), (False, True, False)),
        ),
        ({"conditions": (pk.Initial(T, value=lambda q: q[0] + 2 * q[1] + 3 * q[2]), WALLS)}, None),
    ],
)
def test_one_thing_that_differs_breaks_them(change, left):
    assert found(**change) == left


def test_a_coefficient_and_outward_normals_are_carried_along():
    drift = HEAT - pk.Directional(X, lambda q: -(X(q) ** 3))
    insulated = pk.Neumann(on=BOX.boundary(X), value=0.0)
    assert found(operator=drift, conditions=(START, insulated)) == WHOLE
    assert found(operator=HEAT - pk.Directional(X, lambda q: X(q) ** 2), conditions=(START, insulated)) == (
        ((0, 1, 2), (3,)),
        (False, False),
    )


def test_boundary_values_that_are_rounding_do_not_count():
    square = pk.Domain(x=[(0.0, 1.0)] * 2)
    x = square.coordinates("x")
    exact = lambda q: jnp.sin(jnp.pi * q[0]) * jnp.sin(jnp.pi * q[1])
    walls = pk.Dirichlet(on=square.boundary(x), value=exact)
    given = {"operator": -pk.Laplacian(x), "source": lambda q: 2 * jnp.pi**2 * exact(q), "domain": square}
    assert found(**given, conditions=[walls]) == (((0, 1),), (True,))


def test_what_cannot_be_moved_has_no_symmetries():
    assert symmetries(BOX) is None
    assert found(conditions=(START, pk.Periodic(X[0]))) is None
    high = pk.Problem(BOX, pk.Laplacian(X) @ pk.Laplacian(X), 1.0, [WALLS], silenced=["faces", "initial"])
    assert symmetries(high) is None


def test_images_are_computed_in_parts(monkeypatch):
    monkeypatch.setattr(module, "ENTRIES", 100)
    assert found() == WHOLE


def test_a_fit_takes_them(monkeypatch):
    """A bump that is the same in all directions. Other kernels are left out, since they take their time."""
    monkeypatch.setattr(recipes, "CANDIDATES", [kind for kind in recipes.CANDIDATES if kind.name == "symmetric"])
    cube = pk.Domain(x=[(-1.0, 1.0)] * 3)
    x = cube.coordinates("x")
    exact = lambda q: jnp.exp(-4.0 * jnp.sum(q**2))
    operator = -pk.Laplacian(x)
    problem = pk.Problem(cube, operator, operator(exact), [pk.Dirichlet(on=cube.boundary(x), value=exact)], exact)
    data = problem.sample(source=50, boundary=30, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pk.FitWarning)
        posterior = pk.fit(problem, data, progress=False, calibrate=False)
    assert posterior.training.kernel == "symmetric"
    places = problem.interior(200)
    u, truth = posterior.predict(places), problem.truth(places)
    assert np.sqrt(np.mean((u.mean - truth) ** 2) / np.mean(truth**2)) < 1e-3
    moved = places[:, [1, 0, 2]] * [1.0, -1.0, 1.0]
    np.testing.assert_allclose(posterior.predict(moved).mean, u.mean, atol=1e-9)
