"""The application, and what its commands share."""

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
    """`--debug` may stand anywhere; it is taken out before the rest is read."""


class RequestError(Exception):
    """Something that the user can put right; told in one sentence."""


class Stopped(SystemExit):
    """The end after Ctrl-C, once it was said what that has done."""

    def __init__(self) -> None:
        super().__init__(130)


@contextmanager
def mistakes() -> Iterator[None]:
    """What goes wrong while a request is read is the user's mistake: one sentence, status 2."""
    from ..runs.folder import RunError

    try:
        yield
    except (RunError, ValueError, TypeError, LookupError, OSError, ImportError, MemoryError) as error:
        message = error.args[0] if isinstance(error, LookupError) and error.args else error
        raise RequestError(str(message)) from (error if "--debug" in sys.argv else None)


@contextmanager
def held(lock: AbstractContextManager[None]) -> Iterator[None]:
    """A lock for the block. That a folder cannot be had is a mistake in asking; what goes wrong in the block is not."""
    with ExitStack() as stack:
        with mistakes():
            stack.enter_context(lock)
        yield


def console(*, error: bool = False) -> Any:
    """Where tables and sentences go. What a user has named may hold brackets and colons: nothing in it is markup."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, markup=False, emoji=False)


def tell(text: str, style: str | None = None) -> None:
    """A line for the person who waits, on standard error. It is not wrapped, so that paths can be copied."""
    if style is None:
        print(clean(text), file=sys.stderr, flush=True)  # above the table of a training that is under way
    else:
        console(error=True).print(clean(text), style=style, soft_wrap=True)


def print_json(text: str) -> None:
    """JSON on standard output as it is, or with escapes where that cannot show its characters."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2) + "\n"
    typer.echo(text, nl=False)
