"""Tables for the terminal. A table that is too wide is printed as a list, so that nothing is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..ending import OUT_OF_TIME
from ..verdicts import Verdict
from .encoding import shown

TEXTS = (
    "",
    "run",
    "problem",
    "model",
    "recipe",
    "name",
    "equation",
    "dimensions",
    "verdict",
    "what was tried",
    "parameter",
    "95 % interval",
    "prior",
    "the data",
    "Newton's method",
)  # columns of text
HEADS = ("run", "problem", "dim", "model", "recipe", "seed", "n_u", "n_f", "error_u", "error_f", "0.95 of u", "s")


def show(console: Any, heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", caption: str = "") -> None:
    """A table if it fits the terminal; otherwise the transposed table, or a list with a line for each entry."""
    rows = [[shown(cell, console.encoding) for cell in row] for row in rows]
    justify: list[Any] = ["left" if name in TEXTS else "right" for name in heads]
    upright = _table(heads, rows, justify)
    turned = _table(["", *(row[0] for row in rows)], list(zip(heads[1:], *(row[1:] for row in rows))))
    if title:
        console.print(shown(title, console.encoding), style="bold", soft_wrap=True)
    if _fits(console, upright):
        console.print(upright)
    elif len(rows) > 1 and _fits(console, turned):
        console.print(turned)
    else:
        room = max(map(len, heads)) + 2
        for row in rows:
            entries = [f"{name:<{room}}{value}".rstrip() for name, value in zip(heads, row) if value]
            console.print("\n".join([*entries, ""]), soft_wrap=True)
    if caption:
        console.print(shown(caption, console.encoding), soft_wrap=True)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], justify: Sequence[Any] = ()) -> Table:
    table = Table()
    for place, name in enumerate(heads):
        table.add_column(name, justify=justify[place] if justify else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _fits(console: Any, table: Table) -> bool:
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width


def number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.2e}" if isinstance(value, float) else str(value)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def show_rounds(console: Any, metrics: dict[str, Any]) -> None:
    """What was done to reach the wanted accuracy, a row for each round."""
    rows = [
        [str(i), str(row["values"]), number(row["error"]), row["status"], f"{row['seconds']:.0f}", row["kernel"]]
        for i, row in enumerate(metrics.get("rounds") or (), 1)
    ]
    if rows:
        show(console, ("round", "values", "estimated error", "verdict", "s", "what was tried"), rows)


def show_iterations(console: Any, metrics: dict[str, Any]) -> None:
    """What Newton's method did for a nonlinear equation, a row for each linearisation."""
    rows = [
        [row["phase"], number(row["residual"]), f"{row['step'] or 0.0:.3g}", number(row["change"])]
        for row in metrics.get("iterations") or ()
    ]
    if rows:
        show(console, ("Newton's method", "residual", "step", "change"), rows)


def show_run(console: Any, metrics: dict[str, Any]) -> None:
    """The short table after a run: the errors of fields and equations, and those of the best constant and line."""
    rows = []
    for kind in metrics.get("parts") or ("u", "f"):
        error = number(metrics.get(f"error_{kind}"))
        if metrics.get(f"error_{kind}_relative") is False:
            error += " (absolute: the truth is zero)"
        rows.append(
            [
                kind,
                error,
                percent((metrics.get(f"coverage_{kind}") or {}).get("0.95")),
                number(metrics.get(f"z_rms_{kind}")),
                number(metrics["constant_u"]) if kind == "u" else "",
                number(metrics["line_u"]) if kind == "u" else "",
            ]
        )
    show(
        console,
        ("", "relative error", "in 95 % interval", "z-score", "best constant", "best line"),
        rows,
        f"{metrics['problem']}, {metrics['n_u']} values of u and {metrics['n_f']} of f, {metrics['kernel']}",
        f"{metrics['train_seconds']:.0f} s of training, {metrics['compile_seconds']:.0f} s of it compiling",
    )


def show_parameters(console: Any, metrics: dict[str, Any]) -> None:
    """The unknown numbers: estimates, intervals, and what the data leave open."""
    if (found := metrics.get("parameters")) is None:
        return
    rows = []
    for name, one in found["numbers"].items():
        ends = [text_of(one["lower"], "−∞"), text_of(one["upper"], "∞")]
        said = "identified" if one["identified"] else "not identified"
        rows.append([name, text_of(one["estimate"]), text_of(one["std"]), " to ".join(ends), one["prior"], said])
    show(console, ("parameter", "estimate", "std", "95 % interval", "prior", "the data"), rows)
    for sentence in found["findings"]:
        console.print(shown(sentence, console.encoding), soft_wrap=True)


def text_of(value: float | None, missing: str = "–") -> str:
    return missing if value is None else f"{value:.4g}"


def show_verdict(console: Any, verdict: Verdict) -> None:
    """How far the solution can be trusted, in the verdict's own words."""
    style = "" if verdict.calibrated else "bold"
    for line in str(verdict).splitlines():
        text = Text(shown(line.strip(), console.encoding), style)
        console.print(Padding(text, (0, 0, 0, len(line) - len(line.lstrip())), expand=False))
        style = ""


def _ended(stopped: str | None) -> str:
    return "" if stopped is None else f" ({OUT_OF_TIME})" if stopped == OUT_OF_TIME else " (stopped)"


def show_runs(console: Any, runs: dict[str, dict[str, Any]]) -> None:
    """Runs side by side."""
    rows = [
        [
            name + _ended(found.get("stopped")),
            *(str(found[key]) for key in HEADS[1:8]),
            number(found["error_u"]),
            number(found["error_f"]),
            percent((found["coverage_u"] or {}).get("0.95")),
            f"{found['train_seconds']:.0f}",
        ]
        for name, found in runs.items()
    ]
    show(console, HEADS, rows)
