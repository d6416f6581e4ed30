"""Several jobs at a time, each in its own process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from typing import Any

from .base import Function, Job, Pool, pack, run_packed

START_SECONDS = 60.0
ATTEMPTS = 3


class Processes(Pool):
    """`count` worker processes of this machine.

    Each process has its own executor, so that it is known which job a process was running when it died. The process is
    replaced, and the job is run again, twice at most. Every process uses all cores, as this one does: the number of
    threads changes the last digit of sums, and a result must not depend on the number of workers.
    """

    def __init__(self, count: int) -> None:
        self.slots = [_Worker() for _ in range(count)]

    def run(self, function: Function, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        packed = pack(function)
        waiting = deque((job, 1) for job in jobs)
        free = list(range(len(self.slots)))
        busy: dict[Future[Any], tuple[int, Job, int]] = {}
        while waiting or busy:
            while waiting and free:
                slot, (job, attempt) = free.pop(), waiting.popleft()
                busy[self._submit(slot, packed, job)] = (slot, job, attempt)
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                slot, job, attempt = busy.pop(future)
                free.append(slot)
                try:
                    result = future.result()
                except BrokenExecutor:
                    self.slots[slot] = _Worker()
                    if attempt == ATTEMPTS:
                        raise RuntimeError(_died(job)) from None
                    waiting.appendleft((job, attempt + 1))
                else:
                    yield job, result

    def _submit(self, slot: int, packed: bytes, job: Job) -> Future[Any]:
        try:
            return self.slots[slot].submit(packed, job)
        except BrokenExecutor:  # it died while it had no job
            self.slots[slot] = _Worker()
            return self.slots[slot].submit(packed, job)

    def close(self) -> None:
        for slot in self.slots:
            slot.end()


class _Worker:
    """One process, started with its first job."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of JAX's threads
        self.executor = ProcessPoolExecutor(1, context, initializer=_leave_with_parent)
        self.pid: Future[int] | None = None

    def submit(self, packed: bytes, job: Job) -> Future[Any]:
        if self.pid is None:
            self.pid = self.executor.submit(os.getpid)
        return self.executor.submit(run_packed, packed, job.argument)

    def end(self) -> None:
        """End the process at once, even during a job. If it is still starting, wait for it first."""
        try:
            pid = None if self.pid is None else self.pid.result(timeout=START_SECONDS)
        except (BrokenExecutor, TimeoutError):
            pid = None
        self.executor.shutdown(wait=False, cancel_futures=True)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone, even if that one was killed."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _died(job: Job) -> str:
    return (
        f"The worker process of the job {job.name!r} died, {ATTEMPTS} times. It was killed, perhaps for lack of "
        "memory: use fewer workers. If no worker started at all: a script that uses workers needs its calls under "
        '`if __name__ == "__main__":`, since each worker imports it.'
    )
