"""Vectors and matrices in operators: numbers, functions of the point, or lists that contain parameters."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..coordinates import Coordinates
from .coefficients import (
    AbstractCoefficient,
    as_array,
    as_coefficient,
    as_entries,
    is_number,
    name_of_function,
    refuse_hidden_in,
)
from .symbol import Symbol

# Vectors of more entries than this are printed as a letter.
WRITTEN_OUT = 4


def read_array(what: str, value: Any, shape: tuple[int, ...]) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"Expected {what} of shape {shape}: got {value!r}.") from None
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise ValueError(f"Expected {what} of shape {shape} with finite entries: got shape {array.shape}, {value!r}.")
    return jnp.asarray(array)


class ConstantTensor(eqx.Module):
    """A constant `a`. If it is a matrix, it is split into signed directions at construction."""

    value: Array
    directions: Array | None = None
    weights: Array | None = None


def read_vector(vector: Any, k: int) -> Any:
    if callable(vector):
        refuse_hidden_in(vector, "Directional")
        return vector
    return as_entries("a direction", vector, ((k,),)) or read_array("a direction", vector, (k,))


def read_tensor(what: str, a: Any, k: int) -> Any:
    if isinstance(a, AbstractCoefficient) or callable(a):
        refuse_hidden_in(a, what)
        return a
    if (entries := as_entries(f"{what}'s a", a, ((k,), (k, k)))) is not None:
        return entries
    if is_number(a):
        return ConstantTensor(as_coefficient(a).value)  # type: ignore[attr-defined]
    if np.ndim(a) == 1:
        return ConstantTensor(read_array(f"the diagonal of {what}'s a", a, (k,)))
    matrix = np.asarray(read_array(f"{what}'s matrix a", a, (k, k)))
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-14 * np.abs(matrix).max()):
        raise ValueError(f"{what} needs a symmetric matrix a: pass (a + a.T) / 2, which is the same operator.")
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = np.abs(eigenvalues) > 1e-15 * np.abs(eigenvalues).max()
    return ConstantTensor(jnp.asarray(matrix), jnp.asarray(vectors.T[kept]), jnp.asarray(eigenvalues[kept]))


def tensor_at(a: Any, q: Array) -> Array:
    return jax.lax.stop_gradient(a.value) if isinstance(a, ConstantTensor) else as_array(a(q))


def as_matrix(a: Array, k: int) -> Array:
    return a if a.ndim == 2 else jnp.diag(jnp.broadcast_to(a, (k,)))


def written(value: Any, letter: str) -> str:
    """A number or short vector in digits, a function by its name, a long vector or a matrix as one letter."""
    if isinstance(value, AbstractCoefficient):
        return str(value)
    if callable(value):
        return f"{name_of_function(value, letter)}(q)"
    array = value.value if isinstance(value, ConstantTensor) else value
    if isinstance(array, jax.core.Tracer) or array.ndim > 1 or array.size > WRITTEN_OUT:
        return letter
    numbers = [f"{number:g}" for number in np.atleast_1d(array)]
    return f"({', '.join(numbers)})" if array.ndim else numbers[0]


def call_or_constant(value: Any, q: Array, what: str, shape: tuple[int, ...]) -> Array:
    out = as_array(value(q)) if callable(value) else jax.lax.stop_gradient(value)
    if out.shape != shape:
        raise ValueError(f"{what} needs shape {shape} at each point: the function returned shape {out.shape}.")
    return out


def second_order_symbol(a: Any, q: Array, x: Coordinates) -> Symbol:
    value, k = tensor_at(a, q), len(x)
    if value.shape not in {(), (k,), (k, k)}:
        raise ValueError(f"`a` needs shape (), ({k},) or ({k}, {k}) at each point: got {value.shape}.")
    if value.ndim < 2:
        return Symbol(axes=x.indices, axis_weights=jnp.broadcast_to(value, (k,)))
    if isinstance(a, ConstantTensor):
        return Symbol(directions=_embed(a.directions, x), weights=a.weights)
    # a = Σ_j ¼ [(m e_j + a_j/m)(…)ᵀ − (m e_j − a_j/m)(…)ᵀ]; the scale m keeps both terms of one size.
    matrix = 0.5 * (value + value.T)
    m = jnp.sqrt(jnp.maximum(jnp.max(jnp.abs(jax.lax.stop_gradient(matrix))), 1e-300))
    plus, minus = m * jnp.eye(k) + matrix / m, m * jnp.eye(k) - matrix / m
    weights = jnp.concatenate([jnp.full(k, 0.25), jnp.full(k, -0.25)])
    return Symbol(directions=_embed(jnp.concatenate([plus, minus]), x), weights=weights)


def _embed(directions: Array | None, x: Coordinates) -> Array:
    assert directions is not None
    return jnp.zeros((directions.shape[0], x.dim)).at[:, np.asarray(x.indices)].set(directions)
