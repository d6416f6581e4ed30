"""The run-time type checker that jaxtyping's import hook uses; an int is a good float.

Functions within functions are checked anew wherever their definition runs. What checks them is made once for each list
of annotations: it looks at arguments only.
"""

from collections.abc import Callable

from beartype import BeartypeConf, beartype

made_for = beartype(conf=BeartypeConf(is_pep484_tower=True))
known: dict[tuple, Callable] = {}


def typechecker(function: Callable) -> Callable:
    try:
        key = (function.__module__, function.__qualname__, tuple(function.__annotations__.items()))
        if key not in known:
            known[key] = made_for(function)
    except TypeError:  # annotations that cannot be compared
        return made_for(function)
    return known[key]
