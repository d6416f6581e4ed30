"""The folder of a run.

config.json     what was asked for: enough to repeat the run
problem.py      the user's own problem, where it is one; data/ holds measurements that were given
checkpoint      where training stands; gone once the run is finished
model.pdedkl    the posterior
metrics.json    errors, calibration, times; its presence says that the run is finished
history.csv, figures/, report.html
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..files import write_atomically
from ..parsing import read_json

CONFIG, METRICS, MODEL, CHECKPOINT = "config.json", "metrics.json", "model.pdedkl", "checkpoint"
PROBLEM, DATA = "problem.py", "data"


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

    @property
    def started(self) -> bool:
        return (self / CONFIG).is_file()

    @property
    def finished(self) -> bool:
        return (self / METRICS).is_file()

    def begin(self, config: Config, *, force: bool = False) -> Config:
        """Make the folder, copy what the user gave into it, and write the configuration, which comes back."""
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file: name a folder for the run with --out.")
        if self.started:
            if not force:
                hint = "is finished" if self.finished else f"can be continued with: pdedkl resume {self.path}"
                raise RunError(f"{self.path} holds a run already, which {hint}; name another folder, or use --force.")
            self._clear()
        elif self.path.exists() and any(self.path.iterdir()):
            raise RunError(f"{self.path} is not empty and holds no run: name another folder with --out.")
        files = [_existing(name) for name in config.data]
        program = _existing(config.problem) if config.own else None
        self.path.mkdir(parents=True, exist_ok=True)
        kept = []
        for number, file in enumerate(files, start=1):
            target = self / DATA / f"{number}-{file.name}"
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, target)
            kept.append(target.relative_to(self.path).as_posix())
        changes: dict[str, Any] = {"data": tuple(kept)}
        if program is not None:
            shutil.copyfile(program, self / PROBLEM)
            changes["problem"] = PROBLEM
        config = Config(**(asdict(config) | changes))
        self.write_json(CONFIG, asdict(config))
        return config

    def config(self) -> Config:
        if not self.started:
            raise RunError(f"{self.path} is not the folder of a run: it has no {CONFIG}.")
        stored = self.read_json(CONFIG)
        known = Config.__dataclass_fields__
        if not isinstance(stored, dict) or "problem" not in stored or set(stored) - set(known):
            raise RunError(f"{self / CONFIG} does not describe a run of this version of pdedkl: solve again.")
        return Config(**(stored | {"data": tuple(stored.get("data", ()))}))

    def metrics(self) -> dict[str, Any]:
        if not self.finished:
            what = f"is not finished: pdedkl resume {self.path}" if self.started else "is not the folder of a run"
            raise RunError(f"{self.path} {what}.")
        return self.read_json(METRICS)

    def read_json(self, name: str) -> Any:
        try:
            return read_json(self / name)
        except ValueError as error:
            raise RunError(f"{error} Restore it, or solve again.") from None

    def write_json(self, name: str, content: Any) -> str:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        self.write(name, text)
        return text

    def write(self, name: str, text: str) -> None:
        write_atomically(self / name, text.encode())

    def _clear(self) -> None:
        """Remove a run's own files, and nothing else that somebody may have put there."""
        for name in (METRICS, CONFIG, PROBLEM, MODEL, CHECKPOINT, "history.csv", "report.html"):
            (self / name).unlink(missing_ok=True)
        for name in (DATA, "figures"):
            shutil.rmtree(self / name, ignore_errors=True)


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise RunError(f"There is no file {name}: check the name, and the folder it is relative to.")
    return path
