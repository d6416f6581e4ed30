"""Points are free: rounds until the error is small enough, networks as prior means, and warm starts."""

from __future__ import annotations

import subprocess
import sys
import warnings
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.embeddings import Linear
from pdedkl.metrics import coverage
from pdedkl.training import networks, solving, starts
from pdedkl.training.journal import Journal, digest_of
from pdedkl.training.monitor import Monitor


def poisson(d=2, exact=lambda q: jnp.sin(2 * q[0]) * jnp.exp(q[1]), conditions=None):
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    x = domain.coordinates("x")
    operator = -pk.Laplacian(x)
    stated = [pk.Dirichlet(on=domain.boundary(x), value=exact)] if conditions is None else conditions(domain, x)
    return pk.Problem(domain, operator, operator(exact), stated, exact)


def error(posterior, problem):
    q = problem.interior(200, seed=9)
    truth = problem.truth(q)
    return float(np.linalg.norm(posterior.predict(q).mean - truth) / np.linalg.norm(truth))


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    path = tmp_path_factory.mktemp("solved") / "checkpoint"
    return poisson(), pk.solve(poisson(), accuracy=1e-3, seconds=None, checkpoint=path, progress=False), path


def test_an_easy_problem_is_solved_without_a_number_of_points(solved):
    problem, posterior, _ = solved
    last = posterior.training.rounds[-1]
    assert last.values == sum(map(len, posterior.observations)) and last.status == posterior.verdict.status
    assert posterior.verdict.calibrated and last.error == posterior.verdict.error_u <= 1e-3
    assert all(item.error > 1e-3 or item.status != "calibrated" for item in posterior.training.rounds[:-1])
    assert error(posterior, problem) <= 1e-3
    assert posterior.training.stopped is None and "round" in posterior.training.table()


def test_a_finished_run_is_not_trained_again(solved):
    problem, posterior, path = solved
    steps = []
    again = pk.solve(poisson(), accuracy=1e-3, seconds=None, checkpoint=path, progress=False, callbacks=[steps.append])
    q = problem.interior(20)
    assert not steps and np.array_equal(again.predict(q).mean, posterior.predict(q).mean)


def test_a_solution_is_saved_with_its_rounds(solved, tmp_path):
    _, posterior, _ = solved
    posterior.save(tmp_path / "m.pdedkl")
    assert pk.load(tmp_path / "m.pdedkl").training.rounds == posterior.training.rounds


def test_more_points_until_the_error_is_small_enough(monkeypatch):
    """With few points in the first round more rounds follow, each from the kernel of the best one."""
    monkeypatch.setattr(solving, "FEWEST", 4)
    monkeypatch.setattr(solving, "VALUES_EACH", 4)
    monkeypatch.setattr(solving, "FAR", np.inf)
    problem = poisson(1, lambda q: jnp.sin(6 * q[0]) * jnp.exp(q[0]))
    posterior = pk.solve(problem, accuracy=1e-5, seconds=None, progress=False)
    rounds = posterior.training.rounds
    assert len(rounds) > 1 and [r.values for r in rounds] == [2 + 4 * 2**k for k in range(len(rounds))]
    assert posterior.verdict.error_u == min(r.error for r in rounds if r.status == "calibrated") <= 1e-5
    assert error(posterior, problem) <= 2e-5


def test_all_kernels_are_tried_again_where_more_points_gain_nothing(monkeypatch):
    errors, called = iter([1e-1, 1e-2, 9e-3, 1e-3, 9e-4, 8e-4]), []

    def fit(search, name, count, seconds, **options):
        before = search.best.verdict.error_u if search.found else np.inf
        verdict = SimpleNamespace(error_u=next(errors), calibrated=True, status="calibrated")
        search.found.append(SimpleNamespace(verdict=verdict, model=SimpleNamespace(mean=None)))
        search.rounds.append(SimpleNamespace(seconds=0.0, values=100))
        called.append((name, "start" in options))
        return verdict.error_u < solving.GAIN * before

    monkeypatch.setattr(solving.Search, "fit", fit)
    monkeypatch.setattr(networks, "applies", lambda *_: False)
    solving._rounds(solving.Search(poisson(), (), 1e-9, None, 0, None, ()))
    more, again = ("more points", True), ("explore again", False)
    assert called == [("explore", False), more, more, again, more, again]


def test_files_of_rounds_are_known_again_in_another_process():
    """What a round starts from has the same name there, functions included."""
    kernel = pk.ard(poisson().domain)
    one, other = (digest_of((kernel, pk.FunctionMean(jnp.sum), scale)) for scale in (1.0, 2.0))
    assert one != other and " at 0x" not in str(jax.tree.structure(kernel))
    code = "import jax.numpy as jnp, pdedkl as pk; from pdedkl.training.journal import digest_of; "
    code += "d = pk.Domain(x=[(0.0, 1.0)] * 2); print(digest_of((pk.ard(d), pk.FunctionMean(jnp.sum), 1.0)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == one


def test_a_round_that_cannot_be_done_keeps_the_best(solved, monkeypatch):
    def fail(search, *arguments, **options):
        raise MemoryError("too many values")

    def first(search):
        search.found.append(solved[1])
        search.rounds.append(solved[1].training.rounds[-1])
        search.fit("more points", 1, 1.0)

    monkeypatch.setattr(solving, "_rounds", first)
    monkeypatch.setattr(solving.Search, "fit", fail)
    with pytest.warns(pk.FitWarning, match="too many values"):
        posterior = pk.solve(solved[0], accuracy=1e-9, seconds=None, progress=False)
    assert posterior.verdict is solved[1].verdict


def test_what_is_undetermined_is_not_tried_again():
    slopes = lambda domain, x: [
        pk.Neumann(on=domain.boundary(x), value=lambda q: 2 * jnp.cos(2 * q[0]) * (2 * q[0] - 1))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = poisson(1, lambda q: jnp.sin(2 * q[0]), slopes)
        posterior = pk.solve(problem, accuracy=1e-3, seconds=None, progress=False)
    assert posterior.verdict.status == "undetermined" and len(posterior.training.rounds) == 1


def test_a_callback_ends_the_run_with_the_best_so_far():
    seen = []

    def enough(step):
        seen.append(step)
        return len(seen) == 3

    posterior = pk.solve(poisson(3), accuracy=1e-9, seconds=200, callbacks=[enough], progress=False)
    assert len(seen) == 3 and posterior.training.stopped == "a callback asked for it"
    assert seen[0].phase.startswith("round 1: explore") and seen[0].allowed == 200


def test_only_forward_problems_are_for_networks():
    data = pk.Observation(pk.identity, np.full((6, 2), 0.5), np.ones(6), "exact")
    assert networks.applies(poisson(), ()) and not networks.applies(poisson(), (data,))
    measured = lambda domain, x: [pk.Sensors(np.full((6, 2), 0.5), np.ones(6))]
    assert not networks.applies(poisson(conditions=measured), ())


def beginning(problem):
    return problem.domain, *networks.pool_of(problem, 0)


@pytest.fixture(scope="module")
def network():
    """A short training of a small network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "WIDTH", 12)
        patch.setattr(networks, "DEPTH", 2)
        patch.setattr(networks, "FIRST_ROWS", {"cpu": 60})
        patch.setattr(networks, "POOL", 2000)
        return networks.trained(*beginning(poisson()), Journal(None, ""), Monitor(), 0, goal=2e-2)


def test_a_network_solves_the_problem_roughly(network):
    problem = poisson()
    q = problem.interior(200)
    found, truth = jax.vmap(network)(jnp.asarray(q)), problem.truth(q)
    assert np.linalg.norm(found - truth) < 3e-2 * np.linalg.norm(truth)


def test_steps_shorten_towards_the_end_of_the_time(monkeypatch):
    monitor = Monitor(allowed=100.0)
    for now, expected in ((20.0, 1.0), (60.0, 0.5), (100.0, 0.0), (120.0, 0.0)):
        monkeypatch.setattr(Monitor, "seconds", now)
        assert monitor.share_left(20.0) == expected and Monitor().share_left(20.0) == 1.0


def test_a_round_leaves_time_for_what_follows_its_training(monkeypatch):
    """Conditioning and the verdict took 3 s for 100 values: they are taken to need 12 s for 200."""
    problem, asked = poisson(), []
    search = solving.Search(problem, (), 1e-6, 100.0, 0, None, ())

    def fitted(problem, data, seconds, **_):
        asked.append((sum(map(len, data)), seconds))
        history = (SimpleNamespace(seconds=4.0),)
        training = SimpleNamespace(history=history, seconds=7.0, stopped=None, kernel="inputs")
        return SimpleNamespace(
            training=training, verdict=SimpleNamespace(error_u=1e-3, status="calibrated", calibrated=True)
        )

    monkeypatch.setattr(solving, "fit", fitted)
    search.fit("explore", 50, 20.0)
    assert asked == [(100, 20.0)] and search.after_training(200) == pytest.approx(12.0)
    assert search.time_for_twice_as_many
    search.fit("more points", 100, search.left)
    assert asked[1] == (200, pytest.approx(search.left - 12.0, abs=0.1))
    search.seconds = 5.0
    assert not search.time_for_twice_as_many


def test_a_network_goes_on_with_gradient_steps_and_after_a_kill(tmp_path, monkeypatch):
    """With natural gradients called slow at once. A run that is stopped ends in the same bits when it goes on."""
    for name, value in {
        "WIDTH": 8,
        "DEPTH": 1,
        "POOL": 400,
        "SLOW": 0.0,
        "MANY": 20,
        "LOOK": 10,
        "PATIENCE": 1,
    }.items():
        monkeypatch.setattr(networks, name, value)
    for name in ("FIRST_ROWS", "MOST_ROWS", "BATCH"):
        monkeypatch.setattr(networks, name, {"cpu": 16})
    seen: list[str] = []

    def ended(step):
        seen.append(step.phase)
        return len(seen) == 3

    def trained(path, callbacks=()):
        return networks.trained(
            *beginning(poisson()), Journal(path, "", 0.0), Monitor(callbacks=callbacks), 0, goal=1e-9
        )

    whole, file = trained(None, [lambda step: seen.append(step.phase)]), tmp_path / "network"
    assert {"network", "network, gradient steps", "network, large batches"} == set(seen)
    seen.clear()
    trained(file, [ended])
    assert seen[-1] == "network, gradient steps"
    again = trained(file)
    assert all(map(np.array_equal, jax.tree.leaves(again.network), jax.tree.leaves(whole.network)))


def test_a_process_takes_what_the_network_leaves(network, tmp_path):
    problem = poisson()
    data = problem.sample(source=40, boundary=40)
    posterior = pk.fit(problem, data, mean=network, model="gp", progress=False)
    assert isinstance(posterior.model.mean, pk.NetworkMean) and posterior.verdict.calibrated
    assert error(posterior, problem) < 1e-3
    q = problem.interior(200, seed=9)
    u = posterior.predict(q)
    assert coverage(u.mean, u.std, problem.truth(q))["0.95"] > 0.85
    posterior.save(tmp_path / "m.pdedkl")
    again = pk.load(tmp_path / "m.pdedkl")
    assert np.array_equal(again.predict(q).mean, u.mean) and np.array_equal(again.predict(q).variance, u.variance)


def test_walls_are_built_into_the_network():
    problem = poisson(exact=lambda q: jnp.sin(jnp.pi * q[0]) * jnp.sin(jnp.pi * q[1]), conditions=_zero)
    pool, mean = networks.pool_of(problem, 0)
    assert mean.multiplier is not None and [item.of_values for item in pool] == [False]
    assert float(mean(jnp.asarray([1.0, 0.3]))) == 0.0


def _zero(domain, x):
    return [pk.Dirichlet(on=domain.boundary(x), value=0.0)]


@pytest.mark.parametrize("few", [True, False])
def test_directions_of_a_network_start_a_kernel_if_they_are_few(few):
    """A network of one direction of ten, and one of all of them."""
    problem = poisson(10, lambda q: jnp.sum(q))
    network = pk.MLP(10, 1, width=40, depth=1, activation="tanh", key=jax.random.key(0))
    row = np.arange(1.0, 11.0)
    if few:
        first = Linear(jnp.asarray(np.outer(np.linspace(-1, 1, 40), row / 20)), network.layers[0].offset)
        network = eqx.tree_at(lambda n: n.layers[0], network, first)
    search = solving.Search(problem, (), 1e-3, None, 0, None, ())
    kernel = solving._on_directions(search, pk.NetworkMean(problem.domain, network))
    if few:
        found = starts.directions_of(kernel)[0][0]
        np.testing.assert_allclose(abs(found), row / np.linalg.norm(row), atol=1e-6)
    else:
        assert kernel is None


def test_training_goes_on_from_a_posterior_and_from_a_kernel(solved):
    problem, posterior, _ = solved
    more = problem.sample(source=150, boundary=100)
    warm = pk.fit(problem, more, start=posterior, progress=False)
    assert [name for name, _ in warm.training.candidates] == [posterior.training.kernel]
    assert error(warm, problem) <= 2 * error(posterior, problem)
    given = pk.fit(problem, problem.sample(), start=pk.ard(problem.domain, lengthscale=2.0), progress=False)
    assert given.training.kernel == "as given" and error(given, problem) < 1e-3


@pytest.mark.parametrize(
    ("arguments", "wrong", "text"),
    [
        ({"mean": 3.0}, TypeError, "needs a Mean"),
        ({"start": "model"}, TypeError, "needs a Posterior"),
        ({"start": pk.ard(pk.Domain(x=(0, 1)))}, ValueError, "this problem|for this problem"),
        ({"mean": pk.ConstantMean(1.0), "recipe": "paper"}, ValueError, "default recipe"),
    ],
)
def test_wrong_starts_and_means_are_refused(arguments, wrong, text):
    problem = poisson()
    with pytest.raises(wrong, match=text):
        pk.fit(problem, problem.sample(), **arguments)


def test_wrong_requests_are_refused():
    with pytest.raises(TypeError, match=r"needs a Problem.*fit\(domain, data\)"):
        pk.solve(pk.Domain(x=(0, 1)))
    with pytest.raises(ValueError, match="accuracy"):
        pk.solve(poisson(), accuracy=2.0)
    with pytest.raises(ValueError, match="seconds"):
        pk.solve(poisson(), seconds=0)
