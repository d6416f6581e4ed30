"""Solve a problem to a wanted accuracy: points are drawn, and more of them, until the estimated error is small enough.

In a forward problem source and conditions are functions, so nobody needs to choose how many points. Each round is a
`fit`, with the verdict on its error:

1. *Explore*: the default recipe on a few points. Many solutions vary along few directions and end here.
2. *Network*: where much is left, a network learns the problem on fresh points (`networks.py`). If it varies along few
   directions, these start a kernel, which is accurate to many digits. Otherwise the network is the prior mean, and a
   plain kernel is trained on what it leaves.
3. *More points*: twice as many, and the best kernel so far is trained on. If this gains nothing, all kernels are tried
   again, with twice as many once more.

The best round has the smallest estimated error. Where error bars do not hold, the error counts ten times.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..cache import cached
from ..ending import INTERRUPTED, OUT_OF_TIME
from ..inference import Posterior
from ..inference.memory import most_that_fit
from ..kernels import Kernel, RationalQuadratic
from ..means import NetworkMean
from ..observations import Observation, check_observations
from ..scales import signal_variance
from ..verdicts import ROUNDING
from . import networks, starts
from .arguments import check_accuracy, check_seconds
from .fit import MATRICES_OF_TRAINING, fit, say_how_it_ended
from .journal import Journal, digest_of, fingerprint
from .monitor import Callback, Monitor, Step, display
from .records import FitWarning, Round

# Values of each kind in the first round: so many for each coordinate, within these bounds.
VALUES_EACH, FEWEST, MOST = 10, 60, 500
# Kernel and noise are learned from at most so many values; the posterior is conditioned on all.
TRAINED_VALUES = 2000
# The share of the time that the first round may take, and that a network may take of what is left then.
FIRST_SHARE, NETWORK_SHARE = 0.2, 0.8
# A network is worth its time where the error is more than this many times the wanted one.
FAR = 30.0
# A round that does not lower the error to this fraction of the best so far gained nothing. So many of these are enough.
GAIN, PATIENCE = 0.7, 2
# Error bars that hold are worth this factor of the estimated error.
HANDICAP = 10.0
# Directions are few if all others together have less than this share of the squared slopes.
REST = 1e-3
# Places at which the slopes of a network are looked at.
PLACES = 500


@dataclass
class Search:
    """The rounds of a solution so far, and the time that it has.

    `tail` is what conditioning, calibration and the verdict took in the last round.
    """

    problem: Any
    data: tuple[Observation, ...]
    accuracy: float
    seconds: float | None
    seed: int
    checkpoint: Path | None
    callbacks: Sequence[Callback]
    begin: float = field(default_factory=time.monotonic)
    rounds: list[Round] = field(default_factory=list)
    found: list[Posterior] = field(default_factory=list)
    tail: float = 0.0
    stopped: str | None = None

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return math.inf if self.seconds is None else self.seconds - (time.monotonic() - self.begin)

    @property
    def best(self) -> Posterior:
        """The posterior with the smallest estimated error, those that are not calibrated with a handicap."""
        return min(self.found, key=lambda item: _error(item) * (1.0 if item.verdict.calibrated else HANDICAP))

    @property
    def ended(self) -> bool:
        """Whether another round is of no use, or not wanted."""
        best = self.best
        accurate = best.verdict.calibrated and _error(best) <= self.accuracy
        lost = best.verdict.status == "undetermined"
        return accurate or lost or self.stopped is not None or _error(best) < ROUNDING / 10

    def checkpoint_of(self, name: str) -> Path | None:
        """The file of a round."""
        if self.checkpoint is None:
            return None
        return self.checkpoint.with_name(f"{self.checkpoint.name}.{name}")

    def observed(self, count: int) -> tuple[Observation, ...]:
        """`count` values of each kind, and the measurements."""
        budgets = {stated.budget for stated in self.problem.statements if stated.budget}
        counts = {name: count if name in budgets else 0 for name in ("boundary", "initial", "source")}
        return (*self.problem.sample(**counts, seed=self.seed), *self.data)

    def after_training(self, values: int) -> float:
        """Seconds to keep for what follows training.

        Up to `TRAINED_VALUES` most of it is compilation; of more values predictions are, with the square.
        """
        if not self.rounds:
            return 0.0
        return self.tail * max(values / max(self.rounds[-1].values, TRAINED_VALUES), 1.0) ** 2

    @property
    def time_for_twice_as_many(self) -> bool:
        """Whether there is time for a round with twice as many values as the last."""
        last = self.rounds[-1]
        return self.left > max(2 * last.seconds, self.after_training(2 * last.values))

    def fit(self, name: str, count: int, seconds: float, **options: Any) -> bool:
        """A round. Returns whether it lowered the error."""
        begin, before = time.monotonic(), _error(self.best) if self.found else math.inf
        data = self.observed(count)
        seconds = min(seconds, self.left - self.after_training(sum(map(len, data))))
        # With more time, earlier rounds may end elsewhere: what starts from something else is another round.
        origin = [getattr(options.get(key), "model", options.get(key)) for key in ("start", "mean")]
        file = f"round-{len(self.rounds) + 1}-{digest_of((origin, count))[:12]}"
        with warnings.catch_warnings():
            # What they say is in the verdict, and the last round's is told in the end.
            warnings.simplefilter("ignore")
            posterior = fit(
                self.problem,
                data,
                seed=self.seed,
                seconds=None if math.isinf(seconds) else max(seconds, 1.0),
                trained_values=min(sum(map(len, data)), TRAINED_VALUES, most_that_fit(MATRICES_OF_TRAINING)),
                checkpoint=self.checkpoint_of(file),
                callbacks=[self._shown(name, callback) for callback in self.callbacks],
                progress=False,
                **options,
            )
        self.found.append(posterior)
        stopped, history = posterior.training.stopped, posterior.training.history
        self.tail = posterior.training.seconds - (history[-1].seconds if history else 0.0)
        self.stopped = None if stopped == OUT_OF_TIME else stopped
        kernel = posterior.training.kernel if name == "explore" else f"{name}: {posterior.training.kernel}"
        error, status = posterior.verdict.error_u, posterior.verdict.status
        self.rounds.append(Round(sum(map(len, data)), kernel, error, status, time.monotonic() - begin))
        return bool(_error(posterior) < GAIN * before)

    def network(self, seconds: float) -> NetworkMean | None:
        """A network for the problem; `None` if the run was stopped meanwhile."""
        pool, first = networks.pool_of(self.problem, self.seed)
        key = fingerprint(pool, accuracy=self.accuracy, seed=self.seed)
        journal = Journal(self.checkpoint_of("network"), key)
        callbacks = [self._shown("network", callback) for callback in self.callbacks]
        allowed = None if math.isinf(seconds) else seconds
        monitor = Monitor(callbacks=callbacks, past=journal.past, allowed=allowed)
        journal.log = monitor.log
        with monitor.interruptible():
            mean = networks.trained(self.problem.domain, pool, first, journal, monitor, self.seed, self.accuracy / 3)
        self.stopped = None if monitor.stopped == OUT_OF_TIME else monitor.stopped
        return None if self.stopped else mean

    def _shown(self, name: str, callback: Callback) -> Callback:
        """The callback, told of the whole run instead of the round."""
        begin, number = self.begin, len(self.rounds) + 1

        def call(step: Step) -> Any:
            phase = step.phase if step.phase.startswith(name) else f"{name}, {step.phase}"
            elapsed = time.monotonic() - begin
            return callback(replace(step, phase=f"round {number}: {phase}", seconds=elapsed, allowed=self.seconds))

        return call


@cached()
def solve(
    problem: Any,
    *,
    accuracy: float = 1e-4,
    seconds: float | None = 300.0,
    data: Sequence[Observation] | Observation = (),
    seed: int = 0,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
) -> Posterior:
    """Solve `A u = f` to a wanted accuracy, with as many points as it takes.

    It draws points, fits, and estimates the error of `u` with fresh values. Then it takes more points, or trains a
    network on fresh points as the prior mean, and starts from the best kernel so far. It ends when the error is small
    enough, when the time is up, or when nothing is gained any more. Ctrl-C ends it too. The best result is returned in
    any case.

    **Arguments:**

    - `problem`: the `Problem`: the equation and its conditions. Its own numbers of points are not used.
    - `accuracy`: the relative error of `u` to stop at, as estimated on fresh values.
    - `seconds`: the time allowed; `None` for as long as it takes.
    - `data`: measured values besides those that the problem states, as `Observation`s.
    - `seed`: the seed of everything random.
    - `checkpoint`: a file name. Files that begin with it store the run as it goes on: call `solve` again with the same
      arguments after a kill, and finished parts are not computed again.
    - `callbacks`: functions that are called with every `Step`; one that returns `True` ends the run.
    - `progress`: whether to show progress; by default it is shown in a terminal.

    **Returns:** a calibrated `Posterior`; `posterior.verdict` says how far to trust it, and `posterior.training.rounds`
    what was done.

    !!! example
        ```python
        solved = pk.solve(problem, accuracy=1e-2, seconds=60, progress=False)
        assert solved.training.rounds
        ```
    """
    if not all(callable(getattr(problem, name, None)) for name in ("sample", "fresh", "interior")):
        raise TypeError(
            f"solve(problem) needs a Problem, which knows its source and conditions everywhere: got a "
            f"{type(problem).__name__}. For given data on a domain use fit(domain, data)."
        )
    check_accuracy(accuracy, "default")
    check_seconds(seconds)
    given = check_observations(data) if isinstance(data, Observation) or len(data) else ()
    path = None if checkpoint is None else Path(checkpoint)
    with display(progress) as shown:
        search = Search(problem, given, accuracy, seconds, seed, path, (*callbacks, *shown))
        try:
            _rounds(search)
        except KeyboardInterrupt:
            # Between two trainings there may be a result already.
            if not search.found:
                raise
            search.stopped = INTERRUPTED
        except (ArithmeticError, MemoryError) as error:
            if not search.found:
                raise
            text = f"The best round so far is returned, since the next one could not be done: {error}"
            warnings.warn(text, FitWarning, stacklevel=3)
    best = search.best
    late = search.left <= 0 and not (best.verdict.calibrated and _error(best) <= accuracy)
    stopped = search.stopped or (OUT_OF_TIME if late else None)
    took = time.monotonic() - search.begin
    training = replace(best.training, rounds=tuple(search.rounds), seconds=took, stopped=stopped)
    best = replace(best, training=training)
    say_how_it_ended(best)
    return best


def _rounds(search: Search) -> None:
    problem = search.problem
    count = int(np.clip(VALUES_EACH * problem.domain.dim, FEWEST, MOST))
    search.fit("explore", count, FIRST_SHARE * search.left, accuracy=search.accuracy / 3)
    if not search.ended and _error(search.best) > FAR * search.accuracy and networks.applies(problem, search.data):
        count = _with_network(search, count)
    idle = 0
    while not search.ended and idle < PATIENCE and search.time_for_twice_as_many:
        best = search.best
        count *= 2
        mean = best.model.mean if isinstance(best.model.mean, NetworkMean) else None
        if idle:
            # More points alone gain nothing: they may show what another kernel needs.
            gained = search.fit("explore again", count, search.left, mean=mean, accuracy=search.accuracy / 3)
        else:
            gained = search.fit("more points", count, search.left, start=best, mean=mean)
        idle = 0 if gained else idle + 1


def _with_network(search: Search, count: int) -> int:
    """Rounds from what a network has learned: a kernel on its directions, or the network as the mean.

    Returns how many values of each kind the last of them had.
    """
    mean = search.network(NETWORK_SHARE * search.left)
    if mean is None:
        return count
    kernel, each = _on_directions(search, mean), count
    if kernel is not None:
        each = 2 * count
        search.fit("directions of the network", each, 0.5 * search.left, start=kernel, accuracy=search.accuracy / 3)
    if not search.ended:
        # What a network leaves has several scales; kernels of other roughness would take the time of the network.
        profile = RationalQuadratic()
        each = max(MOST, count)
        search.fit("network", each, search.left, mean=mean, model="gp", profile=profile)
    return each


def _on_directions(search: Search, mean: NetworkMean) -> Kernel | None:
    """A kernel on the directions along which the network varies; `None` if these are many."""
    domain = search.problem.domain
    slopes = networks.slopes(mean, search.problem.interior(PLACES, search.seed))
    rows, strengths = (found[: starts.DIRECTIONS] for found in starts.principal_directions(domain, slopes))
    if len(rows) == domain.dim or np.sum((slopes @ rows.T) ** 2) < (1 - REST) * np.sum(slopes**2):
        return None
    return starts.projection(domain, signal_variance(search.observed(FEWEST)), rows, strengths)


def _error(posterior: Posterior) -> float:
    """The estimated error; infinite where it is not known."""
    return posterior.verdict.error_u if math.isfinite(posterior.verdict.error_u) else math.inf
