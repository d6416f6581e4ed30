"""Sets of inputs that act together, found from variance components."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.model import Model
from pdedkl.training import interactions as module
from pdedkl.training import recipes
from pdedkl.training.interactions import Sum, iterated, objective_of, reduced, system_of, triangles

DIM = 4
CUBE = pk.Domain(x=[(-1.0, 1.0)] * DIM)
X = CUBE.coordinates("x")
SETS = tuple((i,) for i in range(DIM)) + module.all_pairs(DIM)
LAPLACE = -pk.Laplacian(X)


def u(q):
    """Two pairs and a single input."""
    return jnp.sin(q[0] * q[1]) + 0.5 * jnp.exp(q[2] * q[1]) + jnp.cos(q[3])


def observations(noise=0.0, count=60):
    rng = np.random.default_rng(1)
    inside, edge = rng.uniform(-1, 1, size=(2, count, DIM))
    edge[np.arange(count), rng.integers(DIM, size=count)] = rng.choice([-1.0, 1.0], count)
    f, values = jax.vmap(LAPLACE(u))(inside), jax.vmap(u)(edge)
    exact = noise == 0
    kind = lambda name: pk.Learned(name, exact=exact)
    values = values + noise * rng.normal(size=count)
    return [
        pk.Observation(LAPLACE, inside, np.asarray(f), kind("f")),
        pk.Observation(pk.identity, edge, np.asarray(values), kind("u")),
    ]


def equal(sets=SETS):
    return Sum(sets, np.full(len(sets), 1.0 / len(sets)), np.array([0.8, 1.0, 1.2, 1.5]))


def model(data, start=None):
    return Model((start or equal()).kernel(CUBE, pk.SquaredExponential()), data)


def test_the_matrices_are_those_of_the_kernel():
    """Their sum is the Gram matrix of the posterior, and the objective that of conditioning."""
    data = observations()
    found = system_of(model(data), data)
    variances = equal().variances
    levels = {name: float(np.sqrt(found.noise[i])) for i, name in enumerate(sorted(o.noise_name for o in data))}
    known = model(data).with_noise({name: jnp.log(level) for name, level in levels.items()})
    expected = float(pk.condition(known, data).objective)
    assert objective_of(found, variances, found.noise) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_no_turn_lowers_the_evidence_and_the_derivative_goes_to_zero(noise):
    data = observations(noise, 40)
    system = system_of(model(data), data)
    system = system._replace(noise=np.maximum(system.noise, 1e-6 * np.ptp(system.values) ** 2))
    v, values = equal().variances, []
    for _ in range(6):
        after, levels = iterated(system, v, 1)
        values.append(objective_of(system, v, system.noise))
        v, system = after, system._replace(noise=levels)
    assert np.all(np.diff(values) <= 1e-9 * np.abs(values[:-1]))
    v, levels = iterated(system, v, 400)
    system = system._replace(noise=levels)

    def slope(k):
        near = [np.where(np.arange(len(v)) == k, v * factor, v) for factor in (1 - 1e-4, 1 + 1e-4)]
        low, high = (objective_of(system, one, levels) for one in near)
        return (high - low) / 2e-4

    assert max(abs(slope(k)) for k in range(len(v))) < 0.05


def search(data):
    """As much of a search as the rounds need."""
    return SimpleNamespace(
        domain=CUBE,
        profile=pk.SquaredExponential(),
        model=lambda kernel, noise=0.03: Model(kernel, data),
        observations=data,
    )


def test_the_sets_that_act_together_are_found():
    data = observations(count=150)
    found = reduced(search(data), data, equal()._replace(lengthscales=np.ones(DIM)), 1e-3)
    pairs = {s for s in found.sets if len(s) == 2}
    assert {(0, 1), (1, 2)} <= pairs and len(pairs) <= 3
    assert np.all(found.variances > 0)


def test_noise_is_not_taken_for_interactions():
    data = observations(0.05, 150)
    system = system_of(model(data), data)
    _, noise = iterated(system, equal().variances, 30)
    assert np.sqrt(noise[1]) == pytest.approx(0.05, rel=0.35)


def test_triples_are_asked_where_all_of_their_pairs_remain():
    assert triangles([(0,), (0, 1), (1, 2), (0, 2), (2, 3)]) == ((0, 1, 2),)
    assert triangles([(0, 1), (1, 2), (0, 2), (0, 1, 2)]) == ()


def test_where_no_sum_fits_there_is_no_candidate(monkeypatch):
    def fails(*_):
        raise FloatingPointError("no Cholesky factor")

    monkeypatch.setattr(module, "_solved", fails)
    data = observations(count=20)
    options = SimpleNamespace(seed=0, strength=0.1)
    search_of = SimpleNamespace(**vars(search(data)), variance=1.0, options=options)
    assert module.interactions(search_of) is None


def test_a_fit_finds_them(monkeypatch):
    """With no other candidate but the plain kernel, to save time."""
    kinds = [kind for kind in recipes.CANDIDATES if kind.name == "interactions"]
    monkeypatch.setattr(recipes, "CANDIDATES", kinds)
    data = observations(count=100)
    posterior = pk.fit(CUBE, data, seed=0, progress=False)
    assert posterior.training.kernel == "interactions"
    inside = np.random.default_rng(5).uniform(-1, 1, size=(200, DIM))
    truth = np.asarray(jax.vmap(u)(inside))
    assert np.sqrt(np.mean((posterior.predict(inside).mean - truth) ** 2)) < 1e-3 * np.std(truth)
    sets = posterior.model.kernel.components[0].base.groups
    assert {s for s in sets if len(s) > 1} >= {(0, 1), (1, 2)} and len(sets) < len(SETS)
    assert ("x[0]", "x[1]") in posterior.training.sets
    # Over the cube sin(x_0 x_1) has the variance 0.0988, and u has 0.1508.
    share, error = posterior.interactions().named()["x[0], x[1]"]
    assert share == pytest.approx(0.0988 / 0.1508, abs=0.01) and error < 0.01
