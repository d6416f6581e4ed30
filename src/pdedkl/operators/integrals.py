"""Integrals and means over parts of a domain, as operators.

`(I A u)(q) = Σ_k w_k (A u)(q_k)`, where `q_k` is `q` with some of its coordinates at the node `k` of a quadrature. So
an integral is a row like any other, with the sum of the covariances of its nodes: it can be observed, as by a flow
meter, and predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..coordinates import Coordinates, Layout
from ..domain import Domain
from ..regions import Region
from .base import Field, Identity, Operator, Place, Sum, Term, compose, identity, scale
from .coefficients import AbstractCoefficient, Coefficient, Product
from .rows import Row
from .symbol import Symbol

# Gauss's nodes for each of that many coordinates; in more dimensions, and in balls, this many evenly spread points.
NODES, POINTS = {1: 24, 2: 12, 3: 8}, 512


class Integral(Operator):
    """`∫ A u` over a region, or over some coordinates of it; the mean of `A u` there with `average=True`.

    `Integral(on) @ u` is a row: it can be observed and predicted, and `posterior.quantity` has its mean and its
    standard deviation. Where some coordinates are not integrated, such as time, they are those of the point.

    **Arguments:**

    - `on`: a region, such as `domain.interior` or `domain.face(x[0], "upper")`; or a smaller `Domain`, a box.
    - `over`: the coordinates to integrate over; all by default.
    - `average`: whether to divide by the size of the region.
    - `nodes`: how many nodes of Gauss there are for each coordinate; chosen by default.

    !!! example
        ```python
        total = pk.Integral(domain.interior, over=x)
        print(posterior.quantity(pk.Integral(domain.interior, average=True)))
        content = posterior.predict(points[:3], total)
        ```
    """

    inner: Operator
    indices: tuple[int, ...] = eqx.field(static=True)
    nodes: Float[Array, "k i"]
    weights: Float[Array, " k"]
    space: Layout = eqx.field(static=True)
    text: str = eqx.field(static=True)

    def __init__(
        self,
        on: Region | Domain,
        over: Coordinates | Sequence[Coordinates] | None = None,
        average: bool = False,
        nodes: int | None = None,
    ) -> None:
        region = on.interior if isinstance(on, Domain) else on
        if not isinstance(region, Region):
            raise TypeError(f"Integral(on) needs a region, such as domain.interior, or a Domain: got {on!r}.")
        if nodes is not None and not (isinstance(nodes, int) and nodes > 0):
            raise ValueError(f"`nodes` needs a positive whole number: got {nodes!r}.")
        domain = region.domain
        chosen = _chosen(domain, over)
        found = [_on_piece(domain, piece, chosen, nodes) for piece in region.pieces or (None,)]
        touched = sorted({i for at, _, _ in found for i in at})
        if any(sorted(at) != touched for at, _, _ in found):
            raise ValueError(
                f"{region} has faces of several coordinates, and `over` leaves some of them: integrate over all "
                "coordinates, or over one face at a time."
            )
        places = np.concatenate([points[:, np.argsort(at)] for at, points, _ in found])
        weights = np.concatenate([own for *_, own in found])
        self.inner, self.indices, self.space = identity, tuple(touched), domain.layout
        self.nodes = jnp.asarray(places)
        self.weights = jnp.asarray(weights / np.sum(weights) if average else weights)
        self.text = f"{'mean' if average else '∫'} over {region}" + ("" if over is None else f" along {_written(over)}")

    @property
    def order(self) -> int:
        return self.inner.order

    @property
    def layout(self) -> Layout:
        return self.space

    @property
    def acts_last(self) -> bool:
        return True

    @property
    def local(self) -> bool:
        return False

    @property
    def everywhere(self) -> bool:
        """Whether it is one number, whatever the point is."""
        return len(self.indices) == sum(size for _, size in self.space)

    def __call__(self, u: Field) -> Field:
        function = self.inner(u)
        places, weights = self._fixed()
        return lambda q: jnp.dot(weights, jax.vmap(lambda at: function(Place(self.indices, at)(q)))(places))

    def symbol(self, q: Array) -> Symbol:
        raise ValueError(f"{self} looks at many points, so it has no symbol at one: use those of its local_terms().")

    def local_terms(self) -> tuple[Term, ...]:
        places, weights = self._fixed()
        return tuple((Place(self.indices, at), scale(weight, self.inner)) for at, weight in zip(places, weights))

    def after(self, inner: Operator) -> Operator:
        """`I (A B)` for an operator `B` that acts first."""
        if not inner.local:
            raise ValueError(f"An integral is of a local operator: got {inner}.")
        return eqx.tree_at(lambda one: one.inner, self, compose(self.inner, inner))

    def times(self, factor: AbstractCoefficient) -> Operator:
        """`a I A`, as `I (a A)`."""
        if not is_constant(factor):
            raise ValueError(f"{factor} depends on the point: write it inside of the integral, Integral(on) @ (a * u).")
        return eqx.tree_at(lambda one: one.inner, self, scale(factor, self.inner))

    def _fixed(self) -> tuple[Array, Array]:
        return jax.lax.stop_gradient(self.nodes), jax.lax.stop_gradient(self.weights)

    def __str__(self) -> str:
        return self.text if isinstance(self.inner, Identity) else f"{self.text} of {self.inner}"


def spread(integral: Integral, points: Float[Array, "n d"]) -> tuple[Float[Array, "m d"], Float[Array, " m"]]:
    """All nodes of all points, those of the first point first, and their weights."""
    places, weights = integral._fixed()
    found = jax.vmap(lambda q: jax.vmap(lambda at: Place(integral.indices, at)(q))(places))(points)
    return found.reshape(-1, points.shape[1]), jnp.tile(weights, len(points))


def place_of(operator: Any) -> np.ndarray | None:
    """Any point, of an operator that is the same number at all points: of integrals over all coordinates."""
    if isinstance(operator, Integral):
        return np.asarray(operator.nodes[0]) if operator.everywhere else None
    if isinstance(operator, Row | Sum):
        parts = operator.operators if isinstance(operator, Row) else operator.terms
        found = [place_of(part) for part in parts]
        return None if any(place is None for place in found) else found[0]
    return None


def is_constant(factor: AbstractCoefficient) -> bool:
    """Whether a factor is the same at all points."""
    if isinstance(factor, Product):
        return is_constant(factor.left) and is_constant(factor.right)
    return not isinstance(factor, Coefficient) and hasattr(factor, "value")


def _chosen(domain: Domain, over: Any) -> list[int]:
    if over is None:
        return list(range(domain.dim))
    parts = [over] if isinstance(over, Coordinates) else list(over)
    if not parts or not all(isinstance(part, Coordinates) and part.layout == domain.layout for part in parts):
        raise TypeError(f"`over` needs coordinates of the domain, such as x or [x[0], t]: got {over!r}.")
    return sorted({i for part in parts for i in part.indices})


def _written(over: Any) -> str:
    return str(over) if isinstance(over, Coordinates) else ", ".join(map(str, over))


def _on_piece(
    domain: Domain, piece: Any, chosen: Sequence[int], nodes: int | None
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """The coordinates that are set, their values at all nodes, and the weights; on a face, or inside."""
    fixed = [] if piece is None else list(piece.indices)
    balls = [x for x, _ in domain._balls() if set(x.indices) & {*chosen, *fixed}]
    free = [i for i in chosen if i not in fixed]
    if balls or (nodes is None and len(free) > max(NODES)):
        return _spread(domain, piece, sorted({*chosen, *fixed}))
    count = nodes or NODES.get(len(free), 1)
    at, weights = np.polynomial.legendre.leggauss(count)
    lower, half = domain.lower, 0.5 * (domain.upper - domain.lower)
    axes = [lower[i] + half[i] * (1 + at) for i in free]
    grid = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")] if axes else []
    product: np.ndarray = np.ones(1)
    for i in free:
        product = np.kron(product, half[i] * weights)
    ends = [np.full(len(product), (lower if piece.side == "lower" else domain.upper)[i]) for i in fixed]
    return [*free, *fixed], np.stack([*grid, *ends], axis=1), product


def _spread(domain: Domain, piece: Any, indices: list[int]) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Evenly spread points, all of the same weight."""
    from scipy.stats import qmc

    if len(indices) < domain.dim:
        raise ValueError("In a ball, or over more than three coordinates, an integral is over all coordinates.")
    region = Region(domain, () if piece is None else (piece,), "")
    cube = qmc.Sobol(region.cube_dim, scramble=True, seed=0).random(POINTS)
    return indices, region.from_cube(cube), np.full(POINTS, np.exp(region.log_area) / POINTS)
