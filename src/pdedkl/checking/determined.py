"""Does what was given determine `u`? A question about equations and places, not about values.

A smooth kernel that was fitted to what is visible continues it analytically and is sure of it, whether there is reason
to or not. So the fitted kernel cannot tell. Two other ways can:

- *The statement.* An equation of first order in time without an initial condition, a level that nothing fixes, a face
  without a condition: `lint` reads these from the operator and the conditions, in any dimension.
- *A plain kernel.* A kernel with a length scale of half the width of the domain is conditioned on many rows of all that
  is stated, whatever their values are. What is left of `u` inside shows what is not determined. Knowing `u` on all
  faces as well would determine it, if the equation can: where that leaves much less, conditions are missing. In more
  than four dimensions the rows would be too few to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..compilation import array_of
from ..domain import TIME, Domain
from ..equations import Nonlinear
from ..inference.engines import ClosedForm
from ..inference.parts import joined
from ..inference.staged import matrix_of, rows_at
from ..kernels import Kernel, ard
from ..model import Model
from ..observations import Observation
from ..operators import Operator, identity, parameters_of
from ..operators.base import Identity
from ..operators.rows import constant_in, names_in, value_of
from ..operators.tabulated import known_everywhere
from ..regions import Piece, Region
from ..sampling import draw

# The plain kernel can tell in up to this many dimensions.
MOST_DIMENSIONS = 4
# Rows for each condition and for each kind of face, for the equation, and places inside.
ROWS, SOURCE_ROWS, PLACES = 100, 250, 256
# Noise of the rows, relative to their prior standard deviations.
NOISE = 1e-4
# `u` is not determined if its standard deviation, relative to the prior, is above the first number and this many times
# what it would be with values on all faces; or if it is above the second number.
OPEN, TIMES, VAST = 5e-4, 10.0, 3e-2
# Where a function is unknown, only the second question is asked, and this is the number.
UNKNOWN = 0.5
# A field that its equations know only beside larger terms, such as a pressure, is uncertain by the noise of the rows.
# It is determined if rows with this fraction of the noise leave less than the second fraction of what these leave.
LESS_NOISE, FALLS = 0.1, 0.5

# Values on a face stand for all of it if they are spread over this fraction of its width.
COVERED = 0.4

# Points at which operators are applied to a constant.
FEW = 16


def level(name: str = "u") -> str:
    """What to say where nothing fixes the level of a field."""
    return (
        f"No condition fixes the level of {name}: if {name} is a solution, {name} plus a constant is one too. Give a "
        f"value of {name} somewhere, by Dirichlet on a face or at one point."
    )


Rows = list[tuple[Operator, np.ndarray]]
BuiltIn = Callable[[np.ndarray], np.ndarray]


def undetermined(problem: Any, data: Sequence[Observation], built_in: BuiltIn | None = None) -> tuple[str, ...]:
    """Sentences that say why `u` is not determined by a problem, or by data on a bare domain; none if it is.

    `built_in` says at which points `u` is zero whatever the data are.
    """
    if isinstance(problem, Domain):
        return _by_data(problem, data)
    reasons = [finding.text for finding in problem.lint() if finding.fatal]
    reasons += _without_values(problem, data, built_in)
    if not reasons and _can_tell(problem.domain, [s.operator for s in problem.statements]):
        places = inner_half(problem.domain) if problem.in_free_space else interior(problem.domain)
        # Of an unknown function, measurements with noise leave more.
        most = VAST if not problem.unknown_functions else UNKNOWN
        reasons += _left_open(problem.domain, _stated(problem), places, most=most)
    return tuple(reasons)


def plain_kernel(domain: Domain, variance: float = 1.0) -> Kernel:
    """The kernel that stands for everything that is not determined: it has no reason to be smoother or rougher."""
    return ard(domain, variance=variance, lengthscale=max(1.0, float(np.sqrt(domain.dim / 3))))


def level_is_free(rows: Rows, field: str | None = None) -> bool:
    """Whether all operators are zero on constants, so that the data do not change if a constant is added to `u`.

    With several fields it is the constant in one of them.
    """
    constant: Any = (lambda q: jnp.ones(())) if field is None else constant_in(field)
    for operator, points in rows:
        some = array_of(points[:: max(1, len(points) // FEW)][:FEW])
        for row in operator.rows if isinstance(operator, Nonlinear) else (operator,):
            if np.any(np.asarray(jax.vmap(row(constant))(some))):
                return False
    return True


def _by_data(domain: Domain, data: Sequence[Observation]) -> tuple[str, ...]:
    operators = [item.operator for item in data]
    if all(item.of_values for item in data) or parameters_of(operators):
        return ()
    if level_is_free([(item.operator, np.asarray(item.points)) for item in data]):
        return (level(),)
    if not _can_tell(domain, operators):
        return ()
    highest = max(operator.order for operator in operators)
    on_faces = [on_any_face(domain, np.asarray(item.points)) for item in data]
    boxed = all(bool(np.all(on)) for item, on in zip(data, on_faces) if item.operator.order < highest)
    places = np.concatenate([np.asarray(item.points) for item in data if item.operator.order == highest])[:PLACES]
    rows = [row for item in data for row in _as_stated(domain, item, item.operator.order == highest, boxed)]
    return tuple(_left_open(domain, rows, places, dense=boxed))


def _as_stated(domain: Domain, item: Observation, equation: bool, boxed: bool) -> Rows:
    """Many rows of what an observation stands for: the box of its points for the equation, else the faces they are on.

    How many values were observed is another question than what they are of. Where some lie on no face, any shape may be
    meant, and all points are taken as they are.
    """
    points, rng = np.asarray(item.points), np.random.default_rng(0)
    own = [(item.operator, points[:: max(1, len(points) // SOURCE_ROWS)])]
    if not boxed or not known_everywhere(item.operator):
        return own
    if equation:
        many = draw(domain.interior, SOURCE_ROWS, rng, "sobol")
        inside = np.all((many >= points.min(axis=0)) & (many <= points.max(axis=0)), axis=1)
        return [*own, (item.operator, many[inside])] if np.any(inside) else own
    found = [points]
    regions = [Region(domain, (piece,), "") for piece in domain_pieces(domain)]
    on = np.asarray([region.contains(points) for region in regions])
    for region, there in zip(regions, on):
        # A point of an edge lies on two faces, and shows neither.
        alone, many = points[there & (on.sum(axis=0) == 1)], draw(region, ROWS, rng, "sobol")
        if len(alone) > 1 and np.any(np.ptp(alone, axis=0) >= COVERED * (domain.upper - domain.lower)):
            found.append(many)
    return [(item.operator, np.concatenate(found))]


def domain_pieces(domain: Domain) -> list[Piece]:
    """All faces and spheres of a domain, those of time included."""
    found = []
    for name in domain.names:
        x = domain.coordinates(name)
        if domain.ball_at(x.indices[0]) is not None:
            found.append(Piece(x.indices))
        else:
            found += [Piece((i,), side) for i in x.indices for side in ("lower", "upper")]
    return found


def on_any_face(domain: Domain, points: np.ndarray) -> np.ndarray:
    """Which points lie on a face or a sphere."""
    return np.any([Region(domain, (piece,), "").contains(points) for piece in domain_pieces(domain)], axis=0)


def _can_tell(domain: Domain, operators: Sequence[Operator]) -> bool:
    known = not parameters_of(list(operators))
    return domain.dim <= MOST_DIMENSIONS and known and max(op.order for op in operators) <= 2


def _without_values(problem: Any, data: Sequence[Observation], built_in: BuiltIn | None) -> list[str]:
    """Conditions of the problem of which the data have no value."""
    return [
        f"The data have no values of the {s.label}: sample(…) needs points for it, or leave the condition out."
        for s in problem.statements
        if isinstance(s.where, Region)
        and not _holds(s, built_in)
        and not any(
            item.operator.order == s.operator.order and np.any(s.where.contains(np.asarray(item.points)))
            for item in data
        )
    ]


def _holds(statement: Any, built_in: BuiltIn | None) -> bool:
    if built_in is None or not isinstance(statement.operator, Identity) or not statement.where.pieces:
        return False
    return bool(np.all(built_in(draw(statement.where, FEW, np.random.default_rng(0), "sobol"))))


def _stated(problem: Any) -> Rows:
    """Many rows of everything that a problem states."""
    rng = np.random.default_rng(0)
    count = lambda s: SOURCE_ROWS if s.budget == "source" else ROWS
    return [
        (s.operator, draw(s.where, count(s), rng, "sobol") if isinstance(s.where, Region) else s.where[:SOURCE_ROWS])
        for s in problem.statements
    ]


def _left_open(domain: Domain, stated: Rows, places: np.ndarray, dense: bool = True, most: float = VAST) -> list[str]:
    """What the plain kernel finds: at most one sentence.

    If the rows are not dense, much may be left because they are few. So they are compared with as many on the faces.
    """
    rng, all_faces = np.random.default_rng(1), _faces(domain)
    fields = names_in([operator for operator, _ in stated])
    few = sum(len(points) for operator, points in stated if operator.order < max(op.order for op, _ in stated))
    count = ROWS if dense else min(ROWS, max(1, few // len(all_faces)))
    faces = np.concatenate([draw(face, count, rng, "sobol") for face in all_faces])
    found = []
    for name in fields or ("u",):
        of_field = value_of(name) if fields else identity
        left, with_faces = left_of_u(domain, stated, faces, places, of_field, fields)
        many_times = left > TIMES * with_faces
        is_open = (left > most or (left > OPEN and many_times)) if dense else (left > VAST and many_times)
        if most == UNKNOWN:
            is_open = left > most
        elif is_open and len(fields) > 1:
            less, _ = left_of_u(domain, stated, faces, places, of_field, fields, LESS_NOISE * NOISE)
            is_open = less > FALLS * left
        if is_open:
            found.append(
                f"The equation and conditions leave {name} open: {left:.1%} of a smooth function of its size would go "
                f"unnoticed ({with_faces:.1g} of it if {name} were known on all faces). Add conditions, or "
                f"measurements of {name}, where there are none."
            )
    return found


def left_of_u(
    domain: Domain,
    stated: Rows,
    faces: np.ndarray,
    places: np.ndarray,
    of_field: Operator = identity,
    fields: Sequence[str] = (),
    noise: float = NOISE,
) -> tuple[float, float]:
    """The standard deviation of `u` at the places, relative to the prior: with the stated rows, and with faces too."""
    operators, points = zip(*stated, (of_field, faces))
    kernel = of_each(plain_kernel(domain), fields)
    gram, cross = _covariances(kernel, operators, points, places, of_field)
    size = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(float).tiny))
    gram, cross = gram / np.outer(size, size), cross / size

    def left(n: int) -> float:
        factor = cholesky(gram[:n, :n] + noise**2 * np.eye(n), lower=True)
        explained = np.sum(solve_triangular(factor, cross[:, :n].T, lower=True) ** 2, axis=0)
        return float(np.sqrt(np.mean(np.maximum(1 - explained, 0.0))))

    return left(len(gram) - len(faces)), left(len(gram))


def _covariances(
    kernel: Kernel, operators: Sequence[Operator], points: Sequence[np.ndarray], places: np.ndarray, of_field: Operator
) -> tuple[np.ndarray, np.ndarray]:
    """The prior covariances of all rows, and those of `u` at the places with them."""
    engine = ClosedForm()
    pairs = [*zip(operators, points), (of_field, places)]
    sections = [rows_at(engine, kernel, operator, q) for operator, q in pairs]
    gram = matrix_of(*joined(engine, engine.parameters(kernel), sections))
    n = len(gram) - len(places)
    return gram[:n, :n], gram[n:, :n]


def interior(domain: Domain) -> np.ndarray:
    return draw(domain.interior, PLACES, np.random.default_rng(2), "sobol")


def inner_half(domain: Domain) -> np.ndarray:
    """Points of the middle half of every coordinate but time."""
    points = interior(domain)
    middle = 0.5 * (domain.lower + domain.upper)
    index = [i for name in domain.names if name not in TIME for i in domain.coordinates(name).indices]
    points[:, index] = middle[index] + 0.5 * (points[:, index] - middle[index])
    return points


def _faces(domain: Domain) -> list[Region]:
    """All faces and spheres of a domain, those of time included."""
    found = []
    for name in domain.names:
        x = domain.coordinates(name)
        found += [domain.initial(x), domain.final(x)] if name in TIME else [domain.boundary(x)]
    return found


def widened(model: Model, domain: Domain, variance: float) -> Model:
    """The model with the plain kernel added, so that error bars are as wide as what is not determined."""
    wide = of_each(plain_kernel(domain, variance), model.kernel.fields)
    return eqx.tree_at(lambda m: m.kernel, model, model.kernel + wide)


def of_each(kernel: Kernel, fields: Sequence[str]) -> Kernel:
    """The same kernel for each of several fields, independent of the others."""
    parts = [kernel.of(name) for name in fields] or [kernel]
    return Kernel(tuple(part for one in parts for part in one.components))
