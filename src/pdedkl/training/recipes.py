"""The default recipe: the plain kernel first, then candidates from simple to rich, until one explains the data.

1. *The plain kernel*, a smooth function of all inputs, is trained from several length scales on a part of the data, and
   the best of these on all. It is cheap, and what it finds is used by all others: unknown coefficients, and the slopes
   of its posterior mean, which show along which directions the solution varies.
2. *Candidates* (`candidates.py`), each from what is known so far. Training alternates L-BFGS over kernel and noise with
   Gauss–Newton steps of the weights. The search ends with the first candidate that explains the data, or when the time
   is up; the best so far is kept.

The best candidate has the best evidence among those whose left-out errors are comparable. With validation data, their
likelihood decides instead, and also chooses the strength of the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..domain import Domain
from ..embeddings import Affine, Invariants
from ..embeddings.push_forward import Normalisation
from ..inference import Posterior, condition
from ..kernels import Kernel, Profile, SquaredExponential
from ..model import Model
from ..observations import Observation
from ..operators import Vanishing
from ..operators.rows import coordinates_of, names_in, value_of
from ..scales import may_be_noise, signal_variance, size_of_field
from . import starts
from .candidates import (
    CANDIDATES,
    OF_FIELDS,
    ON_WALLS,
    PLAIN,
    PROFILES,
    ROUNDS,
    ROUNDS_OF_A_SUM,
    SYMMETRIC,
    TOGETHER,
    WIDTH,
    Kind,
    additive_share,
)
from .fresh_errors import FreshErrors
from .interactions import interactions
from .judging import EXPLAINED, NEARLY_EXPLAINED, Candidate, Options, best_of
from .ladder import climbed
from .objective import USUAL_NOISE, Objective, value_and_gradient
from .phases import Trained, Trainer
from .rescue import least_left_out
from .symmetries import symmetries
from .tolerances import tightened

# Enough values to choose a start and to find directions, and few enough for a cheap fit.
EXPLORING_POINTS = 400
# Length scales from which the plain kernel starts, in units of the usual one.
LENGTH_SCALES = (1.0, 0.3)
# Iterations with fixed weights that show where directions lie, and whether a kernel could gain anything.
GLANCE = 15
# The share of the variance of a field that is its own, where a search begins with what fields have in common.
OF_ITS_OWN = 1e-2
# Other strengths of the prior to try with validation data, as multiples of the usual one.
OTHER_STRENGTHS = (10.0, 0.1)

# Above this left-out error the solution may be rough.
ERRORS_LEFT = 1e-3
# Above this left-out error a fit has failed.
FAILED = 0.1


class Default:
    """The default recipe on one set of observations."""

    def __init__(
        self,
        domain: Domain,
        observations: Sequence[Observation],
        options: Options,
        trainer: Trainer,
        walls: Vanishing | None = None,
        problem: Any = None,
        start: Posterior | Kernel | None = None,
    ) -> None:
        self.start: Posterior | Kernel | None = start
        self.domain: Domain = domain
        self.walls: Vanishing | None = walls
        self.problem = problem
        self.observations: tuple[Observation, ...] = tuple(observations)
        self.options, self.trainer = options, trainer
        self.variance: float = signal_variance(observations)
        self.fields: tuple[str, ...] = names_in([item.operator for item in observations])
        self.order = max(item.operator.order for item in observations)
        self.candidates: list[Candidate] = []
        self.profile: Profile = options.profile or SquaredExponential()
        self._judges: dict[str, FreshErrors] = {}

    def run(self) -> Candidate:
        kinds: list[Kind]
        if isinstance(self.start, Posterior):
            self._trained_on(self.start)
            return self._tightened(self.best)
        if self.start is not None:
            linear = isinstance(self.start.components[0].embedding, Affine)
            model = starts.model_of(self.start, self.observations, engine=self.options.engine)
            self._alternate("projection" if linear else "as given", model, ROUNDS)
            kinds = [kind for kind in CANDIDATES if linear and kind.name.startswith("ridges")]
        else:
            self._plain()
            kinds = self._kinds()
        while kinds and not self._ended:
            kind = self._next(kinds)
            self.trainer.monitor.coming = tuple(other.name for other in kinds)
            if kind.applies(self) and not self.trainer.ended():
                self._train(kind)
        if self.start is None:
            self._rescue()
        if self.options.validation is not None and self.options.prior_strength is None and not self._ended:
            self._other_strengths()
        return self._tightened(self.best)

    def _tightened(self, found: Candidate) -> Candidate:
        """The candidate with the tolerances of exact values that the evidence likes best."""
        return found if self.trainer.ended() else replace(found, trained=tightened(found.trained))

    def _kinds(self) -> list[Kind]:
        """The kinds of kernels to try after the plain one."""
        if self.options.model == "gp":
            return [kind for kind in CANDIDATES if kind.name in PLAIN]
        if self.fields:
            return [kind for kind in CANDIDATES if kind.name in OF_FIELDS[self.options.model]]
        if self.options.model == "linear":
            return [kind for kind in CANDIDATES if kind.name == "projection"]
        return list(CANDIDATES)

    def _next(self, kinds: list[Kind]) -> Kind:
        """The next kind, which is taken from the list. A sum over inputs goes first where slopes look like one."""
        if kinds[0].name == "projection" and self._looks_additive:
            kinds.sort(key=lambda kind: kind.name != "additive")
        return kinds.pop(0)

    @property
    def _ended(self) -> bool:
        return self.best.explained or self.trainer.ended()

    @property
    def best(self) -> Candidate:
        """The best candidate so far."""
        return self._best_of(self.candidates)

    def _best_of(self, candidates: Sequence[Candidate]) -> Candidate:
        judge = self._judge() if len(candidates) > 1 else None
        return best_of(candidates, None if judge is None else judge.of)

    def _judge(self) -> FreshErrors | None:
        """The errors of `u` that fresh values show, where source and conditions are functions that determine `u`.

        Where they do not determine any smooth function, they may determine a symmetric one.
        """
        known = callable(getattr(self.problem, "fresh", None)) and not self.fields and not self.trainer.stopped()
        if not known or may_be_noise(self.observations, self.observations):
            return None
        for found in filter(None, (self._named("inputs"), self._named(SYMMETRIC))):
            if found.trained.objective.unknown:
                return None
            if found.name not in self._judges:
                model = found.trained.model
                self._judges[found.name] = FreshErrors(model, self.problem, self.observations, self.options.seed)
            if not self._judges[found.name].open:
                return self._judges[found.name]
        return None

    # ── What the candidates ask ───────────────────────────────────────────────────────────────────────────────────

    @property
    def free(self) -> bool:
        """Whether the user has left the latent coordinates and their groups to the recipe."""
        return not (self.options.latent_dim or self.options.groups)

    @property
    def allows_groups(self) -> bool:
        return self.options.model == "dkl" and self.options.groups != 1

    @property
    def has_directions(self) -> bool:
        """Whether directions may differ from the inputs. With several fields that has to be worth its time."""
        worth_it = not self.fields or self.domain.dim > starts.DIRECTIONS_PER_GROUP or self.errors_are_left
        return (self.domain.dim > 1 and worth_it) or not self.free

    @property
    def are_alike(self) -> bool:
        """Whether there are several fields that may have something in common; unknown functions have nothing."""
        everywhere = all(coordinates_of(name, self.domain.layout) is None for name in self.fields)
        return len(self.fields) > 1 and everywhere and not getattr(self.problem, "unknown_functions", ())

    @property
    def errors_are_left(self) -> bool:
        return self.best.left_out > ERRORS_LEFT and not self.best.noise_is_left

    @property
    def on_walls(self) -> Vanishing | None:
        """The function that is zero on walls where `u` is, if the plain kernel is better with it."""
        found = self._named(ON_WALLS)
        return self.walls if found is not None and found.rank < self.trained("inputs").rank else None

    def may_be_rough(self, name: str) -> bool:
        """Whether to try a profile: rough enough for the operators, and in between only if rougher than smooth."""
        if self.options.profile is not None or PROFILES[name]().smoothness < self.order:
            return False
        roughest = self._named(f"{self.base.name}, Matérn 5/2")
        if name in ("Matérn 7/2", "Matérn 9/2") and roughest is not None:
            return self._best_of([self.base, roughest]) is roughest
        return True

    @property
    def worth_a_network(self) -> bool:
        return self.options.model == "dkl" and self.best.left_out > NEARLY_EXPLAINED and not self._only_noise_is_left

    @property
    def may_have_interactions(self) -> bool:
        """Whether sets of inputs can be asked for: there are several inputs, and the formula knows the operators."""
        of_values = all(item.operator.local for item in self.observations)
        return self.free and self.domain.dim > 2 and of_values and self.options.engine == "closed-form"

    @cached_property
    def symmetry(self) -> Invariants | None:
        """What does not change under the symmetries of the problem, if it has some and nothing is measured besides."""
        return None if may_be_noise(self.observations, self.observations) else symmetries(self.problem)

    @property
    def base(self) -> Candidate:
        """What other profiles are tried with: the kernel of symmetric functions if the problem has a symmetry.

        A rough function with symmetries may be no better explained by smooth symmetric functions than by smooth ones.
        """
        found = self._named(SYMMETRIC)
        return self.trained("inputs") if found is None or found.blind else found

    def trained(self, name: str) -> Candidate:
        found = self._named(name)
        if found is None:
            raise LookupError(f"No kernel {name!r} was trained.")
        return found

    # ── Where they start ──────────────────────────────────────────────────────────────────────────────────────────

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

    # ── Training ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _plain(self) -> None:
        """The plain kernel."""
        self._from_several("inputs", self._starts)

    def _from_several(self, name: str, starts_on: Callable[[tuple[Observation, ...]], list[Objective]]) -> None:
        """Train a kernel from several starts on a part of the data, then the best of them on all."""
        part = starts.subsample(self.observations, EXPLORING_POINTS, self.options.seed)
        looks: list[Candidate] = []
        whole = sum(map(len, part)) == sum(map(len, self.observations))
        enough = lambda trained: whole and self._enough(self._candidate(name, trained))
        for number, objective in enumerate(starts_on(part), start=1):
            trained = self.trainer.alternate(f"{name}, start {number}", objective, ROUNDS, enough=enough)
            looks.append(self._candidate(name, trained))
            if self.trainer.ended() or enough(trained):
                break
        value = lambda found: found.trained.value if np.isfinite(found.trained.value) else np.inf
        look = min(looks, key=lambda found: (found.blind, value(found))).trained
        if whole:
            self._keep(name, look)
        else:
            found = look.model
            model = starts.model_of(found.kernel, self.observations, engine=self.options.engine)
            model = model.with_noise(found.log_noise)
            model = eqx.tree_at(lambda m: m.coefficients, model, found.coefficients) if model.coefficients else model
            self._alternate(name, model, ROUNDS)

    def _starts(self, part: Sequence[Observation]) -> list[Objective]:
        """The plain kernel at several length scales; with unknown numbers at the best rungs of their ladders, and once
        at the values that were given."""
        kernels = [self.of_fields(starts.on_inputs(self.domain, self.variance, self.profile, f)) for f in LENGTH_SCALES]
        models = [starts.model_of(kernel, part, engine=self.options.engine) for kernel in kernels]
        found = [Objective(model, part, self.options.strength) for model in models]
        if not (given := models[0].coefficients) or self.trainer.ended():
            return found
        numbers = found[0].model(climbed(found[0], self.trainer.stopped)).coefficients
        if numbers == given:
            return found
        moved = [eqx.tree_at(lambda m: m.coefficients, model, numbers) for model in models]
        return [*(Objective(model, part, self.options.strength) for model in moved), found[0]]

    def _symmetric_starts(self, part: tuple[Observation, ...]) -> list[Objective]:
        return [Objective(self.symmetric(part, f), part, self.options.strength) for f in LENGTH_SCALES]

    def _trained_on(self, start: Posterior) -> None:
        """The kernel of an earlier posterior, from where its training ended."""
        model = starts.model_of(start.model.kernel, self.observations, USUAL_NOISE, self.options.engine)
        same = lambda new, old: {name: old.get(name, level) for name, level in new.items()}
        model = model.with_noise(same(model.log_noise, start.model.log_noise))
        if model.coefficients:
            known = same(model.coefficients, start.model.coefficients)
            model = eqx.tree_at(lambda m: m.coefficients, model, known)
        self._alternate("as before" if start.training is None else start.training.kernel, model, ROUNDS)

    def _rescue(self) -> None:
        """Where all kernels miss left-out values: the plain kernel that misses them least."""
        if self.fields:
            return
        if self.options.validation is None and self.best.left_out > FAILED and not self.trainer.ended():
            plain = min((c for c in self.candidates if c.name.startswith("inputs")), key=lambda c: c.rank)
            profile = plain.trained.model.kernel.components[0].base.profile
            kernel = starts.on_inputs(self.domain, self.variance, profile)
            model = least_left_out(self.model(kernel), self.observations)
            objective = Objective(model, self.observations, self.options.strength)
            value = float(value_and_gradient(objective, objective.start())[0])
            self._keep("inputs, by left-out values", Trained(objective, objective.start(), value))

    def _train(self, kind: Kind) -> None:
        name = self._name_of(kind)
        if kind.name == SYMMETRIC:
            self._from_several(name, self._symmetric_starts)
            return
        before, start = self.best, kind.start(self)
        if start is None:
            return
        if kind.together:
            self._improve(name, start, kind.rounds, before)
        else:
            self._alternate(name, start, kind.rounds)

    def _name_of(self, kind: Kind) -> str:
        """The name of a candidate in tables: a sum is called by its terms."""
        if kind.name in PROFILES:
            return f"{self.base.name}, {kind.name}"
        if kind.name == "ridges of several":
            return f"ridges of {len(self.domain.layout)}"
        if kind.name == "sum":
            best = self.best.name
            more = ["additive"] * (self.domain.dim > 1) + ["inputs"]
            return " + ".join([best, *(name for name in more if not best.startswith(name))])
        return kind.name

    def _alternate(self, name: str, model: Model, rounds: int) -> None:
        objective = Objective(model, self.observations, self.options.strength)
        to_beat = self.best.trained if self.candidates else None
        enough = lambda trained: self._enough(self._candidate(name, trained))
        self._keep(name, self.trainer.alternate(name, objective, rounds, to_beat, enough=enough))

    def _improve(self, name: str, model: Model, rounds: int, best: Candidate) -> None:
        """Train a richer kernel. It is kept only if it gains something."""
        objective = Objective(model, self.observations, self.options.strength)
        enough = lambda trained: self._enough(self._candidate(name, trained))
        trained = self.trainer.alternate(name, objective, rounds, best.trained, TOGETHER, enough)
        candidate = self._candidate(name, trained)
        gained = not candidate.objective > best.objective - trained.tolerance
        if self.options.validation or gained or candidate.explained:
            self._keep(name, trained)

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

    def _enough(self, candidate: Candidate) -> bool:
        """Whether the candidate is as accurate as asked for. If no accuracy was asked for, training goes to the end."""
        return self.options.accuracy is not None and candidate.explained

    def _other_strengths(self) -> None:
        """The best kernel under weaker and stronger priors; fresh values decide between them."""
        best = self.best
        if not best.trained.objective.weight_count:
            return
        for factor in OTHER_STRENGTHS:
            if self._ended:
                return
            strength = factor * self.options.strength
            name = f"{best.name}, prior {strength:g}"
            objective = Objective(best.trained.model, self.observations, strength)
            self._keep(name, self.trainer.alternate(name, objective, ROUNDS_OF_A_SUM, together=TOGETHER))

    def _named(self, name: str) -> Candidate | None:
        return next((item for item in self.candidates if item.name == name), None)

    def _keep(self, name: str, trained: Trained) -> None:
        self.candidates.append(self._candidate(name, trained))
        if not self.trainer.stopped():
            self.trainer.monitor.best = (self.best.name, self.best.left_out)

    def _candidate(self, name: str, trained: Trained) -> Candidate:
        return Candidate(name, trained, self.options.validation, self.options.accuracy or EXPLAINED)


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
