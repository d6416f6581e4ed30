"""A program that has forced 64-bit mode off is told so, wherever it starts to compute."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import jax
import pytest
from test_bad_input import KERNEL, model, observe, says

import pdedkl as pk


def test_32_bit_forced_by_the_environment():
    done = subprocess.run(
        [sys.executable, "-c", "import pdedkl"],
        env={**os.environ, "JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert re.search(says("RuntimeError", "64-bit", "JAX_ENABLE_X64='0'", "before importing pdedkl"), done.stderr)


def test_32_bit_switched_on_after_the_import():
    items = [observe()]
    jax.config.update("jax_enable_x64", False)
    try:
        for call in (observe, lambda: pk.Model(KERNEL, items)):
            with pytest.raises(RuntimeError, match=says("64-bit", "turned off", "set it back to True")):
                call()
    finally:
        jax.config.update("jax_enable_x64", True)


def test_32_bit_switched_on_before_conditioning():
    known, items = model(), [observe()]
    jax.config.update("jax_enable_x64", False)
    try:
        for use in (pk.condition, pk.negative_log_evidence):
            with pytest.raises(RuntimeError, match="64-bit"):
                use(known, items)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_importing_the_package_does_not_import_jax_and_yet_sets_its_mode():
    """The command line answers `--help` at once; a user's own arrays are 64-bit all the same."""
    program = (
        "import sys, pdedkl; assert 'jax' not in sys.modules; import jax.numpy as jnp; "
        "assert jnp.ones(1).dtype == 'float64'; assert pdedkl.Domain and 'fit' in dir(pdedkl); "
        "import pdedkl.searching; assert pdedkl.search.__name__ == 'search'"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
