"""What a run shows while it goes on, and how it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from jax import monitoring

from ..ending import ASKED, INTERRUPTED, OUT_OF_TIME
from ..shown import listed


@dataclass(frozen=True)
class Step:
    """One step of a training, as callbacks get it.

    **Arguments:**

    - `phase`: what is being trained.
    - `step`: the number of the step in its phase.
    - `objective`: the training objective.
    - `gradient`: the size of its gradient.
    - `noise`: the noise levels by name.
    - `seconds`: the time since training began.
    - `steps_per_second`: how fast the phase goes.
    - `seconds_left`: the longest time that the phase may still take.
    - `best`: the best kernel so far and its left-out error; `None` before the first.
    - `coming`: the kernels that may still be tried.
    - `allowed`: the seconds that the run may take; `None` if there is no limit.

    !!! example
        ```python
        enough = lambda step: step.seconds > 60  # a callback that returns True ends the training
        posterior = pk.fit(problem, data, callbacks=[enough])
        ```
    """

    phase: str
    step: int
    objective: float
    gradient: float
    noise: dict[str, float]
    seconds: float
    steps_per_second: float
    seconds_left: float
    best: tuple[str, float] | None = None
    coming: tuple[str, ...] = ()
    allowed: float | None = None

    def __post_init__(self) -> None:
        # Files hold lists.
        object.__setattr__(self, "best", None if self.best is None else tuple(self.best))
        object.__setattr__(self, "coming", tuple(self.coming))


@dataclass(frozen=True)
class Log:
    """The steps of a run so far and the seconds that it took, earlier processes included."""

    history: tuple[Step, ...] = ()
    seconds: float = 0.0
    trace_seconds: float = 0.0
    compile_seconds: float = 0.0


Callback = Callable[[Step], Any]

_spent = {"trace": 0.0, "compile": 0.0}
_PARTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "trace",
    "/jax/core/compile/backend_compile_duration": "compile",
}


def _count(event: str, duration_secs: float, **_: Any) -> None:
    if event in _PARTS:
        _spent[_PARTS[event]] += duration_secs


monitoring.register_event_duration_secs_listener(_count)


def preparation() -> tuple[float, float]:
    """Seconds that this process has spent so far on tracing programs, and on compiling or loading them."""
    return _spent["trace"], _spent["compile"]


@dataclass
class Monitor:
    """Passes the steps of a run to callbacks and displays. `stopped` is the reason to end the run, or `None`.

    A run ends after the current step if Ctrl-C is pressed, if a callback returns `True`, or if the `allowed` time is
    up. A second Ctrl-C ends it at once. A phase is not begun if the preparation of the last ones, mostly compilation,
    took longer than what is left of the time.
    """

    callbacks: Sequence[Callback] = ()
    past: Log = Log()
    allowed: float | None = None
    history: list[Step] = field(default_factory=list)
    stopped: str | None = None
    best: tuple[str, float] | None = None
    coming: tuple[str, ...] = ()
    _begin: float = field(default_factory=time.monotonic)
    _prepared: tuple[float, float] = field(default_factory=preparation)
    _phase: str = ""
    _phase_begin: float = 0.0
    _last: float = field(default_factory=time.monotonic)
    _preparation: float = 0.0

    @property
    def seconds(self) -> float:
        """The time since training began."""
        return time.monotonic() - self._begin

    def share_left(self, since: float) -> float:
        """The share that is left of the time from `since` seconds to the end of what is allowed; one without limit."""
        if self.allowed is None:
            return 1.0
        return min(max((self.allowed - self.seconds) / max(self.allowed - since, 1e-9), 0.0), 1.0)

    def in_time(self, needed: float = 0.0) -> bool:
        """Whether there is time for `needed` more seconds. If not, the run is stopped."""
        if self.allowed is not None and self.seconds + needed > self.allowed:
            self.stopped = self.stopped or OUT_OF_TIME
        return self.stopped is None

    def time_for_a_phase(self) -> bool:
        """Whether there is time to prepare another phase and to take a step of it."""
        return self.in_time(self._preparation)

    def log(self) -> Log:
        """The log up to now, earlier processes of the same run included."""
        traced, compiled = (now - then for now, then in zip(preparation(), self._prepared))
        return Log(
            (*self.past.history, *self.history),
            self.past.seconds + time.monotonic() - self._begin,
            self.past.trace_seconds + traced,
            self.past.compile_seconds + compiled,
        )

    def report(
        self, phase: str, step: int, steps: int, objective: float, gradient: float, noise: dict[str, float]
    ) -> None:
        now = time.monotonic()
        if phase != self._phase:
            self._preparation = max(self._preparation, now - self._last)
            self._phase, self._phase_begin, self._phase_step = phase, now, step
        self._last = now
        done, spent = step - self._phase_step, now - self._phase_begin
        rate = done / spent if spent > 0 else 0.0
        left = (steps - step) / rate if rate > 0 else float("nan")
        spent_in_all = self.past.seconds + now - self._begin
        allowed = None if self.allowed is None else self.past.seconds + self.allowed
        entry = Step(phase, step, objective, gradient, noise, spent_in_all, rate, left, self.best, self.coming, allowed)
        self.history.append(entry)
        self.in_time()
        for callback in self.callbacks:
            if callback(entry) is True:
                self.stopped = self.stopped or ASKED

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.getsignal(signal.SIGINT)

        def ask(*_: Any) -> None:
            self.stopped = INTERRUPTED
            signal.signal(signal.SIGINT, previous)

        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)


@contextmanager
def display(show: bool | None, stream: TextIO | None = None) -> Iterator[list[Callback]]:
    """Callbacks that show progress: a live table on a terminal, plain lines elsewhere; none if `show` is false."""
    out = stream or sys.stderr
    terminal = out.isatty()
    if show is False or (show is None and not terminal):
        yield []
        return
    if not terminal:
        yield [_Lines(out)]
        return
    from rich.console import Console
    from rich.live import Live

    # Names come from the user: brackets and colons in them are not markup.
    console = Console(file=out, markup=False, emoji=False, highlight=False)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield [lambda step: live.update(_table(step))]


class _Lines:
    """One line for each new phase, and one every few seconds."""

    def __init__(self, stream: TextIO, every: float = 5.0) -> None:
        self.stream, self.every, self.last, self.phase = stream, every, -every, ""

    def __call__(self, step: Step) -> None:
        if step.phase == self.phase and step.seconds - self.last < self.every:
            return
        self.last, self.phase = step.seconds, step.phase
        values = "  ".join(f"{name} {value}" for name, value in _facts(step))
        print(f"pdedkl  {values}", file=self.stream, flush=True)


def _facts(step: Step) -> list[tuple[str, str]]:
    noise = ", ".join(f"{name}: {level:.1e}" for name, level in step.noise.items()) or "known"
    allowed = "" if step.allowed is None else f" of {step.allowed:.0f} s"
    best = "–" if step.best is None else f"{step.best[1]:.1e} ({step.best[0]})"
    return [
        ("trying", step.phase),
        ("step", str(step.step)),
        ("objective", f"{step.objective:.2f}"),
        ("noise", noise),
        ("best left-out error", best),
        ("to come", listed(step.coming, 3) or "–"),
        ("elapsed", f"{step.seconds:.0f} s{allowed}"),
        ("left in phase", "–" if step.seconds_left != step.seconds_left else f"< {step.seconds_left:.0f} s"),
    ]


def _table(step: Step) -> Any:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    for name, value in _facts(step):
        table.add_row(name, value)
    return table
