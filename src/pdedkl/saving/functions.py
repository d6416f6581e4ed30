"""Python functions in a model: a file stores their names, and a few of their values to recognise them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..inference import Posterior
from ..means import FunctionMean
from ..operators import Coefficient

PROBES = 4  # points at which a function is compared with its stored values
TOLERANCE = 1e-8  # relative to its largest value there, since another machine rounds differently


class FunctionsNotSaved(UserWarning):
    """A model file holds data only. The functions that the warning names have to be given again to `pdedkl.load`."""


def name_of(fn: Callable, owner: Any, field: str, taken: Mapping[str, Any]) -> str:
    """The name of the coefficient, of the function or of the field, with a number if the name is taken."""
    plain = getattr(fn, "__name__", "<lambda>")
    fallback = "mean" if isinstance(owner, FunctionMean) else field
    base = owner.name if isinstance(owner, Coefficient) else fallback if plain == "<lambda>" else plain
    name, count = base, 1
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    return name


def place_of(owner: Any) -> str:
    return "the prior mean" if isinstance(owner, FunctionMean) else str(owner)


def function_of_point(owner: Any, fn: Callable) -> Callable:
    """`fn(q)`, with the parameters that a coefficient passes to it."""
    return owner if isinstance(owner, Coefficient) and owner.parameters else fn


def values_of(fn: Callable, posterior: Posterior) -> np.ndarray:
    points = np.asarray(posterior.observations[0].points)[:PROBES]
    return np.stack([np.asarray(fn(jnp.asarray(q)), dtype=np.float64) for q in points])


def check_given(path: Any, wanted: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check that exactly the functions that the file needs are given."""
    if missing := {name: entry for name, entry in wanted.items() if name not in given}:
        raise ValueError(
            f"{path} was saved with Python functions, which a file cannot hold, and still needs {listed(missing)}: "
            f"load it with {call(path, wanted)}."
        )
    if unknown := sorted(set(given) - set(wanted)):
        raise ValueError(f"{path} has no function {unknown}: it needs {sorted(wanted) or 'none'}.")
    for name, fn in given.items():
        if not callable(fn):
            raise ValueError(f"`functions` needs a function of the point q as {name!r}: got {fn!r}.")


def check_values(path: Any, name: str, fn: Callable, expected: Any, posterior: Posterior) -> None:
    """Refuse a function that differs from the one of the saved model: predictions would be wrong without notice."""
    try:
        values = values_of(fn, posterior)
    except Exception as error:  # any error of the user's function
        raise ValueError(f"The function {name!r} given for {path} could not be called with a point: {error}") from error
    expected = np.asarray(expected)
    size = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    if values.shape != expected.shape or not np.allclose(values, expected, 0.0, TOLERANCE * size, equal_nan=True):
        raise ValueError(
            f"The function {name!r} given for {path} is not the one it was saved with: at the first points of the data "
            f"expected {_short(expected)}, got {_short(values)}. Pass the same function."
        )


def listed(functions: Mapping[str, Any]) -> str:
    return ", ".join(f"{name!r} (in {entry['in']})" for name, entry in functions.items())


def call(path: Any, names: Mapping[str, Any]) -> str:
    return f"pdedkl.load({os.fspath(path)!r}, functions={{{', '.join(f'{name!r}: …' for name in names)}}})"


def _short(values: np.ndarray) -> str:
    return f"{', '.join(f'{value:.6g}' for value in values.reshape(-1)[:4])} (shape {values.shape})"
