"""Do points from `problem.refine` lower the error faster than random ones? Run by `make refinement`.

Half of a problem's points are drawn at random; the other half is either random too, or chosen by `refine` in two
turns, with a fit after each. The kernel is that of the inputs, the cheapest to fit, on problems for which it has
something left to gain.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

NAMES = ("heat-10", "adr-10", "parametric-heat", "radial-10", "two-body-10")


def errors(name: str, seed: int) -> tuple[float, float, float]:
    """Of half the points, of all of them at random, and of all with half of them chosen."""
    import numpy as np
    from problems import CASES, MORE_CASES

    import pdedkl as pk

    problem = (CASES | MORE_CASES)[name]().problem(name)
    every = problem.points
    half = {kind: getattr(every, kind) // 2 for kind in ("boundary", "initial", "source") if getattr(every, kind)}
    rest = {kind: getattr(every, kind) - n for kind, n in half.items()}
    test = problem.interior(1000, seed)
    truth = problem.truth(test)

    def fit(data):
        posterior = pk.fit(problem, data, model="gp", seed=seed, progress=False)
        return posterior, float(np.linalg.norm(posterior.predict(test).mean - truth) / np.linalg.norm(truth))

    data = list(problem.sample(seed=seed, **half))
    posterior, before = fit(data)
    _, random = fit([*data, *problem.sample(seed=seed + 1000, **rest)])
    total = sum(rest.values())
    for turn, n in enumerate((total // 2, total - total // 2)):
        data += problem.refine(posterior, n, seed=2 * seed + turn)
        posterior, chosen = fit(data)
    return before, random, chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(NAMES))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'problem':<17}{'half':>10}{'random':>10}{'refined':>10}{'ratio':>8}")
    for name in options.only:
        rows = [errors(name, seed) for seed in range(options.seeds)]
        before, random, chosen = (median(row[k] for row in rows) for k in range(3))
        ratio = median(row[1] / row[2] for row in rows)
        print(f"{name:<17}{before:>10.1e}{random:>10.1e}{chosen:>10.1e}{ratio:>8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
