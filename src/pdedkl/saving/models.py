"""Save a posterior, load it again bit for bit, describe a file."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..inference import Posterior
from ..inference.iterative import Iterative
from ..model import bounds_of, positive_names
from ..observations import Learned, Observation
from ..parsing import parse_json, shortened
from ..precision import require_float64
from .checks import check_numbers, check_posterior, check_traced
from .fields import MisfitError, described
from .file import AGAIN, read, read_header, write
from .functions import FunctionsNotSaved, call, check_given, check_values, listed, values_of
from .tree import Decoder, Encoder, NotRegisteredError

HEADER = {"format", "version", "pdedkl", "summary", "functions", "extra", "posterior"}
FUNCTION = {"in", "values"}


def save(
    posterior: Posterior, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None, stacklevel: int = 2
) -> None:
    """Write the posterior to one file. `extra` is a dictionary of JSON values to store with it."""
    if not isinstance(posterior, Posterior):
        raise TypeError(
            f"Only a Posterior can be saved, from condition(model, observations): got {type(posterior).__name__}."
        )
    from .. import __version__

    _check_extra(extra)
    encoder = Encoder()
    # The rows of the autodiff engine only repeat the points and the operator: they are made again on loading.
    kept = dataclasses.replace(posterior, sections=()) if posterior.model.engine == "autodiff" else posterior
    if isinstance(kept.solver, Iterative):  # the program that loads the file has its own devices
        kept = dataclasses.replace(kept, solver=dataclasses.replace(kept.solver, mesh=None))
    tree = encoder.encode(kept, "")
    for i, (name, fn) in enumerate(encoder.of_point.items()):
        encoder.functions[name]["values"] = encoder.encode(values_of(fn, posterior), f"functions.{i}")
    header = {
        "pdedkl": __version__,
        "summary": _summary(posterior),
        "functions": encoder.functions,
        "extra": extra or {},
        "posterior": tree,
    }
    # Check that the file can be loaded: better an error now than a file that does not load.
    _restored(path, parse_json(json.dumps(header, allow_nan=False), "This posterior"), encoder.tensors, encoder.given)
    write(Path(path), header, encoder.tensors)
    if encoder.functions:
        warnings.warn(
            f"A model file holds no Python functions. Keep {listed(encoder.functions)}, and load with "
            f"{call(path, encoder.functions)}.",
            FunctionsNotSaved,
            stacklevel=stacklevel,
        )


def functions_of(observations: Sequence[Observation]) -> dict[str, Callable]:
    """The Python functions of observations, by the names that `save` gives them: the `functions` for `load`."""
    encoder = Encoder()
    encoder.encode(tuple(observations), "")
    return encoder.given


def load(path: str | os.PathLike[str], *, functions: Mapping[str, Callable] | None = None) -> Posterior:
    """The posterior that was saved, with the same predictions to the last bit.

    **Arguments:**

    - `path`: the file that `posterior.save` wrote.
    - `functions`: the Python functions of coefficients, operators and the prior mean, by name. A data file cannot hold
      them. Saving names them in a warning, and `pdedkl.saving.describe(path)["functions"]` lists them.

    **Returns:** a `Posterior`.

    !!! example
        ```python
        posterior.save("model.pdedkl")
        again = pk.load("model.pdedkl")
        assert (again.predict(points).mean == posterior.predict(points).mean).all()
        ```
    """
    require_float64()
    header, tensors = read(Path(path))
    if set(header) != HEADER:
        raise ValueError(f"The header of {path} needs the entries {sorted(HEADER)} and has {sorted(header)}. {AGAIN}")
    wanted, given = header["functions"], dict(functions or {})
    if not (isinstance(wanted, dict) and all(isinstance(e, dict) and set(e) == FUNCTION for e in wanted.values())):
        raise ValueError(f"The header of {path} needs {sorted(FUNCTION)} of every function by name. {AGAIN}")
    check_given(path, wanted, given)
    return _restored(path, header, tensors, given)


def _restored(
    path: Any, header: dict[str, Any], tensors: dict[str, np.ndarray], given: dict[str, Callable]
) -> Posterior:
    wanted, decoder = header["functions"], Decoder(tensors, given)
    with _fitting(path):
        posterior = decoder.decode(header["posterior"], "posterior")
        if not isinstance(posterior, Posterior):
            raise MisfitError(f"the header does not describe a posterior, but {described(posterior)}")
        values = {name: decoder.decode(entry["values"], f"functions.{name}") for name, entry in wanted.items()}
        if unused := sorted(set(tensors) - decoder.used) + sorted(set(wanted) - set(decoder.of_point)):
            raise MisfitError(f"{', '.join(unused)} belongs to no part of the model")
        posterior = _with_forms(posterior)
        check_posterior(posterior)
    for name, fn in decoder.of_point.items():
        check_values(path, name, fn, values[name], posterior)
    with _fitting(path):
        check_traced(posterior)
        whole = posterior if posterior.model.engine == "closed-form" else _with_rows(posterior)
        check_numbers(whole, tensors)
    return whole


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of a model file: `summary`, `functions`, `extra`, versions, and the tree of the posterior.

    Arrays are not read, so the checksum is not verified.
    """
    return read_header(Path(path))


@contextmanager
def _fitting(path: Any) -> Iterator[None]:
    """Turn every error in the block into an error about the file."""
    try:
        yield
    except NotRegisteredError as error:
        raise ValueError(
            f"{path} holds an object of your own class {str(error)!r}: call pdedkl.saving.register({str(error)!r}, …) "
            "with that class before loading."
        ) from None
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"The model file {path} does not fit together: {shortened(error, 600)}. {AGAIN}") from None


def _with_forms(posterior: Posterior) -> Posterior:
    """The posterior with `model.positive` set from the operators, because older files do not store it."""
    model = copy.copy(posterior.model)
    object.__setattr__(model, "positive", positive_names([item.operator for item in posterior.observations]))
    object.__setattr__(model, "bounds", bounds_of([item.operator for item in posterior.observations]))
    return dataclasses.replace(posterior, model=model)


def _with_rows(posterior: Posterior) -> Posterior:
    model, engine = posterior.model, posterior.engine
    rows = (engine.rows(model.kernel, model.bound(o.operator), o.points) for o in posterior.observations)
    return dataclasses.replace(posterior, sections=tuple(rows))


def _check_extra(extra: Any) -> None:
    if not (extra is None or isinstance(extra, dict)):
        raise TypeError(f"`extra` needs to be a dictionary: got {type(extra).__name__}.")
    try:
        json.dumps(extra, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"`extra` needs JSON values: strings, finite numbers, lists and dictionaries with string keys; {error}."
        ) from None


def _summary(posterior: Posterior) -> dict[str, Any]:
    """A summary for human readers. It is not used on loading."""
    model, observations = posterior.model, posterior.observations
    return {
        "coordinates": dict(model.kernel.layout),
        "observations": [
            {"name": o.name, "operator": str(o.operator), "points": len(o), "noise": _noise(o)} for o in observations
        ],
        "noise": model.noise(),
        "coefficients": posterior.unknowns(),
        "engine": model.engine,
        "training": _training(posterior),
        "verdict": posterior.verdict.status,
        "objective": float(posterior.objective),
        "jitter": float(posterior.jitter),
    }


def _training(posterior: Posterior) -> dict[str, Any] | None:
    """The settings of the training; `None` if there was none."""
    if (training := posterior.training) is None:
        return None
    chosen = ("recipe", "model", "seed", "kernel", "trained_values", "solver")
    return {name: getattr(training, name) for name in chosen}


def _noise(item: Observation) -> float | str:
    if isinstance(item.noise, Learned):
        return f"learned: {item.noise_name}"
    return float(item.noise) if item.noise.ndim == 0 else "one for each point"
