"""64-bit arithmetic: single precision cannot hold the condition numbers of Gram matrices of differential operators."""

import os
import sys


def enable_float64() -> None:
    """Turn JAX's 64-bit mode on, without importing JAX. An error if the user has explicitly forced it off."""
    forced = os.environ.get("JAX_ENABLE_X64", "").strip().lower()
    if forced in {"0", "false", "f", "off", "no", "n"}:
        raise RuntimeError(
            f"pdedkl computes in 64-bit and JAX_ENABLE_X64={forced!r} forces 32-bit. "
            "Unset the variable, or set it to 1, before importing pdedkl."
        )
    os.environ["JAX_ENABLE_X64"] = "1"
    if "jax" in sys.modules:
        import jax

        jax.config.update("jax_enable_x64", True)


def require_float64() -> None:
    """Fail early if 64-bit mode was switched off after pdedkl was imported."""
    import jax

    if not jax.config.read("jax_enable_x64"):
        raise RuntimeError(
            "pdedkl computes in 64-bit and JAX's 64-bit mode was turned off after pdedkl was imported. "
            "Remove jax.config.update('jax_enable_x64', False), or set it back to True."
        )
