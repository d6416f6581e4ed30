"""Where training starts: directions from slopes of a first posterior, and kernels built on them."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled_quickly
from ..domain import Domain
from ..embeddings import Affine, Embedding, Invariants, Residual
from ..embeddings.push_forward import Normalisation
from ..inference.posterior import Posterior
from ..kernels import Kernel, Profile, additive, ard, deep
from ..model import Model
from ..observations import Observation, taken
from ..scales import data_scales

DIRECTIONS_PER_GROUP = 4
DIRECTIONS = 8

# A direction along which the first posterior hardly varies still starts with this fraction of the largest weight.
WEAKEST = 0.1
INITIAL_NOISE = 0.03
# How many times longer the length scale of each further sum over an orbit starts.
RISE = 4.0


@compiled_quickly
def slopes(posterior: Posterior, points: Float[Array, "n d"], field: str | None = None) -> Float[Array, "n d"]:
    """`∇m` of the posterior mean, of one of several fields, per half-width of the domain."""
    scale = posterior.model.kernel.components[0].normalisation.scale
    return jax.vmap(jax.grad(lambda q: posterior.mean(q, field)))(points) / scale


@compiled_quickly
def curvatures(posterior: Posterior, points: Float[Array, "n d"]) -> Float[Array, "n d d"]:
    """`∇∇ᵀm` of the posterior mean, in units of the half-widths of the domain."""
    scale = posterior.model.kernel.components[0].normalisation.scale
    return jax.lax.map(jax.hessian(posterior.mean), points) / (scale[:, None] * scale)


def principal_directions(domain: Domain, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The principal directions of the gradients, strongest first: rows of unit length, and their relative strengths.

    Each named group of coordinates has its own directions. Otherwise space and time could be mixed (`e^{-t} cos s` is
    to first order a function of one combination of both), and training does not separate them again.
    """
    found: list[tuple[float, np.ndarray]] = []
    begin = 0
    for _, size in domain.layout:
        part = gradients[:, begin : begin + size]
        _, strengths, directions = np.linalg.svd(part, full_matrices=size > part.shape[0])
        strengths = np.concatenate([strengths, np.zeros(len(directions) - len(strengths))])
        for strength, direction in list(zip(strengths, directions))[:DIRECTIONS_PER_GROUP]:
            row = np.zeros(domain.dim)
            row[begin : begin + size] = direction
            found.append((float(strength), row))
        begin += size
    found.sort(key=lambda item: -item[0])
    strengths = np.asarray([strength for strength, _ in found])
    largest = strengths[0] if strengths[0] > 0 else 1.0
    return np.asarray([row for _, row in found]), strengths / largest


def exploring(domain: Domain, variance: float, rows: np.ndarray) -> Kernel:
    """A kernel on the directions known so far, plus one on all inputs for the rest."""
    spread = np.sqrt(domain.dim)
    return deep(domain, Affine(rows), variance=variance) + ard(domain, variance=variance, lengthscale=spread)


def projection(
    domain: Domain, variance: float, rows: np.ndarray, strengths: np.ndarray, profile: Profile | None = None
) -> Kernel:
    """One smooth function of a few directions."""
    matrix = np.sqrt(np.maximum(strengths, WEAKEST))[:, None] * rows
    return deep(domain, Affine(matrix), profile, variance=4 * variance, lengthscale=np.sqrt(domain.dim) / 2)


def as_projection(domain: Domain, plain: Kernel) -> Kernel:
    """A plain kernel, with the inputs themselves as its directions."""
    component = plain.components[0]
    scales, variance = np.exp(component.log_lengthscale), np.exp(component.base.log_variance)
    return deep(domain, Affine(np.eye(domain.dim)), component.base.profile, variance=variance, lengthscale=scales)


def ridges(
    domain: Domain,
    variance: float,
    rows: np.ndarray,
    strengths: np.ndarray,
    count: int,
    groups: int,
    seed: int,
    profile: Profile | None = None,
) -> Kernel:
    """A sum of smooth functions of a few directions each: `count` directions in `groups` groups.

    Directions are drawn at random from the space of the `rows`. If a function has a direction for each named group of
    coordinates, each direction starts within its group: `e^{-λt} sin w·x` is a function of `w·x` and of `t`.
    """
    draws = np.random.default_rng(seed).normal(size=(count, len(rows)))
    matrix = (draws * np.sqrt(np.maximum(strengths, 1e-3 * WEAKEST))) @ rows
    members = [tuple(part.tolist()) for part in np.array_split(np.arange(count), groups)]
    named = np.repeat(np.arange(len(domain.layout)), [size for _, size in domain.layout])
    for member in members:
        if len(member) >= len(domain.layout):
            within = named == np.arange(len(member))[:, None] % len(domain.layout)
            # The rows may be zero in a group along which no variation was found: any direction will do there.
            unseen = ~np.any(within * matrix[list(member)], axis=1, keepdims=True)
            matrix[list(member)] = within * np.where(unseen, 1.0, matrix[list(member)])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    spread = np.sqrt(domain.dim) / 2
    return deep(domain, Affine(matrix), profile, members, 4 * variance / groups, spread)


def directions_of(linear: Kernel, field: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The directions that a trained projection uses for a field, strongest first, and their strengths."""
    component = next(c for c in linear.components if c.mixing is None or field in (None, *c.mixing.names))
    matrix = np.asarray(linear_map(component.embedding) / jnp.exp(component.log_lengthscale)[:, None])
    _, strengths, rows = np.linalg.svd(matrix, full_matrices=False)
    return rows, strengths / max(strengths[0], 1e-300)


def quadratic(domain: Domain, linear: Kernel, width: int, seed: int) -> Kernel:
    """The projection's map plus a network of squares, which can represent products of inputs such as `μ t`."""
    component = linear.components[0]
    matrix = linear_map(component.embedding)
    embedding = Residual(
        domain.dim, len(matrix), width=width, depth=1, activation="square", key=jax.random.PRNGKey(seed)
    )
    embedding = eqx.tree_at(lambda e: e.linear.matrix, embedding, matrix)
    return Kernel((eqx.tree_at(lambda c: c.embedding, component, embedding),))


def one_form(
    domain: Domain, variance: float, like: Embedding, points: Float[Array, "n d"], gradients: np.ndarray
) -> Kernel:
    """A smooth function of one quadratic form of all inputs, and of a few directions. Its map has the shape of `like`.

    The form `g·x + ½ xᵀHx` is the one whose gradients `g + Hx` are nearest to the given ones. The directions are the
    principal directions of the remainder. A solution such as `exp(-|x|²)` varies along all inputs and so needs a form.
    """
    if not isinstance(like, Residual):
        raise TypeError(f"Expected a linear map plus a network: got {type(like).__name__}.")
    x = np.asarray(jax.vmap(Normalisation(domain))(points))
    found = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), gradients, rcond=None)[0]
    slope, hessian = found[0], 0.5 * (found[1:] + found[1:].T)
    rest = gradients - slope - x @ hessian
    size, left = (float(np.linalg.norm(part)) or 1.0 for part in (slope + x @ hessian, rest))
    rows, strengths = principal_directions(domain, rest)
    latent, width = like.network.layers[-1].matrix.shape
    kept = min(latent - 1, len(rows))
    linear, outer = np.zeros((latent, domain.dim)), np.zeros((latent, width))
    unit = np.sqrt(len(x)) / size
    linear[0] = unit * slope
    linear[1 : 1 + kept] = (np.maximum(left / size * strengths, WEAKEST)[:, None] * rows)[:kept]
    curvatures, axes = np.linalg.eigh(hessian)
    strongest = np.argsort(-np.abs(curvatures))[:width]
    inner = np.array(like.network.layers[0].matrix)
    inner[: len(strongest)] = axes[:, strongest].T
    # The activation is half the square.
    outer[0, : len(strongest)] = unit * curvatures[strongest]
    matrices = lambda e: (e.linear.matrix, e.network.layers[0].matrix, e.network.layers[-1].matrix)
    embedding = eqx.tree_at(matrices, like, tuple(map(jnp.asarray, (linear, inner, outer))))
    return deep(domain, embedding, variance=4 * variance, lengthscale=np.sqrt(domain.dim) / 2)


def linear_map(embedding: Embedding) -> Float[Array, "h d"]:
    if not isinstance(embedding, Affine):
        raise TypeError(f"Expected a linear map: got {type(embedding).__name__}.")
    return embedding.layer.matrix


def on_inputs(domain: Domain, variance: float, profile: Profile | None = None, factor: float = 1.0) -> Kernel:
    """The plain kernel; its length scales start at `factor` times the usual distance of two points."""
    return ard(domain, profile, variance=4 * variance, lengthscale=factor * np.sqrt(domain.dim))


def symmetric(
    domain: Domain, variance: float, invariants: Invariants, profile: Profile | None = None, factor: float = 1.0
) -> Kernel:
    """A smooth function of what does not change under swaps and reflections of inputs.

    Most depends on the first sums of each orbit: the length scales of the others start longer, each `RISE` times the
    one before. From equal ones, training may end in a poor optimum (`docs/studies.md`).
    """
    spread = factor * np.sqrt(len(invariants.orbits)) * RISE ** (np.asarray(invariants.powers) - 1.0)
    return deep(domain, invariants, profile, variance=4 * variance, lengthscale=spread)


def on_each_input(domain: Domain, variance: float, profile: Profile | None = None) -> Kernel:
    return additive(domain, profile, variance=4 * variance / domain.dim)


def model_of(
    kernel: Kernel,
    observations: Sequence[Observation],
    noise: float = INITIAL_NOISE,
    engine: str = "closed-form",
) -> Model:
    """A model whose noise starts at `noise` times the size of the data, whatever noise the observations start from."""
    model, scales = Model(kernel, observations, engine=engine), data_scales(observations)
    return model.with_noise({name: jnp.log(noise * scales[name]) for name in model.log_noise})


def with_field(model: Model, names: Sequence[str]) -> Model:
    """The model of the only field of a problem, under its name."""
    if len(names) != 1 or model.kernel.fields:
        return model
    return eqx.tree_at(lambda m: m.kernel, model, model.kernel.of(*names))


def subsample(observations: Sequence[Observation], most: int, seed: int) -> tuple[Observation, ...]:
    """A random part of each observation: the same fraction of each, together about `most` points."""
    if sum(map(len, observations)) <= most:
        return tuple(observations)
    return tuple(taken(item, part) for item, part in zip(observations, kept(observations, most, seed)))


def kept(observations: Sequence[Observation], most: int, seed: int) -> list[np.ndarray]:
    """Which values `subsample` takes of each observation, as indices."""
    total = sum(map(len, observations))
    if total <= most:
        return [np.arange(len(item)) for item in observations]
    rng = np.random.default_rng(seed)
    counts = [max(1, round(len(item) * most / total)) for item in observations]
    return [np.sort(rng.choice(len(item), count, replace=False)) for item, count in zip(observations, counts)]
