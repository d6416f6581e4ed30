"""Small posteriors of every kind that a page has to evaluate, conditioned on a few points and never trained."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk
from pdedkl.inference.estimates import with_estimates
from pdedkl.operators import vanishing

DOMAIN = pk.Domain(x=[(0.0, 1.0), (-1.0, 2.0), (0.0, 0.5)], t=(0.0, 2.0))
X, T = DOMAIN.coordinates("x", "t")
DIM = DOMAIN.dim


def exact(q):
    return jnp.exp(-0.5 * T(q)) * jnp.cos(jnp.sum(X(q))) + 0.3 * q[0] * q[1]


HEAT = pk.D(T) - pk.Laplacian(X) + 0.5
# Mixed derivatives, and coefficients that vary: no rotation makes these diagonal for all points.
VARIABLE = pk.Divergence(X, lambda q: jnp.eye(3) + 0.3 * jnp.outer(X(q), X(q))) + pk.D(T)
# The same mixed derivatives everywhere: one rotation does.
MIXED = pk.Diffusion(X, np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 0.7]])) - pk.D(T)

# Two places at once, of which one is looked at for its slope.
PERIODIC = pk.Parameter("c", 1.0) * pk.D(X[0]) - pk.Shift(X[0], 1.0) @ pk.D(X[0])


# Zero on both ends of one coordinate, on one end of another.
ZERO = vanishing(DOMAIN, [*DOMAIN.boundary(X[1]).pieces, *DOMAIN.initial(T).pieces])


def points(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(DOMAIN.lower, DOMAIN.upper, (n, DIM))


@cache
def heat() -> tuple[np.ndarray, np.ndarray]:
    """Values of `u` at 12 points and of `f` at 12 others."""
    return tuple(np.asarray(jax.jit(jax.vmap(fn))(points(12, seed))) for seed, fn in enumerate((exact, HEAT(exact))))


def observations(operator: pk.Operator) -> list[pk.Observation]:
    """The values are those of the exact solution for `HEAT`; which they are matters to no covariance."""
    values = heat()
    data = [pk.Observation(a, points(12, i), values[i], 1e-2, f"{i}") for i, a in enumerate((pk.identity, operator))]
    return [*data, pk.Observation(pk.D(X[0]), points(4, 2), np.ones(4), 1e-2)] if operator is MIXED else data


def _key(seed: int):
    return jax.random.key(seed)


def _deep(embedding: pk.Embedding, *rest, **options) -> pk.Kernel:
    return pk.deep(DOMAIN, embedding, *rest, variance=1.5, **options)


def _affine() -> pk.Affine:
    return pk.Affine.drawn(DIM, 3, key=_key(1))


def _network(h: int, activation: str, seed: int, inputs: int = DIM) -> pk.MLP:
    return pk.MLP(inputs, h, width=6, depth=1, activation=activation, key=_key(seed))


# Every embedding, activation and profile of the library, and every way in which rows are stored. Kinds that go well
# together are added up: a sum is wrong if one of its terms is, and compiles in the time of one.
MODELS = {
    "projection": lambda: (_deep(_affine(), lengthscale=[0.5, 0.8, 1.1]), MIXED),
    "ard": lambda: (pk.ard(DOMAIN, lengthscale=[0.6, 0.9, 1.2, 1.5]), HEAT),
    "ridges + additive": lambda: (
        _deep(_affine(), groups=[(0,), (1,), (2,), (0, 2)]) + pk.additive(DOMAIN, lengthscale=0.7).times(ZERO),
        HEAT,
    ),
    "matern on a network + ard, matrices that vary": lambda: (
        _deep(_network(2, "tanh", 6), pk.Matern52()) + pk.ard(DOMAIN),
        VARIABLE,
    ),
    "periodic": lambda: (_deep(_affine()) + pk.ard(DOMAIN), PERIODIC),
    "network mean": lambda: (pk.ard(DOMAIN, lengthscale=0.9), HEAT),
    "networks": lambda: (
        _deep(pk.Residual(DIM, 2, width=6, depth=1, activation="square", key=_key(2)))
        + _deep(pk.MLP(DIM, 3, width=9, depth=2, key=_key(3)), pk.RationalQuadratic(1.3))
        + _deep(pk.Bottleneck(DIM, _network(2, "silu", 4, inputs=2), key=_key(5)), pk.Matern92())
        + _deep(_network(2, "sine", 7), pk.Matern72())
        + _deep(pk.Invariants([(0, 2), (1,), (3,)], [False, True, False])),
        HEAT,
    ),
}


@cache
def posterior(name: str) -> pk.Posterior:
    kernel, operator = MODELS[name]()
    data = observations(operator)
    network = pk.Bottleneck(DIM, _network(1, "tanh", 4, inputs=2), key=_key(5))
    means = {"projection": pk.ConstantMean(0.3), "network mean": pk.NetworkMean(DOMAIN, network, 1.7, ZERO)}
    mean = means.get(name)
    # An unknown number widens the error bars of the page too.
    return with_estimates(pk.condition(pk.Model(kernel, data, mean), data))


def problem(**changes):
    """What a report needs to know of a problem."""
    known = {
        "name": "Heat & <b>reaction</b>",
        "domain": DOMAIN,
        "operator": HEAT,
        "source": HEAT(exact),
        "conditions": (),
        "statements": (),
        "exact": exact,
        "equation": "∂u/∂t − Δu + u/2 = f",
        "mathml": "<math display='block'><mi>𝒜</mi><mi>u</mi><mo>=</mo><mi>f</mi></math>",
        "interior": points,
    }
    return SimpleNamespace(**(known | changes))
