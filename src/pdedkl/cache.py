"""A cache of compiled programs on disk: the second run on data of the same shape does not wait for the compiler."""

from __future__ import annotations

import os
from pathlib import Path

import jax


def use_compilation_cache(folder: str | Path | None = None) -> Path:
    """Keep everything that JAX compiles from now on in a folder, by default in the user's cache; return the folder.

    `JAX_COMPILATION_CACHE_DIR` takes precedence, as everywhere in JAX. The command line calls this; the library does
    not write files unless asked.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pdedkl" / "compiled"
    chosen = Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or folder or home)
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    # A run compiles some forty small programs; together they cost as much as a large one.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return chosen
