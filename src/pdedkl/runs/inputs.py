"""From a configuration to a problem and its data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import problems
from ..domain import Domain
from ..kernels import Profile, ard
from ..observations import Observation
from ..operators import Operator, identity
from ..operators.rows import value_of
from ..problems import Problem
from ..tables import MissingColumnError, read_table
from ..training import candidates
from ..training.arguments import check_profile as check_recipe
from .folder import COUNTS, Config, Folder, RunError, existing


def problem_of(config: Config, folder: Folder | None = None, trust: bool = False) -> Problem:
    """The built-in problem of this name, or the problem from the user's file or from its copy in the run's folder."""
    if not config.own:
        return problems.built_in(config.problem, dim=config.dim)
    if config.dim is not None:
        raise RunError("--dim is for the built-in problems: the dimension of your own problem is set in its file.")
    if folder is None:
        path, text = Path(config.problem), existing(config.problem).read_bytes()
    else:
        path, text = folder / config.problem, folder.program(config, trust)
    try:
        return problems.from_text(text, path)
    except problems.ProblemFileError as error:
        if not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        raise RunError(
            f"{error} A run keeps only this one file: copy into it what it imports from its folder, or install that."
        ) from error


PROFILES = {name.lower().replace("é", "e").replace(" ", "-"): made for name, made in candidates.PROFILES.items()}


def profile_of(config: Config) -> Profile | None:
    """The profile of this name; `None` if training chooses it."""
    if config.profile is None:
        return None
    if config.profile not in PROFILES:
        raise RunError(f"There is no profile {config.profile!r}: choose one of {', '.join(sorted(PROFILES))}.")
    return PROFILES[config.profile]()


def check_profile(config: Config, problem: Problem, data: Sequence[Observation]) -> None:
    """Refuse a profile that the recipe does not use, or that is too rough for an operator."""
    check_recipe(profile := profile_of(config), config.recipe)
    for item in data if profile is not None else ():
        ard(problem.domain, profile).check(item.operator)


def data_of(
    config: Config, problem: Problem, folder: Folder | None = None, trust: bool = False
) -> tuple[Observation, ...]:
    """Sampled conditions and sources, and measurements of `u` from the user's tables."""
    counts = {name: count for name in COUNTS if (count := getattr(config, name)) is not None}
    sampled = problem.sample(**counts, seed=config.seed, sampler=config.sampler, noise=config.noise)
    return (*sampled, *tables_of(config, problem, folder, trust))


def tables_of(
    config: Config, problem: Problem, folder: Folder | None = None, trust: bool = False
) -> tuple[Observation, ...]:
    """Measurements of `u` from the user's tables."""
    tables = [Path(name) for name in config.data] if folder is None else folder.data(config, trust)
    return tuple(item for path in tables for item in measurements(path, problem.domain, problem.fields))


def measurements(path: Path, domain: Domain, fields: Sequence[str] = ()) -> list[Observation]:
    """Values of fields in a table whose columns are the coordinates, `u`, and `noise` if it is known.

    Of several fields it has a column for each that was measured.
    """
    if len(fields) < 2:
        return [_column(path, domain, "u", identity)]
    there = [name for name in fields if has_column(path, name)]
    if not there:
        raise RunError(f"{path} has no column of a field: expected one of {', '.join(fields)}.")
    return [_column(path, domain, name, value_of(name)) for name in there]


def _column(path: Path, domain: Domain, column: str, operator: Operator) -> Observation:
    # Characters that are not valid Unicode cannot be saved, and control characters must not reach a terminal.
    file = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path.name)
    noise = "noise" if has_column(path, "noise") else "learned"
    axes = domain.coordinate_names
    return Observation.from_table(path, axes, column, noise, operator, domain, f"{column} in {file}")


def has_column(path: Path, name: str) -> bool:
    try:
        read_table(path, [name])
    except MissingColumnError:
        return False
    return True
