"""Solving without the Gram matrix: against the factorisation where both run, and alone at a size where one does not.

Prints differences and seconds of this run, and exits with 1 where a difference misses its limit. The kernel is that of
a trained projection; noise is 1e-3 of the size of the values.
"""

from __future__ import annotations

import argparse
import sys
import time

import jax
import numpy as np
from problems import CASES
from timing import Measurements, peak_bytes

import pdedkl as pk

NAME, NOISE, PLACES = "heat-10", 1e-3, 200
MOST_GIB = {"iterative": 24.0, "dense": None}


def model_and_problem() -> tuple[pk.Model, pk.problems.Problem]:
    problem = CASES[NAME]().problem(NAME)
    return pk.fit(problem, problem.sample(noise=NOISE), model="linear", progress=False).model, problem


def observed(problem: pk.problems.Problem, n: int) -> list[pk.Observation]:
    """About `n` values with noise of known size, in the proportions of the problem."""
    kinds = {kind: count for kind in ("boundary", "initial", "source") if (count := getattr(problem.points, kind))}
    counts = {kind: round(n * count / sum(kinds.values())) for kind, count in kinds.items()}
    rng, found = np.random.default_rng(n), []
    for item in problem.sample(seed=n, **counts):
        values = np.asarray(item.values)
        size = NOISE * float(np.std(values))
        found.append(pk.Observation(item.operator, item.points, values + size * rng.normal(size=len(values)), size))
    return found


def solved(
    record: Measurements, model: pk.Model, problem: pk.problems.Problem, n: int, solver: str
) -> list[pk.Prediction]:
    data, places = observed(problem, n), problem.interior(PLACES)
    begin = time.monotonic()
    posterior = pk.condition(pk.Model(model.kernel, data), data, solver=solver)
    conditioned = time.monotonic()
    found = [posterior.predict(places, operator) for operator in (pk.identity, problem.operator)]
    done, truth = time.monotonic(), problem.truth(places)
    error = np.linalg.norm(found[0].mean - truth) / np.linalg.norm(truth)
    steps = "" if solver == "dense" else f", {int(posterior.solver.steps)} steps"
    n = sum(map(len, data))
    statistics = jax.devices()[0].memory_stats()
    peak = (statistics["peak_bytes_in_use"] if statistics else peak_bytes()) / 2**30
    record.add(f"conditioned on {n:,} values, {solver}", conditioned - begin, f"{conditioned - begin:.1f} s{steps}")
    record.add(f"u and f at {PLACES} points from {n:,} values, {solver}", done - conditioned,
                f"{done - conditioned:.1f} s, error of u {error:.1e}")  # fmt: skip
    if solver == "iterative" or statistics:
        record.add(f"peak memory until then, {n:,} values, {solver}", peak, f"{peak:.1f} GiB", at_most=MOST_GIB[solver])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--both", type=int, default=4000, help="values for the comparison")
    parser.add_argument("--alone", type=int, default=50000, help="values for conjugate gradients alone; 0 for none")
    parser.add_argument("--name", default="large", help="of the file with the results")
    options = parser.parse_args()
    record = Measurements(options.name)
    model, problem = model_and_problem()
    # What takes most memory comes last: a device tells only the most that it ever held.
    if options.alone:
        solved(record, model, problem, options.alone, "iterative")
    other, dense = (solved(record, model, problem, options.both, solver) for solver in ("iterative", "dense"))
    for name, a, b in zip("uf", dense, other):
        mean = float(np.max(np.abs(a.mean - b.mean)) / np.sqrt(np.mean(a.mean**2)))
        std = float(np.max(np.abs(b.std / a.std - 1)))
        record.add(f"largest difference of the mean of {name} over its size", mean, f"{mean:.1e}", at_most=1e-6)
        record.add(f"largest relative difference of the std of {name}", std, f"{std:.1e}", at_most=1e-4)
    return record.finish()


if __name__ == "__main__":
    sys.exit(main())
