"""The core against what it replaces: nested automatic differentiation, and the linear algebra it cannot avoid.

Prints ratios measured in this run, and exits with 1 where one misses its limit. The gain over nested differentiation
grows with the number of points: what is done once a point does not count for long.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import folx
import jax
import jax.numpy as jnp
import numpy as np
from timing import Measurements, Ratio, in_turns, peak_bytes

import pdedkl as pk
from pdedkl.embeddings import LatentJet
from pdedkl.inference.cholesky import inverse
from pdedkl.inference.engines import ClosedForm
from pdedkl.kernels import covariance, covariances

KEY = jax.random.key(0)
ENGINE = ClosedForm()


def poisson(d: int, n: int, embedding: pk.Embedding) -> tuple[pk.Model, tuple[pk.Observation, ...]]:
    """Half of the values are of u, half of its Laplacian."""
    domain = pk.Domain(x=[(0, 1)] * d)
    q = np.random.default_rng(0).uniform(size=(n, d))
    values, x = np.sin(q.sum(axis=1)), domain.coordinates("x")
    observations = (
        pk.Observation(pk.identity, q[: n // 2], values[: n // 2], pk.Learned("u", 0.1)),
        pk.Observation(pk.Laplacian(x), q[n // 2 :], -d * values[n // 2 :], pk.Learned("f", 0.1 * d)),
    )
    return pk.Model(pk.deep(domain, embedding), observations), observations


@eqx.filter_jit
def step(model, observations):
    """One evidence and its gradient."""
    return eqx.filter_value_and_grad(pk.negative_log_evidence, has_aux=True)(model, observations)


def assembly(found: Measurements, d: int, chunks: tuple[int, ...], at_least: float | None = None, n: int = 200) -> None:
    """Nested differentiation is taken at its best: forward over forward, vectorised over rows and columns, so that
    JAX runs the network once a point and not once a pair, in the fastest of several numbers of rows at a time."""
    x = pk.Domain(x=[(0, 1)] * d).coordinates("x")
    laplacian = pk.Laplacian(x)
    kernel = pk.deep(pk.Domain(x=[(0, 1)] * d), pk.MLP(d, 4, width=200, depth=4, key=KEY))
    q = jnp.asarray(np.random.default_rng(0).uniform(size=(n, d)))

    @eqx.filter_jit
    def ours(kernel, q):
        rows = ENGINE.rows(kernel, laplacian, q)
        return ENGINE.block(ENGINE.parameters(kernel), rows, rows)

    @eqx.filter_jit
    def rows_by_autodiff(kernel, left, right):
        pair = lambda p, p_: laplacian(lambda s: laplacian(lambda s_: kernel(s, s_))(p_))(p)
        return jax.vmap(lambda p: jax.vmap(lambda p_: pair(p, p_))(right))(left)

    functions = {"ours": lambda: ours(kernel, q)}
    for size in chunks:
        functions[f"nested, {size} rows at a time"] = lambda size=size: [
            rows_by_autodiff(kernel, q[i : i + size], q) for i in range(0, n, size)
        ]
    seconds = in_turns(functions, repeats=3 if d > 20 else 7)
    nested = {name: times for name, times in seconds.items() if name != "ours"}
    for name, times in seconds.items():
        found.add(f"assembly, d = {d}, {n} source points, {name}", *_milliseconds(times))
    fastest = min(nested.values(), key=np.median)
    ratio = Ratio(fastest, seconds["ours"])
    found.add(f"nested autodiff over our assembly, d = {d}, {n} source points", ratio.median, ratio, at_least=at_least)
    error = jnp.abs(rows_by_autodiff(kernel, q[:5], q) - ours(kernel, q)[:5]).max() / jnp.abs(ours(kernel, q)).max()
    found.add(f"largest difference of the two, d = {d}", float(error), f"{error:.1e}", at_most=1e-10)


def push_forward(found: Measurements, name: str, embedding: pk.Embedding, d: int, n: int = 500) -> None:
    """The layer rule against folx on the same Laplacians; for the choice between them, no limit."""
    domain = pk.Domain(x=[(0, 1)] * d)
    component = pk.deep(domain, embedding).components[0]
    q = jnp.asarray(np.random.default_rng(0).uniform(size=(n, d)))
    laplacian = pk.Laplacian(domain.coordinates("x"))

    @eqx.filter_jit
    def by_rule(component, q):
        jets = component.jets(laplacian, q)
        return jets.drift, jets.diffusion

    @eqx.filter_jit
    def by_folx(component, q):
        def one(p):
            out = folx.forward_laplacian(component.latent)(p)
            jacobian = out.jacobian.dense_array
            return out.laplacian, jacobian.T @ jacobian

        return jax.lax.map(one, q, batch_size=64)

    seconds = in_turns({"rule": lambda: by_rule(component, q), "folx": lambda: by_folx(component, q)}, repeats=7)
    difference = max(float(jnp.abs(a - b).max()) for a, b in zip(by_rule(component, q), by_folx(component, q)))
    ratio = Ratio(seconds["folx"], seconds["rule"])
    found.add(f"folx over the layer rule, {name}, d = {d}", ratio.median, f"{ratio}; they differ by {difference:.1e}")


def gradient_rule(found: Measurements, n: int = 1000, rows: int = 64, h: int = 4) -> None:
    """Derivatives of covariances from products against plain differentiation of the formula; no limit."""
    rng = np.random.default_rng(0)
    G = rng.normal(size=(n, h, h))
    jets = LatentJet(
        *map(
            jnp.asarray,
            (rng.normal(size=(n, h)), rng.normal(size=n), rng.normal(size=(n, h)), G + G.transpose(0, 2, 1)),
        )
    )
    some, weight = jax.tree.map(lambda leaf: leaf[:rows], jets), jnp.asarray(rng.normal(size=(rows, n)))
    profile = pk.SquaredExponential()
    each_pair = lambda a, b: jax.vmap(lambda x: jax.vmap(lambda y: covariance(profile, x, y))(b))(a)
    rule = jax.jit(jax.grad(lambda a: jnp.vdot(weight, covariances(profile, a, jets))))
    plain = jax.jit(jax.grad(lambda a: jnp.vdot(weight, each_pair(a, jets))))
    seconds = in_turns({"rule": lambda: rule(some), "plain": lambda: plain(some)}, repeats=15)
    ratio = Ratio(seconds["plain"], seconds["rule"])
    found.add(f"gradient of {rows} × {n} covariances, plain over rule, {h} latent coordinates", ratio.median, ratio)


def gradient(found: Measurements, d: int, n: int = 60) -> None:
    """Evidence and gradient by both engines, with the seconds that each takes to compile."""
    model, observations = poisson(d, n, pk.MLP(d, 4, width=200, depth=4, key=KEY))
    models = {"closed form": model, "nested autodiff": pk.Model(model.kernel, observations, engine="autodiff")}
    for name, each in models.items():
        begin = time.perf_counter()
        step.lower(each, observations).compile()
        seconds = time.perf_counter() - begin
        found.add(f"compilation of a step, d = {d}, {name}", seconds, f"{seconds:.1f} s")
    seconds = in_turns({name: lambda m=m: step(m, observations) for name, m in models.items()}, repeats=3)
    ratio = Ratio(seconds["nested autodiff"], seconds["closed form"])
    found.add(f"nested autodiff over our evidence and gradient, d = {d}, n = {n}", ratio.median, ratio)


def _milliseconds(times: list[float]) -> tuple[float, str]:
    middle = 1e3 * float(np.median(times))
    return middle, f"{middle:.1f} ms"


def step_over_floor(found: Measurements, n: int, d: int = 50, repeats: int = 9, at_most: float | None = None) -> None:
    model, observations = poisson(d, n, pk.Residual(d, 4, width=64, depth=2, key=KEY))
    A = np.random.default_rng(0).normal(size=(n, n))
    matrix = jnp.asarray(A @ A.T / n + np.eye(n))
    blocked = jax.jit(lambda K: inverse(jax.lax.linalg.cholesky(K.T, symmetrize_input=False)))
    plain = jax.jit(lambda K: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(K), True), jnp.eye(n)))
    seconds = in_turns(
        {
            "step": lambda: step(model, observations),
            "Cholesky and inverse": lambda: blocked(matrix),
            "the same by cho_solve": lambda: plain(matrix),
        },
        repeats=repeats,
    )
    for name, times in seconds.items():
        found.add(f"n = {n}, {name}", *_milliseconds(times))
    floor = min((seconds["Cholesky and inverse"], seconds["the same by cho_solve"]), key=np.median)
    ratio = Ratio(seconds["step"], floor)
    found.add(
        f"evidence and gradient over Cholesky and inverse, n = {n}, d = {d}", ratio.median, ratio, at_most=at_most
    )


def growth_with_dimension(found: Measurements, n: int = 2000) -> None:
    def behind(d: int) -> pk.Embedding:
        return pk.Bottleneck(d, pk.MLP(16, 4, width=64, depth=2, key=KEY), key=KEY)

    problems = {d: poisson(d, n, behind(d)) for d in (10, 1000, 10000)}
    seconds = in_turns({str(d): lambda d=d: step(*problems[d]) for d in problems}, repeats=7)
    for d, most in ((1000, 1.5), (10000, 2.0)):
        ratio = Ratio(seconds[str(d)], seconds["10"])
        found.add(f"a step at d = {d:,} over d = 10, 16-dimensional map, n = {n}", ratio.median, ratio, at_most=most)


def peak_memory(found: Measurements, n: int = 4000) -> None:
    """In a process of its own: how far one step raises the peak above what was resident before it.

    A small step runs first, so that libraries and thread pools (the constant) are loaded when the measurement starts.
    """
    output = subprocess.run([sys.executable, __file__, "--memory", str(n)], capture_output=True, text=True, check=True)
    matrices = float(output.stdout.split()[-1])
    found.add(f"peak memory of a step, n = {n}, d = 50", matrices, f"{matrices:.2f} n² doubles", at_most=4.0)


def measure_memory(n: int, d: int = 50) -> None:
    embedding = pk.Residual(d, 4, width=64, depth=2, key=KEY)
    jax.block_until_ready(step(*poisson(d, 200, embedding)))
    model, observations = poisson(d, n, embedding)
    compiled = step.lower(model, observations).compile()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    jax.block_until_ready(compiled(model, observations))
    print((peak_bytes() - resident) / (8 * n * n))


def quick() -> int:
    """The limits that say whether the core is fast, in a few minutes."""
    found = Measurements("core-quick")
    with_limits(found)
    return found.finish()


def with_limits(found: Measurements) -> None:
    assembly(found, 50, (50,), at_least=100, n=500)
    step_over_floor(found, 2000, at_most=2.0)
    growth_with_dimension(found)
    peak_memory(found)


def main() -> int:
    found = Measurements("core")
    with_limits(found)
    assembly(found, 5, (100, 200))
    assembly(found, 10, (50, 100, 200), at_least=30)
    assembly(found, 50, (40, 100), at_least=100)
    for d in (5, 10, 50):
        gradient(found, d)
    push_forward(found, "four layers of 200", pk.MLP(50, 4, key=KEY), 50)
    push_forward(found, "residual 2 × 64", pk.Residual(50, 4, key=KEY), 50)
    gradient_rule(found)
    for n, repeats in ((500, 15), (1000, 9), (4000, 3), (8000, 1)):
        step_over_floor(found, n, repeats=repeats)
    return found.finish()


if __name__ == "__main__":
    if "--memory" in sys.argv:
        measure_memory(int(sys.argv[-1]))
    else:
        sys.exit(quick() if "--quick" in sys.argv else main())
