"""Jobs on an existing Dask cluster. Only this module imports `distributed`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from .base import Function, Job, Pool, pack, run_packed

CONNECT_SECONDS = 10.0
DECIDE = ("jax", "jaxlib", "numpy", "scipy")  # packages that can change the last digit of results


class Cluster(Pool):
    """All workers of the Dask scheduler at `address`, including workers that join later.

    The scheduler itself runs the job of a lost worker again, `distributed.scheduler.allowed-failures` times at most (3
    by default). A job that is running when the pool is closed runs to its end, but its result is not used.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ModuleNotFoundError(
                "A Dask scheduler needs the package distributed: pip install pdedkl[dask]"
            ) from None
        self.address = address
        try:
            self.client = Client(address, set_as_default=False, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise OSError(
                f"No Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler`, which says its "
                "address, and workers with `dask worker ADDRESS --nthreads 1`."
            ) from None

    def run(self, function: Function, jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        from distributed import KilledWorker, as_completed

        packed, here = pack(function), (versions(), threads())
        batch = uuid4().hex  # makes the key of each job unique: for an equal key Dask would return an old result
        futures = {
            self.client.submit(work, packed, job.argument, *here, key=f"pdedkl-{batch}-{number}"): job
            for number, job in enumerate(jobs)
        }
        try:
            for future in as_completed(futures, loop=self.client.loop):
                if future.cancelled():
                    raise RuntimeError(
                        f"The Dask scheduler at {self.address} is gone: start it and this program again."
                    )
                try:
                    result = future.result()
                except KilledWorker as error:
                    raise RuntimeError(_died(futures[future], error.allowed_failures)) from None
                yield futures[future], result
        finally:
            self.client.cancel(list(futures))

    def close(self) -> None:
        self.client.close()


def work(packed: bytes, argument: Any, wanted: dict[str, str], limits: dict[str, int]) -> Any:
    """Run a job on a Dask worker, with the same package versions and threads as here: both change the last digit."""
    from distributed import get_worker
    from threadpoolctl import threadpool_limits

    found, worker = versions(), get_worker()
    if other := [name for name in wanted if found[name] != wanted[name]]:
        differing = ", ".join(f"{name} {found[name]} and not {wanted[name]}" for name in other)
        raise RuntimeError(f"The Dask worker {worker.address} has {differing}: install the same versions there.")
    if (count := worker.state.nthreads) != 1:
        raise RuntimeError(
            f"The Dask worker {worker.address} has {count} threads, and each job needs its own process: start it with "
            "`dask worker ADDRESS --nthreads 1`, and --nworkers for several jobs at a time."
        )
    import scipy.linalg  # noqa: F401  (the limit applies only to loaded libraries)

    with threadpool_limits(limits):
        return run_packed(packed, argument)


def versions() -> dict[str, str]:
    from .. import __version__

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, "pdedkl": __version__, **{name: version(name) for name in DECIDE}}


def threads() -> dict[str, int]:
    """The number of threads of each linear-algebra library here. Dask would give its workers only one."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return {library["user_api"]: library["num_threads"] for library in threadpool_info()}


def _died(job: Job, failures: int) -> str:
    return (
        f"The Dask worker of the job {job.name!r} was lost, {failures + 1} times. It was killed, perhaps for lack of "
        "memory: give each worker more (`dask worker --memory-limit`), or start fewer on one machine."
    )
