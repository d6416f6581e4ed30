"""The prior of `u` where an equation with an unknown function determines it.

Given the function, the equation and its conditions determine `u`, so its own prior is to say nothing. But a smooth
prior whose size and length scales were found from the data holds all functions for unlikely for which `u` is less
smooth: it shrinks what is found, and makes its error bars too narrow (docs/studies.md). So the prior of `u` is made
wide and less smooth, and is held. The prior of the function and the noise are learned again, by the evidence of the
measurements given the equation and all that is exact: `−log p(y | f)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import numpy as np

from ..kernels import Component, Kernel
from ..model import Model
from ..observations import Learned, Observation
from ..scales import may_be_noise
from .objective import Objective, value_and_gradient
from .phases import Trained, Trainer

# The variance of `u` is made this many times larger, and its length scales so much shorter that this many times as many
# of its waves are free.
WIDE, WAVES = 1e4, 2.0
# Rounds of training with it held.
ROUNDS = 20


def freed(model: Model, functions: Sequence[str]) -> Model:
    """The model with a wide prior for all fields but the unknown functions."""

    def wide(part: Component) -> Component:
        if part.held or part.mixing is None or set(part.mixing.names) & set(functions):
            return part
        where = lambda c: (c.base.log_variance, c.log_lengthscale)
        variance, lengthscale = where(part)
        return eqx.tree_at(
            where, part, (variance + np.log(WIDE), lengthscale - np.log(WAVES) / len(lengthscale))
        ).hold()

    return eqx.tree_at(lambda m: m.kernel, model, Kernel(tuple(map(wide, model.kernel.components))))


def trained_again(
    trainer: Trainer, name: str, model: Model, observations: Sequence[Observation], functions: Sequence[str]
) -> Trained | None:
    """The prior of unknown functions and the noise, learned with a wide prior of everything else.

    `None` if the equation has noise: then the prior of `u` is needed.
    """
    given = [i for i, item in enumerate(observations) if not _is_noisy(item, observations)]
    highest = max(item.operator.order for item in observations)
    if highest not in {observations[i].operator.order for i in given} or len(given) == len(observations):
        return None
    objective = Objective(freed(model, functions), observations, given=given)
    if not len(x := objective.start()):
        return Trained(objective, x, float(value_and_gradient(objective, x)[0]))
    return trainer.alternate(name, objective, ROUNDS)


def _is_noisy(item: Observation, observations: Sequence[Observation]) -> bool:
    if isinstance(item.noise, Learned):
        return may_be_noise([item], observations)
    return bool(np.any(np.asarray(item.noise)))
