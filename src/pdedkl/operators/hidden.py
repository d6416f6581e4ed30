"""Objects that a Python function reaches without taking them as arguments."""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, TypeVar

T = TypeVar("T")


def reached(fn: Callable, kind: type[T]) -> list[T]:
    """The objects of this kind in a function's closure, globals and defaults, also inside lists and dictionaries."""
    return [item for value in _values(fn) for item in _inside(value) if isinstance(item, kind)]


def _values(fn: Any) -> Iterator[Any]:
    if isinstance(fn, functools.partial):
        yield from (*fn.args, *fn.keywords.values())
        yield from _values(fn.func)
        return
    plain = getattr(fn, "__func__", fn)
    code = getattr(plain, "__code__", None)
    if not isinstance(code, CodeType):
        return
    for cell in plain.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    yield from plain.__defaults__ or ()
    yield from (plain.__kwdefaults__ or {}).values()
    for name in _global_names(code):
        if name in plain.__globals__:
            yield plain.__globals__[name]


def _global_names(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value
