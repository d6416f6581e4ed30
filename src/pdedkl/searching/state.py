"""The state file of a search, from which a killed search continues."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..files import write_atomically
from ..parsing import read_json, shortened
from .evaluation import Evaluation
from .space import Parameters, Space

FORMAT = "pdedkl search 1"


class State:
    """The proposals of a search, in order, and their results so far; stored in a file if a path is given."""

    def __init__(self, path: str | Path | None, options: dict[str, Any], space: Space) -> None:
        self.path = None if path is None else Path(path)
        self.options: dict[str, Any] = json.loads(json.dumps(options))
        self.proposed: list[Parameters] = []
        self.done: dict[int, Evaluation] = {}
        if self.path is not None and self.path.exists():
            self._read(self.path, space)

    @property
    def pending(self) -> list[int]:
        return [number for number in range(len(self.proposed)) if number not in self.done]

    @property
    def history(self) -> list[Evaluation]:
        return [self.done[number] for number in sorted(self.done)]

    def write(self) -> None:
        if self.path is None:
            return
        content = {
            "format": FORMAT,
            "options": self.options,
            "evaluations": [{"number": number + 1, **asdict(self.done[number])} for number in sorted(self.done)],
            "pending": [{"number": number + 1, "parameters": self.proposed[number]} for number in self.pending],
        }
        write_atomically(self.path, (json.dumps(content, indent=1) + "\n").encode())

    def _read(self, path: Path, space: Space) -> None:
        try:
            content = read_json(path)
        except (OSError, ValueError) as error:
            raise ValueError(f"{error} It should hold a search: delete it to start again.") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{path} is not a search of this version of pdedkl: name another file, or delete it.")
        options = content.get("options")
        if options != self.options:
            there = options if isinstance(options, dict) else {}
            other = [name for name in sorted({*there, *self.options}) if there.get(name) != self.options.get(name)]
            names = shortened(", ".join(other))
            raise ValueError(f"{path} belongs to another search, with other {names}: name another file, or delete it.")
        try:
            self._take(content, space)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is damaged ({shortened(repr(error))}): delete it to start again.") from None

    def _take(self, content: dict[str, Any], space: Space) -> None:
        entries = {int(item["number"]) - 1: item for item in [*content["evaluations"], *content["pending"]]}
        self.proposed = [entries[number]["parameters"] for number in range(len(entries))]
        if any(item not in space.members for item in self.proposed):
            raise ValueError("it holds values that are not in the search set")
        if len(space.without(self.proposed)) != len(space) - len(self.proposed):
            raise ValueError("it holds a value twice")
        for item in content["evaluations"]:
            objective, error = item["objective"], item["error"]
            if objective is None and not isinstance(error, str):
                raise ValueError("a failed evaluation without its error")
            if objective is not None and not math.isfinite(objective):
                raise ValueError(f"an objective of {objective}")
            number = int(item["number"]) - 1
            self.done[number] = Evaluation(self.proposed[number], objective, float(item["seconds"]), error)
