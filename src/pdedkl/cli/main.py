"""Where the command line starts, and how it ends: 0 if all went well, 1 for a failed run, 2 for a mistake in asking."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import typer

from . import solve, inspect, reproduce  # isort: skip  (the order in which --help lists them)
from .app import RequestError, app

__all__ = ["inspect", "reproduce", "solve"]  # importing them adds their commands

# The base of all complaints about arguments: click's own class, or that of the copy that newer versions of typer carry.
Complaint: type[Any] = typer.BadParameter.__mro__[2]


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    if "--debug" not in given:
        sys.excepthook = _one_sentence
    try:
        # Not app(…), which would set a hook of its own.
        typer.main.get_command(app)([item for item in given if item != "--debug"], "pdedkl", standalone_mode=False)
    except RequestError as error:
        _say(str(error))
        sys.exit(2)
    except Complaint as error:
        _say(error.format_message())
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        _say("stopped.")
        sys.exit(130)
    except typer.Exit as error:
        sys.exit(error.exit_code)


def _one_sentence(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> Any:
    """For whatever went wrong inside; Python then ends with status 1."""
    text = " ".join(str(error).split()) or kind.__name__
    _say(f"{text} ({kind.__name__}; --debug shows where)")


def _say(message: str) -> None:
    if message:
        print(f"pdedkl: {' '.join(message.split())}", file=sys.stderr)
