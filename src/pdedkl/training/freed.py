"""The prior of `u` where an equation with an unknown function determines it.

Given the function, the equation and its conditions determine `u`: its own prior is to say nothing. But a smooth prior
whose size and length scales were found from the data holds all functions for unlikely for which `u` is less smooth. It
shrinks what is found, and makes its error bars too narrow (docs/studies.md). So the variance of `u` is made wide, and
with it held the prior of the function and the noise are learned again.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import numpy as np

from ..kernels import Component, Kernel
from ..model import Model
from ..observations import Observation
from .objective import Objective
from .phases import Trained, Trainer

# The variance of `u` is made this many times larger.
WIDE = 1e4
# Rounds of training with it held.
ROUNDS = 20


def freed(model: Model, functions: Sequence[str]) -> Model:
    """The model with a wide prior for all fields but the unknown functions."""

    def wide(part: Component) -> Component:
        if part.held or part.mixing is None or set(part.mixing.names) & set(functions):
            return part
        where = lambda c: c.base.log_variance
        return eqx.tree_at(where, part, where(part) + np.log(WIDE)).hold()

    return eqx.tree_at(lambda m: m.kernel, model, Kernel(tuple(map(wide, model.kernel.components))))


def trained_again(
    trainer: Trainer, name: str, model: Model, observations: Sequence[Observation], functions: Sequence[str]
) -> Trained:
    """The prior of unknown functions and the noise, learned with a wide prior of everything else."""
    return trainer.alternate(name, Objective(freed(model, functions), observations), ROUNDS)
