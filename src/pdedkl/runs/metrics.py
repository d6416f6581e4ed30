"""The entries of `metrics.json` that other commands read, and their types."""

from __future__ import annotations

from typing import Any

from ..verdicts import CAUSES, STATUSES

NUMBER: Any = int | float
KINDS: dict[str, Any] = {
    **dict.fromkeys(("problem", "model", "recipe", "kernel"), str),
    **dict.fromkeys(("dim", "seed", "n_u", "n_f"), int),
    **dict.fromkeys(("train_seconds", "compile_seconds"), NUMBER),
    **dict.fromkeys(("error_u", "error_f", "z_rms_u", "z_rms_f", "constant_u", "line_u"), NUMBER | None),
    **dict.fromkeys(("coverage_u", "coverage_f", "check", "verdict"), dict | None),
    "stopped": str | None,
    "parts": list[str],
}
VERDICT: dict[str, Any] = {"status": STATUSES, "reasons": list[str], "error_u": NUMBER | None}
CHECK: dict[str, Any] = {
    **VERDICT,
    "calibrated": bool,
    "ruled_by": ("", *CAUSES),
    "advice": str,
    "compared_with": str,
}
ROUND: dict[str, Any] = {
    "values": int,
    "kernel": str,
    "status": STATUSES,
    "error": NUMBER | None,
    "seconds": NUMBER,
}
ITERATION: dict[str, Any] = {
    "phase": str,
    **dict.fromkeys(("residual", "step", "change", "objective"), NUMBER | None),
}
COMPARED = ("coverage", "error", "claimed", "z_rms", "size", "worst_error")
COMPARISON: dict[str, Any] = {
    "name": str,
    "points": int,
    "worst": list[NUMBER],
    **dict.fromkeys(COMPARED, NUMBER | None),
}
# The unknown numbers of a run, by name.
NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("estimate", "mean", "std", "lower", "upper"), NUMBER | None),
    "prior": str,
    "identified": bool,
}
# Missing in older runs, by the part that they are in.
LATER = {
    "": ("stopped", "verdict", "parts"),
    "check.": ("status", "reasons", "compared_with"),
    "check.comparisons.": ("size", "worst", "worst_error"),
}
LARGEST = 1e300
NAMES: dict[Any, str] = {str: "text", int: "a whole number", bool: "true or false", dict | None: "a table"}
NAMES |= {str | None: "text", list[str]: "a list of texts", list[NUMBER]: "a list of numbers"}


def odd(found: Any) -> str:
    """What is wrong with the metrics of a run, in words; `""` if nothing is wrong."""
    if not isinstance(found, dict):
        return "it is not a table of names and values"
    if wrong := _misfit(found, KINDS):
        return wrong
    for part in ("u", "f", *found.get("parts", ())):
        kinds = {f"error_{part}": NUMBER | None, f"z_rms_{part}": NUMBER | None, f"coverage_{part}": dict | None}
        if wrong := _misfit(found, {key: kind for key, kind in kinds.items() if key in found}):
            return wrong
        covered = found.get(f"coverage_{part}") or {}
        if wrong := _misfit(covered, dict.fromkeys(covered, NUMBER), f"coverage_{part}."):
            return wrong
    if (verdict := found.get("verdict")) is not None and (wrong := _misfit(verdict, VERDICT, "verdict.")):
        return wrong
    if wrong := _misfits(found.get("rounds", []), ROUND, "rounds"):
        return wrong
    if wrong := _odd_numbers(found.get("parameters")):
        return wrong
    if wrong := _misfits(found.get("iterations", []), ITERATION, "iterations"):
        return wrong
    if (check := found["check"]) is None:
        return ""
    return _misfit(check, CHECK, "check.") or _misfits(check.get("comparisons"), COMPARISON, "check.comparisons")


def _odd_numbers(found: Any) -> str:
    """What is wrong with the unknown numbers, if there are any."""
    if found is None:
        return ""
    numbers = found.get("numbers") if isinstance(found, dict) else None
    if not isinstance(numbers, dict) or not _fits(found.get("findings"), list[str]):
        return "`parameters` needs a table with `numbers` and `findings`"
    return _misfits(list(numbers.values()), NUMBERS, "parameters.numbers")


def _misfits(rows: Any, kinds: dict[str, Any], place: str) -> str:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return f"`{place}` needs a list of tables"
    return next((wrong for row in rows if (wrong := _misfit(row, kinds, f"{place}."))), "")


def _misfit(found: dict[str, Any], kinds: dict[str, Any], place: str = "") -> str:
    for name, kind in kinds.items():
        if name not in found:
            if name in LATER.get(place, ()):
                continue
            return f"it lacks `{place}{name}`"
        value = found[name]
        if not _fits(value, kind):
            wanted = f"one of {', '.join(filter(None, kind))}" if isinstance(kind, tuple) else NAMES.get(kind)
            return f"`{place}{name}` needs {wanted or 'a number'}"
        numbers = value if isinstance(value, list) else [value]
        if any(isinstance(number, int) and abs(number) > LARGEST for number in numbers):
            return f"`{place}{name}` is too large a number"
    return ""


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, tuple):
        return isinstance(value, str) and value in kind
    if kind in (list[str], list[NUMBER]):
        return isinstance(value, list) and all(_fits(item, kind.__args__[0]) for item in value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
