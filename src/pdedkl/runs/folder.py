"""The folder of a run.

config.json     what was asked for: enough to repeat the run
problem.py      the user's own problem, where it is one, with its digest in config.json; the only code in a run
data/           measurements that were given
checkpoint      where training stands; gone once the run is finished
model.pdedkl    the posterior; of a run that was stopped, the best so far
metrics.json    errors, calibration, times; `stopped` says why the run is not finished, where it is not
history.csv, figures/, report.html
.lock           there while a process works in the folder
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from .. import locks
from ..files import replacing, sweep, write_atomically
from ..parsing import read_json
from .metrics import odd

CONFIG, METRICS, MODEL, CHECKPOINT = "config.json", "metrics.json", "model.pdedkl", "checkpoint"
PROBLEM, DATA, FIGURES, HISTORY, REPORT = "problem.py", "data", "figures", "history.csv", "report.html"
MOST_JSON = 64 * 2**20  # bytes; what a run writes is a thousand times smaller


class RunError(Exception):
    """A folder or a request that no run can be made of; its message is meant for the user."""


@dataclass(frozen=True)
class Config:
    """What was asked for. `None` leaves a choice to the problem or to the recipe."""

    problem: str
    dim: int | None = None
    model: str = "dkl"
    recipe: str = "default"
    seed: int = 0
    latent_dim: int | None = None
    accuracy: float | None = None
    boundary: int | None = None
    initial: int | None = None
    source: int | None = None
    noise: float = 0.0
    sampler: str = "uniform"
    data: tuple[str, ...] = field(default=())
    version: str = ""
    digest: str | None = None  # of problem.py

    @property
    def own(self) -> bool:
        """Whether the problem is a Python file of the user's."""
        return self.problem.endswith(".py")


class Folder:
    """Reads and writes the files of one run, each in one piece or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only this process may change the folder; what killed ones have left half written is removed."""
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file: name a folder for the run with --out.")
        with locks.locked(self.path):
            for folder in (self.path, self / DATA, self / FIGURES):
                sweep(folder)
            yield

    @property
    def started(self) -> bool:
        return (self / CONFIG).is_file()

    @property
    def measured(self) -> bool:
        """Whether there is a result, if only that of a run that was stopped."""
        return (self / METRICS).is_file()

    @property
    def finished(self) -> bool:
        found = self.read_json(METRICS) if self.measured else None
        return isinstance(found, dict) and found.get("stopped") is None

    def check_free(self, force: bool = False) -> None:
        """Refuse a folder that a run may not begin in: it holds another one, unless that is to go, or other files."""
        if self.started:
            if not force:
                hint = "is finished" if self.finished else f"can be continued with: pdedkl resume {self.path}"
                raise RunError(f"{self.path} holds a run already, which {hint}; name another folder, or use --force.")
        elif self.path.exists() and any(item.name != locks.NAME for item in self.path.iterdir()):
            raise RunError(f"{self.path} is not empty and holds no run: name another folder with --out.")

    def begin(self, config: Config, *, force: bool = False) -> Config:
        """Copy what the user gave into the folder, and write the configuration, which comes back."""
        self.check_free(force)
        files = [existing(name) for name in config.data]
        program = existing(config.problem).read_bytes() if config.own else None
        if self.started:
            self._clear()
        self.path.mkdir(parents=True, exist_ok=True)
        kept = []
        for number, file in enumerate(files, start=1):
            target = self / DATA / f"{number}-{file.name}"
            target.parent.mkdir(exist_ok=True)
            with open(file, "rb") as source, replacing(target) as copy:
                shutil.copyfileobj(source, copy)
            kept.append(target.relative_to(self.path).as_posix())
        changes: dict[str, Any] = {"data": tuple(kept)}
        if program is not None:
            write_atomically(self / PROBLEM, program)
            changes |= {"problem": PROBLEM, "digest": hashlib.sha256(program).hexdigest()}
        config = Config(**(asdict(config) | changes))
        self.write_json(CONFIG, asdict(config))
        return config

    def config(self) -> Config:
        if not self.started:
            raise RunError(f"{self.path} is not the folder of a run: it has no {CONFIG}.")
        stored = self.read_json(CONFIG)
        kinds = get_type_hints(Config)
        if not isinstance(stored, dict) or "problem" not in stored or set(stored) - set(kinds):
            raise RunError(f"{self / CONFIG} does not describe a run of this version of pdedkl: solve again.")
        for name, value in stored.items():
            if not _fits(value, kinds[name]):
                raise RunError(f"{self / CONFIG} needs another kind of value for `{name}`: restore it, or solve again.")
        return Config(**(stored | {"data": tuple(stored.get("data", ()))}))

    def program(self, config: Config, trust: bool = False) -> bytes:
        """The run's own problem: the copy in the folder, as it was when the run began. All else has to be trusted."""
        path, why = self / config.problem, None
        if config.problem != PROBLEM:
            why = f"{self / CONFIG} names a program that the run did not make, {config.problem}"
        elif path.is_symlink():
            why = f"{path} is a link to a program elsewhere"
        text = existing(str(path)).read_bytes() if trust or why is None else b""
        if why is None and hashlib.sha256(text).hexdigest() != config.digest:
            how = "has no digest in" if config.digest is None else "has another digest than in"
            why = f"{path} {how} {self / CONFIG}, so it may not be the program that the run began with"
        if why is not None and not trust:
            raise RunError(f"{why}. A program can do anything: read it, and if you trust it, use --trust.")
        return text

    def data(self, config: Config, trust: bool = False) -> list[Path]:
        """The tables of the run, which are in its folder."""
        home = self.path.resolve()
        for name in config.data:
            if not trust and not (self / name).resolve().is_relative_to(home):
                raise RunError(
                    f"{self / CONFIG} names a table that is not in the folder of the run, {name}: "
                    "if that is meant, use --trust."
                )
        return [self / name for name in config.data]

    def figures(self) -> Path:
        """The folder of the pictures; never one elsewhere, where they would replace other files."""
        if (self / FIGURES).is_symlink():
            raise RunError(f"{self / FIGURES} is a link: remove it, since pictures are written into the run itself.")
        return self / FIGURES

    def metrics(self) -> dict[str, Any]:
        """What metrics.json holds, if that is what a run has written."""
        if not self.measured:
            what = f"has no result yet: pdedkl resume {self.path}" if self.started else "is not the folder of a run"
            raise RunError(f"{self.path} {what}.")
        found = self.read_json(METRICS)
        if wrong := odd(found):
            raise RunError(f"{self / METRICS} holds no metrics of a run: {wrong}. Restore it, or solve again.")
        return found

    def read_json(self, name: str) -> Any:
        path = self / name
        if (size := path.stat().st_size) > MOST_JSON:
            raise RunError(
                f"{path} has {size} bytes, and a run writes at most {MOST_JSON}: restore it, or solve again."
            )
        try:
            return read_json(self / name)
        except ValueError as error:
            raise RunError(f"{error} Restore it, or solve again.") from None

    def write_json(self, name: str, content: Any) -> str:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        self.write(name, text)
        return text

    def write(self, name: str, text: str) -> None:
        # A name that is no Unicode has characters that UTF-8 cannot write; JSON reads them back from their escapes.
        write_atomically(self / name, text.encode("utf-8", "backslashreplace"))

    def _clear(self) -> None:
        """Remove a run's own files, and nothing else that somebody may have put there."""
        for name in (METRICS, MODEL, CHECKPOINT, CONFIG, PROBLEM, HISTORY, REPORT):
            (self / name).unlink(missing_ok=True)
        for name in (DATA, FIGURES):
            if (self / name).is_symlink():
                (self / name).unlink()
            elif (self / name).is_dir():
                shutil.rmtree(self / name)


def existing(name: str) -> Path:
    """The path of a file that has to be there."""
    path = Path(name)
    if not path.is_file():
        raise RunError(f"There is no file {name}: check the name, and the folder it is relative to.")
    return path


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of the kind that a field of `Config` is annotated with."""
    if kind == tuple[str, ...]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(value, bool):
        return False
    return isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))
