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
from ..inference import Posterior, condition
from ..inference.calibration import Compared
from ..observations import Learned, Observation
from ..scales import signal_variance
from . import starts
from .judging import Options
from .objective import Objective
from .phases import Trainer

# Degrees of freedom: few, so that the tails are heavy.
FREEDOM = 4.0
TURNS, ROUNDS = 8, 4
# Weights that change by less than this have settled.
SETTLED = 0.02


def robust_weights(
    domain: Domain,
    observations: Sequence[Observation],
    parts: Sequence[np.ndarray],
    options: Options,
    trainer: Trainer,
) -> list[np.ndarray | None]:
    """The weights of the values of each observation; `None` where it is not robust.

    Only the values in `parts` are trained on. All others are compared with what these predict.
    """
    every = tuple(observations)
    data = tuple(starts.taken(item, part) for item, part in zip(every, parts))
    weights = [np.ones(len(item)) if _robust(item) else None for item in data]
    model = starts.model_of(
        starts.on_inputs(domain, signal_variance(data), options.profile, 0.5), data, engine=options.engine
    )
    for turn in range(1, TURNS + 1):
        data = with_weights(data, weights)
        objective = Objective(model, data, options.strength)
        trained = trainer.alternate(f"weights of values, turn {turn}", objective, ROUNDS)
        model = trained.model
        left = condition(model, data, solver="dense").left_out()
        new = [_weights(item, found) if _robust(item) else None for item, found in zip(data, left)]
        change = max(float(np.max(np.abs(a - b))) for a, b in zip(new, weights) if a is not None and b is not None)
        weights = new
        if change < SETTLED or trainer.ended():
            break
    if all(len(item) == len(part) for item, part in zip(every, parts)):
        return weights
    posterior = condition(model, with_weights(data, weights), solver="dense")
    whole = [_of_all(posterior, item) if _robust(item) else None for item in every]
    for found, part, known in zip(whole, parts, weights):
        if found is not None:
            found[part] = known
    return whole


def with_weights(observations: Sequence[Observation], weights: Sequence[np.ndarray | None]) -> tuple[Observation, ...]:
    """The same observations, with these weights of their values."""
    return tuple(
        item
        if found is None
        else eqx.tree_at(lambda o: o.weights, item, jnp.asarray(found), is_leaf=lambda node: node is None)
        for item, found in zip(observations, weights)
    )


def _of_all(posterior: Posterior, item: Observation) -> np.ndarray:
    """The weights of values as if none of them had been conditioned on."""
    found = posterior.compared(item)
    noise = np.asarray(item.noise_variance(posterior.model.log_noise))
    return _weights(item, found._replace(noise=noise))


def _robust(item: Observation) -> bool:
    return isinstance(item.noise, Learned) and item.noise.robust


def _weights(item: Observation, left: Compared) -> np.ndarray:
    """`(ν + 1)/(ν + z²)`, where `z` is relative to the noise that the value would have with weight one."""
    known = np.ones(len(item)) if item.weights is None else np.asarray(item.weights)
    z2 = left.errors**2 / np.maximum(left.variance + left.noise * known, np.finfo(float).tiny)
    return (FREEDOM + 1) / (FREEDOM + z2)
