"""PDE-constrained deep kernel learning: linear PDEs in many dimensions, from little data, with error bars.

Everything in `api.py` is an attribute of the package, imported at its first use. JAX takes seconds to import, and
`pdedkl --help` does not need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .precision import enable_float64

if TYPE_CHECKING:
    from .api import *  # noqa: F403

__version__ = "0.1.0"

enable_float64()  # before anybody creates an array


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name not in (api := _api()).__all__:
        raise AttributeError(f"module 'pdedkl' has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_api().__all__])


def _api() -> Any:
    return import_module(".api", __name__)
