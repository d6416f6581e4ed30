"""The part of a posterior that compares it with values it was not conditioned on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import compiled_quickly
from ..observations import Observation, check_observations
from ..operators import Operator, identity
from .calibration import Compared, alikeness, calibration_of, votes
from .cholesky import left_out
from .solver import Factorised

if TYPE_CHECKING:
    from .posterior import Posterior

left_out_of = compiled_quickly(left_out)


class Comparing:
    """Errors at fresh and at left-out values, and standard deviations that fit them."""

    def scale(self: Any, operator: Operator = identity) -> Float[Array, ""]:
        """The factor that standard deviations of `A u` are multiplied by, from comparison with fresh values.

        **Arguments:**

        - `operator`: the operator `A`.

        **Returns:** a number; 1 without a calibration.

        !!! example
            ```python
            assert posterior.scale() == 1.0
            ```
        """
        return jnp.ones(()) if self.calibration is None else self.calibration.factor(operator)

    def calibrated(self: Any, fresh: Sequence[Observation] = ()) -> Posterior:
        """The same posterior with standard deviations that fit values it was not conditioned on. Means stay as they
        are.

        Fresh values of `u` lie on the boundary and at the initial time, but error bars are wanted inside. So each value
        counts by how much it tells about the inside. Fresh values are exact, so the learned noise is not added. Fresh
        values with a known noise can only widen error bars. For an order of derivatives without fresh values, each
        value of the data is compared with its prediction from all others. Training has seen these values, so they can
        only widen error bars too.

        **Arguments:**

        - `fresh`: new values, such as `problem.fresh(500, purpose="calibration")`; none to use the data alone.

        **Returns:** a `Posterior`.

        !!! example
            ```python
            wider = pk.condition(pk.ard(problem.domain), problem.sample(10, 10, 10)).calibrated()
            ```
        """
        found = check_observations(fresh) if len(fresh) else ()
        plain = self.uncalibrated()
        highest = max((item.operator.order for item in found), default=0)
        inside = [np.asarray(item.points) for item in found if item.operator.order == highest > 0]
        compared = [plain.compared(item, np.concatenate(inside) if inside else None) for item in found]
        orders = {item.order for item in compared}
        missing = any(item.operator.order not in orders for item in self.observations)
        others = [item for item in plain.left_out() if item.order not in orders] if missing else []
        names = ["fresh values"] * bool(compared) + ["left-out values"] * bool(others)
        if not (compared or others):
            return plain
        calibration = calibration_of(compared, others, " and ".join(names))
        return dataclasses.replace(self, calibration=calibration)

    def uncalibrated(self: Any) -> Posterior:
        """The same posterior with the standard deviations that the model itself gives.

        **Arguments:** none.

        **Returns:** a `Posterior`.

        !!! example
            ```python
            assert posterior.uncalibrated().calibration is None
            ```
        """
        return dataclasses.replace(self, calibration=None)

    def compared(self: Any, fresh: Observation, inside: np.ndarray | None = None) -> Compared:
        """The errors at values that were not conditioned on, beside the variances that were predicted there.

        **Arguments:**

        - `fresh`: the values, one observation.
        - `inside`: points inside. If they are given, values of `u` count by how much they tell about these points.

        **Returns:** a `Compared` with `errors`, `variance`, `noise` and `weight`.

        !!! example
            ```python
            new = pk.Observation(pk.identity, points[:5], values[:5], noise="exact")
            assert posterior.compared(new).errors.shape == (5,)
            ```
        """
        predicted = self.predict(fresh.points, fresh.operator)
        known = np.zeros(len(fresh)) if fresh.noise_name else np.broadcast_to(fresh.noise_variance({}), len(fresh))
        weight, told = np.ones(len(fresh)), 1.0
        if inside is not None and fresh.of_values:
            covariance = self.covariance(inside, fresh.operator, fresh.points, fresh.operator)
            claimed = np.outer(self.predict(inside, fresh.operator).std, predicted.std)
            correlation = covariance / claimed
            weight, told = votes(correlation), float(np.mean(alikeness(correlation)))
        errors = np.asarray(fresh.values) - predicted.mean
        return Compared(fresh.operator.order, errors, predicted.variance, known, weight, told)

    def left_out(self: Any) -> list[Compared]:
        """Each value of the data against its prediction from all others.

        **Arguments:** none.

        **Returns:** a `Compared` for each observation; an empty list if the solver is iterative.

        !!! example
            ```python
            (found,) = posterior.left_out()
            ```
        """
        if not isinstance(self.solver, Factorised):
            return []
        ends = np.cumsum([len(item) for item in self.observations])[:-1]
        parts = (np.split(np.asarray(array), ends) for array in left_out_of(self.solver.factor, self.alpha))
        found = []
        for item, errors, variance in zip(self.observations, *parts):
            noise = np.broadcast_to(np.asarray(item.noise_variance(self.model.log_noise)), len(item))
            claimed = np.maximum(variance - noise, 0.0)
            found.append(Compared(item.operator.order, errors, claimed, noise, np.ones(len(item))))
        return found
