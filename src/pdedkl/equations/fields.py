"""Unknown fields, by name."""

from __future__ import annotations

from typing import Any

from ..operators.base import identity
from ..operators.rows import Row
from .terms import Linear


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
