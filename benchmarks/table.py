"""A page of benchmarks in the documentation, from what they stored: `runs/bench/*.json` → `docs/benchmarks*.md`.

What a page was made of is kept beside the benchmarks, so that one part can be measured again without the others.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from timing import FOLDER

DOCS = Path(__file__).parent.parent / "docs"
KEPT = Path(__file__).parent / "results"
# Of each page: what it says of itself, and the parts that it is made of, with their titles.
PAGES = {
    "benchmarks.md": (
        "# Benchmarks\n\nWritten by `make bench` from what it measured, ours and the alternative in turns in one run.\n"
        "A ratio is the median of those of single turns, with their range. `make bench-quick` measures what has\n"
        "a limit. Also: [on a GPU](benchmarks-gpu.md), [against other methods](benchmarks-peers.md).",
        {
            "core": "The core: nested automatic differentiation, linear algebra, dimension, memory",
            "prediction": "Prediction",
            "large": "Without the Gram matrix",
        },
    ),
    "benchmarks-textbook.md": (
        "# Textbook equations\n\nWritten by `make textbook`: `fit` with default settings, compiling counted. The error "
        "is that of `u` at\n1,000 new points inside; so are the interval and the root mean square of z.",
        {"textbook": "As they come"},
    ),
    "benchmarks-gpu.md": (
        "# Benchmarks on a GPU\n\nWritten by `make bench-gpu` from what it measured.",
        {"gpu-rows": "The paper's seven problems", "gpu-core": "Assembly and a step", "gpu-large": "Many values"},
    ),
}


def section(title: str, stored: dict) -> str:
    machine = stored["machine"]
    lines = [
        f"## {title}",
        "",
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, device {machine['device']}, "
        f"Python {machine['python']}, JAX {machine['jax']}, pdedkl {machine['pdedkl']}, {machine['date']}.",
        "",
        "| measured | | limit |",
        "|---|---|---|",
    ]
    for row in stored["measured"]:
        limit = row.get("limit", "")
        what = str(row["what"]).replace("|", "\\|")
        lines.append(f"| {what} | {row['shown']} | {limit}{', **missed**' if row.get('held') is False else ''} |")
    return "\n".join(lines)


def write(page: str) -> int:
    head, parts = PAGES[page]
    KEPT.mkdir(exist_ok=True)
    for name in parts:
        if (new := FOLDER / f"{name}.json").exists():
            shutil.copy(new, KEPT)
    found = {name: KEPT / f"{name}.json" for name in parts}
    missing = [name for name, file in found.items() if not file.exists()]
    if missing:
        print(f"Nothing is stored of {', '.join(missing)} in {FOLDER}: run the benchmark first.", file=sys.stderr)
        return 1
    sections = [section(title, json.loads(found[name].read_text())) for name, title in parts.items()]
    (DOCS / page).write_text("\n\n".join([head, *sections]) + "\n")
    print(f"docs/{page} written")
    return 0


if __name__ == "__main__":
    sys.exit(write(sys.argv[1]))
