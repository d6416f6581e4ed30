"""Unknown fields, by name; unknown functions in equations, such as a conductivity or a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..coordinates import Coordinates
from ..operators.base import identity
from ..operators.coefficients import is_number
from ..operators.rows import Row
from .functions import exp
from .terms import Linear, Term


def fields(*names: str) -> Any:
    """Unknown functions of the point, to write equations with: `u, v, p = fields("u", "v", "p")`.

    Operators are applied to them with `@`. Terms are added, multiplied and divided, and taken to powers; functions such
    as `pk.exp` take them too. `term == source` is an equation.

    **Arguments:**

    - `*names`: the names, as they are printed.

    **Returns:** a tuple with a field for each name; the field itself for a single name.

    !!! example
        ```python
        u, v, p = pk.fields("u", "v", "p")
        momentum = u * (pk.D(x[0]) @ u) + v * (pk.D(x[1]) @ u) + pk.D(x[0]) @ p - 0.1 * (pk.Laplacian(x) @ u)
        assert str(u**2 + p) == "u² + p"
        ```
    """
    if not names:
        raise TypeError('fields("u", "v") needs a name for each field: got none.')
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"A field needs a name such as 'u' or 'p_1', as in fields('u', 'v'): got {name!r}.")
    if len(set(names)) < len(names):
        raise ValueError(f"Fields need different names: got {', '.join(names)}.")
    found = tuple(Linear(Row((name,), (identity,))) for name in names)
    return found if len(found) > 1 else found[0]


def unknown(
    name: str, *, positive: bool = False, over: Coordinates | Sequence[Coordinates] | None = None, around: float = 1.0
) -> Any:
    """An unknown function in an equation, such as a conductivity, a source, a velocity profile or an initial state.

    It is one more field, with a prior of its own, whose length scale and size are found from the data. An equation
    determines `u`; measurements of `u` determine what is unknown. A positive function is `a = a₀ exp(log_a)`, and
    `log_a` has the prior. `posterior.predict(points, a)` has its error bars.

    **Arguments:**

    - `name`: its name.
    - `positive`: whether it has to be positive. Then its logarithm is a field, and the equation is not linear.
    - `over`: the coordinates that it is a function of; all by default. A function of `x` in a problem with time does
      not change with time.
    - `around`: the rough size `a₀` of a positive function, if it is far from one.

    **Returns:** a term, to write equations and conditions with.

    !!! example
        ```python
        u, a = pk.fields("u"), pk.unknown("a", positive=True)
        darcy = pk.D(x[0]) @ (a * (pk.D(x[0]) @ u)) + pk.D(x[1]) @ (a * (pk.D(x[1]) @ u)) == -1.0
        wind = pk.unknown("v", over=x)
        assert str(wind * (pk.D(x[0]) @ u)) == "v(x) ∂u/∂x[0]"
        ```
    """
    field = f"log_{name}" if positive else name
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"unknown(name) needs a name such as 'a' or 'k_1': got {name!r}.")
    if not is_number(around) or not 0 < float(around) < float("inf"):
        raise ValueError(f"`around` needs a positive number, the rough size of {name}: got {around!r}.")
    if around != 1.0 and not positive:
        raise ValueError(f"`around` is for positive functions: {name} may have any sign, and its size is found.")
    if over is not None:
        parts = [over] if isinstance(over, Coordinates) else list(over)
        if not parts or not all(isinstance(part, Coordinates) for part in parts):
            raise TypeError(f"`over` needs coordinates, such as x or [x[0], t]: got {over!r}.")
        field = f"{field}({', '.join(_names(parts))})"
    made: Term = Linear(Row((field,), (identity,)))
    if not positive:
        return made
    return exp(made) if around == 1.0 else float(around) * exp(made)


def _names(parts: Sequence[Coordinates]) -> list[str]:
    """The names of coordinates: of whole groups where all of a group is there, else one by one."""
    chosen = {i for part in parts for i in part.indices}
    found, begin = [], 0
    for name, size in parts[0].layout:
        group = range(begin, begin + size)
        begin += size
        if chosen >= set(group):
            found.append(name)
        else:
            found += [f"{name}[{i - group.start}]" for i in group if i in chosen]
    return found
