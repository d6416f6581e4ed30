"""The kernels that the default recipe tries, as a list: what each is for, when it is worth its time, how it starts.

They are tried in this order, from cheap to rich, and the search ends with the first that explains the data. A candidate
starts from what was found before it: length scales and coefficients from the plain kernel, directions from slopes of
its posterior, richer kernels from the best simpler one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels import Matern, Profile, RationalQuadratic, SquaredExponential
from ..model import Model
from . import starts

if TYPE_CHECKING:
    from .building import Building

ROUNDS = 24
# A richer kernel has rounds with L-BFGS over all parameters at once, at most this many iterations each.
TOGETHER = 80
ROUNDS_OF_A_NETWORK = 10
ROUNDS_OF_A_SUM = 4
# The number of squares in the quadratic network.
WIDTH = 64


class Kind(NamedTuple):
    """One kind of kernel.

    `why` says what it is for. `applies` says whether to try it, given the search so far; `start` builds the model to
    train from, or finds that there is none. `together` is the number of iterations over all parameters in each round.
    """

    name: str
    why: str
    applies: Callable[[Building], bool]
    start: Callable[[Building], Model | None]
    rounds: int = ROUNDS
    together: int = 0


PROFILES: dict[str, Callable[[], Profile]] = {
    "squared exponential": SquaredExponential,
    "rational quadratic": lambda: RationalQuadratic(1.0),
    "Matérn 9/2": lambda: Matern(4),
    "Matérn 7/2": lambda: Matern(3),
    "Matérn 5/2": lambda: Matern(2),
}


def _with_profile(name: str, why: str) -> Kind:
    """The plain or the symmetric kernel, of another roughness, from its length scales."""
    return Kind(
        name,
        why,
        lambda search: search.errors_are_left and search.may_be_rough(name),
        lambda search: search.model(search.with_profile(PROFILES[name]()), like=search.base),
    )


ON_WALLS, SYMMETRIC, SHARED = "inputs, zero on walls", "symmetric", "inputs, shared by fields"
# The kinds that are made of the plain kernel.
PLAIN = (ON_WALLS, SHARED, *PROFILES)
# The kinds that are tried for several fields, by the kind of model.
OF_FIELDS = {"linear": ("projection",), "dkl": (*PLAIN, "projection", "ridges", "ridges of several", "additive")}

CANDIDATES: tuple[Kind, ...] = (
    Kind(
        ON_WALLS,
        "The plain kernel times a function that is zero on walls where u is. If it is better, all later ones have it.",
        lambda search: search.walls is not None,
        lambda search: search.zero_on_walls(),
    ),
    Kind(
        "projection",
        "One smooth function of a few directions.",
        lambda search: search.has_directions,
        lambda search: search.model(search.projection()),
    ),
    Kind(
        SYMMETRIC,
        "Functions that do not change under the swaps and reflections of inputs under which the problem does not.",
        lambda search: search.errors_are_left and search.symmetry is not None,
        lambda search: search.symmetric(search.observations, 1.0),
    ),
    _with_profile("Matérn 5/2", "Kinks, corners and fronts: functions with few derivatives."),
    _with_profile("rational quadratic", "Several length scales at once, as in a layer or a narrow peak."),
    _with_profile("Matérn 7/2", "Between Matérn 5/2 and smooth."),
    _with_profile("Matérn 9/2", "Between Matérn 7/2 and smooth."),
    Kind(
        SHARED,
        "A process that enters all fields, with learned weights, beside those of each field: fields that are alike.",
        lambda search: search.are_alike and search.errors_are_left,
        lambda search: search.shared(),
    ),
    Kind(
        "ridges",
        "A sum of smooth functions of one direction each, in the space that the projection found.",
        lambda search: search.has_directions and search.allows_groups,
        lambda search: search.model(search.ridges(each=1)),
    ),
    Kind(
        "ridges of several",
        "A sum of functions of one direction from each named group of coordinates, such as e^(−λt) sin w·x.",
        lambda search: search.has_directions and len(search.domain.layout) > 1 and search.free,
        lambda search: search.model(search.ridges(each=len(search.domain.layout))),
    ),
    Kind(
        "additive",
        "A sum of functions of one input each.",
        lambda search: search.domain.dim > 1 and search.free,
        lambda search: search.model(starts.on_each_input(search.domain, search.variance, search.profile)),
    ),
    Kind(
        "interactions",
        "A sum of functions of one, two or three inputs each: those that act together.",
        lambda search: search.worth_a_network and search.may_have_interactions,
        lambda search: search.interactions(),
    ),
    Kind(
        "form",
        "A function of one quadratic form of all inputs and of a few directions, such as exp(−|x|²) or log |x|.",
        lambda search: search.worth_a_network,
        lambda search: search.form(),
        ROUNDS_OF_A_NETWORK,
        TOGETHER,
    ),
    Kind(
        "quadratic",
        "A network of squares, from random ones: products of inputs such as μ t.",
        lambda search: search.worth_a_network,
        lambda search: search.quadratic(),
        ROUNDS_OF_A_NETWORK,
        TOGETHER,
    ),
    Kind(
        "sum",
        "The best kernel so far plus the additive and the plain one, for what it leaves.",
        lambda search: search.worth_a_network and search.free,
        lambda search: search.with_others(),
        ROUNDS_OF_A_SUM,
        TOGETHER,
    ),
)


def additive_share(points: np.ndarray, gradients: np.ndarray) -> float:
    """How much of the gradients is that of a sum of functions of one input each.

    For such a sum `∂u/∂x_i` depends on `x_i` alone: each slope is fitted by a cubic in its own input.
    """
    rest = 0.0
    for x, slope in zip(points.T, gradients.T):
        powers = np.vander(x, 4)
        rest += float(np.sum((slope - powers @ np.linalg.lstsq(powers, slope, rcond=None)[0]) ** 2))
    total = float(np.sum(gradients**2))
    return 1 - rest / total if total > 0 else 0.0
