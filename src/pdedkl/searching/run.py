"""The loop: propose, train, record."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..domain import Domain
from ..jobs import Job, Pool, Serial, open_pool
from ..observations import Observation, check_observations
from ..training import fit
from ..training.journal import fingerprint
from .evaluation import Evaluation, Fit, Train, Trained, best_of, described
from .result import Search
from .space import Space
from .state import State
from .surrogate import ACQUISITIONS, propose

# Options of `fit` that a search sets itself, and what to write instead.
TAKEN = {
    "latent_dim": "latent_dims=[…]",
    "prior_strength": "prior_strengths=[…]",
    "checkpoint": "state='search.json'",
    "checkpoint_every": "state='search.json'",
}


def search(
    problem: Any,
    data: Sequence[Observation] | Observation,
    *,
    latent_dims: Iterable[int] = range(1, 21),
    groups: Iterable[int] | None = None,
    prior_strengths: Iterable[float] | None = None,
    initial: int = 4,
    evaluations: int = 10,
    acquisition: str = "ei",
    workers: int = 1,
    batch: int | None = None,
    scheduler: str | None = None,
    state: str | Path | None = None,
    seed: int = 0,
    recipe: str = "default",
    model: str = "dkl",
    progress: bool | None = None,
    **fit_options: Any,
) -> Search:
    """`argmin L(h)` over a finite set of latent dimensions `h`, by Bayesian optimisation of the training objective `L`.

    `L(h)` is `posterior.training.objective` of `fit(problem, data, latent_dim=h, …)`. The first values are random. Each
    later one maximises the acquisition of a Gaussian process through the objectives so far, over all values that are
    left. No value is trained twice.

    **Arguments:**

    - `problem`: the `Problem`, or the `Domain` if there is none.
    - `data`: an `Observation` or a list of them.
    - `latent_dims`: the latent dimensions to choose from.
    - `groups`: numbers of groups to choose from, if they are searched too.
    - `prior_strengths`: strengths of the prior to choose from, if they are searched too. The set is the product of all
      lists.
    - `initial`: how many random values come first.
    - `evaluations`: how many values are trained in total; the whole set if it is smaller.
    - `acquisition`: `"ei"` (expected improvement), `"ucb"` (confidence bound) or `"pi"` (probability of improvement).
    - `workers`: how many values are trained at a time, each in its own process.
    - `batch`: how many values are proposed at a time; one for each worker by default. The result depends on the batch
      and not on the workers.
    - `scheduler`: the address of a Dask scheduler. All its workers train instead of local processes.
    - `state`: a file in which the search is stored. Called again with the same arguments, a killed search continues.
      With a larger `evaluations`, a finished search adds the missing ones.
    - `seed`: the seed of everything random.
    - `recipe`: `"default"`, or `"paper"` for the paper's own training.
    - `model`: `"dkl"` for a network, `"linear"` for a learned linear map.
    - `progress`: whether to print a line for each evaluation; nothing is printed by default.
    - `**fit_options`: more arguments of `fit`, the same for every value.

    **Returns:** a `Search`: `best`, `posterior`, `table()` and `plot()`.

    !!! example
        ```python
        searched = pk.search(problem, data, latent_dims=range(1, 6), evaluations=5)
        posterior = searched.posterior
        ```
    """
    domain = problem if isinstance(problem, Domain) else getattr(problem, "domain", None)
    if not isinstance(domain, Domain):
        raise TypeError(f"search(problem, data) needs a problem or a Domain first: got {type(problem).__name__}.")
    found = check_observations(data)
    space = Space.of(latent_dims, groups, prior_strengths)
    if model == "gp":
        raise ValueError("model='gp' has no latent dimension to search: use model='dkl' or 'linear'.")
    _check_fit_options(fit_options)
    shape = {"layout": domain.layout, "lower": domain.lower.tolist(), "upper": domain.upper.tolist()}
    named = {name: repr(value) for name, value in fit_options.items() if name not in ("callbacks", "validation")}
    if (validation := fit_options.get("validation")) is not None:
        # The text of an observation does not show all its values, so validation data are stored as a fingerprint.
        named["validation"] = fingerprint(check_observations(validation, beside=found))
    searcher = Searcher(
        space,
        Fit(problem, found, {"recipe": recipe, "model": model, "seed": seed, **fit_options}),
        initial=initial,
        evaluations=evaluations,
        acquisition=acquisition,
        workers=workers,
        batch=batch,
        scheduler=scheduler,
        state=state,
        seed=seed,
        progress=progress,
        options={"recipe": recipe, "model": model, **named, "data": fingerprint(found, **shape)},
    )
    return searcher.run()


class Searcher:
    """A search over `space` for the lowest objective that `train` returns. `options` identify it in its state file."""

    def __init__(
        self,
        space: Space,
        train: Train,
        *,
        initial: int = 4,
        evaluations: int = 10,
        acquisition: str = "ei",
        workers: int = 1,
        batch: int | None = None,
        scheduler: str | None = None,
        state: str | Path | None = None,
        seed: int = 0,
        progress: bool | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        batch = workers if batch is None else batch
        counts = {"initial": initial, "evaluations": evaluations, "workers": workers, "batch": batch}
        for name, value in counts.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`{name}` needs a positive whole number: got {value!r}.")
        if initial > evaluations:
            raise ValueError(
                f"`initial` cannot exceed `evaluations`, which include the first ones: got {initial} of {evaluations}. "
                f"Use initial={evaluations} or fewer."
            )
        if acquisition not in ACQUISITIONS:
            raise ValueError(f"Unknown acquisition {acquisition!r}: choose one of {', '.join(ACQUISITIONS)}.")
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ValueError(f"`seed` needs a whole number that is not negative: got {seed!r}.")
        if scheduler is not None and not isinstance(scheduler, str):
            raise TypeError(f"`scheduler` needs an address such as 'tcp://host:8786': got {scheduler!r}.")
        self.space, self.train, self.initial, self.acquisition = space, train, initial, acquisition
        self.workers, self.scheduler, self.batch = workers, scheduler, batch
        self.seed, self.progress = seed, bool(progress)
        self.wanted = min(evaluations, len(space))
        same = {"initial": initial, "acquisition": acquisition, "batch": batch, "seed": seed}
        self.state = State(state, {"search set": space.axes, **same, **(options or {})}, space)
        if (stored := len(self.state.proposed)) > self.wanted:
            raise ValueError(
                f"{self.state.path} holds {stored} evaluations already and only {self.wanted} are asked for: "
                f"use evaluations={stored} or more, or another file."
            )

    def run(self) -> Search:
        state, trained = self.state, None
        with self._pool() as pool:
            train = Trained(self.train, keep=isinstance(pool, Serial))
            while state.pending or self._propose():
                proposed = ((number, state.proposed[number]) for number in state.pending)
                jobs = {Job(described(parameters), parameters): number for number, parameters in proposed}
                for job, (evaluation, posterior) in pool.run(train, list(jobs)):
                    state.done[jobs[job]] = evaluation
                    state.write()
                    best = best_of(state.history)
                    trained = posterior if best is evaluation else trained
                    self._show(jobs[job], evaluation, best)
        if best_of(state.history) is None:
            raise RuntimeError(
                f"All {len(state.history)} trainings failed; the first with: {state.history[0].error} "
                "Look at the data and its noise, or try recipe='default'."
            )
        return Search(self.space, state.history, self.seed, self.train, trained)

    def _pool(self) -> Pool:
        alone = self.workers == 1 and self.scheduler is None
        return Serial() if alone else open_pool(self.workers, self.scheduler)

    def _propose(self) -> bool:
        """Propose the next batch. Returns whether there is one."""
        count = len(self.state.proposed)
        if count == 0:
            new = self.space.shuffled(self.seed)[: min(self.initial, self.wanted)]
        else:
            known = [(item.parameters, item.objective) for item in self.state.history]
            new = propose(self.space, known, min(self.batch, self.wanted - count), self.seed, self.acquisition)
        self.state.proposed += new
        self.state.write()
        return bool(new)

    def _show(self, number: int, evaluation: Evaluation, best: Evaluation | None) -> None:
        if not self.progress:
            return
        found = "failed" if evaluation.objective is None else f"objective {evaluation.objective:.2f}"
        so_far = "" if best is None else f"   best so far: {described(best.parameters)}"
        print(
            f"pdedkl  search {number + 1}/{self.wanted}   {described(evaluation.parameters)}   {found}   "
            f"{evaluation.seconds:.1f} s{so_far}",
            file=sys.stderr,
            flush=True,
        )


def _check_fit_options(options: dict[str, Any]) -> None:
    known = inspect.signature(fit).parameters
    for name in options:
        if name in TAKEN:
            raise TypeError(f"`{name}` is not an option of a search: use {TAKEN[name]}.")
        if name not in known:
            raise TypeError(f"`{name}` is an option of neither search nor fit.")
