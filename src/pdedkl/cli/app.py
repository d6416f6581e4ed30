"""The application, and the helpers that its commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Annotated, Any

import typer

from .encoding import clean

HELP = """Solve high-dimensional linear PDEs from little data, with error bars.

Start with: pdedkl solve heat --dim 10
"""

SCHEDULER = typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers compute instead.")
TRUST = typer.Option(
    "--trust", help="Run the folder's program even if it is not the one that the run began with. Read it first."
)

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"pdedkl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """`--debug` may stand anywhere: it is removed before the other arguments are parsed."""


class RequestError(Exception):
    """A mistake that the user can correct, described in one sentence."""


class Stopped(SystemExit):
    """Exit after Ctrl-C, when the message about it was printed already."""

    def __init__(self) -> None:
        super().__init__(130)


@contextmanager
def mistakes() -> Iterator[None]:
    """Errors while a request is read are the user's mistakes: they end with one sentence and status 2."""
    from ..runs.folder import RunError

    try:
        yield
    except (RunError, ValueError, TypeError, LookupError, OSError, ImportError, MemoryError) as error:
        message = error.args[0] if isinstance(error, LookupError) and error.args else error
        raise RequestError(str(message)) from (error if "--debug" in sys.argv else None)


@contextmanager
def held(lock: AbstractContextManager[None]) -> Iterator[None]:
    """Hold a lock during the block. Only an error in taking the lock counts as the user's mistake."""
    with ExitStack() as stack:
        with mistakes():
            stack.enter_context(lock)
        yield


def console(*, error: bool = False) -> Any:
    """A console for tables and sentences. Markup is off, because names may contain brackets and colons."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, markup=False, emoji=False)


def tell(text: str, style: str | None = None) -> None:
    """Print a line for the user on standard error. It is not wrapped, so that paths can be copied."""
    if style is None:
        print(clean(text), file=sys.stderr, flush=True)  # appears above the progress table of a running training
    else:
        console(error=True).print(clean(text), style=style, soft_wrap=True)


def print_json(text: str) -> None:
    """JSON on standard output, with escapes if its encoding does not have all characters."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2) + "\n"
    typer.echo(text, nl=False)
