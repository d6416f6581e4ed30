"""The folder of a run.

config.json     the settings: enough to repeat the run
problem.py      the user's own problem file, if there is one. Its digest is in config.json. The only code in a run
data/           measurements that were given
checkpoint…     the state of training; deleted when training is done
model.pdedkl    the posterior; if the run was stopped, the best so far
metrics.json    errors, verdict, times; `stopped` says why a training was stopped
history.csv, figures/, report.html
.lock           exists while a process works in the folder
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
from ..ending import OUT_OF_TIME
from ..files import replacing, sweep, write_atomically
from ..parsing import read_json
from .metrics import odd

CONFIG, METRICS, MODEL, CHECKPOINT = "config.json", "metrics.json", "model.pdedkl", "checkpoint"
PROBLEM, DATA, FIGURES, HISTORY, REPORT = "problem.py", "data", "figures", "history.csv", "report.html"
COUNTS = ("boundary", "initial", "source")
MOST_JSON = 64 * 2**20  # bytes; the files of a run are a thousand times smaller


class RunError(Exception):
    """A folder or a request that a run cannot use; the message is written for the user."""


@dataclass(frozen=True)
class Config:
    """The settings of a run. `None` leaves a choice to the problem or to the recipe."""

    problem: str
    dim: int | None = None
    model: str = "dkl"
    recipe: str = "default"
    seed: int = 0
    latent_dim: int | None = None
    accuracy: float | None = None
    seconds: float | None = None
    profile: str | None = None
    boundary: int | None = None
    initial: int | None = None
    source: int | None = None
    noise: float = 0.0
    sampler: str = "uniform"
    data: tuple[str, ...] = field(default=())
    version: str = ""
    digest: str | None = None  # of problem.py
    engine: str = "closed-form"

    @property
    def free(self) -> bool:
        """Whether points are free: an accuracy is wanted, and nothing says how many points or which kernel."""
        default = Config(self.problem)
        chosen = ("model", "recipe", "latent_dim", "profile", "engine", *COUNTS, "noise", "sampler")
        return self.accuracy is not None and all(getattr(self, name) == getattr(default, name) for name in chosen)

    @property
    def own(self) -> bool:
        """Whether the problem is the user's own Python file."""
        return self.problem.endswith(".py")


class Folder:
    """Reads and writes the files of one run. Each file is written completely or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only this process may change the folder. Unfinished temporary files of killed processes are removed."""
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
        """Whether there is a result. A run that was stopped has one too."""
        return (self / METRICS).is_file()

    @property
    def trained(self) -> bool:
        """Whether training was done. If not, the run can be continued."""
        return self.measured and self._stopped() is None

    @property
    def finished(self) -> bool:
        """Whether the run ended as it was asked to: when training was done, or when its time was up."""
        return self.measured and self._stopped() in (None, OUT_OF_TIME)

    def _stopped(self) -> Any:
        """Why training was stopped; `None` if it was not."""
        found = self.read_json(METRICS)
        return found.get("stopped") if isinstance(found, dict) else "there are no metrics"

    def check_free(self, force: bool = False) -> None:
        """Refuse a folder that holds other files, or another run unless `force` is set."""
        if self.started:
            if not force:
                hint = "is finished" if self.trained else f"can be continued with: pdedkl resume {self.path}"
                raise RunError(f"{self.path} holds a run already, which {hint}; name another folder, or use --force.")
        elif self.path.exists() and any(item.name != locks.NAME for item in self.path.iterdir()):
            raise RunError(f"{self.path} is not empty and holds no run: name another folder with --out.")

    def begin(self, config: Config, *, force: bool = False) -> Config:
        """Copy the user's files into the folder, and write and return the configuration."""
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
                raise RunError(f"{self / CONFIG} has a wrong kind of value for `{name}`: restore it, or solve again.")
        return Config(**(stored | {"data": tuple(stored.get("data", ()))}))

    def program(self, config: Config, trust: bool = False) -> bytes:
        """The problem file of the run: the copy in the folder, unchanged since the run began.

        Any other program is refused unless `trust` is set.
        """
        path, why = self / config.problem, None
        if config.problem != PROBLEM:
            why = f"{self / CONFIG} names a program that the run did not make, {config.problem}"
        elif path.is_symlink():
            why = f"{path} is a link to a program elsewhere"
        text = existing(str(path)).read_bytes() if trust or why is None else b""
        if why is None and hashlib.sha256(text).hexdigest() != config.digest:
            how = "has no digest in" if config.digest is None else "does not match the digest in"
            why = f"{path} {how} {self / CONFIG}, so it may not be the program that the run began with"
        if why is not None and not trust:
            raise RunError(f"{why}. A program can do anything: read it, and if you trust it, use --trust.")
        return text

    def data(self, config: Config, trust: bool = False) -> list[Path]:
        """The tables of the run. They must lie in its folder unless `trust` is set."""
        home = self.path.resolve()
        for name in config.data:
            if not trust and not (self / name).resolve().is_relative_to(home):
                raise RunError(
                    f"{self / CONFIG} names a table that is not in the folder of the run, {name}: "
                    "if that is intended, use --trust."
                )
        return [self / name for name in config.data]

    def figures(self) -> Path:
        """The folder of the pictures. A link is refused, because pictures could replace files elsewhere."""
        if (self / FIGURES).is_symlink():
            raise RunError(f"{self / FIGURES} is a link: remove it, since pictures are written into the run itself.")
        return self / FIGURES

    def metrics(self) -> dict[str, Any]:
        """The content of metrics.json, after checking that it has the form that a run writes."""
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
        # A file name that is not valid Unicode has characters that UTF-8 cannot encode: they are written as escapes.
        write_atomically(self / name, text.encode("utf-8", "backslashreplace"))

    def forget(self) -> None:
        """Remove the state of training, in one file or in several."""
        for path in self.path.glob(f"{CHECKPOINT}*"):
            path.unlink(missing_ok=True)

    def _clear(self) -> None:
        """Remove the files of the run, and no other files in the folder."""
        for name in (METRICS, MODEL, CONFIG, PROBLEM, HISTORY, REPORT):
            (self / name).unlink(missing_ok=True)
        self.forget()
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
    """Whether a JSON value matches the annotation of a field of `Config`."""
    if kind == tuple[str, ...]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(value, bool):
        return False
    return isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))
