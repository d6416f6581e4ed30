"""A run that can be killed at any moment: phases, their states, and one file that is always replaced as a whole.

Training is a sequence of named phases. A phase is a state (named arrays) and a function that takes one step. Steps are
deterministic, so a run that continues from a stored state ends in exactly the same bits as a run that never stopped.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..archives import ArchiveError, opened
from ..files import write_atomically
from ..observations import Observation
from ..operators import Coefficient
from ..parsing import parse_json
from .monitor import Log, Step

FORMAT = "pdedkl checkpoint 2"
PLACE = re.compile("(?P<kind>finished|current)/(?P<name>.+)/(?P<field>[^/]+)")
SOLVERS = ("dense", "iterative")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
PROBES = 50  # points at which functions are compared
State = dict[str, np.ndarray]


class Journal:
    """The finished phases and the state of the current one; with a path, written to a file every `every` seconds.

    `plan` holds choices that do not follow from the arguments of the run; a resumed run reads them with `recorded`.
    `log()` is the history up to the stored state; `past` is the history that was read from the file.
    """

    def __init__(
        self,
        path: str | Path | None,
        fingerprint: str,
        every: float = 2.0,
        plan: dict[str, Any] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self.every = every
        self.plan = plan or {}
        self.log: Callable[[], Log] = Log
        self.past = Log()
        self.finished: dict[str, State] = {}
        self.current: tuple[str, State] | None = None
        self._noted = self.past
        self._written = time.monotonic()
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def run(
        self,
        name: str,
        begin: Callable[[], State],
        step: Callable[[State], State],
        stopped: Callable[[], bool] = lambda: False,
    ) -> State:
        """Take steps until the state says `done`. A finished phase is not run again.

        A step during which the run was `stopped` may be incomplete. Its state is returned but never stored: a resumed
        run takes that step again, in full.
        """
        state = begin()
        if name in self.finished:
            return self._fitting(name, self.finished[name], state)
        if self.current is not None and self.current[0] == name:
            state = self._fitting(name, self.current[1], state)
        while not bool(state["done"]):
            keep = not stopped()
            if keep:
                self.current, self._noted = (name, state), self.log()
                self._write(force=False)
            state = step(state)
            if stopped():
                self._write(force=keep)
                return state
        self.finished[name] = state
        self.current, self._noted = None, self.log()
        self._write(force=True)
        return state

    def _fitting(self, name: str, stored: State, first: State) -> State:
        """The stored state, once it is checked: the same arrays as in the phase's first state, and no NaN."""
        forms = [{key: (value.shape, value.dtype.kind) for key, value in sorted(s.items())} for s in (stored, first)]
        broken = any(np.any(np.isnan(value)) for value in stored.values() if value.dtype.kind == "f")
        if forms[0] != forms[1] or broken or not np.all(np.isfinite(stored["x"])):
            raise _unreadable(self.path, f"the state of {name!r} does not belong to this run")
        return stored

    def _write(self, force: bool) -> None:
        if self.path is None or not (force or time.monotonic() - self._written >= self.every):
            return
        arrays: dict[str, Any] = {"format": np.asarray(FORMAT), "fingerprint": np.asarray(self.fingerprint)}
        arrays |= {"plan": _as_bytes(self.plan), "log": _as_bytes(asdict(self._noted))}
        for name, state in self.finished.items():
            arrays |= {f"finished/{name}/{key}": value for key, value in state.items()}
        if self.current is not None:
            name, state = self.current
            arrays |= {f"current/{name}/{key}": value for key, value in state.items()}
        arrays["digest"] = np.asarray(_digest(arrays))
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        write_atomically(self.path, buffer.getvalue())
        self._written = time.monotonic()

    def _read(self, path: Path) -> None:
        arrays = _arrays(path)
        if str(arrays.pop("fingerprint")) != self.fingerprint:
            raise ValueError(
                f"{path} belongs to another run (other data, recipe, options or version of pdedkl): give another "
                "name for the checkpoint, or delete it."
            )
        del arrays["plan"]
        self.past = self._noted = _log(path, arrays.pop("log"))
        states: dict[tuple[str, str], State] = {}
        for key, value in arrays.items():
            if not (place := PLACE.fullmatch(key)):
                raise _unreadable(path, f"it holds {key!r}")
            states.setdefault((place["kind"], place["name"]), {})[place["field"]] = value
        self.finished = {name: state for (kind, name), state in states.items() if kind == "finished"}
        self.current = next(((name, state) for (kind, name), state in states.items() if kind == "current"), None)


def recorded(path: str | Path | None) -> dict[str, Any]:
    """The plan in a checkpoint; empty where there is none."""
    if path is None or not Path(path).exists():
        return {}
    path = Path(path)
    plan = _from_bytes(path, _arrays(path)["plan"])
    if not (isinstance(plan, dict) and plan.get("solver", SOLVERS[0]) in SOLVERS and _is_count(plan)):
        raise _unreadable(path, "its plan is damaged")
    return plan


def _is_count(plan: dict[str, Any]) -> bool:
    return type(count := plan.get("trained_values", 1)) is int and count > 0


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint, once the file is checked to be complete and undamaged."""
    try:
        with opened(path) as archive:
            arrays = {name: archive.array(name) for name in archive.names}
    except ArchiveError as error:
        raise _unreadable(path, error.what) from None
    digest = str(arrays.pop("digest", ""))
    expected = _digest(arrays)
    if str(arrays.pop("format", "")) != FORMAT:
        raise ValueError(f"{path} is not a checkpoint of this version of pdedkl: delete it to start anew.")
    if digest != expected:
        raise _unreadable(path, "it is damaged")
    if missing := {"fingerprint", "plan", "log"} - set(arrays):
        raise _unreadable(path, f"it lacks {', '.join(sorted(missing))}")
    return arrays


def _log(path: Path, array: np.ndarray) -> Log:
    try:
        found = _from_bytes(path, array)
        log = Log(**found | {"history": tuple(Step(**step) for step in found["history"])})
        numbers = (log.seconds, log.trace_seconds, log.compile_seconds, *(step.seconds for step in log.history))
    except (TypeError, KeyError):
        raise _unreadable(path, "its log is damaged") from None
    if not all(isinstance(number, int | float) for number in numbers):
        raise _unreadable(path, "its log is damaged")
    return log


def _as_bytes(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _from_bytes(path: Path, array: np.ndarray) -> Any:
    try:
        return parse_json(array.tobytes(), "its text", finite=False)
    except ValueError as error:
        raise _unreadable(path, str(error).rstrip(".")) from None


def _unreadable(path: Path | None, why: str) -> ValueError:
    return ValueError(f"{path} is no checkpoint that can be read ({why}): delete it to start anew.")


def fingerprint(observations: Sequence[Observation], **options: Any) -> str:
    """A digest of everything that a run depends on: observations, options, and the version of the library.

    A Python function is another object in each process, so its values at some of the points are used instead.
    """
    from .. import __version__

    digest = hashlib.sha256(__version__.encode())
    for item in observations:
        digest.update(f"{jax.tree.structure(item)}|{item.noise_name}".encode())
        places = np.asarray(item.points)[np.unique(np.linspace(0, len(item) - 1, PROBES).astype(int))]
        for leaf in jax.tree.leaves(item, is_leaf=lambda node: isinstance(node, Coefficient)):
            values = jax.vmap(leaf)(places) if callable(leaf) else leaf
            digest.update(f"{np.shape(values)}".encode() + np.ascontiguousarray(values).tobytes())
    digest.update(repr(sorted(options.items())).encode())
    return digest.hexdigest()


def digest_of(tree: Any) -> str:
    """A digest of the structure and of all arrays of a tree, and of the names of its functions."""
    # A function is elsewhere in the memory of each process.
    named = lambda value: ADDRESS.sub("", str(value)).encode()
    digest = hashlib.sha256(named(jax.tree.structure(tree)))
    for leaf in jax.tree.leaves(tree):
        digest.update(np.ascontiguousarray(leaf).tobytes() if hasattr(leaf, "dtype") else named(leaf))
    return digest.hexdigest()


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name, value in arrays.items():
        digest.update(f"{name}|{value.dtype}|{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
