"""Which inputs `u` depends on, alone and together: its variance, split into shares of sets of inputs.

For inputs that are uniform on a box, `u = Σ_T u_T(x_T)` with parts that are uncorrelated, and mean zero in each of
their inputs. So `Var u = Σ_T V_T`, and `V_T / Var u` are the Sobol indices (Sobol, 1993).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from ..domain import Domain
from ..operators import Operator
from ..operators.base import Identity
from ..shown import Rows, Shown, over, plural
from .shares_of_sums import exact, is_sum
from .shares_sampled import sampled

# Sets with a larger share are named in the short description.
WORTH_NAMING = 1e-3
# If so many points of the data lie in a ball, the domain is a ball.
ENOUGH = 50


class Share(NamedTuple):
    """A share of the variance, and its standard deviation.

    **Arguments:**

    - `share`: the share, between 0 and 1.
    - `std`: its standard deviation.

    !!! example
        ```python
        share, std = posterior.interactions().total[0]
        ```
    """

    share: float
    std: float


class Interactions(Shown, eqx.Module):
    """Shares of the variance of `u`, for sets of inputs: Sobol indices, with standard deviations.

    **Arguments:**

    - `names`: the names of the inputs.
    - `sets`: sets of inputs, as numbers of coordinates, the largest share first.
    - `share`: the part of the variance of each set that is due to its inputs acting together, and to no fewer of them.
    - `covariance`: the covariance of the errors of `share`.
    - `rest`: the share of all other sets together, with its standard deviation.
    - `variance`: the variance of `u` over the box.
    - `exact`: whether integrals over the box are exact; otherwise they are estimated at random points.

    !!! example
        ```python
        found = posterior.interactions()
        assert found.total[0].share > found.total[1].share
        print(found.table())
        ```
    """

    names: tuple[str, ...] = eqx.field(static=True)
    sets: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    share: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]
    rest: Share
    variance: float
    exact: bool = eqx.field(static=True)

    @property
    def std(self) -> Float[np.ndarray, " k"]:
        """The standard deviation of each share."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @property
    def alone(self) -> list[Share]:
        """For each input, the share that it has alone: its first-order index."""
        return [self._over(own == (i,) for own in self.sets) for i in range(len(self.names))]

    @property
    def total(self) -> list[Share]:
        """For each input, the share of all sets that it is in: its total index, without what is in `rest`."""
        return [self._over(i in own for own in self.sets) for i in range(len(self.names))]

    def named(self) -> dict[str, Share]:
        """The shares by the names of their inputs.

        **Arguments:** none.

        **Returns:** a dictionary of `Share`s, such as `{"x[0]": …, "x[0], x[1]": …}`.

        !!! example
            ```python
            share, std = posterior.interactions().named()["t"]
            ```
        """
        return {self._name(own): Share(float(s), float(e)) for own, s, e in zip(self.sets, self.share, self.std)}

    def table(self, least: float = WORTH_NAMING) -> str:
        """The shares as lines of text, the largest first.

        **Arguments:**

        - `least`: shares below this are summed up in one line.

        **Returns:** the lines of a table.

        !!! example
            ```python
            print(posterior.interactions().table(least=0.01))
            ```
        """
        lines = [f"{'inputs':<32}{'share of the variance':>22}"]
        small = self.share < least
        rows = [(self._name(own), s, e) for own, s, e, few in zip(self.sets, self.share, self.std, small) if not few]
        if np.any(small):
            others = self._over(small)
            rows.append((f"{plural(int(np.sum(small)), 'other set')}", *others))
        rows.append(("all other sets", *self.rest))
        return "\n".join([*lines, *(f"{name:<32}{share:>12.5f} ± {error:.1g}" for name, share, error in rows)])

    def _name(self, own: tuple[int, ...]) -> str:
        return ", ".join(self.names[i] for i in own)

    def _over(self, chosen: Iterable[Any]) -> Share:
        """The sum of some shares."""
        mark = np.asarray(list(chosen), dtype=float)
        return Share(float(mark @ self.share), float(np.sqrt(max(mark @ self.covariance @ mark, 0.0))))

    def _described(self) -> tuple[str, Rows]:
        rows = {
            self._name(own): f"{s:.4f} ± {e:.1g}"
            for own, s, e in zip(self.sets, self.share, self.std)
            if s >= WORTH_NAMING
        }
        rows["all others"] = f"{1 - sum(s for s in self.share if s >= WORTH_NAMING):.4f}"
        how = "exact integrals" if self.exact else "integrals at random points"
        return f"Shares of the variance of u ({how})", rows


def interactions_of(posterior: Any, operator: Operator, domain: Domain | None, seed: int) -> Interactions:
    """The shares of the variance of `A u` over a box."""
    kernel = posterior.model.kernel
    lower, upper = _box(posterior, domain)
    found = None
    if isinstance(operator, Identity) and is_sum(posterior):
        found = exact(posterior, lower, upper)
    how = found is not None
    if found is None:
        posterior._points(lower[None], operator)
        found = sampled(posterior, operator, lower, upper, seed)
    order = np.argsort(-found.share, kind="stable")
    return Interactions(
        kernel.names,
        tuple(found.sets[i] for i in order),
        found.share[order],
        found.covariance[np.ix_(order, order)],
        Share(*found.rest),
        found.variance,
        how,
    )


def _box(posterior: Any, domain: Domain | None) -> tuple[np.ndarray, np.ndarray]:
    """The box over which inputs vary, each on its own."""
    kernel = posterior.model.kernel
    if domain is not None:
        if not isinstance(domain, Domain) or domain.layout != kernel.layout:
            raise ValueError(f"`domain` needs a Domain with the coordinates {over(kernel.layout)}: got {domain!r}.")
        if any(ball is not None for ball in domain.balls):
            raise ValueError(
                "Inputs in a ball depend on each other, so a variance has no shares of them: give a box inside the "
                "ball, interactions(domain=Domain(…))."
            )
        return domain.lower, domain.upper
    lower, upper = kernel.box
    points = np.concatenate([np.asarray(item.points) for item in posterior.observations])
    unit = 2 * (points - lower) / (upper - lower) - 1
    begin = 0
    for name, size in kernel.layout:
        inside = np.linalg.norm(unit[:, begin : begin + size], axis=1) <= 1 + 1e-9
        if size > 1 and len(points) >= ENOUGH and np.all(inside):
            raise ValueError(
                f"All data lie in a ball of {name}, so little is known of u in the corners of the box around it: give "
                "a box inside the ball, interactions(domain=Domain(…))."
            )
        begin += size
    return lower, upper
