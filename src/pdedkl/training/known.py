"""What a search for a kernel knows: the data, the kernels that were trained, and which of them is best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ..domain import Domain
from ..embeddings import Invariants
from ..inference import Posterior
from ..kernels import Kernel, Profile, SquaredExponential
from ..observations import Observation
from ..operators import Vanishing
from ..operators.rows import coordinates_of, names_in
from ..scales import may_be_noise, signal_variance
from . import starts
from .candidates import (
    ON_WALLS,
    PROFILES,
    SYMMETRIC,
)
from .fresh_errors import FreshErrors
from .judging import EXPLAINED, Candidate, Options, best_of
from .phases import Trained, Trainer
from .symmetries import symmetries

# Above this left-out error the solution may be rough.
ERRORS_LEFT = 1e-3


class Known:
    """The data of a search, the candidates so far, and what the next ones ask of them."""

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

    def _named(self, name: str) -> Candidate | None:
        return next((item for item in self.candidates if item.name == name), None)

    def _candidate(self, name: str, trained: Trained) -> Candidate:
        return Candidate(name, trained, self.options.validation, self.options.accuracy or EXPLAINED)
