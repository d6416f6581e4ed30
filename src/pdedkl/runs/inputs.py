"""From a configuration to a problem and its data."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .. import problems
from ..domain import Domain
from ..observations import Observation
from ..problems import Problem
from ..tables import MissingColumnError
from .folder import Config, RunError


def problem_of(config: Config, folder: Path = Path()) -> Problem:
    """The problem by name, or from the file in the folder of the run."""
    if config.own:
        if config.dim is not None:
            raise RunError("--dim is for the built-in problems: the dimension of your own is set in its file.")
        return problems.from_file(folder / config.problem)
    return problems.built_in(config.problem, dim=config.dim)


def data_of(config: Config, problem: Problem, folder: Path = Path()) -> tuple[Observation, ...]:
    """Sampled conditions and sources, and measurements of `u` from the user's tables."""
    wanted = {"boundary": config.boundary, "initial": config.initial, "source": config.source}
    counts = {name: count for name, count in wanted.items() if count is not None}
    sampled = problem.sample(**counts, seed=config.seed, sampler=config.sampler, noise=config.noise)
    return (*sampled, *(measurements(folder / name, problem.domain) for name in config.data))


def measurements(path: Path, domain: Domain) -> Observation:
    """Values of `u` in a table whose columns are the coordinates, `u`, and `noise` if it is known."""
    read = partial(Observation.from_table, path, domain.coordinate_names, "u", domain=domain, name=f"u in {path.name}")
    try:
        return read(noise="noise")
    except MissingColumnError:
        return read(noise="learned")
