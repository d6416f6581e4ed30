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

import equinox as eqx
import numpy as np

from ..embeddings import Affine
from ..inference import Posterior
from ..model import Model
from ..observations import Observation
from . import starts
from .building import EXPLORING_POINTS, Building
from .candidates import (
    CANDIDATES,
    OF_FIELDS,
    PLAIN,
    PROFILES,
    ROUNDS,
    ROUNDS_OF_A_SUM,
    SYMMETRIC,
    TOGETHER,
    Kind,
)
from .judging import Candidate
from .ladder import climbed
from .objective import USUAL_NOISE, Objective, value_and_gradient
from .phases import Trained
from .rescue import least_left_out
from .tolerances import tightened

# Length scales from which the plain kernel starts, in units of the usual one.
LENGTH_SCALES = (1.0, 0.3)
# Other strengths of the prior to try with validation data, as multiples of the usual one.
OTHER_STRENGTHS = (10.0, 0.1)
# Above this left-out error a fit has failed.
FAILED = 0.1


class Default(Building):
    """The default recipe on one set of observations."""

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

    def _keep(self, name: str, trained: Trained) -> None:
        self.candidates.append(self._candidate(name, trained))
        if not self.trainer.stopped():
            self.trainer.monitor.best = (self.best.name, self.best.left_out)
