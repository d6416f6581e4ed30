"""Names of columns: a coordinate is called in a table what it is called in Python, `x[0]`, `x[1]`, …, `t`.

Older tables count a group from one, `x1, x2, …`. They are still read where nothing else can be meant: the whole group
goes by these names, and neither `x[0]` nor `x0` is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MEMBER = re.compile(r"(.+)\[(\d+)\]")


def stored_names(asked: Sequence[str], present: Sequence[str]) -> list[str]:
    """For each name that is asked for, the column of the table that holds it; the name itself if none does."""
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
    """What to do about a coordinate that is missing under its name; nothing for other columns."""
    found = MEMBER.fullmatch(missing)
    if not found:
        return ""
    group, numbered = found[1], re.compile(re.escape(found[1]) + r"[_ .]?\(?\[?(\d+)\]?\)?")
    alike = [name for name in present if numbered.fullmatch(name)]
    start = f" Rename {', '.join(alike[:3])}{' …' * (len(alike) > 3)}." if alike else ""
    return f" Columns are named like coordinates in Python, {group}[0], {group}[1] and so on.{start}"
