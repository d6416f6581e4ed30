"""Values that may be far off: noise with Student's t-distribution, by iterated reweighting.

Noise with `ν` degrees of freedom is normal noise whose variance is `σ²/w`, with a weight `w` for each value. Given the
others, a value that is `z` standard deviations from its prediction has the expected weight

    w = (ν + 1) / (ν + z²),

so values that all others contradict count less, and then pull less at the prediction of the others. The plain kernel is
trained and weights are updated in turn; what is trained afterwards uses the weights as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..inference import condition
from ..observations import Learned, Observation
from . import starts
from .objective import Objective
from .phases import Trainer
from .recipes import Options
from .scales import signal_variance

# Degrees of freedom: few, so that the tails are heavy.
FREEDOM = 4.0
TURNS, ROUNDS = 8, 4
# Weights that change by less than this have settled.
SETTLED = 0.02


def robust_weights(
    domain: Domain, observations: Sequence[Observation], options: Options, trainer: Trainer
) -> dict[str, np.ndarray]:
    """The weights of each robust observation, by its name."""
    data = tuple(observations)
    weights = {item.name: np.ones(len(item)) for item in data if _robust(item)}
    model = starts.model_of(
        starts.on_inputs(domain, signal_variance(data), options.profile, 0.5), data, engine=options.engine
    )
    for turn in range(1, TURNS + 1):
        data = with_weights(data, weights)
        objective = Objective(model, data, options.strength)
        trained = trainer.alternate(f"weights of values, turn {turn}", objective, ROUNDS, first_look=True)
        model = trained.model
        found = condition(model, data, solver="dense").left_out()
        new = {item.name: _weights(item, left) for item, left in zip(data, found) if _robust(item)}
        change = max(float(np.max(np.abs(new[name] - weights[name]))) for name in weights)
        weights = new
        if change < SETTLED or trainer.ended():
            break
    return weights


def with_weights(observations: Sequence[Observation], weights: dict[str, np.ndarray]) -> tuple[Observation, ...]:
    """The same observations, with these weights of their values."""

    def weighted(item: Observation) -> Observation:
        return eqx.tree_at(
            lambda o: o.weights, item, jnp.asarray(weights[item.name]), is_leaf=lambda node: node is None
        )

    return tuple(weighted(item) if item.name in weights else item for item in observations)


def _robust(item: Observation) -> bool:
    return isinstance(item.noise, Learned) and item.noise.robust


def _weights(item: Observation, left) -> np.ndarray:
    """`(ν + 1)/(ν + z²)`, where `z` is relative to the noise that the value would have with weight one."""
    known = np.ones(len(item)) if item.weights is None else np.asarray(item.weights)
    z2 = left.errors**2 / np.maximum(left.variance + left.noise * known, np.finfo(float).tiny)
    return (FREEDOM + 1) / (FREEDOM + z2)
