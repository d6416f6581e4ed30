"""Check values against the annotations of their fields, including shapes: `matrix: Float[Array, "v w"]`."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import jax
from jaxtyping import jaxtyped


class MisfitError(ValueError):
    """Something in a model file does not fit. The message says what and where; the caller adds the file name."""


@cache
def hints_of(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def check_fields(cls: type, values: dict[str, Any], where: str) -> None:
    """Check each value against its annotation. Axes with the same letter must have the same length in one object."""
    with jaxtyped("context"):
        for field in dataclasses.fields(cls):
            if not fits(value := values[field.name], hints_of(cls)[field.name]):
                wanted = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", field.type)
                raise MisfitError(f"{where}.{field.name} needs {wanted} and holds {described(value)}")


def fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is Callable:
        return callable(value)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return isinstance(value, tuple) and all(fits(item, arguments[0]) for item in value)
        return isinstance(value, tuple) and len(value) == len(arguments) and all(map(fits, value, arguments))
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, arguments[1]) for item in value.values())
    if hint is float:
        hint = int | float
    # In Python a bool is also an int; in a file it does not count as a number.
    return isinstance(value, hint) and (hint is bool or hint is object or not isinstance(value, bool))


def described(value: Any) -> str:
    if isinstance(value, jax.Array):
        return f"an array of shape {value.shape}"
    return repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
