"""How programs are compiled, and how many of them a process can hold.

Programs that run only a few times are compiled on a CPU without optimisation, in a third of the time. They then run up
to twice as long, which is little compared with the seconds of compilation that are saved (docs/studies.md).

On a GPU the compiler would try several ways to multiply matrices and take the fastest. This is switched off: it takes a
fifth of the compilation time, and its choice differs from run to run, so results would differ too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

# Settings of XLA for each kind of device. Not every version of XLA has all of them.
UNOPTIMISED = {
    "cpu": {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
    }
}
# On a CPU, a third less compilation for programs that run as fast.
OPTIMISED = {
    "cpu": {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False},
    "gpu": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False},
}

# XLA maps memory for each function that it compiles for a CPU, 3,000 to 18,000 times in a fit. Linux allows a process
# 65,530 mappings. When they are used up, the compiler ends the process.
MAPPINGS, MOST_MAPPINGS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")


def make_room(share: float = 0.5) -> bool:
    """Forget all compiled programs if this process has used more than a share of the mappings that it may have.

    Called before something that compiles many programs. A forgotten program is compiled or loaded again when needed.
    """
    if not (MAPPINGS.exists() and MOST_MAPPINGS.exists()):
        return False
    full = MAPPINGS.read_bytes().count(b"\n") > share * int(MOST_MAPPINGS.read_text())
    if full:
        jax.clear_caches()
    return full


def compiled(function: Callable, quickly: bool = False) -> Callable:
    """`eqx.filter_jit` with our settings."""

    @cache
    def program(backend: str) -> Callable:
        wanted = OPTIMISED.get(backend, {}) | (UNOPTIMISED.get(backend, {}) if quickly else {})
        settings = {k: v for k, v in wanted.items() if is_known(k, v)}
        return cast(Any, eqx.filter_jit)(function, compiler_options=settings)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        # Inside another program it becomes a part of that program: only a whole program has settings.
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arguments)):
            return function(*arguments)
        # The device is looked up at the first call: before that a user may still choose it.
        return program(jax.default_backend())(*arguments)

    return call


def compiled_quickly(function: Callable) -> Callable:
    """`compiled` without optimisation, for a program that runs only a few times."""
    return compiled(function, quickly=True)


def library_for(tree: Any) -> Any:
    """`jax.numpy` inside of a program that is traced, and NumPy outside: there JAX would compile each new shape."""
    return jnp if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree)) else np


def array_of(values: Any) -> jax.Array:
    """A copy on the device. Outside of programs `jnp.asarray` would compile one for each new shape.

    NumPy makes the copy, since JAX may share the memory of a well-aligned array, or read it only after returning.
    """
    return jax.device_put(np.array(values))


@cache
def is_known(setting: str, value: Any) -> bool:
    """Whether this version of XLA has the setting."""
    try:
        jax.jit(lambda x: x, compiler_options={setting: value}).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
