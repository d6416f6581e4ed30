"""The heat equation in ten dimensions, from 300 points, with error bars.

    ∂u/∂t − Δu = f  in (0, 1)^10 × (0, 1),   u given on the boundary and at t = 0

The exact solution `u = e^{-t} cos(mean(x))` is used for the data and to measure the error. The embedding is a fixed
affine map onto (mean of x, t): nothing is trained here, one conditioning solves the problem.
"""

import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk

d = 10
domain = pk.Domain(x=[(0, 1)] * d, t=(0, 1))
x, t = domain.coordinates("x", "t")
heat = pk.D(t) - pk.Laplacian(x)


def exact(q):
    return jnp.exp(-t(q)) * jnp.cos(jnp.mean(x(q)))


source = heat(exact)  # f, by automatic differentiation


def observe(operator, function, points, noise):
    values = np.asarray(jax.vmap(function)(points))
    return pk.Observation(operator, points, values + noise * rng.normal(size=len(points)), noise)


rng = np.random.default_rng(0)
inside = rng.uniform(size=(150, d + 1))
start = rng.uniform(size=(50, d + 1))
start[:, d] = 0.0
boundary = rng.uniform(size=(100, d + 1))
boundary[np.arange(100), rng.integers(d, size=100)] = rng.integers(2, size=100)  # one coordinate on a face

noise = 1e-3
data = [
    observe(pk.identity, exact, boundary, noise),
    observe(pk.identity, exact, start, noise),
    observe(heat, source, inside, noise),
]

embedding = pk.Affine(np.vstack([np.append(np.full(d, 1 / d), 0.0), np.append(np.zeros(d), 1.0)]))
kernel = pk.deep(domain, embedding, variance=1.0, lengthscale=[1.5, 3.0])
posterior = pk.condition(kernel, data)


def report(name, prediction, truth):
    """Print and return the relative error and the share of the truth inside the 95 % interval."""
    low, high = prediction.interval(0.95)
    error = np.linalg.norm(prediction.mean - truth) / np.linalg.norm(truth)
    coverage = np.mean((low <= truth) & (truth <= high))
    print(f"{name}: relative error {error:.1e}, 95 % interval covers {100 * coverage:.1f} % of 1,000 new points")
    return error, coverage


def main():
    new = rng.uniform(size=(1000, d + 1))
    print(f"{heat} = f, {d} + 1 dimensions, {sum(map(len, data))} noisy values (noise {noise:g})")
    u = report("u", posterior.predict(new), np.asarray(jax.vmap(exact)(new)))
    f = report("f", posterior.predict(new, heat), np.asarray(jax.vmap(source)(new)))
    return u, f


if __name__ == "__main__":
    main()
