"""The common interface of all pools of workers."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

Function = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Job:
    """One argument of the function that is run, with a name for error messages."""

    name: str
    argument: Any


class Pool(ABC):
    """Computes `function(job.argument)` for many jobs. Where and when a job is run does not change its result.

    If the worker of a job dies, the job is run again, a few times at most. An error of the function is raised at once.
    """

    @abstractmethod
    def run(self, function: Function, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        """Each job and its result, in the order in which the jobs finish."""

    @abstractmethod
    def close(self) -> None:
        """Release the workers. Results of jobs that are still running are lost."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Serial(Pool):
    """One job after the other, in this process."""

    def run(self, function: Function, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        for job in jobs:
            yield job, function(job.argument)

    def close(self) -> None:
        pass


def open_pool(count: int, scheduler: str | None = None) -> Pool:
    """A pool of `count` local processes or, with the address of a Dask scheduler, of all its workers."""
    if scheduler is None:
        from .processes import Processes

        return Processes(count)
    from .cluster import Cluster

    return Cluster(scheduler)


def pack(function: Function) -> bytes:
    """Pickle a function for our own workers. Functions without a name, such as lambdas, need cloudpickle."""
    try:
        from cloudpickle import dumps
    except ImportError:
        dumps = pickle.dumps
    try:
        packed: bytes = dumps(function)
        return packed
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TypeError(
            f"The problem, the data or an option cannot be sent to worker processes ({error}). Use workers=1 and no "
            "scheduler, define the functions in it at the top of a module, or install cloudpickle."
        ) from None


def run_packed(packed: bytes, argument: Any) -> Any:
    return pickle.loads(packed)(argument)
