"""Points per second of a posterior: u and f, mean and standard deviation. Run by `make bench-quick` and `make bench`.

The posterior is of 1,000 values in 50 dimensions behind a projection to four. Seconds include compilation; memory is by
how much the peak of the process rises.
"""

from __future__ import annotations

import argparse
import sys
import time

import jax
import numpy as np
from timing import Measurements, peak_bytes

import pdedkl as pk

DIM, VALUES = 50, 1000


def posterior() -> tuple[pk.Posterior, pk.Operator]:
    domain = pk.Domain(x=[(0, 1)] * DIM)
    laplacian = pk.Laplacian(domain.coordinates("x"))
    q = np.random.default_rng(0).uniform(size=(VALUES, DIM))
    values = np.sin(q.mean(axis=1))
    data = [
        pk.Observation(pk.identity, q[: VALUES // 2], values[: VALUES // 2], 1e-3),
        pk.Observation(laplacian, q[VALUES // 2 :], -values[VALUES // 2 :] / DIM, 1e-4),
    ]
    kernel = pk.deep(domain, pk.embeddings.Affine.drawn(DIM, 4, key=jax.random.key(0)))
    return pk.condition(kernel, data), laplacian


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--f", action="store_true", help="f as well")
    parser.add_argument("--name", default="prediction", help="of the file with the results")
    options = parser.parse_args()
    found = Measurements(options.name)
    fitted, laplacian = posterior()
    q = np.random.default_rng(1).uniform(size=(options.points, DIM))
    for name, operator in (("u", pk.identity), ("f", laplacian))[: 2 if options.f else 1]:
        before = peak_bytes()
        begin = time.monotonic()
        fitted.predict(q, operator)
        seconds = time.monotonic() - begin
        raised = (peak_bytes() - before) / 2**30
        rate = options.points / seconds
        found.add(f"points per second, mean and std of {name}, {VALUES} values, d = {DIM}", rate, f"{rate:,.0f}")
        if name == "u":
            scaled = 1e6 / rate
            found.add("seconds for a million points, mean and std of u", scaled, f"{scaled:.1f} s", at_most=60)
            found.add("memory of that", raised, f"{raised:.2f} GiB", at_most=1.0)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
