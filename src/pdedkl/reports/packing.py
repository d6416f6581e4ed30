"""A posterior as numbers that a web page can evaluate.

The covariance of `u(q)` with the observed `A_j u(q_j)` is, for each group of latent coordinates, with `δ = z − z_j` in
units of the length scales and the latent jet `(z_j, c_j, β_j, G_j)` of the row,

    σ² (c_j φ(s) + φ'(s) (tr G_j − β_j·δ) + φ''(s) δᵀG_jδ),   s = |δ|²/2.

`z_j`, `c_j`, `β_j` and `G_j` are stored for every row, or once if all rows of an observation agree. Only the part of
`G_j` inside the group is needed. If one rotation makes all `G_j` diagonal, the rotated ones are stored. Operators with
constant coefficients on linear embeddings then need `h` numbers for all rows together, and a pair costs `O(h)`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from ..embeddings import (
    MLP,
    Affine,
    Bottleneck,
    Embedding,
    IdentityEmbedding,
    Invariants,
    LatentJet,
    Linear,
    Normalisation,
    Residual,
)
from ..inference import Posterior
from ..inference.calibration import Probes
from ..inference.engines import ClosedForm, Jets, terms_of
from ..inference.rows import EPSILON, values_of_fields
from ..inference.rows import ROUNDING as VARIANCE_ROUNDING
from ..inference.solver import Factorised
from ..kernels import Component, Kernel, Matern, Profile, RationalQuadratic, SquaredExponential
from ..means import ConstantMean, Mean, NetworkMean, ZeroMean
from ..operators import Operator, Row, Vanishing

# The most bytes for the arrays of one page, before base64 makes them a third larger: enough for a factor of 1,500 rows.
BYTES = 9_500_000
LEAST_RANK = 32
# Random points on which the low-rank form of the variance is chosen, and fresh ones on which it is checked.
SEEN, CHECKED = 3000, 200
# Off-diagonal entries below this, relative to the largest diagonal entry, count as rounding.
ROUNDING = 1e-13

Packed = dict[str, Any]


class NotShownError(ValueError):
    """The model has a part that a page cannot evaluate, such as a Python function of the user."""


class Arrays:
    """Arrays of 64-bit numbers, one after the other. A reference to an array is its position and shape."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._length = 0

    def add(self, array: Any) -> Packed:
        part = np.ascontiguousarray(array, dtype="<f8")
        self._parts.append(part.reshape(-1))
        self._length += part.size
        return {"at": self._length - part.size, "shape": list(part.shape)}

    @property
    def nbytes(self) -> int:
        return 8 * self._length

    def base64(self) -> str:
        return base64.b64encode(np.concatenate(self._parts).tobytes()).decode("ascii")


def pack(posterior: Posterior, most_bytes: int = BYTES) -> tuple[Packed, str]:
    """The data with which a page computes mean and standard deviation of `u`: a JSON object, and arrays in base64.

    Raises `NotShownError` if the model has a part that a page cannot evaluate.
    """
    arrays = Arrays()
    kernel, probes = posterior.model.kernel, _probes(posterior)
    # The probes of the calibration are rows like the data, with no weight in the mean.
    sections = _sections(posterior, probes)
    sizes = [len(item) for item in posterior.observations] + ([len(q) for q in probes.points] if probes else [])
    # An operator that evaluates u at several places has rows at each place; their covariances are added.
    places = [
        (to, n) for to, n, rows in zip(np.cumsum([0, *sizes]).tolist(), sizes, sections) for _ in terms_of(rows[0])
    ]
    begins = np.cumsum([0, *(n for _, n in places)]).tolist()
    normalisation = kernel.components[0].normalisation
    data: Packed = {
        "rows": sum(sizes),
        "parts": [{"to": to, "from": begin, "n": n} for (to, n), begin in zip(places, begins)],
        "centre": np.asarray(normalisation.centre).tolist(),
        "scale": np.asarray(normalisation.scale).tolist(),
        "mean": _prior_mean(posterior.model.mean, normalisation, arrays),
        "alpha": arrays.add(np.pad(np.asarray(posterior.alpha), (0, sum(sizes) - len(posterior.alpha)))),
        "fields": list(kernel.fields),
        "components": [
            _component(component, [jet for rows in sections for jet in terms_of(rows[number])], arrays)
            | {"shares": _shares(component, kernel.fields)}
            for number, component in enumerate(kernel.components)
        ],
    }
    numbers = _numbers(posterior, sum(sizes), arrays)
    data["deviation"] = _deviation(posterior, probes, arrays, most_bytes - arrays.nbytes) | _scales(posterior) | numbers
    return data, arrays.base64()


def _shares(component: Component, fields: Sequence[str]) -> list[float] | None:
    """How the process of a component enters each of the fields; `None` where there is one without a name."""
    mixing = component.mixing
    return None if mixing is None else [float(mixing.weight(name)) for name in fields]


def _probes(posterior: Posterior) -> Probes | None:
    return None if posterior.calibration is None else posterior.calibration.probes


def _numbers(posterior: Posterior, rows: int, arrays: Arrays) -> Packed:
    """`(K⁻¹ J R)ᵀ` with `R Rᵀ = cov(θ)`: its product with the covariances of a point is what learned numbers add."""
    if (found := posterior.estimates) is None:
        return {}
    matrix = (np.asarray(found.solved) @ found.root).T
    return {"numbers": arrays.add(np.pad(matrix, ((0, 0), (0, rows - matrix.shape[1]))))}


def _scales(posterior: Posterior) -> Packed:
    """Squared factors: one for each probe, and one for the variance that no probe explains."""
    calibration, probes = posterior.calibration, _probes(posterior)
    squares = [1.0] if calibration is None else (np.asarray(calibration.factors) ** 2).tolist()
    counts = () if probes is None else probes.counts
    each = [square for square, count in zip(squares, counts) for _ in range(count)]
    return {"probes": each, "rest": squares[-1], "rounding": VARIANCE_ROUNDING, "epsilon": EPSILON}


def _sections(posterior: Posterior, probes: Probes | None) -> list[tuple[Jets, ...]]:
    """The latent jets of all observations and probes, in order; for each those of every component."""
    model = posterior.model
    rows = eqx.filter_jit(ClosedForm().rows)
    given = [(item.operator, item.points) for item in posterior.observations]
    more = list(zip(probes.operators, probes.points)) if probes else []
    if high := [str(operator) for operator, _ in (*given, *more) if operator.order > 2]:
        raise NotShownError(f"the operator {high[0]} has an order above two")
    known = list(posterior.sections) if model.engine == "closed-form" else []
    found: list[Any] = [rows(model.kernel, model.bound(op), q) for op, q in (*given, *more)[len(known) :]]
    return known + found


def _prior_mean(mean: Mean, normalisation: Normalisation, arrays: Arrays) -> Packed:
    """A constant, or a network with the number and the function that it is multiplied by."""
    if type(mean) is ZeroMean:
        return {"constant": 0.0, "network": None}
    if type(mean) is ConstantMean:
        return {"constant": float(mean.value), "network": None}
    if type(mean) is NetworkMean:
        if not eqx.tree_equal(mean.normalisation, normalisation):
            raise NotShownError("the network of the prior mean is over another domain than the kernel")
        found = {"constant": float(mean.size), "multiplier": _multiplier(mean.multiplier)}
        return found | {"network": _embedding(mean.network, arrays)}
    raise NotShownError(f"the prior mean {type(mean).__name__} cannot be evaluated in a page")


def _component(component: Component, jets: Sequence[LatentJet], arrays: Arrays) -> Packed:
    embedding = _embedding(component.embedding, arrays)
    groups = zip(component.base.groups, np.exp(component.base.log_variance))
    plain = embedding["kind"] == "identity"
    return {
        "embedding": embedding,
        "lengthscale": np.exp(component.log_lengthscale).tolist(),
        "profile": _profile(component.base.profile),
        "multiplier": _multiplier(component.multiplier),
        "terms": [_term(np.asarray(group), float(s), jets, plain, arrays) for group, s in groups],
    }


def _multiplier(multiplier: Vanishing | None) -> Packed | None:
    if multiplier is None:
        return None
    faces = [{"input": i, "lower": a, "upper": b, "sides": list(sides)} for i, a, b, sides in multiplier.faces]
    spheres = [{"inputs": list(i), "centre": list(c), "radius": r} for i, c, r in multiplier.spheres]
    return {"faces": faces, "spheres": spheres}


def _term(members: np.ndarray, variance: float, jets: Sequence[LatentJet], plain: bool, arrays: Arrays) -> Packed:
    """One group of latent coordinates. If these are inputs themselves, `inputs` lists them; otherwise it is `None`."""
    z = np.concatenate([np.asarray(jet.z)[:, members] for jet in jets])
    drifts = [None if jet.drift is None else np.asarray(jet.drift)[:, members] for jet in jets]
    diffusions = [_of_group(jet.diffusion, members) for jet in jets]
    rotation, diffusions = _diagonalised(diffusions)
    if rotation is not None:
        z, drifts = z @ rotation, [None if drift is None else drift @ rotation for drift in drifts]
    parts = [
        {
            "c": _shared(None if jet.c is None else np.asarray(jet.c)[:, None], arrays),
            "drift": _shared(drift, arrays),
            "diffusion": _shared(_lower(diffusion), arrays),
            "full": diffusion is not None and diffusion.ndim == 3,
        }
        for jet, drift, diffusion in zip(jets, drifts, diffusions)
    ]
    return {
        "members": members.tolist(),
        "inputs": members.tolist() if plain and rotation is None else None,
        "variance": variance,
        "rotation": None if rotation is None else arrays.add(rotation.T),
        "z": arrays.add(z),
        "parts": parts,
    }


def _of_group(diffusion: Any, members: np.ndarray) -> np.ndarray | None:
    if diffusion is None:
        return None
    G = np.asarray(diffusion)
    G = G[:, members] if G.ndim == 2 else G[:, members[:, None], members[None, :]]
    return G[:, :, 0] if G.ndim == 3 and len(members) == 1 else G


def _diagonalised(diffusions: list[np.ndarray | None]) -> tuple[np.ndarray | None, list[np.ndarray | None]]:
    """One rotation `V` for which all `VᵀGV` are diagonal, and these diagonals. If there is none, `None` and the input.

    If the matrices have common eigenvectors, these are also eigenvectors of every weighted sum of them.
    """
    found = [G for G in diffusions if G is not None]
    if all(G.ndim == 2 for G in found):
        return None, diffusions
    full = np.concatenate([G if G.ndim == 3 else G[:, :, None] * np.eye(G.shape[1]) for G in found])
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(full))
    _, V = np.linalg.eigh(np.tensordot(weights, full, 1))
    rotated = V.T @ full @ V
    diagonal = np.diagonal(rotated, axis1=1, axis2=2)
    off = rotated - diagonal[:, :, None] * np.eye(len(V))
    if np.max(np.abs(off)) > ROUNDING * np.max(np.abs(diagonal)):
        return None, diffusions
    pieces = iter(np.split(diagonal, np.cumsum([len(G) for G in found])[:-1]))
    return V, [None if G is None else next(pieces) for G in diffusions]


def _lower(diffusion: np.ndarray | None) -> np.ndarray | None:
    """The lower triangles, with entries off the diagonal doubled: `δᵀGδ = Σ_{a ≥ b} entry_ab δ_a δ_b`."""
    if diffusion is None or diffusion.ndim == 2:
        return diffusion
    k = diffusion.shape[1]
    rows, columns = np.tril_indices(k)
    return diffusion[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)


def _shared(rows: np.ndarray | None, arrays: Arrays) -> Packed | None:
    """Rows as an array; only the first row if all are the same up to rounding."""
    if rows is None:
        return None
    same = np.max(np.abs(rows - rows[0])) <= 4 * np.finfo(float).eps * np.max(np.abs(rows))
    return arrays.add(rows[:1] if same else rows)


def _profile(profile: Profile) -> Packed:
    if type(profile) is SquaredExponential:
        return {"kind": "squared-exponential"}
    if type(profile) is RationalQuadratic:
        return {"kind": "rational-quadratic", "alpha": float(jnp.exp(profile.log_alpha))}
    if type(profile) is Matern:
        return {"kind": "matern", "p": profile.p}
    raise NotShownError(f"the base kernel {type(profile).__name__} is not part of pdedkl")


def _embedding(embedding: Embedding, arrays: Arrays) -> Packed:
    if type(embedding) is IdentityEmbedding:
        return {"kind": "identity"}
    if type(embedding) is Affine:
        return {"kind": "affine", "layer": _layer(embedding.layer, arrays)}
    if type(embedding) is MLP:
        layers = [_layer(layer, arrays) for layer in embedding.layers]
        return {"kind": "mlp", "activation": embedding.activation.name, "layers": layers}
    if type(embedding) is Residual:
        network = _embedding(embedding.network, arrays)
        return {"kind": "residual", "layer": _layer(embedding.linear, arrays), "network": network}
    if type(embedding) is Bottleneck:
        network = _embedding(embedding.network, arrays)
        return {"kind": "bottleneck", "layer": _layer(embedding.projection, arrays), "network": network}
    if type(embedding) is Invariants:
        orbits = [{"inputs": list(o), "even": even} for o, even in zip(embedding.orbits, embedding.even)]
        return {"kind": "invariants", "orbits": orbits, "degrees": list(embedding.degrees)}
    raise NotShownError(f"the embedding {type(embedding).__name__} is not part of pdedkl")


def _layer(layer: Linear, arrays: Arrays) -> Packed:
    offset = None if layer.offset is None else arrays.add(layer.offset)
    return {"matrix": arrays.add(layer.matrix), "offset": offset}


def _deviation(posterior: Posterior, probes: Probes | None, arrays: Arrays, most_bytes: int) -> Packed:
    """The variance is `k(q, q) − |L⁻¹ k|²`: with all of `L` if it fits, else with the most important directions.

    These are the leading left singular vectors `U` of `L⁻¹ k` over random points of the domain. Without the other
    directions the data explain less, so `k(q, q) − |Uᵀ L⁻¹ k|²` is never below the variance. The covariances with the
    probes follow: they are further rows of the factor, or of the matrix that is multiplied with `k`.
    """
    if not isinstance(posterior.solver, Factorised):
        raise NotShownError("there are too many values to store their Gram matrix")
    L = np.asarray(posterior.solver.factor)
    n = len(L)
    solved, corner = (np.zeros((n, 0)), np.zeros((0, 0))) if probes is None else (probes.solved, probes.factor)
    solved, corner = np.asarray(solved), np.asarray(corner)
    total = n + len(corner)
    if 4 * total * (total + 1) <= most_bytes:
        whole = np.block([[L, np.zeros((n, len(corner)))], [(L.T @ solved).T, corner]])
        return {"kind": "exact", "data": n, "factor": arrays.add(whole[np.tril_indices(total)])}
    rank = min(n, max(LEAST_RANK, most_bytes // (8 * total) - len(corner)))
    fields = values_of_fields(posterior)
    each = [solve_triangular(L, _with_data(posterior, A, SEEN + CHECKED, seed=0).T, lower=True) for A in fields]
    seen, fresh = np.hstack([part[:, :SEEN] for part in each]), np.hstack([part[:, SEEN:] for part in each])
    _, vectors = np.linalg.eigh(seen @ seen.T)
    U = vectors[:, ::-1][:, :rank]
    root = solve_triangular(L, U, lower=True, trans="T").T
    prior = np.concatenate([_prior_variance(posterior, A, SEEN + CHECKED, seed=0)[SEEN:] for A in fields])
    exact = np.sqrt(np.maximum(prior - np.sum(fresh**2, axis=0), 0.0))
    upper = np.sqrt(np.maximum(prior - np.sum((U.T @ fresh) ** 2, axis=0), 0.0))
    ratio = float(np.median(upper / np.maximum(exact, 1e-300)))
    below = solve_triangular(corner, np.hstack([-solved.T, np.eye(len(corner))]), lower=True) if len(corner) else None
    rows = np.pad(root, ((0, 0), (0, len(corner))))
    matrix = rows if below is None else np.vstack([rows, below])
    return {"kind": "low-rank", "data": U.shape[1], "rank": len(matrix), "ratio": ratio, "root": arrays.add(matrix)}


def _prior_variance(posterior: Posterior, of_field: Operator, count: int, seed: int) -> np.ndarray:
    """The prior variance of a field at random points of the domain."""
    kernel = posterior.model.kernel
    name = of_field.names[0] if isinstance(of_field, Row) else None
    own = (lambda q: kernel(q, q)) if name is None else (lambda q: kernel.between(name, q, name, q))
    return np.asarray(jax.jit(jax.vmap(own))(_places(kernel, count, seed)))


def _places(kernel: Kernel, count: int, seed: int) -> Any:
    box = kernel.components[0].normalisation
    unit = np.random.default_rng(seed).uniform(-1.0, 1.0, (count, kernel.dim))
    return jnp.asarray(np.asarray(box.centre) + unit / np.asarray(box.scale))


def _with_data(posterior: Posterior, of_field: Operator, count: int, seed: int) -> np.ndarray:
    """The covariances of a field at random points of the domain with all rows."""
    engine, kernel = posterior.engine, posterior.model.kernel
    points = _places(kernel, count, seed)

    @eqx.filter_jit
    def block(posterior: Posterior, points: Any) -> Any:
        rows = engine.rows(kernel, of_field, points)
        parts = [engine.block(engine.parameters(kernel), rows, data) for data in posterior.sections]
        return jnp.concatenate(parts, axis=1)

    return np.asarray(block(posterior, points))
