"""The entries of `metrics.json` that other commands read, and their types."""

from __future__ import annotations

from typing import Any

NUMBER: Any = int | float
KINDS: dict[str, Any] = {
    **dict.fromkeys(("problem", "model", "recipe", "kernel"), str),
    **dict.fromkeys(("dim", "seed", "n_u", "n_f"), int),
    **dict.fromkeys(("train_seconds", "compile_seconds"), NUMBER),
    **dict.fromkeys(("error_u", "error_f", "z_rms_u", "z_rms_f", "constant_u", "line_u"), NUMBER | None),
    **dict.fromkeys(("coverage_u", "coverage_f", "check"), dict | None),
    "stopped": str | None,
}
LATER = ("stopped",)  # missing in older runs
CHECK: dict[str, Any] = {"calibrated": bool, "error_u": NUMBER | None, "ruled_by": str, "advice": str}
COMPARED = ("coverage", "error", "claimed", "z_rms")
COMPARISON: dict[str, Any] = {"name": str, "points": int, **dict.fromkeys(COMPARED, NUMBER | None)}
LARGEST = 1e300
NAMES = {str: "text", int: "a whole number", bool: "true or false"}


def odd(found: Any) -> str:
    """What is wrong with the metrics of a run, in words; `""` if nothing is wrong."""
    if not isinstance(found, dict):
        return "it is not a table of names and values"
    if wrong := _misfit(found, KINDS):
        return wrong
    for name in ("coverage_u", "coverage_f"):
        if wrong := _misfit(found[name] or {}, dict.fromkeys(found[name] or {}, NUMBER), f"{name}."):
            return wrong
    if (check := found["check"]) is None:
        return ""
    if wrong := _misfit(check, CHECK, "check."):
        return wrong
    rows = check.get("comparisons")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return "`check.comparisons` needs a list of tables"
    return next((wrong for row in rows if (wrong := _misfit(row, COMPARISON, "check.comparisons."))), "")


def _misfit(found: dict[str, Any], kinds: dict[str, Any], place: str = "") -> str:
    for name, kind in kinds.items():
        if name not in found and name not in LATER:
            return f"it lacks `{place}{name}`"
        value = found.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wanted = NAMES.get(kind) or ("a table" if kind == dict | None else "a number")
            return f"`{place}{name}` needs {wanted}"
        if isinstance(value, int) and abs(value) > LARGEST:
            return f"`{place}{name}` is too large a number"
    return ""
