"""The entry point of the command line, and its exit status.

0 for success, 1 for a run that failed or a folder in use, 2 for a mistake in the request, 130 after Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import sys
from types import TracebackType
from typing import Any

import typer

from ..locks import BusyError

from . import solve, inspect, reproduce, warmup  # isort: skip  (the order in which --help lists them)
from .app import RequestError, app
from .encoding import clean, forgive
from .warned import sentences

__all__ = ["inspect", "reproduce", "solve", "warmup"]  # importing them adds their commands

# The base class of errors about arguments: from click, or from the copy of click inside newer versions of typer.
Complaint: type[Any] = typer.BadParameter.__mro__[2]


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    forgive()
    if "--debug" not in given:
        sys.excepthook = _one_sentence
    try:
        with sentences():
            # Not app(…), which would set its own sys.excepthook.
            code = _command()([item for item in given if item != "--debug"], "pdedkl", standalone_mode=False)
        sys.stdout.flush()
    except RequestError as error:
        _end(2, str(error))
    except BusyError as error:
        _end(1, str(error))
    except Complaint as error:
        _end(2, error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        _end(130, "stopped.")
    except typer.Exit as error:
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EPIPE, errno.EIO):
            raise
        # Errors of files carry a file name (files.py), so this error comes from standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would fail again at exit
        _end(1, f"could not write to standard output: {error.strerror}.")
    else:
        # typer returns the status of an Exit that it has caught; 130 means Ctrl-C.
        if isinstance(code, int) and code:
            _end(code, "stopped." if code == 130 else "")


def _command() -> Any:
    """The commands, with flags shown as options without a value."""
    group = typer.main.get_command(app)
    context = group.context_class(group)
    for command in (group, *getattr(group, "commands", {}).values()):
        for option in command.get_params(context):
            if getattr(option, "is_flag", False):
                option.metavar = ""
    return group


def _one_sentence(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> Any:
    """Report an unexpected error in one sentence. Python then ends with status 1."""
    text = " ".join(str(error).split()) or kind.__name__
    _say(f"{text} ({kind.__name__}; --debug shows where)")


def _end(code: int, message: str) -> None:
    _say(message)
    sys.exit(code)


def _say(message: str) -> None:
    if message:
        print(f"pdedkl: {clean(' '.join(message.split()))}", file=sys.stderr)
