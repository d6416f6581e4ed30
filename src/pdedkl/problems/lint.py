"""What a reader of a problem would ask before solving it: conditions that are missing, contradict or say nothing.

Everything is read from the operator's symbol and from the conditions: along which coordinates the equation is of second
order, along which of first, and which faces have a condition. A finding is *fatal* if `u` is not determined then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..checking.determined import domain_pieces, level, level_is_free, on_any_face
from ..compilation import array_of
from ..domain import TIME, Domain
from ..operators import Operator, parameters_of
from ..operators.base import Identity
from ..operators.derivatives import Divergence
from ..operators.offset import has_offset
from ..operators.rows import names_in
from ..operators.tensors import ConstantTensor, tensor_at
from ..operators.unknown import InFull
from ..regions import Piece, Region
from ..sampling import draw
from .functions import FAILURES, evaluate

# Points at which coefficients are read, and values compared.
PLACES = 32
# An exact solution is compared in up to this many dimensions: its derivatives take time. `verify` has no limit.
MOST_DIMENSIONS = 200
# Coefficients below this fraction of the largest one, in units of the domain, count as zero.
ABSENT = 1e-12
# Rules read coefficients along all coordinates at once: problems with more coordinates than this are not read.
MOST_COORDINATES = 3000
# Values that differ by more than this fraction of their size contradict each other.
DIFFERENT = 1e-6
# A function jumps if it still changes by this fraction of its size over `2^-HALVINGS` of the domain. Changes are looked
# for between this many points of a line.
JUMP, HALVINGS, STEPS = 1e-3, 40, 65


class Finding(NamedTuple):
    """One finding: its name, by which it can be silenced, a sentence with the remedy, and whether `u` is left open."""

    name: str
    text: str
    fatal: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


class ProblemWarning(UserWarning):
    """A problem may not be what was meant; `Problem(…, silenced=[name])` silences a finding."""


class Coefficients(NamedTuple):
    """Coefficients of an operator at points, in units in which the domain has half-width one.

    `first[:, i]` is the coefficient of `∂_i`, `second[:, i]` that of `∂_i²`.
    """

    first: np.ndarray
    second: np.ndarray


def findings(problem: Any) -> list[Finding]:
    """All findings about a problem, the fatal ones first."""
    found: list[Finding] = []
    for rule in RULES if problem.domain.dim <= MOST_COORDINATES else ():
        try:
            found += rule(problem)
        except FAILURES:  # a function that fails at some point is reported where its values are needed
            continue
    return sorted(found, key=lambda finding: not finding.fatal)


def in_free_space(problem: Any) -> bool:
    """Whether time has its condition and no face of space has any: a problem in all of space, seen through a box.

    Then `u` is determined in the middle, and is extrapolated near the faces.
    """
    if not _readable(problem) or not (times := _times(problem.domain)):
        return False
    closed = _closed(problem)
    in_time = any(piece.indices[0] in times for piece in closed)
    return in_time and not any(piece.indices[0] not in times for piece in closed) and not _own_points(problem)


def _level(problem: Any) -> Iterator[Finding]:
    rows = [(s.operator, _places(s.where)) for s in problem.statements]
    if parameters_of([s.operator for s in problem.statements]):
        return
    for name in problem.fields if len(problem.fields) > 1 else (None,):
        if level_is_free(rows, name):
            yield Finding("level", level(name or "u"), fatal=True)


def _fields(problem: Any) -> Iterator[Finding]:
    """Fields without an equation."""
    inside = [s.operator for s in problem.statements if s.budget == "source"]
    if len(problem.fields) <= 1:
        return
    # An initial state, say, is in a condition together with another field.
    rows = [s.operator for s in problem.statements if len(names_in(s.operator)) > 1]
    free = [name for name in problem.fields if name not in names_in([*inside, *rows])]
    if free:
        yield Finding("fields", f"No equation contains {', '.join(free)}: give one, or leave it out.", fatal=True)
    elif problem.unknown_functions and not any(s.measured for s in problem.statements):
        yield Finding(
            "fields",
            f"There are {len(problem.fields)} fields, {', '.join(problem.fields)}, and {len(inside)} equations: "
            f"{', '.join(problem.unknown_functions)} may be free. Give measurements that determine what is unknown, "
            "Sensors(u, points, values), or as many equations as fields.",
        )


def _time(problem: Any) -> Iterator[Finding]:
    """Initial conditions: one for an equation of first order in time, two for one of second order, at the right end."""
    if not _readable(problem) or _own_points(problem):
        return
    closed, names = _closed(problem), problem.domain.coordinate_names
    inside = _coefficients(problem.operator, problem.domain, _places(problem.domain.interior))
    for i in _times(problem.domain):
        t = names[i]
        given = {side: closed.get(Piece((i,), side), []) for side in ("lower", "upper")}
        count = sum(map(len, given.values()))
        if np.any(inside.second[:, i]):
            if count < 2:
                yield Finding(
                    "initial",
                    f"The equation is of second order in {t} and has {count or 'no'} condition"
                    f"{'' if count == 1 else 's'} in {t}. Give two: Initial({t}, value=…) and "
                    f"Initial({t}, value=…, operator=D({t})).",
                    fatal=True,
                )
        elif np.any(inside.first[:, i]):
            forward = _forward(inside, i)
            begin, region = ("lower", "initial") if forward is not False else ("upper", "final")
            if not count:
                how = f"Initial({t}, value=…)" if begin == "lower" else f"Dirichlet(on=domain.final({t}), value=…)"
                yield Finding(
                    "initial",
                    f"The equation is of first order in {t} and has no {region} condition: give one, {how}.",
                    fatal=True,
                )
            elif forward is not None and not given[begin]:
                yield Finding(
                    "direction",
                    f"Diffusion has the wrong sign for a condition at the "
                    f"{'final' if forward else 'initial'} value of {t}: the equation runs "
                    f"{'forwards' if forward else 'backwards'} in {t}, and the other way its solution is not "
                    f"determined. Give the {region} condition, or change the sign of the diffusion.",
                    fatal=True,
                )


def _faces(problem: Any) -> Iterator[Finding]:
    """Faces of space on which the equation needs a condition and none is given."""
    if not _readable(problem) or _own_points(problem):
        return
    domain, closed = problem.domain, _closed(problem)
    missing = [
        piece
        for piece in domain_pieces(domain)
        if piece.indices[0] not in _times(domain) and piece not in closed and _needed(problem, piece)
    ]
    if not missing:
        return
    where = ", ".join(_named(domain, piece) for piece in missing[:4]) + (" and others" if len(missing) > 4 else "")
    if in_free_space(problem):
        text = (
            f"No face of space has a condition: u is that of all of space where the conditions at the initial or final "
            f"time decide, and is extrapolated near {where}. Trust it in the middle, or give conditions on the faces."
        )
        yield Finding("faces", text)
    else:
        yield Finding(
            "faces",
            f"There is no condition on {where}: give u (Dirichlet), its slope (Neumann), both (Robin), or Periodic.",
            fatal=True,
        )


def _contradiction(problem: Any) -> Iterator[Finding]:
    """Values of `u` that two conditions give differently where their regions meet."""
    of_u = [s for s in problem.statements if isinstance(s.operator, Identity) and isinstance(s.where, Region)]
    sizes = [float(np.max(np.abs(_values(s, _places(s.where))))) for s in of_u]
    scale = max(sizes, default=0.0)
    for k, one in enumerate(of_u):
        for other in of_u[k + 1 :]:
            points = _common(one.where, other.where)
            if not len(points) or not scale:
                continue
            difference = np.abs(_values(one, points) - _values(other, points))
            if (largest := float(np.max(difference))) > DIFFERENT * scale:
                q = points[int(np.argmax(difference))]
                place = ", ".join(f"{value:.4g}" for value in q[:6]) + (", …" if len(q) > 6 else "")
                yield Finding(
                    "contradiction",
                    f"The {one.label} and the {other.label} differ by {largest:.2g} where they meet, at ({place}): "
                    "correct one of them, or expect a jump of u there.",
                )


def _exact(problem: Any) -> Iterator[Finding]:
    if problem.exact is None or problem.domain.dim > MOST_DIMENSIONS:
        return
    verified = problem.verify(n=PLACES)
    wrong = [str(check).split(maxsplit=1)[1] for check in verified.checks if not check.ok]
    if wrong:
        yield Finding("exact", f"The exact solution does not satisfy the {wrong[0]}. Correct one of the two.")


def _zero(problem: Any) -> Iterator[Finding]:
    values = (_values(s, _places(s.where)) for s in problem.statements)
    # Without any condition, measurements come with the data; what has an offset is not zero.
    known = not any(has_offset(s.operator) for s in problem.statements)
    if problem.conditions and known and not any(np.any(found) for found in values):
        yield Finding(
            "zero",
            "The source and all conditions are zero: then u = 0 is a solution, and the size of any other is not known. "
            "Give a value that is not zero.",
        )


def _jump(problem: Any) -> Iterator[Finding]:
    """Coefficients of a divergence that jump: the flux is continuous there, and no point of the equation says so."""
    is_divergence = lambda node: isinstance(node, Divergence)
    for node in filter(is_divergence, jax.tree.leaves(problem.operator, is_leaf=is_divergence)):
        if parameters_of(node) or isinstance(node.a, ConstantTensor):
            continue
        if (place := _jumps_at(partial(tensor_at, node.a), problem.domain)) is not None:
            q = ", ".join(f"{value:.4g}" for value in place[:6]) + (", …" if len(place) > 6 else "")
            yield Finding(
                "jump",
                f"The coefficient of {node} jumps, for example at ({q}). The flux is continuous there, but no point of "
                "the equation on either side says so, and u is left open. Make the coefficient a steep smooth "
                "function, such as one with tanh.",
                fatal=True,
            )
            return


def _jumps_at(function: Callable[[jax.Array], jax.Array], domain: Domain) -> np.ndarray | None:
    """A place where the function jumps: on lines between places, halves in which it changes most are halved again."""
    ends = _places(domain.interior)
    values = jax.jit(jax.vmap(lambda q: jnp.ravel(function(q))))
    steps = np.linspace(0.0, 1.0, STEPS)[:, None, None]
    points = ends[None] * (1 - steps) + np.roll(ends, 1, axis=0)[None] * steps
    found = np.asarray(values(points.reshape(-1, domain.dim))).reshape(STEPS, len(ends), -1)
    changes = np.max(np.abs(np.diff(found, axis=0)), axis=2)
    most, line = np.argmax(changes, axis=0), np.arange(len(ends))
    low, high = points[most, line], points[most + 1, line]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        at = [np.asarray(values(q)) for q in (low, middle, high)]
        first = np.max(np.abs(at[1] - at[0]), axis=1) >= np.max(np.abs(at[2] - at[1]), axis=1)
        low, high = np.where(first[:, None], low, middle), np.where(first[:, None], middle, high)
    left = np.max(np.abs(np.asarray(values(high)) - np.asarray(values(low))), axis=1)
    worst = int(np.argmax(left))
    return low[worst] if left[worst] > JUMP * float(np.max(np.abs(found))) else None


RULES: tuple[Callable[[Any], Iterator[Finding]], ...] = (
    _level,
    _fields,
    _time,
    _faces,
    _jump,
    _contradiction,
    _exact,
    _zero,
)
NAMES = ("level", "fields", "initial", "direction", "faces", "jump", "contradiction", "exact", "zero")


def _readable(problem: Any) -> bool:
    """Whether the operator has a symbol with known coefficients."""
    operator = problem.operator
    if isinstance(operator, InFull):
        return False
    return operator.order <= 2 and operator.local and not parameters_of(operator)


def _own_points(problem: Any) -> bool:
    """Whether conditions or measurements are given at points that do not lie on faces: then any shape may be meant."""
    given = [s.where for s in problem.statements if not isinstance(s.where, Region)]
    return any(not np.all(on_any_face(problem.domain, points)) for points in given)


def _closed(problem: Any) -> dict[Piece, list[Operator]]:
    """The faces and spheres that have conditions, with the operators of these conditions."""
    found: dict[Piece, list[Operator]] = {}
    for s in problem.statements[:-1]:
        if isinstance(s.where, Region):
            pieces: Sequence[Piece] = s.where.pieces
        else:
            every = domain_pieces(problem.domain)
            pieces = [p for p in every if np.any(Region(problem.domain, (p,), "").contains(s.where))]
        across = not s.operator.local
        for piece in pieces:
            found.setdefault(piece, []).append(s.operator)
            # A condition that looks from one face to the other, such as a periodic one, is a condition on both.
            if across and piece.side is not None:
                other = Piece(piece.indices, "upper" if piece.side == "lower" else "lower")
                found.setdefault(other, []).append(s.operator)
    return found


def _needed(problem: Any, piece: Piece) -> bool:
    """Whether the equation needs a condition on a face.

    It does where it is of second order across the face. Where it is of first order, it needs one where the flow comes
    in; which way it flows is known only if there is time.
    """
    domain = problem.domain
    places = _places(Region(domain, (piece,), ""))
    found = _coefficients(problem.operator, domain, places)
    index = list(piece.indices)
    if np.any(np.abs(found.second[:, index]) > 0):
        return True
    if len(index) > 1:
        return False
    flow, times = found.first[:, index[0]], [i for i in _times(domain) if np.any(found.first[:, i])]
    if not np.any(flow):
        return False
    if not times:
        other = Piece(piece.indices, "upper" if piece.side == "lower" else "lower")
        return piece.side == "lower" and other not in _closed(problem)
    inward = flow * np.sign(found.first[:, times[0]]) * (1 if piece.side == "lower" else -1)
    return bool(np.any(inward > 0))


def _forward(found: Coefficients, time: int) -> bool | None:
    """Whether an equation of first order in time has diffusion that runs forwards; `None` if it has none."""
    others = np.delete(found.second, time, axis=1)
    against = np.sign(found.first[:, [time]]) * np.sign(others)
    if not np.any(against):
        return None
    return bool(np.sum(against < 0) >= np.sum(against > 0))


def _coefficients(operator: Operator, domain: Domain, points: np.ndarray) -> Coefficients:
    unit = 0.5 * (domain.upper - domain.lower)

    def read(q: jax.Array) -> tuple[jax.Array, jax.Array]:
        symbol = operator.symbol(q)
        first = jnp.zeros(domain.dim) if symbol.b is None else symbol.b
        return first, symbol.diagonal(domain.dim)

    first, second = (np.asarray(part) for part in jax.vmap(read)(array_of(points)))
    first, second = first / unit, second / unit**2
    largest = max(float(np.max(np.abs(first))), float(np.max(np.abs(second))))
    return Coefficients(*(np.where(np.abs(part) > ABSENT * largest, part, 0.0) for part in (first, second)))


def _times(domain: Domain) -> list[int]:
    return [i for name in domain.names if name in TIME for i in domain.coordinates(name).indices]


def _named(domain: Domain, piece: Piece) -> str:
    if piece.side is None:
        return f"the sphere of {domain.group_of(domain.coordinates(domain.names[0]))}"
    end = (domain.lower if piece.side == "lower" else domain.upper)[piece.indices[0]]
    return f"the face {domain.coordinate_names[piece.indices[0]]} = {end:g}"


def _common(one: Region, other: Region) -> np.ndarray:
    """Points that lie on faces of both regions; none if they share no edge."""
    domain = one.domain
    found = []
    for a in one.pieces:
        for b in other.pieces:
            if a.side is None or b.side is None or a.indices == b.indices:
                continue
            points = _places(Region(domain, (a,), ""))[:4]
            points[:, b.indices[0]] = (domain.lower if b.side == "lower" else domain.upper)[b.indices[0]]
            found.append(points)
        if len(found) > PLACES:
            break
    return np.concatenate(found) if found else np.zeros((0, domain.dim))


def _places(where: Region | np.ndarray) -> np.ndarray:
    if isinstance(where, Region):
        return draw(where, PLACES, np.random.default_rng(3), "uniform")
    return where[:: max(1, len(where) // PLACES)][:PLACES]


def _values(statement: Any, points: np.ndarray) -> np.ndarray:
    return evaluate(points, statement.value)[0] if callable(statement.value) else np.asarray(statement.value)
