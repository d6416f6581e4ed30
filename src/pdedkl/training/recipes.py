"""The default recipe: candidates from simple to rich, each trained to the end, the best evidence wins.

1. *Directions.* A plain Gaussian process is fitted to a part of the data; the slopes of its posterior mean show along
   which directions the solution varies. This is repeated once with a kernel on those directions.
2. *Candidates.* One smooth function of a few directions (projection), a sum of functions of one direction each
   (ridges; also a sum of functions of one direction from each named group of coordinates), a sum of functions of one
   input each (additive), a smooth function of all inputs (inputs). Training alternates L-BFGS over kernel and noise
   with Gauss–Newton steps of the weights. The search ends with the first candidate that explains the data.
3. *Richer kernels*, if the left-out error is still too large. The quadratic kernel adds products of inputs to the
   projection's map. If a function of one quadratic form of all inputs is already better than all candidates, the map
   starts from that form instead. The last kernel is the best so far plus the additive kernel and that of all inputs.
   A richer kernel is kept only if it improves the evidence.

With validation data, their likelihood replaces the evidence, and also chooses the strength of the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..inference import condition
from ..kernels import Kernel
from ..model import Model
from ..observations import Observation
from . import starts
from .gauss_newton import price_of_weights
from .objective import LeftOut, Objective, largest_error, left_out
from .phases import Trained, Trainer
from .scales import signal_variance
from .validation import Score, Validation

# Enough points to find directions, and few enough for a cheap fit.
EXPLORING_POINTS = 400
EXPLORATIONS = 2
ROUNDS = 24
ROUNDS_OF_A_SUM = 4
# Iterations over all parameters at once in each round of a richer kernel.
TOGETHER = 80
ROUNDS_OF_A_NETWORK = 10
# Iterations with fixed weights that show whether a richer kernel could gain anything.
GLANCE = 15
WIDTH = 64
# Other strengths of the prior to try with validation data, as multiples of the usual one.
OTHER_STRENGTHS = (10.0, 0.1)

# Below this left-out error the data are explained: more components could only model rounding.
EXPLAINED = 1e-5
# Below this left-out error the directions are known well enough, and the additive kernel is not tried first.
DIRECTIONS_KNOWN = 1e-3
# Below this left-out error a richer kernel is not worth its time: it takes longer than all simple ones together.
NEARLY_EXPLAINED = 1e-4
# Left-out errors may exceed the noise by this factor: they scatter, and include the error due to too few points.
NOISE_MARGIN = 1.2
# The additive kernel is tried first if its evidence is better by this, in nats per value.
CLEARLY_BETTER = 0.5


@dataclass
class Candidate:
    """One trained kernel and its results."""

    name: str
    trained: Trained
    validation: Validation | None = None
    accuracy: float = EXPLAINED

    @cached_property
    def left_out_each(self) -> list[LeftOut]:
        """The left-out error of each observation, computed only when a decision depends on it."""
        return left_out(self.trained.objective, self.trained.x)

    @property
    def left_out(self) -> float:
        return largest_error(self.left_out_each)

    @property
    def noise_is_left(self) -> bool:
        """Whether one left-out error is nearly zero, and all others are no larger than the learned noise.

        A kernel that is too stiff also explains data that it cannot follow as noise, so this is a sign, not a proof.
        """
        errors = [item.error for item in self.left_out_each]
        noisy = [item for item in self.left_out_each if item.error >= NEARLY_EXPLAINED]
        return min(errors) < NEARLY_EXPLAINED and all(item.error < NOISE_MARGIN * item.noise for item in noisy)

    @cached_property
    def validated(self) -> Score | None:
        return None if self.validation is None else self.validation.score(self.trained.model)

    @property
    def explained(self) -> bool:
        """Whether left-out values and validation data are predicted to `accuracy`. To fit the data is not enough."""
        return self.left_out < self.accuracy and (self.validated is None or self.validated.error < self.accuracy)

    @cached_property
    def objective(self) -> float:
        """The objective with the weights integrated out. It compares kernels, and priors of different strengths."""
        return self.trained.value + price_of_weights(self.trained.objective, self.trained.x)

    @property
    def rank(self) -> float:
        """Lower is better: the objective or, with validation data, their mean negative log density."""
        return _rank(self.objective if self.validated is None else self.validated.density)


@dataclass(frozen=True)
class Options:
    """What a user may choose; `None` leaves the choice to the recipe."""

    model: str
    seed: int
    latent_dim: int | None
    prior_strength: float | None
    groups: int | None
    accuracy: float | None = None
    validation: Validation | None = field(default=None, repr=False)
    engine: str = "closed-form"

    @property
    def strength(self) -> float:
        return 0.1 if self.prior_strength is None else self.prior_strength


class Default:
    """The default recipe on one set of observations."""

    def __init__(self, domain: Domain, observations: Sequence[Observation], options: Options, trainer: Trainer) -> None:
        self.domain, self.observations, self.options, self.trainer = domain, tuple(observations), options, trainer
        self.variance = signal_variance(observations)
        self.candidates: list[Candidate] = []

    def run(self) -> Candidate:
        if self.options.model == "gp":
            self._alternate("inputs", starts.on_inputs(self.domain, self.variance))
            return self.best
        found = self._directions()
        if found is None:
            return self.best
        for train in self._plan(*found):
            train()
            if self.best.explained or self.trainer.monitor.stopped:
                return self.best
        if self.options.model == "dkl" and self.best.left_out > NEARLY_EXPLAINED:
            self._richer()
        if self.options.validation is not None and self.options.prior_strength is None:
            self._other_strengths()
        return self.best

    def _plan(self, rows: np.ndarray, strengths: np.ndarray, additive_first: bool) -> list[Callable[[], None]]:
        """The candidates that the user's options allow, in the order in which they are tried."""
        projection = lambda: self._projection(rows, strengths)
        ridges = lambda: self._ridges(rows, strengths)
        inputs = lambda: self._alternate("inputs", starts.on_inputs(self.domain, self.variance))
        if self.options.model == "linear" or self.options.groups == 1:
            return [projection]
        if self.options.groups is not None:
            return [ridges]
        if self.options.latent_dim is not None:
            return [projection, ridges]
        kinds = len(self.domain.layout)
        few = [projection, ridges] + [lambda: self._ridges(rows, strengths, each=kinds)] * (kinds > 1)
        return [self._additive, *few, inputs] if additive_first else [*few, self._additive, inputs]

    @property
    def best(self) -> Candidate:
        """The candidate of lowest rank, among those that explain the data if there are any.

        Once the data are explained, differences of evidence are due to rounding. They could favour a kernel with fewer
        weights that does not explain the data.
        """
        return min(self.candidates, key=lambda candidate: (not candidate.explained, candidate.rank))

    def _directions(self) -> tuple[np.ndarray, np.ndarray, bool] | None:
        """Directions and strengths, and whether a sum of functions of one input each explains the data better.

        `None` if a posterior on the way is already as accurate as asked for: it is added to the candidates.
        """
        part = starts.subsample(self.observations, EXPLORING_POINTS, self.options.seed)
        everywhere = jnp.concatenate([item.points for item in self.observations])
        count = sum(min(starts.DIRECTIONS_PER_GROUP, size) for _, size in self.domain.layout)
        matrix = np.zeros((count, self.domain.dim))
        free = self.options.model == "dkl" and not self._chosen
        for turn in range(EXPLORATIONS):
            kernel = starts.exploring(self.domain, self.variance, matrix)
            found = self._candidate("exploring", self._kernel_only(f"directions {turn + 1}", kernel, part))
            if free and self._enough(found):
                self.candidates.append(found)
                return None
            gradients = np.asarray(starts.slopes(condition(found.trained.model, part), everywhere))
            rows, strengths = starts.principal_directions(self.domain, gradients)
            matrix = strengths[:, None] * rows * np.sqrt(len(rows))
        rows, strengths = rows[: starts.DIRECTIONS], strengths[: starts.DIRECTIONS]
        if self.options.model != "dkl" or found.left_out < DIRECTIONS_KNOWN:
            return rows, strengths, False
        sums = self._kernel_only("additive?", starts.on_each_input(self.domain, self.variance), part)
        clearly = CLEARLY_BETTER * sum(map(len, part))
        return rows, strengths, _rank(sums.value) < _rank(found.trained.value) - clearly

    def _kernel_only(self, name: str, kernel: Kernel, part: Sequence[Observation]) -> Trained:
        objective = Objective(
            starts.model_of(kernel, part, noise=0.1, engine=self.options.engine), part, self.options.strength
        )
        return self.trainer.fit_kernel(name, objective, 15)

    def _projection(self, rows: np.ndarray, strengths: np.ndarray) -> None:
        kept = self.options.latent_dim or len(rows)
        rows, strengths = _enough(rows, strengths, kept, self.options.seed)
        self._alternate("projection", starts.projection(self.domain, self.variance, rows, strengths))

    def _ridges(self, rows: np.ndarray, strengths: np.ndarray, each: int = 1) -> None:
        """A sum of functions of `each` directions. They start from the projection, which has found the right space."""
        for linear in self._trained("projection"):
            rows, strengths = starts.directions_of(linear.trained.model.kernel)
        groups = self.options.groups or self.options.latent_dim or starts.DIRECTIONS
        count = self.options.latent_dim or each * groups
        kernel = starts.ridges(
            self.domain, self.variance, rows, strengths, count, min(groups, count), self.options.seed
        )
        self._alternate("ridges" if each == 1 else f"ridges of {each}", kernel)

    def _additive(self) -> None:
        self._alternate("additive", starts.on_each_input(self.domain, self.variance))

    def _richer(self) -> None:
        """The quadratic kernel; then the best kernel so far plus the additive kernel and that of all inputs."""
        if self._only_noise_is_left():
            return
        for linear in self._trained("projection"):
            kernel = starts.quadratic(self.domain, linear.trained.model.kernel, WIDTH, self.options.seed)
            model = self._one_form(kernel) or self._warm(kernel, linear)
            self._improve("quadratic", model, ROUNDS_OF_A_NETWORK)
        if not (self._chosen or self.best.explained or self.trainer.monitor.stopped):
            name, model = self._sum()
            self._improve(name, model, ROUNDS_OF_A_SUM)

    def _one_form(self, quadratic: Kernel) -> Model | None:
        """A function of one quadratic form of all inputs, if it is better than all candidates so far."""
        everywhere = jnp.concatenate([item.points for item in self.observations])
        gradients = np.asarray(starts.slopes(condition(self.best.trained.model, self.observations), everywhere))
        like = quadratic.components[0].embedding
        kernel = starts.one_form(self.domain, self.variance, like, everywhere, gradients)
        objective = Objective(self._warm(kernel, self.best), self.observations, self.options.strength)
        glance = self.trainer.fit_kernel("one form?", objective, GLANCE)
        return glance.model if glance.value < self.best.trained.value else None

    @property
    def _chosen(self) -> bool:
        return bool(self.options.latent_dim or self.options.groups)

    def _sum(self) -> tuple[str, Model]:
        """The best kernel so far plus the additive kernel and that of all inputs."""
        best = self.best
        kernel, name = best.trained.model.kernel, best.name
        for other, build in (("additive", starts.on_each_input), ("inputs", starts.on_inputs)):
            if other != best.name:
                kernel, name = kernel + build(self.domain, 1e-2 * self.variance), f"{name} + {other}"
        return name, self._warm(kernel, best)

    def _only_noise_is_left(self) -> bool:
        """Whether the remaining error looks like noise, and a few iterations of a richer kernel gain nothing."""
        if not self.best.noise_is_left:
            return False
        name, model = self._sum()
        objective = Objective(model, self.observations, self.options.strength)
        glance = self.trainer.fit_kernel(f"{name}?", objective, GLANCE)
        return not glance.value < self.best.trained.value - glance.tolerance

    def _trained(self, name: str) -> list[Candidate]:
        return [item for item in self.candidates if item.name == name]

    def _warm(self, kernel: Kernel, simpler: Candidate) -> Model:
        """A model of a richer kernel. Its noise starts at the left-out error of the simpler one."""
        model = starts.model_of(kernel, self.observations, engine=self.options.engine)
        wrong: dict[str, float] = {}
        for item in simpler.left_out_each:
            wrong[item.name] = max(item.error, wrong.get(item.name, 0.0))
        learned = simpler.trained.model.log_noise
        start = {
            name: jnp.maximum(
                level + np.log(min(wrong.get(name, 1.0) / starts.INITIAL_NOISE, 1.0) or 1e-300), learned[name]
            )
            for name, level in model.log_noise.items()
        }
        return starts.with_noise(model, start)

    def _alternate(self, name: str, kernel: Kernel) -> None:
        objective = Objective(
            starts.model_of(kernel, self.observations, engine=self.options.engine),
            self.observations,
            self.options.strength,
        )
        to_beat = self.best.trained.value if self.candidates else np.inf
        enough = lambda trained: self._enough(self._candidate(name, trained))
        self._keep(name, self.trainer.alternate(name, objective, ROUNDS, to_beat, enough=enough))

    def _improve(self, name: str, model: Model, rounds: int) -> None:
        objective = Objective(model, self.observations, self.options.strength)
        to_beat = self.best.trained.value
        enough = lambda trained: self._enough(self._candidate(name, trained))
        trained = self.trainer.alternate(name, objective, rounds, to_beat, TOGETHER, enough)
        candidate = self._candidate(name, trained)
        gained = not candidate.objective > self.best.objective - trained.tolerance
        if self.options.validation or candidate.explained or gained:
            self.candidates.append(candidate)

    def _enough(self, candidate: Candidate) -> bool:
        """Whether the candidate is as accurate as asked for. If no accuracy was asked for, training goes to the end."""
        return self.options.accuracy is not None and candidate.explained

    def _other_strengths(self) -> None:
        """The best kernel under weaker and stronger priors; fresh values decide between them."""
        best = self.best
        if not best.trained.objective.weight_count:
            return
        for factor in OTHER_STRENGTHS:
            if self.best.explained or self.trainer.monitor.stopped:
                return
            strength = factor * self.options.strength
            name = f"{best.name}, prior {strength:g}"
            objective = Objective(best.trained.model, self.observations, strength)
            self._keep(name, self.trainer.alternate(name, objective, ROUNDS_OF_A_SUM, together=TOGETHER))

    def _keep(self, name: str, trained: Trained) -> None:
        self.candidates.append(self._candidate(name, trained))

    def _candidate(self, name: str, trained: Trained) -> Candidate:
        return Candidate(name, trained, self.options.validation, self.options.accuracy or EXPLAINED)


def _rank(value: float) -> float:
    return value if np.isfinite(value) else np.inf


def _enough(rows: np.ndarray, strengths: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` directions, and random ones where more are asked for than were found."""
    extra = np.random.default_rng(seed).normal(size=(max(count - len(rows), 0), rows.shape[1]))
    extra /= np.linalg.norm(extra, axis=1, keepdims=True)
    rows = np.concatenate([rows, extra])[:count]
    return rows, np.concatenate([strengths, np.full(len(extra), starts.WEAKEST)])[:count]
