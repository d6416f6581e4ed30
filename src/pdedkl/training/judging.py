"""How good a trained kernel is: its left-out errors, its evidence, and whether it explains the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..kernels import Profile
from .gauss_newton import price_of_weights
from .objective import LeftOut, largest_error, left_out
from .phases import Trained
from .validation import Score, Validation

# Below this left-out error the data are explained: more components could only model rounding.
EXPLAINED = 1e-5
# Below this left-out error a richer kernel is not worth its time: it takes longer than all simple ones together.
NEARLY_EXPLAINED = 1e-4
# Left-out errors may exceed the noise by this factor: they scatter, and include the error due to too few points.
NOISE_MARGIN = 1.2
# Values of which this much is missed, relative to their size, are not predicted.
BLIND = 0.9
# Zeros are not predicted if more than this fraction of their variance is left.
UNEXPLAINED = 0.5
# Evidence decides among candidates whose errors are at most this many times those of the best.
COMPARABLE = 3.0


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

    @property
    def blind(self) -> bool:
        """Whether some values are not predicted at all.

        A kernel on which the equation always holds, such as a constant, predicts a source of zeros or ones best. So
        these do not show by their errors whether they are predicted, but by what others leave of their variance.
        """
        return any(item.open > UNEXPLAINED if item.alike else not item.error < BLIND for item in self.left_out_each)

    def comparable(self, other: Candidate) -> bool:
        """Whether no observation is predicted much worse than by the `other`."""
        pairs = zip(self.left_out_each, other.left_out_each, strict=True)
        return all(mine.error <= COMPARABLE * its.error for mine, its in pairs)

    @cached_property
    def validated(self) -> Score | None:
        return None if self.validation is None else self.validation.score(self.trained.model)

    @property
    def explained(self) -> bool:
        """Whether left-out values and validation data are predicted to `accuracy`. To fit the data is not enough."""
        predicted = self.left_out < self.accuracy and not self.blind
        return predicted and (self.validated is None or self.validated.error < self.accuracy)

    @cached_property
    def objective(self) -> float:
        """The objective with the weights integrated out. It compares kernels, and priors of different strengths."""
        return self.trained.value + price_of_weights(self.trained.objective, self.trained.x)

    @property
    def rank(self) -> float:
        """Lower is better: the objective or, with validation data, their mean negative log density."""
        value = self.objective if self.validated is None else self.validated.density
        return value if np.isfinite(value) else np.inf


def best_of(candidates: Sequence[Candidate], error_of_u: Callable[[Candidate], float] | None = None) -> Candidate:
    """The candidate of lowest rank, among those that explain the data, or whose errors are comparable.

    Once the data are explained, differences of evidence are due to rounding. And evidence can prefer a kernel that is
    wrong between its data. Errors of `u` show that, as fresh values tell them (`fresh_errors.py`), or left-out values.
    """
    explained = [candidate for candidate in candidates if candidate.explained]
    if explained or len(candidates) == 1 or candidates[0].validation is not None:
        return min(explained or candidates, key=lambda candidate: candidate.rank)
    seeing = [candidate for candidate in candidates if not candidate.blind] or candidates
    if error_of_u is not None:
        limit = COMPARABLE * min(map(error_of_u, seeing))
        comparable = [candidate for candidate in seeing if error_of_u(candidate) <= limit]
    else:
        least = min(seeing, key=lambda candidate: candidate.left_out)
        comparable = [candidate for candidate in seeing if candidate.comparable(least)] or [least]
    return min(comparable or seeing, key=lambda candidate: candidate.rank)


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
    profile: Profile | None = None

    @property
    def strength(self) -> float:
        return 0.1 if self.prior_strength is None else self.prior_strength
