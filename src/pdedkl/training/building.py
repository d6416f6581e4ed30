"""Models to train: each candidate starts from what the search knows so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..embeddings.push_forward import Normalisation
from ..inference import condition
from ..kernels import Kernel, Profile
from ..model import Model
from ..observations import Observation
from ..operators.rows import coordinates_of, value_of
from ..scales import signal_variance, size_of_field
from . import starts
from .candidates import (
    WIDTH,
    additive_share,
)
from .interactions import interactions
from .judging import NEARLY_EXPLAINED, Candidate
from .known import Known
from .objective import USUAL_NOISE, Objective

# Enough values to choose a start and to find directions, and few enough for a cheap fit.
EXPLORING_POINTS = 400
# Iterations with fixed weights that show where directions lie, and whether a kernel could gain anything.
GLANCE = 15
# The share of the variance of a field that is its own, where a search begins with what fields have in common.
OF_ITS_OWN = 1e-2


class Building(Known):
    """Where the kernels of a search start."""

    @property
    def worth_a_network(self) -> bool:
        return self.options.model == "dkl" and self.best.left_out > NEARLY_EXPLAINED and not self._only_noise_is_left

    def model(
        self,
        kernel: Kernel,
        like: Candidate | None = None,
        noise: float = starts.INITIAL_NOISE,
        part: tuple[Observation, ...] | None = None,
    ) -> Model:
        """A model to train on all observations, or a part of each, with the coefficients that are known best.

        It begins with the noise `like` that of a candidate, or with this noise.
        """
        kernel = self.of_fields(kernel.times(self.on_walls))
        model = starts.model_of(kernel, part or self.observations, noise, self.options.engine)
        if self.candidates and model.coefficients:
            model = eqx.tree_at(lambda m: m.coefficients, model, self.best.trained.model.coefficients)
        return model if like is None else model.with_noise(like.trained.model.log_noise)

    def with_profile(self, profile: Profile) -> Kernel:
        """The trained plain or symmetric kernel with another profile."""
        found = self.base.trained.model.kernel
        profiles = lambda k: [part.base.profile for part in k.components]
        return eqx.tree_at(profiles, found, [profile] * len(found.components))

    def of_fields(self, kernel: Kernel) -> Kernel:
        """The kernel for each of several fields, independent of the others."""
        return kernel if kernel.fields else self.of_each_field(lambda _: kernel)

    def of_each_field(self, build: Callable[[str | None], Kernel]) -> Kernel:
        """Independent fields, each with a kernel of its own; one of some coordinates only has a plain one of these."""

        def of(name: str | None) -> Kernel:
            if name is None or coordinates_of(name, self.domain.layout) is None:
                return build(name)
            return starts.on_inputs(self.domain, self.variance, self.profile)

        return of_each(of, self.fields, self.observations)

    def shared(self) -> Model:
        """A process that enters all fields, beside what each has of its own.

        Its weights start at what the posterior means of the fields have most in common, and it starts large: from
        independent fields the way to what they share leads over worse evidence.
        """
        trained = self.best.trained
        posterior, own = condition(trained.model, trained.objective.observations), trained.model.kernel
        places = np.concatenate([np.asarray(item.points) for item in self.observations])
        means = np.stack([posterior.predict(places, value_of(name)).mean for name in self.fields], axis=1)
        size = np.sqrt(np.mean(means**2, axis=0))
        _, _, common = np.linalg.svd(means / np.where(size > 0, size, 1.0), full_matrices=False)
        weights = common[0] * size / np.sqrt(self.variance)
        where = lambda k: [part.base.log_variance for part in k.components]
        rest = eqx.tree_at(where, own, [size + np.log(OF_ITS_OWN) for size in where(own)])
        more = starts.on_inputs(self.domain, self.variance, own.components[0].base.profile)
        return self.model(rest + more.of(*self.fields, weights=weights.tolist()), like=self.best)

    def zero_on_walls(self) -> Model:
        """The trained plain kernel, for functions that are zero on the walls."""
        plain = self.trained("inputs")
        return self.model(plain.trained.model.kernel.times(self.walls))

    def symmetric(self, part: tuple[Observation, ...], factor: float) -> Model:
        """A function of what does not change under the symmetries of the problem."""
        assert self.symmetry is not None
        kernel = starts.symmetric(self.domain, self.variance, self.symmetry, self.profile, factor)
        return self.model(kernel, part=part)

    def projection(self) -> Kernel:
        def of(name: str | None) -> Kernel:
            rows, strengths = self.directions[name]
            kept = self.options.latent_dim or min(len(rows), starts.DIRECTIONS)
            rows, strengths = _enough(rows, strengths, kept, self.options.seed)
            return starts.projection(self.domain, self.variance, rows, strengths, self.profile)

        return self.of_each_field(of)

    def ridges(self, each: int) -> Kernel:
        """A sum of functions of `each` directions. They start from the projection, which has found the right space."""
        found = self._named("projection")
        groups = self.options.groups or self.options.latent_dim or starts.DIRECTIONS
        count = self.options.latent_dim or each * groups

        def of(name: str | None) -> Kernel:
            known = None if found is None else found.trained.model.kernel
            rows, strengths = self.directions[name] if known is None else starts.directions_of(known, name)
            return starts.ridges(
                self.domain, self.variance, rows, strengths, count, min(groups, count), self.options.seed, self.profile
            )

        return self.of_each_field(of)

    def quadratic(self) -> Model:
        """The projection's map with a network of squares. In one dimension the input takes the projection's place."""
        return self._warm(self._squares(), self._named("projection") or self.trained("inputs"))

    def interactions(self) -> Model | None:
        """A sum over the sets of inputs that act together; `None` if no such sum fits the data."""
        found = interactions(self)
        return None if found is None else self.model(found.kernel(self.domain, self.profile), noise=USUAL_NOISE)

    def form(self) -> Model:
        """A network of the same shape that starts as one quadratic form: the one whose slopes are nearest."""
        everywhere, (gradients, *_) = self._slopes(self.best)
        like = self._squares().components[0].embedding
        return self.model(starts.one_form(self.domain, self.variance, like, everywhere, gradients))

    def _squares(self) -> Kernel:
        linear = self._named("projection")
        base = starts.as_projection(self.domain, self.trained("inputs").trained.model.kernel)
        return starts.quadratic(
            self.domain, base if linear is None else linear.trained.model.kernel, WIDTH, self.options.seed
        )

    def with_others(self) -> Model:
        """The best kernel so far plus the additive kernel and that of all inputs."""
        best, kernel = self.best, self.best.trained.model.kernel
        others = (("additive", starts.on_each_input), ("inputs", starts.on_inputs))
        for name, build in others:
            if not best.name.startswith(name) and (name != "additive" or self.domain.dim > 1):
                kernel = kernel + build(self.domain, 1e-2 * self.variance, kernel.components[0].base.profile)
        return self._warm(kernel, best)

    @cached_property
    def _only_noise_is_left(self) -> bool:
        """Whether the remaining error looks like noise, and a few iterations of a richer kernel gain nothing."""
        if not self.best.noise_is_left:
            return False
        objective = Objective(self.with_others(), self.observations, self.options.strength)
        glance = self.trainer.fit_kernel("more than noise?", objective, GLANCE)
        return not glance.value < self.best.trained.value - glance.tolerance

    @cached_property
    def directions(self) -> dict[str | None, tuple[np.ndarray, np.ndarray]]:
        """Directions along which each field varies, strongest first, and their strengths.

        They come from slopes of the plain kernel's posterior mean, and once more from those of a kernel on the
        directions found first.
        """
        names = self.fields or (None,)
        plain = self._slopes(self.trained("inputs"))[1]
        seen = {name: starts.principal_directions(self.domain, of) for name, of in zip(names, plain)}

        def exploring(name: str | None) -> Kernel:
            rows, strengths = seen[name]
            return starts.exploring(self.domain, self.variance, strengths[:, None] * rows * np.sqrt(len(rows)))

        part = starts.subsample(self.observations, EXPLORING_POINTS, self.options.seed)
        model = starts.model_of(self.of_each_field(exploring), part, noise=0.1, engine=self.options.engine)
        if model.coefficients:
            model = eqx.tree_at(lambda m: m.coefficients, model, self.best.trained.model.coefficients)
        objective = Objective(model, part, self.options.strength)
        found = self._candidate("exploring", self.trainer.fit_kernel("directions", objective, GLANCE))
        better = [starts.principal_directions(self.domain, of) for of in self._slopes(found)[1]]
        first = starts.DIRECTIONS
        return {name: (rows[:first], strengths[:first]) for name, (rows, strengths) in zip(names, better)}

    @property
    def _looks_additive(self) -> bool:
        """Whether a sum of functions of one input each explains the slopes better than a few directions do."""
        if not self.free or self.domain.dim <= starts.DIRECTIONS:
            return False
        points, (gradients, *_) = self._slopes(self.trained("inputs"))
        strengths = np.linalg.svd(gradients, compute_uv=False) ** 2
        few = float(np.sum(strengths[: starts.DIRECTIONS]) / np.sum(strengths)) if np.any(strengths) else 1.0
        unit = np.asarray(jax.vmap(Normalisation(self.domain))(points))
        return additive_share(unit, gradients) > few

    def curvatures(self, count: int) -> tuple[Array, np.ndarray]:
        """Some points of the data, and second derivatives of the best posterior mean so far there."""
        everywhere = jnp.concatenate([item.points for item in self.observations])
        trained = self.best.trained
        posterior = condition(trained.model, trained.objective.observations)
        some = everywhere[:: max(1, len(everywhere) // count)][:count]
        return some, np.asarray(starts.curvatures(posterior, some))

    def _slopes(self, candidate: Candidate) -> tuple[Array, list[np.ndarray]]:
        """All points of the data, and for each field the slopes of a candidate's posterior mean there."""
        everywhere = jnp.concatenate([item.points for item in self.observations])
        trained = candidate.trained
        posterior = condition(trained.model, trained.objective.observations)
        return everywhere, [np.asarray(starts.slopes(posterior, everywhere, name)) for name in self.fields or (None,)]

    def _warm(self, kernel: Kernel, simpler: Candidate) -> Model:
        """A model of a richer kernel. Its noise starts at the left-out error of the simpler one."""
        model = self.model(kernel)
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
        return model.with_noise(start)


def independent(kernel: Kernel, fields: Sequence[str], observations: Sequence[Observation]) -> Kernel:
    """Independent fields with the same kernel, each as large as its values are; the kernel itself if there are none."""
    return of_each(lambda _: kernel, fields, observations)


def of_each(
    build: Callable[[str | None], Kernel], fields: Sequence[str], observations: Sequence[Observation]
) -> Kernel:
    """The same where each field has a kernel of its own; `build(None)` if there are no fields."""
    if not fields:
        return build(None)
    overall, parts = signal_variance(observations), []
    for name in fields:
        size = np.log((size_of_field(name, observations) ** 2 or overall) / overall)
        own = build(name).of(name)
        if own.components[0].held:
            parts.append(own)
            continue
        where = lambda k: [part.base.log_variance for part in k.components]
        parts.append(eqx.tree_at(where, own, [sizes + size for sizes in where(own)]))
    return Kernel(tuple(part for own in parts for part in own.components))


def _enough(rows: np.ndarray, strengths: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` directions, and random ones where more are asked for than were found."""
    extra = np.random.default_rng(seed).normal(size=(max(count - len(rows), 0), rows.shape[1]))
    extra /= np.linalg.norm(extra, axis=1, keepdims=True)
    rows = np.concatenate([rows, extra])[:count]
    return rows, np.concatenate([strengths, np.full(len(extra), starts.WEAKEST)])[:count]
