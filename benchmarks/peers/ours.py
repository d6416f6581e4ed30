"""Our own fit of one problem, `dkl` or `gp`: nothing is compiled beforehand, and choosing the kernel counts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import jax
import numpy as np
from task import Task, Trail

sys.path.insert(0, str(Path(__file__).parent.parent))
from problems import CASES

import pdedkl as pk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--problem", required=True)
    parser.add_argument("--model", choices=("dkl", "gp"), default="dkl")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # A cache of compiled programs would be filled by earlier runs.
    jax.config.update("jax_enable_compilation_cache", False)
    case = CASES[options.problem]()
    task = Task.load(options.task)
    given = task.given
    data = [
        pk.Observation(pk.identity, given.u_points, given.u_values),
        pk.Observation(case.operator, given.f_points, given.f_values),
    ]
    problem = case.problem(options.problem)
    trail = Trail(task)
    posterior = pk.fit(problem, data, model=options.model, seed=options.seed, progress=False)
    trail.add(lambda points: np.asarray(posterior.predict(points).mean))
    training = posterior.training
    found = {
        "trail": trail.pairs,
        "kernel": training.kernel,
        "compile_seconds": training.compile_seconds,
        "trace_seconds": training.trace_seconds,
        "versions": {"jax": jax.__version__, "pdedkl": pk.__version__},
    }
    options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
