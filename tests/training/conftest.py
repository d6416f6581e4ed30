"""Programs are compiled once for all training tests: by whichever process needs them first, for all the others."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@pytest.fixture(scope="session")
def compiled_programs(tmp_path_factory) -> Path:
    """One folder for all workers of a test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled programs"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module", autouse=True)
def compile_once(compiled_programs):
    wanted = SETTINGS | {"jax_compilation_cache_dir": str(compiled_programs)}
    before = {name: getattr(jax.config, name) for name in wanted}
    for name, value in wanted.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="session")
def environment(compiled_programs) -> dict[str, str]:
    """For processes of their own: the same programs, and modules of this folder."""
    wanted = SETTINGS | {"jax_compilation_cache_dir": compiled_programs}
    return (
        dict(os.environ)
        | {name.upper(): str(value) for name, value in wanted.items()}
        | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    )
