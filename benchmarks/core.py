"""The core against what it replaces: nested automatic differentiation, and the linear algebra it cannot avoid.

Prints ratios measured in this run, and exits with 1 where one misses its limit. The gain over nested differentiation
grows with the number of points: what is done once a point does not count for long.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import folx
import jax
import jax.numpy as jnp
import numpy as np
from timing import Limits, Ratio, in_turns

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


def assembly(limits: Limits, d: int, chunks: tuple[int, ...], at_least: float, n: int = 200) -> None:
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
        print(f"        d = {d}, {name}: {1e3 * np.median(times):.1f} ms")
    fastest = min(nested.values(), key=np.median)
    ratio = Ratio(fastest, seconds["ours"])
    limits.check(
        f"nested autodiff over our assembly, d = {d}, {n} source points", ratio.median, ratio, at_least=at_least
    )
    error = jnp.abs(rows_by_autodiff(kernel, q[:5], q) - ours(kernel, q)[:5]).max() / jnp.abs(ours(kernel, q)).max()
    limits.check(f"largest difference of the two, d = {d}", float(error), f"{error:.1e}", at_most=1e-10)


def push_forward(name: str, embedding: pk.Embedding, d: int, n: int = 500) -> None:
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
    print(f"        folx over the layer rule, {name}, d = {d}: {Ratio(seconds['folx'], seconds['rule'])}; "
          f"they differ by {difference:.1e}")  # fmt: skip


def gradient_rule(n: int = 1000, rows: int = 64, h: int = 4) -> None:
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
    print(f"        gradient of {rows} × {n} covariances, plain over rule, {h} latent coordinates: "
          f"{Ratio(seconds['plain'], seconds['rule'])}")  # fmt: skip


def step_over_floor(limits: Limits, n: int = 2000, d: int = 50) -> None:
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
        repeats=9,
    )
    for name, times in seconds.items():
        print(f"        n = {n}, {name}: {1e3 * np.median(times):.0f} ms")
    floor = min((seconds["Cholesky and inverse"], seconds["the same by cho_solve"]), key=np.median)
    ratio = Ratio(seconds["step"], floor)
    limits.check(f"evidence and gradient over Cholesky and inverse, n = {n}, d = {d}", ratio.median, ratio, at_most=2.0)


def growth_with_dimension(limits: Limits, n: int = 2000) -> None:
    def behind(d: int) -> pk.Embedding:
        return pk.Bottleneck(d, pk.MLP(16, 4, width=64, depth=2, key=KEY), key=KEY)

    problems = {d: poisson(d, n, behind(d)) for d in (10, 1000, 10000)}
    seconds = in_turns({str(d): lambda d=d: step(*problems[d]) for d in problems}, repeats=7)
    for d, most in ((1000, 1.5), (10000, 2.0)):
        ratio = Ratio(seconds[str(d)], seconds["10"])
        limits.check(f"a step at d = {d:,} over d = 10, 16-dimensional map, n = {n}", ratio.median, ratio, at_most=most)


def peak_memory(limits: Limits, n: int = 4000) -> None:
    """In a process of its own: how far one step raises the peak above what was resident before it.

    A small step runs first, so that libraries and thread pools (the constant) are loaded when the measurement starts.
    """
    output = subprocess.run([sys.executable, __file__, "--memory", str(n)], capture_output=True, text=True, check=True)
    matrices = float(output.stdout.split()[-1])
    limits.check(f"peak memory of a step, n = {n}, d = 50", matrices, f"{matrices:.2f} n² doubles", at_most=4.0)


def measure_memory(n: int, d: int = 50) -> None:
    embedding = pk.Residual(d, 4, width=64, depth=2, key=KEY)
    jax.block_until_ready(step(*poisson(d, 200, embedding)))
    model, observations = poisson(d, n, embedding)
    compiled = step.lower(model, observations).compile()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    jax.block_until_ready(compiled(model, observations))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print((peak - resident) / (8 * n * n))


def quick() -> int:
    """The limits that say whether the core is fast, in a few minutes."""
    limits = Limits()
    assembly(limits, 50, (50,), at_least=100, n=500)
    step_over_floor(limits)
    growth_with_dimension(limits)
    peak_memory(limits)
    return limits.exit_code


def main() -> int:
    limits = Limits()
    assembly(limits, 10, (50, 100, 200), at_least=30)
    assembly(limits, 50, (40, 100), at_least=100)
    assembly(limits, 50, (20, 50), at_least=100, n=500)
    push_forward("four layers of 200", pk.MLP(50, 4, key=KEY), 50)
    push_forward("residual 2 × 64", pk.Residual(50, 4, key=KEY), 50)
    gradient_rule()
    step_over_floor(limits)
    growth_with_dimension(limits)
    peak_memory(limits)
    print(f"{limits.missed} of the limits missed" if limits.missed else "all limits held")
    return limits.exit_code


if __name__ == "__main__":
    if "--memory" in sys.argv:
        measure_memory(int(sys.argv[-1]))
    else:
        sys.exit(quick() if "--quick" in sys.argv else main())
