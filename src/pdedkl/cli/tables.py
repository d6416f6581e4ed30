"""Tables for the terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.2e}" if isinstance(value, float) else str(value)


def of_run(metrics: dict[str, Any]) -> Table:
    """The short table after a run: `u` and `f` beside what a constant and a straight line would get."""
    title = f"{metrics['problem']}, {metrics['n_u']} values of u and {metrics['n_f']} of f, {metrics['kernel']}"
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("", "relative error", "95 % interval covers", "z-score RMS", "best constant", "best line"):
        table.add_column(name, justify="left" if not name else "right")
    for kind in ("u", "f"):
        covered = (metrics[f"coverage_{kind}"] or {}).get("0.95")
        error = number(metrics[f"error_{kind}"])
        if metrics.get(f"error_{kind}_relative") is False:
            error += " (absolute: the truth is zero)"
        table.add_row(
            kind,
            error,
            "–" if covered is None else f"{covered:.1%}",
            number(metrics[f"z_rms_{kind}"]),
            number(metrics["constant_u"]) if kind == "u" else "",
            number(metrics["line_u"]) if kind == "u" else "",
        )
    table.caption = f"{metrics['train_seconds']:.0f} s of training, {metrics['compile_seconds']:.0f} s of it compiling"
    return table


def of_check(found: dict[str, Any]) -> str:
    """What fresh values of source and conditions say, in two sentences."""
    covered = ", ".join(f"{row['coverage']:.1%} of {row['name']}" for row in found["comparisons"])
    kind = "calibrated" if found["calibrated"] else "not calibrated"
    return (
        f"Check on fresh values: {kind} (95 % intervals hold {covered}); the error of u is about "
        f"{found['error_u']:.1e}, ruled by {found['ruled_by']}. {found['advice']}"
    )


def of_runs(runs: dict[str, dict[str, Any]]) -> Table:
    """Runs side by side."""
    table = Table()
    heads = ("run", "problem", "dim", "model", "recipe", "seed", "n_u", "n_f", "error_u", "error_f", "0.95 of u", "s")
    for name in heads:
        table.add_column(name, justify="right" if name in heads[5:] else "left")
    for name, found in runs.items():
        covered = (found["coverage_u"] or {}).get("0.95")
        table.add_row(
            name,
            *(str(found[key]) for key in ("problem", "dim", "model", "recipe", "seed", "n_u", "n_f")),
            number(found["error_u"]),
            number(found["error_f"]),
            "–" if covered is None else f"{covered:.1%}",
            f"{found['train_seconds']:.0f}",
        )
    return table
