"""Names of columns: a coordinate has the same name in a table as in Python, `x[0]`, `x[1]`, …, `t`.

Older tables count a group from one, `x1, x2, …`. They are still read if this is unambiguous: all columns of the group
have such names, and there is neither `x[0]` nor `x0`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MEMBER = re.compile(r"(.+)\[(\d+)\]")


def stored_names(asked: Sequence[str], present: Sequence[str]) -> list[str]:
    """For each requested name, the column of the table that holds it; the name itself if there is none."""
    older: dict[str, str] = {}
    groups: dict[str, set[int]] = {}
    for name in asked:
        if found := MEMBER.fullmatch(name):
            groups.setdefault(found[1], set()).add(int(found[2]))
    for group, members in groups.items():
        size = len(members)
        newer = any((match := MEMBER.fullmatch(name)) and match[1] == group for name in present)
        whole = members == set(range(size)) and all(f"{group}{i + 1}" in present for i in range(size))
        taken = {f"{group}0", f"{group}{size + 1}"} & set(present)
        if whole and not newer and not taken:
            names = {f"{group}[{i}]": f"{group}{i + 1}" for i in range(size)}
            older |= {} if set(names.values()) & set(asked) else names
    return [older.get(name, name) for name in asked]


def naming_hint(missing: str, present: Sequence[str]) -> str:
    """Advice for a missing column of a coordinate; `""` for other columns."""
    found = MEMBER.fullmatch(missing)
    if not found:
        return ""
    group, numbered = found[1], re.compile(re.escape(found[1]) + r"[_ .]?\(?\[?(\d+)\]?\)?")
    alike = [name for name in present if numbered.fullmatch(name)]
    start = f" Rename {', '.join(alike[:3])}{' …' * (len(alike) > 3)}." if alike else ""
    return f" Columns are named like coordinates in Python, {group}[0], {group}[1] and so on.{start}"
