"""Ctrl-C during a run: the first ends training, the second skips the report, the third ends everything at once."""

from __future__ import annotations

import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .app import tell

SKIPPED = "The report will be skipped."
SAID = {
    "training": [
        "Stopping after the current step; the best model so far is then saved. Ctrl-C again skips the report.",
        f"{SKIPPED} Ctrl-C once more ends at once, and saves nothing.",
    ],
    "measuring": [SKIPPED, SKIPPED],
    "report": [],  # it ends at once, and _report prints that
}
AT_ONCE = 3  # presses
GLANCE = 0.1  # seconds


@contextmanager
def postponed() -> Iterator[None]:
    """Hear Ctrl-C at the end of the block. The import of a compiled module may crash, or swallow it, if interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread only
        return
    pressed: list[bool] = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


class Interrupts:
    """Handles Ctrl-C, depending on the `stage` of the run: training, measuring, report.

    During training, the trainer (`training/monitor.py`) handles the first Ctrl-C and ends after its step. This class
    handles all others. During a compilation Python handles no signals, and afterwards it sees several presses as one.
    So the operating system writes each press to a socket, where a thread counts them and answers at once.
    """

    def __init__(self) -> None:
        self.stage, self.heard = "training", False
        self._pressed, self._counting = 0, threading.RLock()
        self._note, self._notes = socket.socketpair()
        for end in (self._note, self._notes):
            end.setblocking(False)

    @property
    def skip(self) -> bool:
        """Whether to skip the report: after a second press, or a first press that training did not handle."""
        return self.heard or self._count() > 1

    def asked(self, _: Any) -> bool:
        """A callback for `fit`. It ends training if Ctrl-C was pressed before training handled it."""
        return self.heard

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle Ctrl-C during the block."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals come to the main thread only
            return
        over = threading.Event()
        answers = threading.Thread(target=self._answer, args=(over,), daemon=True)
        before = signal.signal(signal.SIGINT, self._hear)
        other = signal.set_wakeup_fd(self._note.fileno(), warn_on_full_buffer=False)
        answers.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(other)
            signal.signal(signal.SIGINT, before)
            over.set()
            answers.join()
            self._note.close()
            self._notes.close()

    def _hear(self, *_: Any) -> None:
        self.heard = True
        if self.stage == "report" or self._count() >= AT_ONCE:
            raise KeyboardInterrupt

    def _count(self) -> int:
        """How often Ctrl-C was pressed so far."""
        with self._counting, suppress(OSError):  # nothing new, or closed
            self._pressed += self._notes.recv(64).count(signal.SIGINT)
        return self._pressed

    def _answer(self, over: threading.Event) -> None:
        said = 0
        while not over.is_set():
            select.select([self._notes], [], [], GLANCE)
            for number in range(said, self._count()):
                lines = SAID[self.stage]
                if number < len(lines):
                    tell(lines[number])
                said = number + 1
