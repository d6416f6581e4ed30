"""The paper's recipe, as written: its initialisation (Algorithm 2) and its optimisation (Algorithm 3).

A network of four layers of 200 with GELU, LeCun-normal weights, and Adam with warm-up, exponential decay and gradient
clipping on the plain negative log marginal likelihood, until it changes by less than `ε` or after `T` steps. Values
that the paper does not give (step sizes, `T`, `ε`, the initial noise) are set here once, for all problems.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ..compilation import compiled
from ..domain import Domain
from ..embeddings import MLP, Affine
from ..inference import condition
from ..kernels import Kernel, ard, deep
from ..observations import Observation
from . import starts
from .journal import State
from .judging import Candidate, Options
from .objective import Objective, Vector, value_and_gradient
from .phases import Trained, Trainer

STEPS = 1500  # T
SMALLEST_CHANGE = 1e-6  # ε
LATENT_DIM = 4
NOISE = 1.0  # initial noise, relative to the data; with less, the network overfits in 50 dimensions

SCHEDULE = optax.schedules.warmup_exponential_decay_schedule(
    init_value=1e-4, peak_value=1e-2, warmup_steps=100, transition_steps=STEPS, decay_rate=0.1
)
OPTIMISER = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(SCHEDULE))


class Paper:
    """The paper's recipe on one set of observations."""

    def __init__(self, domain: Domain, observations: Sequence[Observation], options: Options, trainer: Trainer) -> None:
        self.domain, self.observations, self.options, self.trainer = domain, tuple(observations), options, trainer
        self.candidates: list[Candidate] = []

    def run(self) -> Candidate:
        model = starts.model_of(self._initial_kernel(), self.observations, NOISE, self.options.engine)
        objective = Objective(model, self.observations, self.options.prior_strength or 0.0, kernel_priors=False)
        name = {"dkl": "network", "linear": "linear map", "gp": "inputs"}[self.options.model]
        self.candidates.append(Candidate(name, self._adam(name, objective)))
        return self.candidates[0]

    def _initial_kernel(self) -> Kernel:
        """Algorithm 2: variance from the data, source data projected onto `u`; length scales from mean distances."""
        h = self.options.latent_dim or LATENT_DIM
        key = jax.random.PRNGKey(self.options.seed)
        if self.options.model == "gp":
            kernel = ard(self.domain)
        elif self.options.model == "linear":
            kernel = deep(self.domain, Affine.drawn(self.domain.dim, h, key=key))
        else:
            kernel = deep(self.domain, MLP(self.domain.dim, h, key=key))
        component = kernel.components[0]
        points = jnp.concatenate([item.points for item in self.observations])
        lengthscale = mean_distances(jax.vmap(component.latent)(points))
        kernel = _with(kernel, jnp.log(lengthscale), jnp.zeros(1))
        return _with(
            kernel,
            jnp.log(lengthscale),
            jnp.log(combined_variance(kernel, self.observations, self.options.engine))[None],
        )

    def _adam(self, name: str, objective: Objective) -> Trained:
        # Adam acts on the weights themselves, not on weights in units of their prior.
        units = jnp.concatenate([objective.units(), jnp.ones(objective.start().size - objective.weight_count)])
        fields, structure = jax.tree.flatten(OPTIMISER.init(units))

        def begin() -> State:
            state = {f"optimiser{i}": np.asarray(leaf) for i, leaf in enumerate(fields)}
            return state | {
                "x": objective.start(),
                "value": np.asarray(np.inf),
                "step": np.asarray(0),
                "rejected": np.asarray(0),
                "done": np.asarray(False),
            }

        def step(state: State) -> State:
            memory = jax.tree.unflatten(structure, [state[f"optimiser{i}"] for i in range(len(fields))])
            x, memory, value, gradient, finite = _adam_step(objective, units, state["x"], memory)
            at, value = int(state["step"]), np.asarray(value)
            noise = objective.model(state["x"]).noise()
            self.trainer.monitor.report(name, at, STEPS, float(value), float(gradient), noise)
            settled = bool(finite) and abs(float(value) - float(state["value"])) < SMALLEST_CHANGE
            return {f"optimiser{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(memory))} | {
                "x": np.asarray(x),
                "value": value if finite else state["value"],
                "step": np.asarray(at + 1),
                "rejected": state["rejected"] + int(not finite),
                "done": np.asarray(settled or at + 1 >= STEPS),
            }

        state = self.trainer.journal.run(name, begin, step, self.trainer.stopped)
        return self.trainer.trained(objective, state)


@compiled
def _adam_step(objective: Objective, units: Array, x: Vector, memory: optax.OptState):
    """One step. If the objective or the gradient is not finite, nothing changes, not even Adam's averages."""
    value, gradient, _ = value_and_gradient(objective, x)
    gradient = gradient / units
    finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    updates, moved = OPTIMISER.update(gradient, memory, x * units)
    x, memory = jax.tree.map(lambda new, old: jnp.where(finite, new, old), (x + updates / units, moved), (x, memory))
    return x, memory, value, jnp.linalg.norm(gradient), finite


def mean_distances(z: Float[Array, "n h"]) -> Float[Array, " h"]:
    """The mean of `|z_i − z_j|` over all pairs, for each coordinate, as a weighted sum of the sorted values."""
    n = z.shape[0]
    if n == 1:
        return jnp.ones(z.shape[1])
    weights = 2.0 * jnp.arange(n) - (n - 1)
    mean = weights @ jnp.sort(z, axis=0) / (n * (n - 1) / 2)
    return jnp.where(mean > 1e-12, mean, 1.0)


def combined_variance(
    kernel: Kernel, observations: Sequence[Observation], engine: str = "closed-form"
) -> Float[Array, ""]:
    """The variance of the data of `u` together with the projected data of `f`, `(k Aᵀ)(A k Aᵀ)⁻¹ y_f`."""
    values = [item.values for item in observations if item.of_values]
    for item in observations:
        if not item.of_values:
            posterior = condition(starts.model_of(kernel, [item], 1e-3, engine), [item])
            values.append(jnp.asarray(posterior.predict(item.points).mean))
    everything = jnp.concatenate(values)
    variance, size = jnp.var(everything), jnp.mean(everything**2)
    return jnp.where(variance > 1e-12 * size, variance, jnp.where(size > 0, size, 1.0))


def _with(kernel: Kernel, log_lengthscale: Array, log_variance: Array) -> Kernel:
    where = lambda k: (k.components[0].log_lengthscale, k.components[0].base.log_variance)
    return eqx.tree_at(where, kernel, (log_lengthscale, log_variance))
