"""The names and equations of the built-in problems. A problem is built only when `built_in` asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .problem import Problem

_U = "<mi>u</mi>"
_F = "<mo>=</mo><mi>f</mi>"
_LAPLACIAN = f"<mi>Δ</mi>{_U}"
_IN_TIME = f"<mfrac><mrow><mo>∂</mo>{_U}</mrow><mrow><mo>∂</mo><mi>t</mi></mrow></mfrac>"
_IN_SPACE = f"<mfrac><mrow><mo>∂</mo>{_U}</mrow><mrow><mo>∂</mo><msub><mi>x</mi><mi>i</mi></msub></mrow></mfrac>"
_TWICE = (
    f"<mfrac><mrow><msup><mo>∂</mo><mn>2</mn></msup>{_U}</mrow>"
    "<mrow><mo>∂</mo><msup><mi>x</mi><mn>2</mn></msup></mrow></mfrac>"
)


@dataclass(frozen=True)
class Entry:
    """A built-in problem: `equation` for the terminal, `mathml` for a report.

    `dim` is the default number of space dimensions; if `any_dim` is false, it is the only one.
    """

    name: str
    title: str
    equation: str
    mathml: str
    dim: int
    any_dim: bool = True


def _entry(name: str, title: str, equation: str, mathml: str, dim: int = 10, any_dim: bool = True) -> Entry:
    return Entry(name, title, equation, f"<math><mrow>{mathml}{_F}</mrow></math>", dim, any_dim)


_MINUS, _PLUS = "<mo>−</mo>", "<mo>+</mo>"
_SUM = f"<munder><mo>∑</mo><mi>i</mi></munder>{_IN_SPACE}"

BUILT_IN: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _entry("poisson", "Poisson equation", "Δu = f", _LAPLACIAN),
        _entry("heat", "Heat equation", "∂u/∂t − Δu = f", _IN_TIME + _MINUS + _LAPLACIAN),
        _entry(
            "advection-diffusion-reaction",
            "Advection–diffusion–reaction equation",
            "∂u/∂t − Δu + Σᵢ ∂u/∂xᵢ + u = f",
            _IN_TIME + _MINUS + _LAPLACIAN + _PLUS + _SUM + _PLUS + _U,
        ),
        _entry(
            "parametric-heat",
            "Heat equation with three parameters",
            "∂u/∂t − ∂²u/∂x² = f(x, t, μ)",
            _IN_TIME + _MINUS + _TWICE,
            dim=1,
            any_dim=False,
        ),
        Entry(
            "advection-diffusion-inverse",
            "Advection and diffusion with unknown velocity and diffusivity",
            "∂u/∂t + v·∇u − νΔu = 0",
            f"<math><mrow>{_IN_TIME}{_PLUS}<mi>v</mi><mo>·</mo><mo>∇</mo>{_U}{_MINUS}<mi>ν</mi>{_LAPLACIAN}"
            "<mo>=</mo><mn>0</mn></mrow></math>",
            dim=2,
            any_dim=False,
        ),
    )
}


def built_in(name: str, dim: int | None = None) -> Problem:
    """A built-in problem, by name: those of the paper, and one with unknown numbers.

    **Arguments:**

    - `name`: `"poisson"`, `"heat"`, `"advection-diffusion-reaction"`, `"parametric-heat"` or
      `"advection-diffusion-inverse"`.
    - `dim`: the number of space dimensions. The last two have one and two, and take no other.

    **Returns:** a `Problem`.

    !!! example
        ```python
        problem = pk.problems.built_in("heat", dim=50)
        ```
    """
    wanted = name.strip().lower().replace("_", "-") if isinstance(name, str) else name
    if wanted not in BUILT_IN:
        close = get_close_matches(str(wanted), BUILT_IN, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"No built-in problem {name!r}: there are {', '.join(BUILT_IN)}.{hint}")
    entry = BUILT_IN[wanted]
    module = wanted.replace("-", "_")
    build = getattr(import_module(f".{module}", __package__), module)
    if entry.any_dim:
        return build(entry.dim if dim is None else dim)
    if dim not in (None, entry.dim):
        raise ValueError(f"{wanted} is in {entry.dim} space dimension only: leave `dim` out (got {dim!r}).")
    return build()
