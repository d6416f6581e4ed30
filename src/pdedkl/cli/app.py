"""The application, and what its commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

HELP = """Solve high-dimensional linear PDEs from little data, with error bars.

Start with: pdedkl solve heat --dim 10
"""

SCHEDULER = typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers compute instead.")

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"pdedkl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """`--debug` may stand anywhere; it is taken out before the rest is read."""


class RequestError(Exception):
    """Something that the user can put right; told in one sentence."""


@contextmanager
def mistakes() -> Iterator[None]:
    """What goes wrong while a request is read is the user's mistake: one sentence, status 2."""
    from ..runs.folder import RunError

    try:
        yield
    except (RunError, ValueError, TypeError, LookupError, OSError, ImportError) as error:
        message = error.args[0] if isinstance(error, LookupError) and error.args else error
        raise RequestError(str(message)) from (error if "--debug" in sys.argv else None)


def console(*, error: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=error, highlight=False)
