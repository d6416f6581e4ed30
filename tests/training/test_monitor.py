"""What a run shows: plain lines, a table on a terminal, nothing where it is not wanted; and how it is stopped."""

from __future__ import annotations

import io
import math
import signal
import threading

import pytest
from rich.console import Console

from pdedkl.training.monitor import Monitor, Step, _table, display


class Terminal(io.StringIO):
    def isatty(self):
        return True


def report(monitor, phase="projection", step=0, objective=-12.5):
    monitor.report(phase, step, 10, objective, 0.25, {"u": 1e-3, "f": 0.02})


def shown(show, stream, phases=("directions", "projection")):
    with display(show, stream) as callbacks:
        monitor = Monitor(callbacks=callbacks)
        for phase in phases:
            for step in range(3):
                report(monitor, phase, step)
    return stream.getvalue()


def test_plain_lines_where_there_is_no_terminal():
    lines = shown(True, io.StringIO()).splitlines()
    assert len(lines) == 2  # one for each phase; the next only after some seconds
    for line, phase in zip(lines, ("directions", "projection")):
        words = ("pdedkl", f"trying {phase}", "step 0", "objective -12.50", "u: 1.0e-03, f: 2.0e-02", "elapsed 0 s")
        for word in words:
            assert word in line
        assert "\x1b" not in line


def test_a_table_on_a_terminal():
    for show in (True, None):
        text = shown(show, Terminal())
        assert "\x1b" in text and "objective" in text and "-12.50" in text and "projection" in text


@pytest.mark.parametrize("name", ["u in a[/red].csv", "[b]u", "u :smile:"])
def test_names_are_no_markup(name):
    stream = Terminal()
    with display(True, stream) as callbacks:
        Monitor(callbacks=callbacks).report("inputs", 0, 1, 1.0, 1.0, {name: 1.0})
    assert f"{name}: 1.0e+00" in stream.getvalue() and "[dim]" not in stream.getvalue()


@pytest.mark.parametrize("show, stream", [(False, io.StringIO()), (False, Terminal()), (None, io.StringIO())])
def test_nothing_where_it_is_not_wanted(show, stream):
    assert shown(show, stream) == ""


@pytest.mark.parametrize("width", [24, 40, 80])
def test_nothing_is_cut_off_in_a_narrow_terminal(width):
    noise = {"u in a-table-of-sensors-with-a-long-name.csv": 1e-3}
    best, coming = ("ridges of several", 1.7e-5), ("ridges", "additive", "quadratic", "sum")
    step = Step("inputs, rational quadratic", 12, -1234.5, 1.0, noise, 12.0, 3.0, 4.0, best, coming, 60.0)
    console = Console(file=io.StringIO(), width=width)
    console.print(_table(step))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    text = "".join("".join(lines).split())
    for part in ("1.7e-05", "12sof60s", "-1234.50", "1.0e-03", "<4s"):
        assert part in text
    assert "…" not in text
    if width == 80:
        assert "best left-out error  1.7e-05 (ridges of several)" in console.file.getvalue()
        assert "ridges, additive, quadratic, and 1 more" in console.file.getvalue()


def test_known_noise_is_called_known():
    stream = io.StringIO()
    with display(True, stream) as callbacks:
        Monitor(callbacks=callbacks).report("inputs", 0, 1, 1.0, 1.0, {})
    assert "noise known" in stream.getvalue()


def test_steps_are_finite_and_the_history_grows():
    seen = []
    monitor = Monitor(callbacks=[seen.append])
    for phase in ("directions", "projection"):
        for step in range(4):
            report(monitor, phase, step)
            assert monitor.history == seen and seen[-1].step == step and seen[-1].phase == phase
    assert len(seen) == 8 and monitor.stopped is None
    for step in seen:
        assert all(math.isfinite(value) for value in (step.objective, step.gradient, *step.noise.values()))
        assert step.seconds >= 0 and math.isfinite(step.steps_per_second) and step.steps_per_second >= 0
        assert math.isnan(step.seconds_left) if step.step == 0 else step.seconds_left > 0
    times = [step.seconds for step in seen]
    assert times == sorted(times)


def test_a_callback_stops_the_run_with_true_and_nothing_else():
    for answer, stopped in ((True, "a callback asked for it"), (None, None), (1, None), ("yes", None)):
        monitor = Monitor(callbacks=[lambda _, answer=answer: answer])
        report(monitor)
        assert monitor.stopped == stopped


def test_interrupts_ask_once_and_the_handler_comes_back():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    try:
        mine = signal.getsignal(signal.SIGINT)
        monitor = Monitor()
        with monitor.interruptible():
            signal.raise_signal(signal.SIGINT)
            assert monitor.stopped == "interrupted" and heard == []
            signal.raise_signal(signal.SIGINT)
            assert heard == ["mine"]
        assert signal.getsignal(signal.SIGINT) is mine
        with pytest.raises(RuntimeError), Monitor().interruptible():
            raise RuntimeError
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_signals_are_left_alone():
    before, found = signal.getsignal(signal.SIGINT), []

    def run():
        with Monitor().interruptible():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [before]
