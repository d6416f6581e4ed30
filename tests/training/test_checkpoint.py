"""Checkpoints: runs that were stopped go on to the same bits; files that do not belong are refused, and left alone."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import ridge

import pdedkl as pk
from pdedkl.inference import memory
from pdedkl.training import paper
from pdedkl.training.journal import FORMAT, Journal, fingerprint, recorded

CASES = {"default": {"model": "linear"}, "paper": {"recipe": "paper", "model": "gp"}}


def fit(checkpoint=None, data=None, callbacks=(), domain=ridge.DOMAIN, **options):
    chosen = {"checkpoint_every": 0.0} | CASES["default"] | options
    return pk.fit(domain, data or ridge.observations(), checkpoint=checkpoint, callbacks=callbacks, **chosen)


def stop_at(count):
    seen = []

    def callback(step):
        seen.append(step)
        return len(seen) == count

    return callback


@pytest.fixture(scope="module", params=CASES)
def alone(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "STEPS", 12)
        yield CASES[request.param], fit(**CASES[request.param])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The bytes of a checkpoint in the middle of a run."""
    path = tmp_path_factory.mktemp("stored") / "run.ckpt"
    assert fit(path, callbacks=[stop_at(30)]).training.stopped
    return path.read_bytes()


# ── stopped and continued ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("every", [0.0, 1e9], ids=["every step", "at the stop only"])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.9])
def test_a_stopped_run_goes_on_to_the_same_bits(alone, part, every, tmp_path):
    options, expected = alone
    count = 1 + int(part * len(expected.training.history))
    checkpoint = tmp_path / "run.ckpt"
    stopped = fit(checkpoint, callbacks=[stop_at(count)], checkpoint_every=every, **options)
    assert stopped.training.stopped == "a callback asked for it" and np.isfinite(stopped.training.objective)
    assert len(stopped.training.history) < len(expected.training.history)
    assert np.all(np.isfinite(stopped.predict(ridge.ELSEWHERE).mean))
    resumed = fit(checkpoint, **options)
    assert resumed.training.stopped is None
    assert resumed.training.candidates == expected.training.candidates
    # The steps of both processes, none of them twice, and the time of both.
    steps = [[(step.phase, step.step) for step in found.training.history] for found in (resumed, expected)]
    assert steps[0] == steps[1]
    assert resumed.training.seconds > stopped.training.history[0].seconds
    times = [step.seconds for step in resumed.training.history]
    assert times == sorted(times)
    np.testing.assert_array_equal(ridge.parameters(resumed), ridge.parameters(expected))


def test_stopped_time_and_again_and_still_the_same(alone, tmp_path):
    options, expected = alone
    checkpoint, stops = tmp_path / "run.ckpt", 0
    part = 5 if "recipe" in options else 50  # longer than the longest step between two states that are kept
    while (found := fit(checkpoint, callbacks=[stop_at(part)], **options)).training.stopped:
        stops += 1
        assert stops < 100
    assert stops >= 1
    np.testing.assert_array_equal(ridge.parameters(found), ridge.parameters(expected))


def test_a_finished_run_is_not_run_again(alone, tmp_path):
    options, expected = alone
    checkpoint = tmp_path / "deeper" / "run.ckpt"
    first, again = fit(checkpoint, **options), fit(checkpoint, **options)
    assert len(first.training.history) == len(expected.training.history)
    assert str(again.training.history) == str(first.training.history)  # nan is not equal to itself
    assert again.training.seconds > first.training.history[-1].seconds
    for found in (first, again):
        np.testing.assert_array_equal(ridge.parameters(found), ridge.parameters(expected))


SCRIPT = """
import json, os, signal, sys
import numpy as np
import ridge
import pdedkl as pk

checkpoint = sys.argv[1]
mine = signal.getsignal(signal.SIGINT)


def run(interrupt_at=0, **options):
    seen = []

    def callback(step):
        seen.append(step)
        if len(seen) == interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)

    found = pk.fit(ridge.DOMAIN, ridge.observations(), model="linear", callbacks=[callback], **options)
    return found, ridge.parameters(found)


alone, expected = run()
out = []
for count in (2, 15, 30):
    path = f"{checkpoint}.{count}"
    stopped, parameters = run(count, checkpoint=path)
    resumed, continued = run(checkpoint=path)
    out.append({
        "stopped": stopped.training.stopped,
        "steps": len(stopped.training.history),
        "finite": bool(np.isfinite(stopped.training.objective) and np.all(np.isfinite(parameters))),
        "handler": signal.getsignal(signal.SIGINT) is mine,
        "resumed": resumed.training.stopped,
        "same": bool(np.array_equal(continued, expected)),
    })
print(json.dumps(out))
"""


def test_ctrl_c_keeps_what_there_is_and_the_run_can_go_on(environment, tmp_path):
    command = [sys.executable, "-c", SCRIPT, tmp_path / "run.ckpt"]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=300)
    assert process.returncode == 0
    found = json.loads(process.stdout)
    for part, count in zip(found, (2, 15, 30), strict=True):
        assert count <= part.pop("steps") < count + 10  # phases that had not begun take a step each
        assert part == {"stopped": "interrupted", "finite": True, "handler": True, "resumed": None, "same": True}


# ── refused ───────────────────────────────────────────────────────────────────────────────────────────────────────


def saved(**arrays):
    def write(path, _):
        with open(path, "wb") as file:
            np.savez(file, **arrays)

    return write


def of_another_run(path):
    journal = Journal(path, "other", every=0.0)
    journal.run("phase", lambda: {"done": np.asarray(False)}, lambda _: {"done": np.asarray(True)})


def save_array(path, _):
    with open(path, "wb") as file:
        np.save(file, np.ones(3))


@pytest.mark.parametrize(
    "write, words",
    [
        (lambda path, good: path.write_bytes(good[: len(good) // 2]), "no checkpoint that can be read"),
        (lambda path, good: path.write_bytes(good[:-10]), "no checkpoint that can be read"),
        (lambda path, _: path.write_bytes(b""), "no checkpoint that can be read"),
        (lambda path, _: path.write_text("my notes"), "no checkpoint that can be read"),
        (lambda path, _: path.mkdir(), "no checkpoint that can be read"),
        (save_array, "no checkpoint that can be read"),
        (saved(format=np.array([{}], dtype=object)), "no checkpoint that can be read"),
        (saved(x=np.ones(3)), "not a checkpoint of this version"),
        (saved(format=np.asarray("pdedkl checkpoint 0")), "not a checkpoint of this version"),
        (saved(format=np.asarray(FORMAT), fingerprint=np.asarray("other")), "no checkpoint that can be read"),
        (lambda path, good: of_another_run(path), "belongs to another run"),
    ],
    ids=["half", "cut", "empty", "text", "folder", "array", "objects", "foreign", "old", "no digest", "other run"],
)
def test_files_that_are_no_checkpoint_of_this_run(write, words, stored, tmp_path):
    path = tmp_path / "run.ckpt"
    write(path, stored)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ValueError, match=f"run.ckpt.*{words}.*delete it"):
        fit(path)
    assert before is None or path.read_bytes() == before


def test_damage_is_seen(stored, tmp_path):
    """A bit that is flipped is refused, unless it is one of the zip format's own that says nothing about the state."""
    path, rng = tmp_path / "run.ckpt", np.random.default_rng(0)
    path.write_bytes(stored)
    with np.load(path) as file:
        key = str(file["fingerprint"])
    good, refused = Journal(path, key), 0
    for place in rng.integers(len(stored), size=300):
        damaged = bytearray(stored)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            found = Journal(path, key)
        except ValueError as error:
            refused += 1
            assert "run.ckpt" in str(error)
        else:
            assert repr((found.finished, found.current)) == repr((good.finished, good.current))
    assert refused > 200


def counting(**changes):
    state = {"x": np.zeros(2), "value": np.asarray(np.inf), "step": np.asarray(0), "done": np.asarray(False)}
    return {name: value for name, value in (state | changes).items() if value is not None}


@pytest.mark.parametrize("place", ["finished", "current"])
@pytest.mark.parametrize(
    "changes",
    [
        {"done": None},
        {"x": np.zeros(3)},
        {"x": np.array(["a", "b"])},
        {"x": np.array([0.0, np.nan])},
        {"x": np.array([0.0, np.inf])},
        {"value": np.asarray(np.nan)},
        {"more": np.zeros(2)},
    ],
    ids=str,
)
def test_a_state_that_was_edited_is_refused(changes, place, tmp_path):
    """With a digest that fits: it is written by the journal itself."""
    path = tmp_path / "run.ckpt"

    def one_step(state):
        return state | {"step": state["step"] + 1, "done": np.asarray(True)}

    journal = Journal(path, "key")
    journal.finished, journal.current = {}, ("phase", counting(**changes))
    if place == "finished":
        journal.finished, journal.current = {"phase": counting(**changes)}, None
    journal._write(force=True)
    with pytest.raises(ValueError, match=r"run\.ckpt is no checkpoint.*'phase'.*delete it"):
        Journal(path, "key").run("phase", counting, one_step)
    path.unlink()
    assert int(Journal(path, "key").run("phase", counting, one_step)["step"]) == 1


POINTS = ridge.observations()[0]


@pytest.mark.parametrize(
    "change",
    [
        {"data": ridge.observations(u=np.array(POINTS.values) + 1e-12)},
        {"data": ridge.observations(inside=ridge.inside(7))},
        {"data": ridge.observations()[:1]},
        {"domain": pk.Domain(x=[(0.0, 1.0), (0.0, 1.0), (0.0, 2.0)])},
        {"domain": pk.Domain(x=[(0.0, 1.0), (0.0, 1.0), (-1.0, 1.0)])},
        {"seed": 1},
        {"latent_dim": 2},
        {"prior_strength": 0.3},
        {"accuracy": 0.1},
        {"model": "gp"},
        {"recipe": "paper"},
    ],
    ids=lambda change: ", ".join(change),
)
def test_a_checkpoint_of_another_run_is_refused(change, stored, tmp_path):
    path = tmp_path / "run.ckpt"
    path.write_bytes(stored)
    with pytest.raises(ValueError, match="belongs to another run"):
        fit(path, **change)
    assert path.read_bytes() == stored


def test_coefficients_that_print_alike_are_told_apart():
    def observed(slope):
        def speed(q):
            return 1.0 + slope * q[0]

        operator = pk.Coefficient(speed) * pk.Laplacian(ridge.DOMAIN.coordinates("x"))
        return [pk.Observation(operator, ridge.INSIDE, np.ones(len(ridge.INSIDE)))]

    assert str(observed(1.0)[0].operator) == str(observed(2.0)[0].operator)
    assert fingerprint(observed(1.0)) == fingerprint(observed(1.0))
    assert fingerprint(observed(1.0)) != fingerprint(observed(2.0))


def test_memory_that_is_free_changes_nothing_and_the_plan_is_kept(tmp_path, monkeypatch):
    """A run that goes on where there is more memory goes on with the values that it began with."""
    checkpoint = tmp_path / "run.ckpt"
    monkeypatch.setattr(memory, "total_bytes", lambda: 100_000)
    with pytest.warns(UserWarning, match="learned from 40 of them"):
        first = fit(checkpoint, model="gp", callbacks=[stop_at(2)])
    assert first.training.trained_values == 40 and first.training.solver == "iterative"
    monkeypatch.setattr(memory, "total_bytes", lambda: 1 << 40)
    with pytest.warns(UserWarning, match="learned from 40 of them"):
        again = fit(checkpoint, model="gp")
    assert again.training.trained_values == 40 and again.training.solver == "iterative"
    assert recorded(checkpoint) == {"solver": "iterative", "trained_values": 40}
    with pytest.raises(ValueError, match="another run"):
        fit(checkpoint, model="gp", trained_values=60)
    for free in (20_000_000, 1 << 40):
        monkeypatch.setattr(memory, "available_bytes", lambda free=free: free)
        found = fit(None, model="gp", trained_values=40, callbacks=[stop_at(1)])
        assert found.training.solver == "dense" and found.training.trained_values == 40


def test_another_version_does_not_go_on_with_a_checkpoint(monkeypatch):
    before = fingerprint(ridge.observations())
    monkeypatch.setattr(pk, "__version__", "0.0.0")
    assert fingerprint(ridge.observations()) != before


def test_functions_count_by_their_values_and_with_their_parameters():
    def observed(power, initial=0.3):
        k = pk.Parameter("k", initial)
        operator = pk.Coefficient(lambda q, k: k * q[0] ** power, k) * pk.Laplacian(ridge.DOMAIN.coordinates("x"))
        return [pk.Observation(operator, ridge.INSIDE, np.ones(len(ridge.INSIDE)))]

    assert fingerprint(observed(1)) == fingerprint(observed(1))
    assert len({fingerprint(data) for data in (observed(1), observed(2), observed(1, initial=0.4))}) == 3
