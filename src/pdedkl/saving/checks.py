"""Check that the parts of a loaded model fit each other, as far as type annotations cannot say it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..domain import Coordinates
from ..embeddings import MLP, LatentJet, Normalisation
from ..inference import Posterior
from ..inference.calibration import Calibration, Probes
from ..inference.engines import FEW_TERMS, Stacked, integral_of
from ..inference.estimates import unknowns_of
from ..inference.iterative import Iterative
from ..inference.solver import Factorised, Solver
from ..kernels import BaseKernel, Component, Kernel
from ..model import ENGINES, Model
from ..observations import Observation, _check_operator_at
from ..operators import Diffusion, Directional, Divergence, Integral, Partial, Shift
from ..operators.base import Sum
from ..operators.coefficients import Entries
from ..operators.normals import OutwardNormal
from ..operators.tensors import ConstantTensor
from ..operators.vanishing import Vanishing
from ..verdicts import CAUSES, STATUSES, Comparison, Verdict
from .fields import MisfitError

LARGEST = 1e200  # the largest number allowed: products of larger ones overflow
HARMLESS = 1e30  # numbers up to this size, and down to its inverse, need no trial prediction


def check_object(made: Any, where: str) -> None:
    """Check one object. Its parts have been checked before."""
    if problem := _problem_of(made):
        raise MisfitError(f"{where}: {problem}")


def _problem_of(made: Any) -> str | None:
    match made:
        case Coordinates():
            return _coordinates(made.indices, made.layout, made.scalar)
        case Partial():
            if len(made.label) != len(made.indices):
                return f"{len(made.indices)} indices and {len(made.label)} labels"
            return _coordinates(made.indices, made.space, False)
        case Directional() if not callable(made.vector) and made.vector.shape != (len(made.x),):
            return f"a direction over {len(made.x)} coordinates has shape {made.vector.shape}"
        case Entries() if len(made.entries) != int(np.prod(made.shape, dtype=object)) or not made.entries:
            return f"{len(made.entries)} coefficients for the shape {made.shape}"
        case Vanishing() if not _proper(made):
            return f"faces {made.faces} and spheres {made.spheres} that are none"
        case OutwardNormal():
            return _normal(made)
        case Shift() if made.move.shape != (made.x.dim,):
            return f"a move of shape {made.move.shape} of points with {made.x.dim} coordinates"
        case Integral() if made.nodes.shape != (made.weights.shape[0], len(made.indices)):
            return f"{made.weights.shape[0]} weights for nodes of shape {made.nodes.shape}"
        case Diffusion() | Divergence():
            return _tensor(made.a, len(made.x))
        case Sum(terms=()) | MLP(layers=()) | Kernel(components=()):
            return f"an empty {type(made).__name__}"
        case Normalisation() if made.centre.shape != (sum(size for _, size in made.layout),):
            return f"{made.centre.shape[0]} coordinates for the layout {made.layout}"
        case Normalisation() if made.names and len(made.names) != made.centre.shape[0]:
            return f"{made.centre.shape[0]} coordinates with the names {made.names}"
        case BaseKernel() if len(made.groups) != made.log_variance.shape[0] or not made.groups:
            return f"{made.log_variance.shape[0]} variances for the groups {made.groups}"
        case Calibration():
            return _calibration(made)
        case Observation(noise=jax.Array()) if not np.all(np.asarray(made.noise) >= 0):
            return "a noise level below zero"
        case Observation(weights=jax.Array()) if not np.all(np.asarray(made.weights) > 0):
            return "a weight that is not positive"
        case Verdict() if made.status not in STATUSES:
            return f"the status {made.status!r} is none of {', '.join(STATUSES)}"
        case Verdict() if made.ruled_by not in ("", *CAUSES):
            return f"the cause {made.ruled_by!r} is none of {', '.join(CAUSES)}"
        case Verdict() if made.error_u < 0:
            return f"an error of u below zero, {made.error_u}"
        case Comparison():
            return _comparison(made)
        case Component():
            return _component(made)
        case Model() if made.engine not in ENGINES:
            return f"the engine {made.engine!r} is none of {', '.join(ENGINES)}"
    return None


def _comparison(made: Comparison) -> str | None:
    """What is wrong, unless there are points, a coverage is a fraction, and no size or error is negative."""
    sizes = (made.size, made.error, made.claimed, made.z_rms, made.coverage, made.worst_error)
    if made.points < 1 or made.coverage > 1 or any(size < 0 for size in sizes):
        return f"a comparison of {made.points} values whose errors and coverage do not fit"
    return None


def _calibration(made: Calibration) -> str | None:
    factors, probes = np.asarray(made.factors), made.probes
    causes = 1 if probes is None else len(probes.counts)
    if len(factors) != len(made.causes) or len(factors) != causes:
        return f"{len(factors)} factors of {len(made.causes)} causes, with probes for {causes}"
    if probes is not None and not _fit(probes):
        return f"probes whose numbers do not fit: {probes.counts}"
    return None if np.all((factors > 0) & (factors < HARMLESS)) else f"a factor that is not between 0 and {HARMLESS:g}"


def _fit(probes: Probes) -> bool:
    """Whether there are as many probes as the arrays have columns, and an operator for each list of points."""
    count = sum(q.shape[0] for q in probes.points)
    same = len(probes.operators) == len(probes.points) and len({q.shape[1] for q in probes.points}) == 1
    return same and min(probes.counts) > 0 and count == sum(probes.counts) == probes.factor.shape[0]


def _coordinates(indices: tuple[int, ...], layout: tuple[tuple[str, int], ...], scalar: bool) -> str | None:
    dim = sum(size for _, size in layout)
    if not indices or not all(0 <= i < dim for i in indices) or (scalar and len(indices) != 1):
        return f"indices {indices} of points with {dim} coordinates"
    return None


def _normal(made: OutwardNormal) -> str | None:
    """What is wrong, unless all faces and balls belong to the coordinates of the normal."""
    known = set(made.x.indices)
    fit = all(len(indices) == len(center) and set(indices) <= known for indices, center, _ in made.balls)
    if not (made.faces or made.balls) or not fit or not {face[0] for face in made.faces} <= known:
        return f"faces and balls that are not of the coordinates {made.x.indices}"
    return None


def _tensor(a: Any, k: int) -> str | None:
    """What is wrong, unless `a` is a function, a number, a diagonal, or a matrix with its directions."""
    if not isinstance(a, ConstantTensor):
        return None if callable(a) else f"a coefficient that is a {type(a).__name__}"
    if a.value.shape not in {(), (k,), (k, k)}:
        return f"a coefficient of shape {a.value.shape} over {k} coordinates"
    if a.value.ndim < 2:
        return None if a.directions is None and a.weights is None else "directions without a matrix"
    if a.directions is None or a.weights is None or a.directions.shape != (*a.weights.shape, k) or a.weights.ndim != 1:
        return f"a matrix over {k} coordinates without directions and weights that fit"
    return None


def _proper(made: Vanishing) -> bool:
    """Whether there is a face or a sphere, and all of them have a positive size."""
    faces = all(
        i >= 0 and lower < upper and sides in {("lower",), ("upper",), ("lower", "upper")}
        for i, lower, upper, sides in made.faces
    )
    spheres = all(r > 0 and len(i) == len(c) > 0 and min(i) >= 0 for i, c, r in made.spheres)
    return faces and spheres and bool(made.faces or made.spheres)


def _component(made: Component) -> str | None:
    d, h = made.normalisation.centre.shape[0], made.log_lengthscale.shape[0]
    if made.embedding.input_dim not in (None, d):
        return f"an embedding of {made.embedding.input_dim} inputs over {d} coordinates"
    try:
        shape = jax.eval_shape(made.embedding, jax.ShapeDtypeStruct((d,), float)).shape
    except (TypeError, ValueError) as error:
        return f"layers that do not fit each other ({str(error).splitlines()[0]})"
    if shape != (h,):
        return f"an embedding to shape {shape} with {h} length scales"
    if made.multiplier is not None:
        of = [i for i, *_ in made.multiplier.faces] + [i for sphere in made.multiplier.spheres for i in sphere[0]]
        if max(of) >= d:
            return f"a multiplier of coordinate {max(of)} of {d}"
    if not all(0 <= i < h for group in made.base.groups for i in group):
        return f"groups {made.base.groups} of {h} latent coordinates"
    return None


def check_posterior(posterior: Posterior) -> None:
    """Check that kernel, observations, model and the solved system fit each other."""
    model, observations = posterior.model, posterior.observations
    if not observations:
        raise MisfitError("there is no observation")
    if len({component.normalisation.layout for component in model.kernel.components}) > 1:
        raise MisfitError("the components of the kernel are over different domains")
    model.check(observations)
    n = sum(map(len, observations))
    if posterior.alpha.shape != (n,):
        raise MisfitError(f"there are {n} values and the weights `alpha` have shape {posterior.alpha.shape}")
    for name, array in _rows_of(posterior.solver):
        if array.shape[0] != n:
            raise MisfitError(f"there are {n} values and `{name}` of the solver has shape {array.shape}")
    if (calibration := posterior.calibration) is not None and (probes := calibration.probes) is not None:
        for operator, points in zip(probes.operators, probes.points):
            model.check_operator(operator)
            if points.shape[1] != model.kernel.dim:
                raise MisfitError(f"probes have points with {points.shape[1]} coordinates, not {model.kernel.dim}")
        if probes.solved.shape[0] != n:
            raise MisfitError(f"there are {n} values and `solved` of the probes has shape {probes.solved.shape}")
    if (numbers := posterior.estimates) is not None:
        if numbers.solved.shape[0] != n or numbers.names != tuple(sorted(unknowns_of(posterior))):
            raise MisfitError(f"there are {n} values and estimates of {numbers.names} from {numbers.solved.shape[0]}")
        if numbers.covariance.shape[0] != len(numbers.names) or np.any(np.diagonal(numbers.covariance) < 0):
            raise MisfitError("the covariance of the estimates does not fit their names")
    if model.engine == "closed-form":
        _check_jets(posterior)


def _rows_of(solver: Solver) -> list[tuple[str, Any]]:
    """The arrays of a solver with one row for each value."""
    if isinstance(solver, Iterative):
        return [("basis", solver.preconditioner.basis), ("scale", solver.scale)]
    return [("factor", solver.factor)] if isinstance(solver, Factorised) else []


def _check_jets(posterior: Posterior) -> None:
    widths = [component.latent_dim for component in posterior.model.kernel.components]
    if len(posterior.sections) != len(posterior.observations):
        raise MisfitError(f"{len(posterior.observations)} observations have {len(posterior.sections)} lists of jets")
    for item, jets in zip(posterior.observations, posterior.sections):
        terms = len(item.operator.local_terms())
        each: list[Any] = [(len(item), width) for width in widths]
        if terms > FEW_TERMS or integral_of(item.operator) is not None:
            each = [(len(item), terms, width) for width in widths]
        elif terms > 1:
            each = [[shape] * terms for shape in each]
        if (shapes := _shapes(jets)) != (wanted := each):
            raise MisfitError(f"the jets of observation {item.name!r} need shapes {wanted} and have {shapes}")


def _shapes(jets: Any) -> Any:
    """The shapes of jets in tuples; `None` for anything else in their place."""
    if isinstance(jets, tuple):
        return [_shapes(part) for part in jets]
    if isinstance(jets, Stacked):
        jets = jets.jets
    return jets.z.shape if isinstance(jets, LatentJet) else None


def check_traced(posterior: Posterior) -> None:
    """Trace every operator, and the mean, at one point, to find shapes that do not fit."""
    for item in posterior.observations:
        _check_operator_at(item.operator, np.asarray(item.points)[0])
    if posterior.calibration is not None and posterior.calibration.probes is not None:
        for operator, points in zip(posterior.calibration.probes.operators, posterior.calibration.probes.points):
            _check_operator_at(operator, np.asarray(points)[0])
    if (shape := jax.eval_shape(posterior.model.mean, posterior.observations[0].points[0]).shape) != ():
        raise ValueError(f"the prior mean needs to be one number at each point and has shape {shape}")


def check_numbers(posterior: Posterior, tensors: dict[str, np.ndarray]) -> None:
    """If some numbers are so large or small that they could overflow, check that one prediction is finite."""
    extreme = [name for name, array in tensors.items() if _extreme(name, np.abs(array))]
    for name in extreme:
        if np.abs(tensors[name]).max() > LARGEST:
            raise MisfitError(f"the array {name!r} needs numbers up to {LARGEST:g} and holds larger ones")
    if extreme:
        found = posterior.predict(posterior.observations[0].points[:1])
        if not (abs(found.mean[0]) < LARGEST and found.variance[0] < LARGEST):
            raise MisfitError(f"a prediction with its numbers is {found.mean[0]} ± {found.std[0]}")


def _extreme(name: str, sizes: np.ndarray) -> bool:
    """Whether numbers of this size could overflow.

    Logarithms are recognised by their names, and coefficients may be logarithms. Solving divides by the diagonal of a
    factor, so its diagonal must not be too small.
    """
    if sizes.size == 0:
        return False
    field = name.rpartition(".")[2]
    logarithm = field == "raw" or any(part in name for part in ("log_", "coefficients."))
    small = name.endswith(("solver.factor", "probes.factor")) and np.diagonal(sizes).min() < 1 / HARMLESS
    return bool(sizes.max() > (np.log(HARMLESS) if logarithm else HARMLESS) or small)
