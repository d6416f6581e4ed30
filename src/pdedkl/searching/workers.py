"""Several trainings at a time, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from typing import Any

from .evaluation import Evaluation, Train, described, evaluate
from .space import Parameters

START_SECONDS = 60.0

Result = tuple[int, Evaluation, Any]


class Serial:
    """One training after the other, in this process."""

    def __init__(self, train: Train) -> None:
        self.train = train

    def run(self, jobs: Sequence[Parameters]) -> Iterator[Result]:
        """The number of a job, what came out, and the posterior."""
        for number, parameters in enumerate(jobs):
            yield (number, *evaluate(self.train, parameters))

    def close(self) -> None:
        pass


class Workers:
    """`count` worker processes. Results come in the order in which they are ready; a posterior stays where it was made.

    Each process has an executor of its own, so that one that dies is known to have died over its own job. It is
    replaced, and the job is run once more. Processes see all cores, as this one does: the number of threads changes
    sums in the last digit, and a search must not depend on the number of workers.
    """

    def __init__(self, train: Train, count: int) -> None:
        self.packed = _pack(train)
        self.slots = [_Worker() for _ in range(count)]

    def run(self, jobs: Sequence[Parameters]) -> Iterator[Result]:
        waiting = deque((number, 1) for number in range(len(jobs)))
        free = list(range(len(self.slots)))
        busy: dict[Future[Evaluation], tuple[int, int, int]] = {}
        while waiting or busy:
            while waiting and free:
                slot, (number, attempt) = free.pop(), waiting.popleft()
                busy[self._submit(slot, jobs[number])] = (slot, number, attempt)
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                slot, number, attempt = busy.pop(future)
                free.append(slot)
                try:
                    evaluation = future.result()
                except BrokenExecutor:
                    self.slots[slot] = _Worker()
                    if attempt == 2:
                        raise RuntimeError(_died_twice(jobs[number])) from None
                    waiting.appendleft((number, attempt + 1))
                else:
                    yield number, evaluation, None

    def _submit(self, slot: int, parameters: Parameters) -> Future[Evaluation]:
        try:
            return self.slots[slot].submit(self.packed, parameters)
        except BrokenExecutor:  # it died while it had no job
            self.slots[slot] = _Worker()
            return self.slots[slot].submit(self.packed, parameters)

    def close(self) -> None:
        for slot in self.slots:
            slot.end()


class _Worker:
    """One process, started with its first job."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of JAX's threads
        self.executor = ProcessPoolExecutor(1, context, initializer=_leave_with_parent)
        self.pid: Future[int] | None = None

    def submit(self, packed: bytes, parameters: Parameters) -> Future[Evaluation]:
        if self.pid is None:
            self.pid = self.executor.submit(os.getpid)
        return self.executor.submit(_evaluate_packed, packed, parameters)

    def end(self) -> None:
        """At once, with whatever is being trained. A process that is only starting is waited for, then ended."""
        try:
            pid = None if self.pid is None else self.pid.result(timeout=START_SECONDS)
        except (BrokenExecutor, TimeoutError):
            pid = None
        self.executor.shutdown(wait=False, cancel_futures=True)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _evaluate_packed(packed: bytes, parameters: Parameters) -> Evaluation:
    return evaluate(pickle.loads(packed), parameters)[0]


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone, even if that one was killed."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _pack(train: Train) -> bytes:
    """For our own worker processes, in memory. Functions without a name, such as lambdas, need cloudpickle."""
    try:
        from cloudpickle import dumps
    except ImportError:
        dumps = pickle.dumps
    try:
        packed: bytes = dumps(train)
        return packed
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TypeError(
            f"The problem, the data or an option cannot be sent to worker processes ({error}). Use workers=1, define "
            "the functions in it at the top of a module, or install cloudpickle."
        ) from None


def _died_twice(parameters: Parameters) -> str:
    return (
        f"The worker process that trained {described(parameters)} died, twice. It was killed, perhaps for want of "
        "memory: use fewer workers. If no worker started at all: a script that uses workers needs its calls under "
        '`if __name__ == "__main__":`, since each worker imports it.'
    )
