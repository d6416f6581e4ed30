"""Arguments of `fit` and `solve`: what was expected, what came, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..domain import Domain
from ..inference import Posterior
from ..kernels import Kernel, Profile
from ..means import Mean
from ..shown import over


def check_seconds(seconds: float | None) -> None:
    if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds < float("inf")):
        raise ValueError(f"`seconds` needs a positive number of seconds: got {seconds!r}.")


def check_profile(profile: Any, recipe: str) -> None:
    if not (profile is None or isinstance(profile, Profile)):
        raise TypeError(f"`profile` needs a profile such as Matern52(), with parentheses: got {profile!r}.")
    if profile is not None and recipe == "paper":
        raise ValueError("`profile` is for the default recipe: the paper's recipe uses SquaredExponential().")


def check_mean(mean: Any, recipe: str) -> None:
    if not (mean is None or isinstance(mean, Mean)):
        raise TypeError(f"`mean` needs a Mean, such as FunctionMean(guess): got {mean!r}.")
    if mean is not None and recipe == "paper":
        raise ValueError("`mean` is for the default recipe: the paper's recipe has none.")


def check_start(start: Any, recipe: str, domain: Domain) -> None:
    if start is None:
        return
    if not isinstance(start, Posterior | Kernel):
        raise TypeError(
            f"`start` needs a Posterior, as from fit or load, or a Kernel: got {start!r}. A function of the point to "
            "start from is for nonlinear equations, and this one is linear."
        )
    if recipe == "paper":
        raise ValueError("`start` is for the default recipe: the paper's recipe begins with its own network.")
    if (layout := kernel_of(start).layout) != domain.layout:
        raise ValueError(
            f"`start` needs a posterior or a kernel for this problem: it is over {over(layout)}, and the problem is "
            f"over {over(domain.layout)}."
        )


def kernel_of(start: Posterior | Kernel) -> Kernel:
    return start if isinstance(start, Kernel) else start.model.kernel


def check_accuracy(accuracy: float | None, recipe: str) -> None:
    if accuracy is not None and not 0 < accuracy < 1:
        raise ValueError(f"`accuracy` needs a relative error between 0 and 1, such as 1e-2: got {accuracy!r}.")
    if accuracy is not None and recipe == "paper":
        raise ValueError("`accuracy` is for the default recipe: the paper's recipe takes a fixed number of steps.")


def check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"Unknown {name} {value!r}: choose one of {', '.join(known)}.")
