"""`fit` on a small problem: accurate, the same bits every time, and every model and recipe goes through."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
import ridge

import pdedkl as pk
from pdedkl.embeddings.push_forward import Normalisation
from pdedkl.inference import memory
from pdedkl.inference.iterative import Iterative
from pdedkl.training import building, paper, phases, starts


@pytest.fixture(scope="module")
def posterior():
    return pk.fit(ridge.DOMAIN, ridge.observations())


def test_a_ridge_function_is_found_from_sixty_values(posterior):
    assert ridge.error(posterior) < 1e-4
    predicted = posterior.predict(ridge.ELSEWHERE, ridge.OPERATOR)
    truth = ridge.DIM * ridge.solution(ridge.ELSEWHERE)
    assert np.linalg.norm(predicted.mean - truth) < 1e-3 * np.linalg.norm(truth)


def test_the_report_says_how_it_went(posterior):
    training = posterior.training
    assert (training.recipe, training.model, training.seed, training.stopped) == ("default", "dkl", 0, None)
    assert training.kernel in dict(training.candidates)
    assert training.objective == min(value for _, value in training.candidates)
    assert f"{training.kernel:<32}{training.objective:>12.1f}  *" in training.table().splitlines()
    assert 0 <= training.left_out < 1e-3 and training.rejected == 0
    assert training.seconds > 0 and training.compile_seconds >= 0
    assert training.history[-1].objective < training.history[0].objective


def test_the_posterior_is_the_trained_model_conditioned_on_the_data(posterior):
    again = pk.condition(posterior.model, ridge.observations())
    np.testing.assert_array_equal(again.alpha, posterior.alpha)


def test_the_same_seed_gives_the_same_bits(posterior):
    again = pk.fit(ridge.DOMAIN, ridge.observations())
    np.testing.assert_array_equal(ridge.parameters(again), ridge.parameters(posterior))
    assert again.training.candidates == posterior.training.candidates


@pytest.mark.parametrize("model, bound", [("linear", 1e-4), ("gp", 1e-2)])
def test_the_other_models(model, bound):
    found = pk.fit(ridge.DOMAIN, ridge.observations(), model=model)
    assert ridge.error(found) < bound
    names = [name for name, _ in found.training.candidates]
    assert found.training.model == model and names[0] == "inputs"
    assert names[1:] == ["projection"] if model == "linear" else all(name.startswith("inputs, ") for name in names[1:])


def test_training_ends_where_it_is_accurate_enough(posterior):
    rough = pk.fit(ridge.DOMAIN, ridge.observations(), accuracy=0.2)
    finer = pk.fit(ridge.DOMAIN, ridge.observations(), accuracy=1e-3)
    assert 1e-3 < rough.training.left_out < 0.2 and finer.training.left_out < 1e-3
    assert ridge.error(rough) < 0.2 and ridge.error(finer) < 1e-3
    steps = [len(found.training.history) for found in (rough, finer, posterior)]
    assert steps == sorted(steps) and steps[0] < steps[2]
    np.testing.assert_array_equal(pk.condition(rough.model, ridge.observations()).alpha, rough.alpha)


def test_below_the_noise_nothing_ends_early():
    values, source = ridge.observations()
    noise = 0.05 * np.random.default_rng(1).normal(size=len(values)) * float(np.std(values.values))
    noisy = [pk.Observation(pk.identity, values.points, values.values + noise), source]
    found, whole = (pk.fit(ridge.DOMAIN, noisy, accuracy=accuracy, model="linear") for accuracy in (1e-3, None))
    np.testing.assert_array_equal(ridge.parameters(found), ridge.parameters(whole))


def test_as_many_directions_as_asked_for():
    rows, strengths = np.eye(2, 3), np.array([1.0, 0.5])
    for count in (1, 2, 4):
        found, sizes = building._enough(rows, strengths, count, seed=0)
        assert found.shape == (count, 3) and sizes.shape == (count,) and np.all(sizes > 0)
        np.testing.assert_array_equal(found[:2], rows[:count])
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


def test_the_recipe_of_the_paper_lowers_the_objective(monkeypatch):
    monkeypatch.setattr(paper, "STEPS", 20)
    monkeypatch.setattr(paper, "MLP", partial(pk.MLP, width=8, depth=1))  # compiles in half the time
    found = pk.fit(ridge.DOMAIN, ridge.observations(), recipe="paper")
    history = [step.objective for step in found.training.history]
    assert len(history) == 20 and found.training.objective == history[-1] < history[0]
    assert np.all(np.isfinite(found.predict(ridge.ELSEWHERE).mean))


@pytest.mark.parametrize("call", [0, 1, 20, 40, 45, 50])
def test_an_evaluation_that_is_not_finite_is_passed_by(call, monkeypatch):
    """`call` counts evaluations; the first ones belong to the search for directions."""
    calls, original = [], phases.value_and_gradient

    def failing(objective, x, **look):
        calls.append(x)
        value, gradient, jitter = original(objective, x, **look)
        return (value * np.nan if len(calls) == call + 1 else value), gradient, jitter

    monkeypatch.setattr(phases, "value_and_gradient", failing)
    found = pk.fit(ridge.DOMAIN, ridge.observations(), model="linear")
    assert len(calls) > call and found.training.rejected == 1
    assert np.isfinite(found.training.objective) and ridge.error(found) < 1e-4


def test_a_gradient_that_is_not_finite_is_passed_by(monkeypatch):
    calls, original = [], phases.value_and_gradient

    def failing(objective, x, **look):
        calls.append(x)
        value, gradient, jitter = original(objective, x, **look)
        return value, (gradient * np.inf if len(calls) % 7 == 0 else gradient), jitter

    monkeypatch.setattr(phases, "value_and_gradient", failing)
    found = pk.fit(ridge.DOMAIN, ridge.observations(), model="linear")
    assert found.training.rejected >= len(calls) // 7 - 1
    assert np.isfinite(found.training.objective) and np.all(np.isfinite(found.predict(ridge.ELSEWHERE).mean))


def test_ridges_of_each_group_start_within_it_even_where_nothing_was_seen():
    """Directions that were found only in `x` leave none for `t`: one is made up, and none is zero or NaN."""
    domain = pk.Domain(x=[(0, 1)] * 3, t=(0, 1))
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    kernel = starts.ridges(domain, 1.0, rows, np.ones(2), 8, 4, 0)
    matrix = np.asarray(starts.linear_map(kernel.components[0].embedding))
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1.0)
    assert np.all(matrix[::2, 3] == 0) and np.all(matrix[1::2, :3] == 0)


def test_a_start_from_gradients_of_one_quadratic_form_is_that_form():
    rng = np.random.default_rng(3)
    domain = pk.Domain(x=[(0, 1), (-1, 3), (2, 3)])
    points = np.asarray(domain.lower) + rng.uniform(size=(40, 3)) * np.asarray(domain.upper - domain.lower)
    hessian, slope = np.array([[3.0, 1, 0], [1, -2, 0.5], [0, 0.5, 1]]), np.array([0.3, -1, 2])
    kernel = starts.projection(domain, 1.0, np.eye(3)[:2], np.ones(2))
    like = starts.quadratic(domain, kernel, 8, 0).components[0].embedding
    component = starts.one_form(domain, 1.0, like, points, normalised(domain, points) @ hessian + slope).components[0]

    form = jax.vmap(lambda x: component.embedding(x)[0])
    x = normalised(domain, rng.uniform(size=(20, 3)))
    expected = 0.5 * np.einsum("ni,ij,nj->n", x, hessian, x) + x @ slope
    found = np.asarray(form(x) - form(np.zeros((1, 3))))
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=1e-9)
    sizes = np.linalg.norm(jax.vmap(jax.grad(lambda x: component.embedding(x)[0]))(normalised(domain, points)), axis=1)
    np.testing.assert_allclose(np.mean(sizes**2), 1.0)


def normalised(domain: pk.Domain, points: np.ndarray) -> np.ndarray:
    return np.asarray(jax.vmap(Normalisation(domain))(points))


def test_data_that_do_not_fit_are_trained_on_in_part_and_conditioned_on_whole(monkeypatch):
    """Six matrices of 60 × 60 take 173 kB and three 86 kB; four fifths of the memory are 80 kB."""
    monkeypatch.setattr(memory, "total_bytes", lambda: 100_000)
    with pytest.warns(UserWarning) as warned:
        found = pk.fit(ridge.DOMAIN, ridge.observations(), model="linear")
    assert any("learned from 40 of them" in str(w.message) for w in warned)
    assert isinstance(found.solver, Iterative) and len(found.alpha) == 2 * ridge.POINTS
    assert ridge.error(found) < 1e-3


def test_operators_of_high_order_are_trained_on_with_the_other_engine():
    """A beam, `∂⁴u/∂x⁴ = π⁴ sin πx`, simply supported."""
    domain = pk.Domain(x=(0, 1))
    x = domain.coordinates("x")
    ends, inside = np.array([[0.0], [1.0]]), np.linspace(0, 1, 9)[:, None]
    data = [
        pk.Observation(pk.identity, ends, np.zeros(2), "exact"),
        pk.Observation(pk.D(x, x), ends, np.zeros(2), "exact"),
        pk.Observation(pk.D(x, x, x, x), inside, np.pi**4 * np.sin(np.pi * inside[:, 0]), "exact"),
    ]
    with pytest.raises(ValueError, match='pass engine="autodiff" to fit'):
        pk.fit(domain, data, model="gp")
    found = pk.fit(domain, data, model="gp", engine="autodiff")
    np.testing.assert_allclose(found.predict(inside).mean, np.sin(np.pi * inside[:, 0]), atol=1e-4)
    assert found.model.engine == "autodiff"


def test_the_objective_compares_strengths_of_the_prior():
    """Neither the weakest nor the strongest prior on the weights wins by being so."""
    weak, middle, strong = (
        pk.fit(ridge.DOMAIN, ridge.observations(), model="linear", latent_dim=1, prior_strength=s).training.objective
        for s in (1e-6, 1.0, 1e3)
    )
    assert middle < min(weak, strong) - 10
