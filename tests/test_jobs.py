"""Jobs give the same bits wherever they are run; one whose worker dies is run again, and one that kills is named."""

from __future__ import annotations

import logging
import sys
from functools import partial

import dask
import distributed
import pytest
import threadpoolctl
from small_jobs import dying, evidence, linear_algebra_threads, mistaken, solved
from test_search import found, poisson, run

import pdedkl as pk
from pdedkl.jobs import Job, Serial, open_pool
from pdedkl.searching.space import Space

LOCAL = {"n_workers": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
JOBS = [Job(f"matrix {number}", number) for number in range(4)]


@pytest.fixture(scope="module")
def scheduler():
    again = {"distributed.scheduler.allowed-failures": 2}
    with dask.config.set(again), distributed.LocalCluster(threads_per_worker=1, **LOCAL) as cluster:
        yield cluster.scheduler_address


# Of the module, so that one kind comes after the other: while Dask starts a worker, what this process starts besides it
# gets the worker's single thread as well.
@pytest.fixture(params=["processes", "dask"], scope="module")
def pool(request):
    address = request.getfixturevalue("scheduler") if request.param == "dask" else None
    with open_pool(2, address) as opened:
        yield opened


def test_results_are_those_of_one_process(pool):
    here = dict(Serial().run(solved, JOBS))
    for _ in range(2):  # a pool is used again and again
        assert dict(pool.run(solved, JOBS)) == here


def test_a_job_whose_worker_died_is_run_again(pool, tmp_path):
    assert dict(pool.run(partial(dying, tmp_path, 2), JOBS)) == dict(Serial().run(solved, JOBS))
    assert len(list(tmp_path.glob("1 *"))) == 3


def test_a_job_that_kills_every_worker_is_named(pool, tmp_path):
    with pytest.raises(RuntimeError, match=r"job 'matrix 1' .* 3 times.*memory"):
        list(pool.run(partial(dying, tmp_path, 9), JOBS[1:2]))
    assert len(list(tmp_path.glob("1 *"))) == 3


def test_an_error_of_the_function_is_raised_and_not_tried_again(pool, tmp_path):
    with pytest.raises(KeyError, match="no 2"):
        list(pool.run(partial(mistaken, tmp_path), JOBS[2:3]))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_search_on_a_cluster_gives_the_bits_of_a_serial_one(scheduler):
    domain, data = poisson(60)
    train = partial(evidence, pk.Model(pk.ard(domain), data[:1]), data[:1])
    options = {"space": Space.of([1, 2, 3]), "initial": 3, "evaluations": 3}
    assert found(run(train, scheduler=scheduler, **options)) == found(run(train, **options))


def test_linear_algebra_has_the_threads_of_whoever_asks(scheduler):
    with open_pool(1, scheduler) as cluster, threadpoolctl.threadpool_limits(3):
        assert [count for _, count in cluster.run(linear_algebra_threads, JOBS[:1])] == [3]


def test_workers_with_other_packages_are_refused(scheduler, monkeypatch):
    from pdedkl.jobs import cluster

    other = cluster.versions() | {"jax": "0.0.1"}
    monkeypatch.setattr(cluster, "versions", lambda: other)
    with open_pool(1, scheduler) as opened, pytest.raises(RuntimeError, match=r"has jax .* and not 0\.0\.1"):
        list(opened.run(solved, JOBS[:1]))


def test_workers_with_several_threads_are_refused():
    with (
        distributed.LocalCluster(threads_per_worker=2, processes=False, **LOCAL) as cluster,
        open_pool(1, cluster.scheduler_address) as opened,
        pytest.raises(RuntimeError, match=r"has 2 threads.*--nthreads 1"),
    ):
        list(opened.run(solved, JOBS[:1]))


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install pdedkl\[dask\]"):
        open_pool(1, "tcp://127.0.0.1:8786")


def test_an_address_that_is_none_is_refused():
    with pytest.raises(OSError, match="No Dask scheduler answers at 'nowhere::'"):
        open_pool(1, "nowhere::")
    with pytest.raises(TypeError, match="`scheduler` needs an address"):
        pk.search(*poisson(3), scheduler=8786)
