"""Searches find the best value, train none twice, survive failures and kills, and do not depend on the workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.searching.run import Searcher
from pdedkl.searching.space import Space

SET = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30)


def bowl(parameters):
    """Lowest at 8 and a prior of 0.1, on a slope that a surrogate can learn."""
    h, strength = parameters["latent_dim"], parameters.get("prior_strength", 0.1)
    return 50.0 * np.log(h / 8) ** 2 + 9.0 * np.log10(strength / 0.1) ** 2 - 300.0, f"posterior of {h}"


class Counted:
    """A stub of training that counts, and raises what it is told to at its `at`-th call."""

    def __init__(self, train=bowl, error: BaseException | None = None, at: int = 0) -> None:
        self.train, self.error, self.at, self.calls = train, error, at, []

    def __call__(self, parameters):
        self.calls.append(parameters)
        if self.error is not None and len(self.calls) == self.at:
            raise self.error
        return self.train(parameters)


def run(train=bowl, space=None, **options):
    return Searcher(space or Space.of(SET), train, **options).run()


def found(search):
    return [(item.parameters, item.objective, item.error) for item in search.history]


@pytest.mark.parametrize("acquisition", ["ei", "ucb", "pi"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_lowest_objective_is_found_without_trying_everything(acquisition, seed):
    train = Counted()
    search = run(train, evaluations=9, initial=3, acquisition=acquisition, seed=seed)
    dims = [item["latent_dim"] for item in train.calls]
    assert search.best == {"latent_dim": 8} and search.objective == -300.0
    assert len(dims) == len(set(dims)) == 9 and set(dims) <= set(SET)
    assert [item.parameters for item in search.history] == train.calls


def test_a_search_is_a_function_of_its_seed_and_starts_at_random():
    first, again, other = (run(seed=seed) for seed in (5, 5, 6))
    assert found(first) == found(again)
    starts = {run(seed=seed, evaluations=1, initial=1).history[0].parameters["latent_dim"] for seed in range(12)}
    assert len(starts) > 4 and found(other) != found(first)


def test_a_small_set_is_trained_in_full():
    search = run(space=Space.of({3, 1}), evaluations=10)
    assert sorted(item.parameters["latent_dim"] for item in search.history) == [1, 3]


@pytest.mark.parametrize("batch", [1, 4])
def test_a_wider_search_finds_the_best_pair(batch):
    space = Space.of(SET, prior_strengths=[1e-3, 1e-2, 0.1, 1.0, 10.0])
    search = run(space=space, evaluations=24, initial=6, batch=batch)
    distinct = {tuple(item.parameters.values()) for item in search.history}
    assert search.best == {"latent_dim": 8, "prior_strength": 0.1} and len(distinct) == 24


def test_the_set_is_a_product_and_strengths_are_on_a_log_scale():
    space = Space.of(np.arange(1, 4), groups=[2, 1], prior_strengths=[1, 0.01, 0.1])
    assert len(space) == 18 and space.names == ("latent_dim", "groups", "prior_strength")
    middle = space.coordinates([{"latent_dim": 2, "groups": 1, "prior_strength": 0.1}])
    np.testing.assert_allclose(middle, [[0.5, 0.0, 0.5]])


def test_a_flat_objective_is_searched_to_the_end():
    for acquisition in ("ei", "ucb", "pi"):
        assert len(run(lambda _: (1.0, None), evaluations=12, acquisition=acquisition).history) == 12


def failing(parameters):
    if parameters["latent_dim"] < 4:
        raise FloatingPointError("not positive definite")
    return (np.nan, None) if parameters["latent_dim"] == 30 else bowl(parameters)


def test_failures_are_recorded_and_the_search_goes_on():
    search = run(failing, evaluations=12)
    errors = {item.parameters["latent_dim"]: item.error for item in search.history if item.objective is None}
    assert set(errors) == {1, 2, 3, 30} and search.best == {"latent_dim": 8}
    assert errors[1] == "FloatingPointError: not positive definite" and "nan" in errors[30]
    assert "failed" in search.table() and "not positive definite" in search.table()
    with pytest.raises(RuntimeError, match=r"All 3 trainings failed.*not positive definite"):
        run(failing, space=Space.of([1, 2, 3]), initial=1)
    with pytest.raises(KeyError):
        run(Counted(error=KeyError("a mistake"), at=2))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_killed_search_goes_on_and_ends_as_if_it_had_not_stopped(tmp_path, batch):
    whole = run(batch=batch)
    path = tmp_path / "search.json"
    for at in (3, 4):
        with pytest.raises(KeyboardInterrupt):
            run(Counted(error=KeyboardInterrupt(), at=at), state=path, batch=batch)
    stored = json.loads(path.read_text())
    assert len(stored["evaluations"]) == 5 and len(stored["pending"]) == (1 if batch == 1 else 2)
    rest = Counted()
    search = run(rest, state=path, batch=batch)
    assert found(search) == found(whole) and len(rest.calls) == 5
    none = Counted()
    assert found(run(none, state=path, batch=batch)) == found(whole) and not none.calls


def test_more_evaluations_are_added_to_a_finished_search(tmp_path):
    path = tmp_path / "search.json"
    run(state=path, evaluations=6)
    more = Counted()
    assert found(run(more, state=path, evaluations=9)) == found(run(evaluations=9)) and len(more.calls) == 3
    with pytest.raises(ValueError, match="holds 9 evaluations already and only 5 are asked for"):
        run(state=path, evaluations=5)


def test_a_state_file_of_another_search_is_refused(tmp_path):
    path = tmp_path / "search.json"
    run(state=path, options={"data": "abc", "model": "dkl"})
    for name, changed in {
        "seed": {"seed": 1},
        "batch": {"batch": 2},
        "acquisition": {"acquisition": "pi"},
        "search set": {"space": Space.of([1, 2, 3])},
        "data": {"options": {"data": "abd", "model": "dkl"}},
    }.items():
        with pytest.raises(ValueError, match=f"another search, with other {name}:"):
            run(state=path, **({"options": {"data": "abc", "model": "dkl"}} | changed))


@pytest.mark.parametrize("damage", ["truncated", "empty", "foreign", "binary", "stranger", "twice", "nan", "missing"])
def test_a_damaged_state_file_is_refused(tmp_path, damage):
    path = tmp_path / "search.json"
    run(state=path)
    text = path.read_text()
    content = json.loads(text)
    evaluations = content["evaluations"]
    if damage == "stranger":
        evaluations[2]["parameters"] = {"latent_dim": 7}
    elif damage == "twice":
        evaluations[2]["parameters"] = evaluations[1]["parameters"]
    elif damage == "nan":
        evaluations[0]["objective"] = float("nan")
    elif damage == "missing":
        del evaluations[1]
    whole = {"truncated": text[:200], "empty": "", "foreign": '{"a": 1}'}.get(damage, json.dumps(content))
    path.write_bytes(b"\x93NUMPY\xff" if damage == "binary" else whole.encode())
    with pytest.raises(ValueError, match=r"search\.json (is|needs) .*delete it"):
        run(state=path)


def test_the_posterior_is_that_of_the_best_and_trained_again_only_if_needed(tmp_path):
    train = Counted()
    search = run(train, state=tmp_path / "search.json")
    assert search.posterior == "posterior of 8" and len(train.calls) == 10
    later = Counted()
    resumed = run(later, state=tmp_path / "search.json")
    assert not later.calls
    assert [resumed.posterior, resumed.posterior] == ["posterior of 8"] * 2 and later.calls == [{"latent_dim": 8}]


def test_the_table_marks_the_best():
    search = run()
    lines = search.table().splitlines()
    assert lines[0].split() == ["#", "latent_dim", "objective", "seconds"] and len(lines) == 11
    assert [line.split()[1:3] for line in lines if line.endswith("*")] == [["8", "-300.00"]]


@pytest.mark.parametrize("space", [Space.of(SET), Space.of(SET, [1, 2], [0.1, 1.0])], ids=["one", "wide"])
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_plot_is_stored_and_leaves_matplotlib_alone(tmp_path, space, suffix):
    before = matplotlib.get_backend(auto_select=False)
    search = run(failing, space=space, evaluations=8)
    figure = search.plot(tmp_path / f"search.{suffix}")
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert (tmp_path / f"search.{suffix}").read_bytes().startswith(start)
    axes = figure.axes[0]
    assert axes.get_xlabel() == "latent dimension" and axes.get_ylabel() == "negative log marginal likelihood"
    assert all(tick == round(tick) for tick in axes.get_xticks())
    assert any(text.get_text().startswith("best") for text in axes.get_legend().get_texts())
    assert matplotlib.get_backend(auto_select=False) == before
    with pytest.raises(ValueError, match=r"\.png, \.svg, \.pdf"):
        search.plot(tmp_path / "search.gif")


def test_the_surrogate_goes_through_what_was_found():
    search = run()
    mean, deviation = search.surrogate.predict([item.parameters for item in search.history])
    np.testing.assert_allclose(mean, [item.objective for item in search.history], atol=1.0)
    assert np.all(deviation < 2.0)


def test_nothing_is_printed_unless_asked(capfd):
    run()
    assert capfd.readouterr() == ("", "")
    run(failing, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and len(err.splitlines()) == 10 and "best so far: latent_dim 8" in err


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"latent_dims": []}, ValueError, "`latent_dims` is empty"),
    ({"latent_dims": [1, 2.5]}, ValueError, "positive whole numbers"),
    ({"latent_dims": [0, 1]}, ValueError, "got 0"),
    ({"latent_dims": 5}, TypeError, "a set of values"),
    ({"groups": 2}, TypeError, "`groups` needs a set"),
    ({"prior_strengths": [0.0]}, ValueError, "log scale"),
    ({"acquisition": "best"}, ValueError, "choose one of ei, ucb, pi"),
    ({"initial": 11}, ValueError, "11 of 10"),
    ({"initial": 0}, ValueError, "`initial` needs a positive"),
    ({"evaluations": 2.0}, ValueError, "`evaluations` needs a positive"),
    ({"workers": 0}, ValueError, "`workers` needs a positive"),
    ({"seed": -1}, ValueError, "`seed` needs"),
    ({"model": "gp"}, ValueError, "no latent dimension"),
    ({"latent_dim": 3}, TypeError, "latent_dims="),
    ({"checkpoint": "a.npz"}, TypeError, "state="),
    ({"colour": "red"}, TypeError, "neither search nor fit"),
]


def poisson(n=20):
    """`u = sin(2 (x + y))` inside the unit square, from values of `u` and of `−Δu`."""
    domain = pk.Domain(x=[(0, 1)] * 2)
    x = domain.coordinates()
    points = np.random.default_rng(0).uniform(size=(2 * n, 2))
    u = np.sin(2 * points.sum(axis=1))
    return domain, [
        pk.Observation(pk.identity, points[:n], u[:n]),
        pk.Observation(-pk.Laplacian(x), points[n:], 8 * u[n:]),
    ]


@pytest.mark.parametrize(("options", "error", "message"), BAD, ids=lambda item: str(item)[:40])
def test_bad_options_are_refused_before_anything_is_trained(options, error, message):
    domain, data = poisson(3)
    with pytest.raises(error, match=message):
        pk.search(domain, data, **options)


def test_a_problem_is_needed():
    with pytest.raises(TypeError, match="a problem or a Domain"):
        pk.search("poisson", [])


def test_a_search_trains_with_fit_and_tells_data_apart(tmp_path):
    domain, data = poisson()
    options = {"latent_dims": [1, 2], "initial": 1, "evaluations": 2, "model": "linear", "state": tmp_path / "s.json"}
    search = pk.search(domain, data, **options)
    assert {item.parameters["latent_dim"] for item in search.history} == {1, 2}
    assert search.objective == search.posterior.training.objective == min(item.rank for item in search.history)
    inside = np.random.default_rng(1).uniform(0.1, 0.9, size=(50, 2))
    np.testing.assert_allclose(search.posterior.predict(inside).mean, np.sin(2 * inside.sum(axis=1)), atol=1e-3)
    assert found(pk.search(domain, data, **options)) == found(search)
    with pytest.raises(ValueError, match="another search, with other data:"):
        pk.search(domain, poisson(19)[1], **options)


def test_a_search_with_other_validation_data_is_another_search(tmp_path):
    """They print alike, since arrays print without their entries."""
    domain, data = poisson()
    fresh = [np.random.default_rng(seed).uniform(0.1, 0.9, size=(5, 2)) for seed in (1, 2)]
    options = {"latent_dims": [1], "initial": 1, "evaluations": 1, "model": "linear", "state": tmp_path / "s.json"}
    validated = [pk.Observation(pk.identity, q, np.sin(2 * q.sum(axis=1)), "exact") for q in fresh]
    search = pk.search(domain, data, validation=validated[0], **options)
    assert found(pk.search(domain, data, validation=validated[0], **options)) == found(search)
    with pytest.raises(ValueError, match="another search, with other validation:"):
        pk.search(domain, data, validation=validated[1], **options)


@dataclass(frozen=True)
class Stub:
    """Trains in a worker: needs an operator made of a lambda, and dies of some dimensions as often as it is told."""

    data: pk.Observation
    folder: Path
    deaths: int = 0
    patience: float = 0.0

    def __call__(self, parameters):
        h = parameters["latent_dim"]
        if self.patience:
            (self.folder / f"worker {os.getpid()}").touch()
            time.sleep(self.patience)
        for death in range(self.deaths if h == 5 else 0):
            if not (mark := self.folder / f"death {death}").exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2 if h % 2 else 0.0)  # so that results are not ready in the order of their proposal
        return bowl(parameters)[0] + float(self.data.operator.symbol(self.data.points[0]).c), None


def stub(folder, **options):
    return Stub(pk.Observation(pk.Coefficient(lambda q: 1.0 + q[0]) * pk.identity, [[0.5]], [1.0]), folder, **options)


@pytest.mark.parametrize("deaths", [1, 3])
def test_workers_give_what_one_process_gives_even_if_one_dies(tmp_path, deaths):
    space = Space.of([1, 2, 5, 8])
    options = {"space": space, "initial": 2, "evaluations": 4, "batch": 2, "state": tmp_path / "search.json"}
    if deaths == 3:
        with pytest.raises(RuntimeError, match="job 'latent_dim 5' died, 3 times"):
            run(stub(tmp_path, deaths=3), workers=2, **options)
    search = run(stub(tmp_path, deaths=deaths), workers=2, **options)
    serial = run(stub(tmp_path), **(options | {"state": None}))
    assert found(search) == found(serial) and search.best == {"latent_dim": 8} and search.objective == -298.5


def test_workers_leave_with_a_search_that_is_killed(tmp_path):
    script = (
        "import sys; from pathlib import Path; from test_search import *\n"
        "if __name__ == '__main__':\n"
        "    run(stub(Path(sys.argv[1]), patience=60.0), workers=2)\n"
    )
    (tmp_path / "script.py").write_text(script)
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(list(tmp_path.glob("worker *"))) == 2)
    finally:
        process.kill()
        process.wait()
    workers = [int(path.name.split()[1]) for path in tmp_path.glob("worker *")]
    wait_for(lambda: not any(alive(pid) for pid in workers))


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_what_cannot_be_sent_to_a_worker_is_refused_clearly():
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be sent to worker processes"):
        run(lambda _: (float(lock.locked()), None), workers=2)
