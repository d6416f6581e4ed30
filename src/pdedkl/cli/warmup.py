"""The command that compiles the usual programs."""

from __future__ import annotations

from typing import Any

from .app import app, tell

# Problems whose fits need most of the programs that others of their size need: name and number of space coordinates.
USUAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("poisson", {"dim": 2}),
    ("heat", {"dim": 2}),
    ("poisson", {"dim": 10}),
    ("heat", {"dim": 10}),
    ("parametric-heat", {}),
)


@app.command()
def warmup() -> None:
    """Compile the usual programs once, so that later runs start faster. It takes some minutes."""
    from ..cache import use_compilation_cache

    folder = use_compilation_cache()
    from ..problems import built_in
    from ..training import fit
    from .warned import kept

    for number, (name, options) in enumerate(USUAL, start=1):
        problem = built_in(name, **options)
        tell(f"{number} of {len(USUAL)}: {name}, {problem.domain.dim} coordinates …", style="dim")
        with kept("FitWarning"):
            fit(problem, problem.sample(), progress=False)
    tell(f"Compiled programs are in {folder}.")
