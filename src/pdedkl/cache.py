"""A cache of compiled programs on disk: later processes with data of about the same size do not wait for the compiler.

The cache is in the user's cache folder, and its size is bounded. `JAX_COMPILATION_CACHE_DIR` names another folder, and
`PDEDKL_CACHE=off` does without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

# The programs that were not used for longest are deleted when all of them take more than this.
MOST_BYTES = 1 << 30
SETTINGS: dict[str, Any] = {
    # A fit compiles some hundred small programs; together they cost as much as a large one.
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def use_compilation_cache(folder: str | Path | None = None) -> Path:
    """Keep everything that JAX compiles from now on in a folder, by default in the user's cache.

    **Arguments:**

    - `folder`: the folder; `JAX_COMPILATION_CACHE_DIR` takes precedence, as everywhere in JAX.

    **Returns:** the folder.

    !!! example
        ```python
        pk.cache.use_compilation_cache("compiled")
        ```
    """
    chosen = Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or folder or _of_the_user())
    _set({"jax_compilation_cache_dir": str(chosen)} | SETTINGS)
    trim(chosen)
    return chosen


@contextmanager
def cached() -> Iterator[None]:
    """Programs that are compiled inside are kept in the user's cache, unless a cache is in use already, or is `off`.

    Settings of JAX are global, so they are put back at the end.
    """
    wanted = {"jax_compilation_cache_dir": str(_of_the_user())} | SETTINGS
    chosen = getattr(jax.config, "jax_compilation_cache_dir")  # noqa: B009
    if chosen or os.environ.get("PDEDKL_CACHE") == "off" or not _usable(_of_the_user()):
        yield
        return
    before = {name: getattr(jax.config, name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def trim(folder: Path, most: int | None = None) -> int:
    """Delete the files that were not used for longest until all of them take at most `most` bytes; return how many."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):  # another process may have deleted it
                if entry.is_file(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    found.append((max(about.st_atime, about.st_mtime), about.st_size, entry.path))
    left, deleted = sum(size for _, size, _ in found), 0
    for _, size, path in sorted(found):
        if left <= (MOST_BYTES if most is None else most):
            break
        with suppress(OSError):
            os.unlink(path)
            left, deleted = left - size, deleted + 1
    return deleted


def _of_the_user() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pdedkl" / "compiled"


@cache
def _usable(folder: Path) -> bool:
    """Whether the folder can be written to. It is trimmed once in each process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    trim(folder)
    return os.access(folder, os.W_OK)


def _set(settings: Mapping[str, object]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    # JAX looks once whether there is a cache, at its first compilation.
    compilation_cache.reset_cache()
