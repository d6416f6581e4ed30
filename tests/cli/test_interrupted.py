"""Ctrl-C, with real processes and real signals: exit status 130, and nothing that was found is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

SMALL = ["poisson", "--dim", "2", "--boundary", "30", "--source", "30", "--model", "gp"]

# Runs that wait, each at the place that is named, until all signals were sent; in `compile` Python hears no signals.
STAGED = """
import hashlib, os, sys, time
sys.path.insert(0, sys.argv[1])
import quick
import pdedkl.runs.solve as runs
from pdedkl.cli import main
from pdedkl.training.monitor import Monitor

def wait(place):
    if where == place:
        print(f"at {place}", file=sys.stderr, flush=True)
        for _ in range(600):
            if os.path.exists(pressed):
                break
            time.sleep(0.05)
        time.sleep(0.2)

def fit(problem, data, *, callbacks, **options):
    wait("fit begins")
    monitor = Monitor(callbacks=callbacks)
    with monitor.interruptible():
        if where == "compile":
            print("at compile", file=sys.stderr, flush=True)
            hashlib.pbkdf2_hmac("sha256", b"", b"", 4_000_000)  # some seconds in C
            print("compiled", file=sys.stderr, flush=True)
        wait("training")
        for step in range(3):
            if monitor.stopped is None:
                monitor.report("training", step, 3, 0.0, 0.0, {})
    wait("fit ends")
    return quick.fit(problem, data, stopped=monitor.stopped)

def report(folder, solved):
    wait("report")
    (folder / "report.html").write_text("report")
    return []

runs.fit, runs.report = fit, report
measured = runs.measured
runs.measured = lambda *arguments: wait("measuring") or measured(*arguments)
for folder in sys.argv[2:]:
    where, code, pressed = os.path.basename(folder)[2:], 0, folder + " pressed"
    try:
        main(["solve", "poisson", "--dim", "1", "--boundary", "2", "--source", "6", "--out", folder])
    except SystemExit as end:
        code = end.code
    print(f"ended with {code}", file=sys.stderr, flush=True)
"""


def run(command, presses, pressed=()):
    """What a process says, line by line. It gets Ctrl-C at the lines with the words, and again after each answer.

    Each file of `pressed` is made when all signals of one place were sent.
    """
    lines, left, pressed = [], 0, list(pressed)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            lines.append(line)
            if presses and presses[0][0] in line:
                left = presses.pop(0)[1]
            elif left and "Ctrl-C" in line:
                time.sleep(0.4)  # as a person does: signals that come together are heard as one
            else:
                continue
            left -= 1
            process.send_signal(signal.SIGINT)
            if pressed and not left:
                pressed.pop(0).touch()
    assert not presses, "".join(lines)
    return process.returncode, "".join(lines)


def state(folder):
    """Whether there are a model, a report, and what the metrics say about the end of the run."""
    metrics = folder / "metrics.json"
    stopped = json.loads(metrics.read_text())["stopped"] if metrics.exists() else "no metrics"
    return (folder / "model.pdedkl").exists(), (folder / "report.html").exists(), stopped


STAGES = [
    ("training", 1, (True, True, "interrupted"), "best model so far: pdedkl predict works"),
    ("training", 2, (True, False, "interrupted"), "The report was skipped; make it with: pdedkl report"),
    ("training", 3, (False, False, "no metrics"), "continue with: pdedkl resume"),
    ("compile", 1, (True, True, "interrupted"), "best model so far: pdedkl predict works"),
    ("compile", 2, (True, False, "interrupted"), "The report was skipped"),
    ("fit begins", 1, (True, False, "a callback asked for it"), "best model so far: pdedkl predict works"),
    ("fit ends", 1, (True, False, None), "The report was skipped"),
    ("measuring", 1, (True, False, None), "The report was skipped"),
    ("report", 1, (True, False, None), "The report was skipped"),
]


def test_each_stage_keeps_what_was_found(tmp_path):
    folders = [tmp_path / f"{number} {where}" for number, (where, *_) in enumerate(STAGES)]
    command = [sys.executable, "-c", STAGED, str(Path(__file__).parent), *map(str, folders)]
    pressed = [folder.with_name(f"{folder.name} pressed") for folder in folders]
    code, said = run(command, [(f"at {where}", presses) for where, presses, *_ in STAGES], pressed)
    parts = said.split("ended with ")
    assert code == 0 and len(parts) == len(STAGES) + 1, said
    for part, after, folder, (where, presses, expected, words) in zip(parts, parts[1:], folders, STAGES):
        assert after.startswith("130") and words in part, (where, presses, part)
        assert state(folder) == expected and not (folder / ".lock").exists(), (where, presses, part)
        if where == "compile":  # Python itself cannot answer then, and the answer is there all the same
            assert part.index("at compile") < part.index("Stopping after") < part.index("compiled\n")


def test_before_anything_has_begun(tmp_path):
    command = [sys.executable, "-m", "pdedkl", "solve", *SMALL, "--out", str(tmp_path / "run")]
    code, said = run(command, [("reading", 1)])
    assert code == 130 and said.endswith("pdedkl: stopped.\n")
    assert not any(tmp_path.iterdir())
