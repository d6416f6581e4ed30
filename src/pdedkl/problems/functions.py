"""The user's functions of a point: checked when they are given, and evaluated at many points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..compilation import array_of
from ..domain import Domain
from ..equations import Nonlinear
from ..equations.terms import added, as_term
from ..operators import Operator
from ..operators.coefficients import AbstractCoefficient, Parameter, is_number, parameters_of
from ..operators.hidden import reached
from ..operators.offset import with_offset

Function = Callable[[jax.Array], Any]

# Errors that a user's function may raise when it is evaluated.
FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)


HIDDEN = (
    "There it could not be learned: write k * Coefficient(shape), or Coefficient(lambda q, k: …, k), with the unknown "
    "numbers after the point."
)


def read_function(value: Any, what: str, domain: Domain) -> Function:
    """A function of the point, or a number, as a function; its shape is checked by tracing it at one point."""
    if is_number(value):
        if not np.isfinite(value):
            raise ValueError(f"{what} needs a finite number: got {value}.")
        number = float(value)
        return lambda q: jnp.asarray(number)
    if not callable(value):
        raise TypeError(f"{what} needs a function of the point q, or a number: got {value!r}.")
    if not isinstance(value, AbstractCoefficient) and reached(value, Parameter):
        raise TypeError(f"{what} uses a Parameter from outside. {HIDDEN}")
    check_at_a_point(value, what, domain)
    return value


def check_at_a_point(function: Function, what: str, domain: Domain) -> None:
    try:
        made = jax.eval_shape(lambda q: jnp.asarray(function(q)), jax.ShapeDtypeStruct((domain.dim,), float))
    except FAILURES as error:
        raise ValueError(
            f"{what} could not be evaluated at a point q of shape ({domain.dim},): {_first_line(error)} "
            "Write it as a function of one point, with jax.numpy."
        ) from error
    if made.shape != () or made.dtype.kind not in "biuf":
        kind = "complex numbers" if made.dtype.kind == "c" else f"shape {made.shape}"
        raise ValueError(f"{what} needs one real number at each point q, shape (): the function returned {kind}.")


def evaluate(points: np.ndarray, *functions: Function) -> np.ndarray:
    """Each function at every point; one row for each function."""
    return np.asarray(_evaluate(functions, array_of(points)))


@eqx.filter_jit
def _evaluate(functions: tuple[Function, ...], points: jax.Array) -> jax.Array:
    """Compiled once for each function object."""
    return jnp.stack([jax.vmap(lambda q, f=f: jnp.asarray(f(q), dtype=float))(points) for f in functions])


def finite_values(function: Function, points: np.ndarray, what: str) -> np.ndarray:
    (values,) = evaluate(points, function)
    if not np.all(np.isfinite(values)):
        worst = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{what} needs finite values: it is {values[worst]} at q = {show_point(points[worst])}.")
    return values


def show_point(q: np.ndarray) -> str:
    shown = ", ".join(f"{value:.6g}" for value in q[:8])
    return f"({shown}, … {len(q)} coordinates)" if len(q) > 8 else f"({shown})"


def _first_line(error: BaseException) -> str:
    line = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {line.rstrip('.')}."


def split(operator: Operator, value: Any) -> tuple[Operator, Any]:
    """`A u = f` with an `f` that contains unknown numbers, as `A u − f = 0`."""
    if not isinstance(value, AbstractCoefficient) or not parameters_of(value):
        return operator, value
    if isinstance(operator, Nonlinear):
        body = added(operator.body, -as_term(value))
        return Nonlinear(operator.rows, body, f"{operator.text} - {value}"), 0.0
    return with_offset(operator, -value), 0.0
