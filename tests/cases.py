"""The operators, kernels and embeddings that the tests run over, for any dimension."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk

DIMENSIONS = (1, 2, 3, 10, 50)


@cache
def domain(d: int) -> pk.Domain:
    if d == 1:
        return pk.Domain(x=[(0.0, 2.0)])
    return pk.Domain(x=[(-0.5 * i, 1.0 + i % 3) for i in range(d - 1)], t=(0.0, 2.0))


def points(d: int, n: int, seed: int = 0) -> np.ndarray:
    box = domain(d)
    return np.random.default_rng(seed).uniform(box.lower, box.upper, size=(n, d))


@cache
def operators(d: int) -> dict[str, pk.Operator]:
    box = domain(d)
    x = box.coordinates("x")
    t = x[0] if d == 1 else box.coordinates("t")
    few = x[: min(3, len(x))]
    k = len(few)
    rng = np.random.default_rng(d)
    indefinite = rng.normal(size=(k, k))
    speed = pk.Coefficient(lambda q: 1.0 + 0.3 * jnp.sin(q[0]) + 0.1 * q[-1], name="speed")
    nu, a, r = pk.Parameter("nu", 0.7, positive=True), pk.Parameter("a", 0.6), pk.Parameter("r", -0.2)
    drift = [a, *[-0.4 * speed] * (k - 1)]
    diagonal = [nu * speed, *[0.3 * a] * (k - 1)]
    return {
        "identity": pk.identity,
        "first": pk.D(x[0]),
        "second": pk.D(t, t),
        "mixed": pk.D(x[0]) @ pk.D(t),
        "directional": pk.Directional(x, rng.normal(size=len(x))),
        "directional variable": pk.Directional(few, lambda q: jnp.cos(few(q))),
        "laplacian": pk.Laplacian(x),
        "divergence": pk.Divergence(x, lambda q: jnp.exp(0.3 * q[0]) + 0.1 * jnp.sum(q**2)),
        "divergence diagonal": pk.Divergence(few, lambda q: 1.0 + few(q) ** 2),
        "divergence matrix": pk.Divergence(few, lambda q: jnp.eye(k) + jnp.outer(few(q), few(q)) + 0.2 * jnp.sin(q[0])),
        "diffusion indefinite": pk.Diffusion(few, indefinite + indefinite.T),
        "diffusion diagonal": pk.Diffusion(x, np.linspace(-1.0, 2.0, len(x))),
        "heat": pk.D(t) - pk.Laplacian(x),
        "wave": pk.D(t, t) - 4.0 * pk.Laplacian(x),
        "advection-diffusion-reaction": pk.D(t) - pk.Laplacian(x) + pk.Directional(x, np.ones(len(x))) + 1.0,
        "variable": speed * pk.D(x[0]) - 2 * speed * pk.Laplacian(x) / 3 + speed,
        "parameter": nu * pk.Laplacian(x) - r + pk.Directional(few, drift) + pk.Divergence(few, diagonal),
        "first of first": (speed * pk.D(x[0]) + 0.5) @ (speed * pk.D(t) + speed),
        "second of zeroth": (pk.Laplacian(x) + pk.D(t) + 2.0) @ (speed * pk.identity),
        "zeroth of second": (speed * pk.identity) @ (pk.Laplacian(x) - speed * pk.D(t)),
    }


def shifted(d: int) -> dict[str, pk.Operator]:
    """Operators that look at other points: coefficients here and there, derivatives before and after."""
    x = domain(d).coordinates("x")
    t = x[0] if d == 1 else domain(d).coordinates("t")
    step, back = pk.Shift(x[0], 0.7), pk.Shift(x, np.linspace(-0.4, 0.3, len(x)))
    speed = pk.Coefficient(lambda q: 1.0 + 0.3 * jnp.sin(q[0]) + 0.1 * q[-1], name="speed")
    return {
        "alone": step,
        "periodic": pk.identity - step,
        "periodic slope": pk.D(x[0]) - step @ pk.D(x[0]),
        "coefficient here": (speed * pk.D(t) + pk.Laplacian(x)) @ back - 2.0,
        "coefficient there": back @ (speed * pk.D(t) + speed) + pk.Parameter("r", -0.2) * step,
        "first of first": (speed * pk.D(x[0]) + 0.5) @ step @ (speed * pk.D(t) + speed),
        "two moves": (pk.identity + 0.5 * step) @ (pk.Laplacian(x) - back @ pk.D(t)),
    }


def high_order(d: int) -> dict[str, pk.Operator]:
    x = domain(d).coordinates("x")
    t = x[0] if d == 1 else domain(d).coordinates("t")
    return {
        "third": pk.D(x[0], x[0], x[0]),
        "KdV": pk.D(t) + 6.0 * pk.D(x[0]) + pk.D(x[0], x[0], x[0]),
        "biharmonic": pk.Laplacian(x) @ pk.Laplacian(x),
    }


def profiles() -> dict[str, pk.Profile]:
    return {
        "squared exponential": pk.SquaredExponential(),
        "matern 5/2": pk.Matern52(),
        "matern 7/2": pk.Matern72(),
        "matern 9/2": pk.Matern92(),
        "rational quadratic": pk.RationalQuadratic(1.3),
    }


@cache
def embeddings(d: int) -> dict[str, pk.Embedding]:
    keys = iter(jax.random.split(jax.random.key(d + 10), 20))
    return {
        "identity": pk.IdentityEmbedding(),
        "affine": pk.Affine.drawn(d, 3, key=next(keys)),
        "gelu": pk.MLP(d, 3, width=7, depth=2, key=next(keys)),
        "tanh": pk.MLP(d, 2, width=6, depth=1, activation="tanh", key=next(keys)),
        "silu": pk.MLP(d, 1, width=5, depth=2, activation="silu", key=next(keys)),
        "sine": pk.MLP(d, 10, width=6, depth=1, activation="sine", key=next(keys)),
        "residual": pk.Residual(d, 4, width=8, depth=2, key=next(keys)),
        "bottleneck": pk.Bottleneck(d, pk.Residual(2, 3, width=6, depth=1, key=next(keys)), key=next(keys)),
    }


def kernel(d: int, profile: str, embedding: str) -> pk.Kernel:
    """One component on an embedding, or a sum of components; with groups, variances and length scales of all kinds."""
    box, phi = domain(d), profiles()[profile]
    if embedding == "additive":
        return pk.additive(box, phi, lengthscale=np.linspace(0.7, 1.5, d))
    if embedding == "additive + deep":
        return kernel(d, profile, "additive") + kernel(d, profile, "residual")
    if embedding == "additive + ard + grouped":
        grouped = pk.deep(
            box, embeddings(d)["residual"], phi, groups=[(0, 1), (2,), (3,), (0, 3)], variance=[1, 2, 3, 0.5]
        )
        return kernel(d, profile, "additive") + kernel(d, profile, "identity") + grouped
    h = embeddings(d)[embedding]
    scales = np.linspace(0.8, 1.4, h.latent_dim(d)) * (d**0.5 if embedding == "identity" else 1.0)
    return pk.deep(box, h, phi, variance=1.7, lengthscale=scales)


KERNEL_SHAPES = (*embeddings(1), "additive", "additive + deep", "additive + ard + grouped")
