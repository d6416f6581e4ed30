"""What a pool of workers does, whoever the workers are."""

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
    """One argument of the function that is run; errors call it by its name."""

    name: str
    argument: Any


class Pool(ABC):
    """Computes `function(job.argument)` for many jobs. Where and when a job is run does not change its result.

    A job whose worker died is run again, a few times at most; an error of the function itself is raised here, at once.
    """

    @abstractmethod
    def run(self, function: Function, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        """Each job and its result, in the order in which they are ready."""

    @abstractmethod
    def close(self) -> None:
        """Let the workers go; what they still compute is lost."""

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
    """`count` processes of this machine or, with the address of a Dask scheduler, all workers that it has."""
    if scheduler is None:
        from .processes import Processes

        return Processes(count)
    from .cluster import Cluster

    return Cluster(scheduler)


def pack(function: Function) -> bytes:
    """For our own workers, in memory. Functions without a name, such as lambdas, need cloudpickle."""
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
