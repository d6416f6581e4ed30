"""Jobs for `test_jobs.py`, in a module that a worker imports at once."""

import os
import signal
import time

import numpy as np


def solved(number):
    """Numbers whose last digits depend on the order of sums."""
    matrix = np.random.default_rng(number).normal(size=(200, 200))
    time.sleep(0.2 if number == 0 else 0.0)  # so that results are not ready in the order of the jobs
    return np.linalg.solve(matrix @ matrix.T, np.ones(200)).tobytes()


def dying(folder, deaths, number):
    """Ends its own process over job 1, as often as it is told."""
    times = len(list(folder.glob(f"{number} *")))
    (folder / f"{number} {times}").touch()
    if number == 1 and times < deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return solved(number)


def mistaken(folder, number):
    (folder / f"{time.monotonic_ns()}").touch()
    raise KeyError(f"no {number}")


def linear_algebra_threads(_):
    from pdedkl.jobs.cluster import threads

    return threads()["blas"]


def evidence(model, data, parameters):
    """Stands for a training: quick, and with all digits of the real one."""
    import pdedkl

    return parameters["latent_dim"] * float(pdedkl.negative_log_evidence(model, data)[0]), None
