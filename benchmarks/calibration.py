"""Can error bars be believed? Problems × noise × seeds, before and after calibration; run by `make calibration`.

Each cell is one `pdedkl.fit` with default settings, in a process of its own. Truth is known at 1,000 fresh points
inside, 1,000 near the boundary and 1,000 outside the box of the data. A cell holds if the 95 % interval covers 90 to
98.5 % of the points inside and the root mean square of z is between 0.6 and 1.4; where the error is below 1e-6 of the
size of the values only the upper limit of z counts. `check` is asked for its verdict, which has not seen the truth. The
exit status is 1 where fewer than nine in ten cells hold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from cells import answer, arguments, chosen, measured

NOISE = (0.0, 0.01, 0.1)
KINDS = ("u", "f", "slope")
REGIONS = ("inside", "near the boundary", "outside")
POINTS = 1000
LEAST_SHARE = 0.9
RESULTS = Path(__file__).parent / "results"

PAGE = """# Do error bars hold?

Written by `make calibration`: `pdedkl.fit` with default settings on twelve problems, with 0, 1 % and 10 % noise on the
values of `u`, each row the median of its seeds. `e_u` and `e_f` are relative errors; for each quantity follow the share
of 1,000 points that the 95 % interval covers, the root mean square of z, and the width of the interval over the error.
"Raw" is before calibration. A cell holds if it covers 90 to 98.5 % and z is between 0.6 and 1.4; where the error is
below 1e-6 only the upper limit of z counts.

```
{text}
```
"""


def one(name: str, noise: float, seed: int) -> dict:
    """One cell, in the child process."""
    import numpy as np
    from problems import CALIBRATION_CASES

    import pdedkl as pk
    from pdedkl import metrics

    problem = CALIBRATION_CASES[name]().problem(name)
    data = problem.sample(seed=seed, noise=noise)
    fitted = pk.fit(problem, data, seed=seed)
    operators = {"u": pk.identity, "f": problem.operator, "slope": pk.D(first_coordinate(problem))}
    found = {}
    for region, points in places(problem, seed).items():
        for kind, operator in operators.items():
            truth = problem.truth(points, operator)
            for method, posterior in (("raw", fitted.uncalibrated()), ("calibrated", fitted)):
                predicted = posterior.predict(points, operator)
                arrays = predicted.mean, predicted.std, truth
                low, high = metrics.bootstrap(metrics.z_rms, *arrays, draws=200)
                summary = metrics.summary(*arrays, "")
                found[f"{method}, {kind}, {region}"] = {k.rstrip("_"): v for k, v in summary.items()} | {
                    "z_band": [low, high],
                    "z_parts": metrics.z_histogram(*arrays)[0].tolist(),
                }
    clean = np.std(np.concatenate([np.asarray(o.values) for o in problem.sample(seed=seed) if o.of_values]))
    verdict = fitted.check(problem, seed=seed)
    return {
        "kernel": fitted.training.kernel,
        "seconds": fitted.training.seconds,
        "factors": np.asarray(fitted.calibration.factors).tolist(),
        "noise_of_u": noise * float(clean),
        "learned_noise_of_u": next(float(fitted.model.noise()[o.noise_name]) for o in data if o.of_values),
        "values_of_u": sum(len(o) for o in data if o.of_values),
        "found": found,
        "check": verdict.to_json(),
    }


def first_coordinate(problem):
    x = problem.domain.coordinates("x")
    return x if x.scalar else x[0]


def places(problem, seed: int) -> dict:
    """Fresh points inside, within 5 % of a face of space, and outside the box by up to 10 % of its width."""
    import numpy as np

    inside = problem.interior(POINTS, seed)
    rng = np.random.default_rng([seed, 5])
    lower, upper = np.asarray(problem.domain.lower), np.asarray(problem.domain.upper)
    axes = rng.choice(problem.domain.coordinates("x").indices, POINTS)
    rows, side = np.arange(POINTS), rng.random(POINTS) < 0.5

    def beside(depth: float) -> np.ndarray:
        moved, away = inside.copy(), depth * rng.random(POINTS) * (upper - lower)[axes]
        moved[rows, axes] = np.where(side, lower[axes] + away, upper[axes] - away)
        return moved

    return {"inside": inside, "near the boundary": beside(0.05), "outside": beside(-0.1)}


def holds(found: dict) -> bool:
    z = found["z_rms"]
    if z is None or z > 1.4:
        return False
    return found["error"] < 1e-6 or (z >= 0.6 and 0.9 <= found["coverage"]["0.95"] <= 0.985)


def joint_band(seeds: int = 100) -> float:
    """How often the simultaneous 90 % band of 50 points holds all of a solution that is drawn from the prior."""
    import jax
    import numpy as np

    import pdedkl as pk

    domain = pk.Domain(x=[(0, 1)] * 2)
    x = domain.coordinates("x")
    kernel = pk.ard(domain, lengthscale=0.7)
    rng = np.random.default_rng(0)
    edge, inside, places = (rng.uniform(size=(n, 2)) for n in (20, 15, 50))
    edge[np.arange(20), rng.integers(2, size=20)] = rng.integers(2, size=20)
    operators = (pk.identity, pk.Laplacian(x), pk.identity)
    points = (edge, inside, places)
    model = pk.Model(kernel, [pk.Observation(pk.identity, edge, np.zeros(20), 0.01)])
    empty = pk.condition(model, [pk.Observation(pk.identity, np.full((1, 2), 0.5), np.zeros(1), 1e6)])
    covariance = np.block(
        [[empty.covariance(p, a, q, b) for q, b in zip(points, operators)] for p, a in zip(points, operators)]
    )
    values, vectors = np.linalg.eigh(covariance)
    held = 0
    for seed in range(seeds):
        truth = vectors @ (np.sqrt(np.maximum(values, 0)) * np.random.default_rng([seed, 1]).normal(size=len(values)))
        noisy = truth[:35] + 0.01 * np.random.default_rng([seed, 2]).normal(size=35)
        data = [
            pk.Observation(pk.identity, edge, noisy[:20], 0.01),
            pk.Observation(pk.Laplacian(x), inside, noisy[20:], 0.01),
        ]
        posterior = pk.condition(pk.Model(kernel, data), data)
        predicted = posterior.predict(places)
        draws = posterior.sample(jax.random.PRNGKey(seed), places, count=2000)
        far = np.max(np.abs(draws - predicted.mean) / predicted.std, axis=1)
        held += bool(np.max(np.abs(truth[35:] - predicted.mean) / predicted.std) <= np.quantile(far, 0.9))
    return held / seeds


def report(results: list[dict]) -> tuple[str, bool]:
    """One line per problem and noise (medians over seeds), every cell that falls short, and the shares."""
    head = f"{'problem':<17}{'noise':>6}{'e_u':>9}{'e_f':>9}  "
    head += "".join(f"{title:>23}" for title in ("u, raw", "u", "f, raw", "f", "slope"))
    lines = [head, f"{'':<43}" + "".join(f"{'cover   z-RMS   sharp':>23}" for _ in range(5))]
    good = [r for r in results if "failed" not in r]
    for key in dict.fromkeys((r["problem"], r["noise"]) for r in good):
        rows = [r["found"] for r in good if (r["problem"], r["noise"]) == key]
        middle = lambda where, what, rows=rows: median(_number(what(row[where])) for row in rows)
        line = f"{key[0]:<17}{key[1]:>6g}"
        line += "".join(f"{middle(f'raw, {kind}, inside', lambda c: c['error']):>9.1e}" for kind in "uf") + "  "
        for where in ("raw, u", "calibrated, u", "raw, f", "calibrated, f", "calibrated, slope"):
            numbers = (
                middle(f"{where}, inside", lambda c: c["coverage"]["0.95"]),
                middle(f"{where}, inside", lambda c: c["z_rms"]),
                middle(f"{where}, inside", lambda c: c["sharpness"]),
            )
            line += "{:>8.3f}{:>8.2g}{:>7.2g}".format(*numbers)
        lines.append(line)
    lines.append("")
    shares = {}
    for method in ("raw", "calibrated"):
        for kind in KINDS:
            held = [holds(r["found"][f"{method}, {kind}, inside"]) for r in good]
            shares[method, kind] = sum(held) / max(len(held), 1)
            lines.append(f"cells that hold, {kind}, {method}: {sum(held)} of {len(held)}")
    for kind in KINDS:
        found = [r["found"][f"calibrated, {kind}, inside"] for r in good]
        covered, z = sum(c["coverage"]["0.95"] for c in found) / len(found), median(_number(c["z_rms"]) for c in found)
        lines.append(f"all cells together, {kind}: covers {covered:.3f}, median z-RMS {z:.2g}")
    for kind in "uf":
        sharp = [_number(r["found"][f"calibrated, {kind}, inside"]["sharpness"]) for r in good]
        lines.append(f"median sharpness of {kind}: {median(sharp):.2g}")
    for region in REGIONS[1:]:
        for kind in "uf":
            found = [r["found"][f"calibrated, {kind}, {region}"] for r in good]
            covered, z = median(c["coverage"]["0.95"] for c in found), median(_number(c["z_rms"]) for c in found)
            lines.append(f"{region}, {kind}: median coverage {covered:.3f}, z-RMS {z:.2g}")
    both = lambda r: all(holds(r["found"][f"calibrated, {kind}, inside"]) for kind in "uf")
    lines += _share("verdicts of check that agree with the truth", good, lambda r: both(r) == r["check"]["calibrated"])
    lines += _share("estimated errors of u within a factor of 3", good, _estimated)
    noisy = [r for r in good if r["noise"] and r["values_of_u"] >= 100]
    lines += _share(
        "learned noise within 25 %", noisy, lambda r: abs(r["learned_noise_of_u"] / r["noise_of_u"] - 1) <= 0.25
    )
    for r in results:
        if "failed" in r:
            lines.append(f"FAILED: {r['problem']}, noise {r['noise']:g}, seed {r['seed']}: {r['failed'][-200:]}")
            continue
        for kind in "uf":
            cell = r["found"][f"calibrated, {kind}, inside"]
            if not holds(cell):
                lines.append(
                    f"falls short: {kind} of {r['problem']}, noise {r['noise']:g}, seed {r['seed']}: "
                    f"covers {cell['coverage']['0.95']:.3f}, z-RMS {_number(cell['z_rms']):.2f}, "
                    f"error {cell['error']:.1e}"
                )
    missed = len(good) < len(results) or any(shares["calibrated", kind] < LEAST_SHARE for kind in "uf")
    return "\n".join(lines), missed


def _estimated(r: dict) -> bool:
    ratio = r["check"]["error_u"] / r["found"]["calibrated, u, inside"]["error"]
    return 1 / 3 <= ratio <= 3


def _share(title: str, rows: list[dict], right: Callable[[dict], bool]) -> list[str]:
    return [f"{title}: {sum(map(right, rows))} of {len(rows)}"]


def _number(value: float | None) -> float:
    return float("inf") if value is None else value


def shown(row: dict) -> str:
    cell = row["found"]["calibrated, u, inside"]
    return (
        f"{row['problem']:<17} noise {row['noise']:<4g} seed {row['seed']} error {cell['error']:.1e} "
        f"covers {cell['coverage']['0.95']:.3f} z {_number(cell['z_rms']):.2f} {row['check']['status']} "
        f"{row['kernel']} {row['seconds']:.0f} s"
    )


def main() -> int:
    parser = arguments(__doc__, RESULTS / "calibration.json", jobs=2)
    parser.add_argument("--noise", nargs="*", type=float, default=list(NOISE))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="24 cells: no noise and much, one seed")
    options = parser.parse_args()
    if options.quick:
        options.noise, options.seeds, options.out = [NOISE[0], NOISE[-1]], 1, RESULTS / "calibration-quick.json"
    from problems import CALIBRATION_CASES

    names = chosen(list(CALIBRATION_CASES), options.only)
    cells = [(n, noise, seed) for seed in range(options.seeds) for n in names for noise in options.noise]
    results = measured(__file__, ("problem", "noise", "seed"), cells, options, shown, cold=False)
    results.sort(key=lambda r: (list(CALIBRATION_CASES).index(r["problem"]), r["noise"], r["seed"]))
    text, missed = report(results)
    text += (
        f"\nsimultaneous 90 % band of 50 points, truth drawn from the prior: holds in {joint_band():.0%} of 100 seeds"
    )
    print(text)
    if options.page is not None:
        options.page.write_text(PAGE.format(text=text))
    return int(missed)


if __name__ == "__main__":
    answer(one)
    sys.exit(main())
