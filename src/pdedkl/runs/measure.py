"""How good the solution is: the numbers of `metrics.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..equations import Nonlinear
from ..inference import Posterior
from ..inference.linearising import is_linearised
from ..inference.memory import peak_bytes
from ..observations import Observation
from ..operators import Operator, same
from ..problems import Problem
from ..reports import Results
from .folder import Config

# These are `None` if there is no exact solution to compare with.
OF_U = ("error_u", "coverage_u", "z_rms_u", "nlpd_u", "crps_u", "sharpness_u", "constant_u", "line_u")


def measured(posterior: Posterior, problem: Problem, config: Config, results: Results) -> dict[str, Any]:
    """The content of `metrics.json`. Errors are relative L2 errors on fresh points, as fractions."""
    training, data = posterior.training, posterior.observations
    n = sum(map(len, data))
    verdict = posterior.verdict
    if verdict.status == "unchecked":
        verdict = posterior.check(problem, seed=config.seed)
    found = {
        "problem": problem.name,
        "dim": _dim(problem) if config.dim is None else config.dim,
        "model": training.model,
        "recipe": training.recipe,
        "seed": config.seed,
        "n_u": sum(len(item) for item in data if item.operator.order == 0),
        "n_f": values_of_equations(problem, data),
        "n": n,
        "latent_dim": int(posterior.model.kernel.components[0].log_lengthscale.size),
        "kernel": training.kernel,
        **dict.fromkeys(OF_U),
        **results.metrics(),
        "verdict": {"status": verdict.status, "reasons": verdict.reasons, "error_u": verdict.error_u},
        "check": verdict.to_json(),
        "calibration": _factors(posterior),
        "parameters": posterior.parameters._to_json() if posterior.parameters else None,
        "iterations": [asdict(item) for item in training.iterations],
        "objective": training.objective,
        "candidates": dict(training.candidates),
        "rounds": [asdict(item) for item in training.rounds],
        "left_out": training.left_out,
        "noise": {name: float(level) for name, level in posterior.model.noise().items()},
        "rejected": training.rejected,
        "jitter": float(posterior.jitter),
        "train_seconds": training.seconds,
        "trace_seconds": training.trace_seconds,
        "compile_seconds": training.compile_seconds,
        "peak_memory_bytes": peak_bytes(),
    }
    return {name: _finite(value) for name, value in found.items()}


def values_of(operator: Operator, data: Sequence[Observation]) -> int:
    """How many of the values are values of this operator."""
    return sum(len(item) for item in data if same(item.operator, operator))


def values_of_equations(problem: Problem, data: Sequence[Observation]) -> int:
    """How many of the values are values of the equations; nonlinear ones are linearised in the data."""
    if not problem.equations:
        return values_of(problem.operator, data)
    inside = [stated.operator for stated in problem.statements[-len(problem.equations) :]]
    is_of = lambda item, A: is_linearised(item, A) if isinstance(A, Nonlinear) else same(item.operator, A)
    return sum(len(item) for item in data if any(is_of(item, A) for A in inside))


def _factors(posterior: Posterior) -> dict[str, Any] | None:
    """The calibration factors of the error bars, for each cause of errors."""
    if (found := posterior.calibration) is None:
        return None
    factors = {name: float(factor) for name, factor in zip(found.causes, np.asarray(found.factors))}
    return {"source": found.source, "factors": factors}


def _dim(problem: Problem) -> int:
    """The number of coordinates called `x`, or of all coordinates if none is called `x`."""
    return dict(problem.domain.layout).get("x", problem.domain.dim)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
