"""Our own fits of one problem, `dkl` or `gp`, for each accuracy that is asked for, and by default.

Each is timed from its own beginning with nothing compiled before; choosing the kernel and error bars count.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
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
    parser.add_argument("--accuracies", nargs="*", type=float, default=[], help="to stop at, besides the default")
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
    pairs, fits = [], []
    for accuracy in (*options.accuracies, None):
        jax.clear_caches()
        trail = Trail(task)
        fit = partial(pk.fit, problem, data, accuracy=accuracy, model=options.model, seed=options.seed)
        posterior = fit(progress=False)
        trail.add(lambda points, found=posterior: np.asarray(found.predict(points).mean))
        pairs += trail.pairs
        training = posterior.training
        fits.append(
            {
                "accuracy": accuracy,
                "kernel": training.kernel,
                "left_out": training.left_out,
                "seconds, error": trail.pairs[-1],
                "compile_seconds": training.compile_seconds,
                "trace_seconds": training.trace_seconds,
            }
        )
    versions = {"jax": jax.__version__, "pdedkl": pk.__version__}
    options.out.write_text(json.dumps({"trail": sorted(pairs), "fits": fits, "versions": versions}))


if __name__ == "__main__":
    main()
