"""Ctrl-C during a run: the first ends training, the next skips the report, and one more ends everything at once."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .app import tell

SAID = {
    "training": [
        "Stopping after the step under way; the best model so far is then saved. Ctrl-C again skips the report.",
        "The report will be skipped. Ctrl-C once more ends at once, and saves nothing.",
    ],
    "measuring": ["The report will be skipped.", "The report will be skipped."],
    "report": ["Skipping the report."] * 2,
}


class Interrupts:
    """What a run does on Ctrl-C depends on its `stage`: training, measuring, report.

    During training the first one reaches the trainer (`training/monitor.py`), which ends after its step. All others
    come here: outside the report one is remembered in `skip`, and a second one ends the program.
    """

    def __init__(self) -> None:
        self.stage, self.skip, self.heard, self._said = "training", False, False, 0

    def asked(self, _: Any) -> bool:
        """Ends training that was told to stop before it had begun to listen: for the callbacks of a fit."""
        return self.skip

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Hear Ctrl-C in the block, and say at once what it does, even while a program is being compiled."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals come to the main thread only
            return
        before = signal.signal(signal.SIGINT, self._hear)
        told, hears = socket.socketpair()
        told.setblocking(False)
        # The system writes to this socket when the signal comes; Python calls `_hear` only between its own steps.
        other = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._say, args=(hears,), daemon=True).start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(other)
            signal.signal(signal.SIGINT, before)
            told.close()

    def _hear(self, *_: Any) -> None:
        self.heard = True
        if self.skip or self.stage == "report":
            raise KeyboardInterrupt
        self.skip = True

    def _say(self, hears: socket.socket) -> None:
        with hears:
            while came := hears.recv(64):
                for _ in range(came.count(signal.SIGINT)):
                    lines = SAID[self.stage]
                    if self._said < len(lines):
                        tell(lines[self._said])
                    self._said += 1
