"""From a model and observations to a posterior."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array

from ..compilation import compiled, compiled_quickly
from ..kernels import Kernel
from ..model import Model
from ..observations import Observation, check_observations
from ..precision import require_float64
from .cholesky import JITTER_LADDER, factorise, solve
from .estimated import log_determinant
from .evidence import linear_system, value_from
from .gram import assemble
from .iterative import Iterative, chosen_solver, everywhere, plain_mesh, solved
from .parts import joined
from .posterior import Posterior
from .solver import Factorised, Gram
from .staged import STAGED_VALUES, gram_of, of_rows, terms_of

# Errors of conjugate gradients that deserve a warning.
UNCONVERGED = 1e-6
# Matrices of n × n that are alive at once in a factorisation.
MATRICES = 3


def condition(
    model: Model | Kernel,
    observations: Sequence[Observation] | Observation,
    *,
    solver: str = "auto",
    mesh: Mesh | None = None,
) -> Posterior:
    """`u | y`: condition a model on observations.

    **Arguments:**

    - `model`: a `Model`, or a `Kernel` for a zero mean and initial noise levels.
    - `observations`: an `Observation` or a list of them.
    - `solver`: `"dense"` for a Cholesky factorisation; `"iterative"` for conjugate gradients with a preconditioner,
      which never store the Gram matrix; `"auto"` for `"dense"` if it fits into memory, else `"iterative"`.
    - `mesh`: devices of JAX that share the rows of the matrix, in iterative solves.

    **Returns:** a `Posterior`.

    !!! example
        ```python
        equation = pk.Observation(heat, points, np.zeros(20), noise="exact")
        posterior = pk.condition(pk.ard(domain), [data, equation])
        ```
    """
    require_float64()
    found = check_observations(observations)
    if isinstance(model, Kernel):
        model = Model(model, found)
    if not isinstance(model, Model):
        raise TypeError(f"Expected a Model or a Kernel to condition: got {type(model).__name__}.")
    model.check(found)
    n = sum(map(len, found))
    chosen = chosen_solver(solver, n, MATRICES, mesh)
    if chosen == "dense":
        conditioned = (_condition_in_stages if n <= STAGED_VALUES else _condition_in_one)(model, found)
    else:
        conditioned = _condition_iteratively(model, found, plain_mesh(mesh))
    sections, made, alpha, jitter, objective = conditioned
    if not np.isfinite(float(objective)):
        raise ArithmeticError(
            f"The Gram matrix could not be factorised, even with a relative jitter of {JITTER_LADDER[-1]:g}: "
            "its entries are not finite or far from positive definite. "
            "Check length scales and variances, or give the observations some noise."
        )
    if isinstance(made, Iterative) and not made.error < UNCONVERGED:
        warnings.warn(
            f"Conjugate gradients did not converge in {int(made.steps)} steps: the relative error of the mean may be "
            f"{float(made.error):.0e}. More noise, a smoother kernel or fewer values help.",
            stacklevel=2,
        )
    return Posterior(model, found, sections, made, alpha, jitter, objective)


def _condition_in_stages(model: Model, observations: tuple[Observation, ...]):
    system = _system(model, observations)
    parts, layout = joined(system.engine, system.parameters, system.sections)
    factor, alpha, jitter, objective = _solved(gram_of(parts), terms_of(layout), system.noise, system.residual)
    return system.sections, Factorised(factor), alpha, jitter, objective


_system = compiled_quickly(linear_system)


@compiled
def _solved(gram: Array, terms: Array, noise: Array, residual: Array):
    factor, jitter = factorise(of_rows(gram, terms), noise)
    alpha = solve(factor, residual)
    return factor, alpha, jitter, value_from(factor, alpha, residual)


@compiled
def _condition_in_one(model: Model, observations: tuple[Observation, ...]):
    system = linear_system(model, observations)
    gram = assemble(partial(system.engine.block, system.parameters), system.sections)
    factor, jitter = factorise(gram, system.noise)
    alpha = solve(factor, system.residual)
    return system.sections, Factorised(factor), alpha, jitter, value_from(factor, alpha, system.residual)


@compiled
def _condition_iteratively(model: Model, observations: tuple[Observation, ...], mesh: Mesh | None):
    *parts, residual = system = linear_system(model, observations)
    gram = Gram(*parts)
    made, alpha, complete, jitter = solved(gram, residual, mesh)
    size = log_determinant(gram, made, complete)
    objective = 0.5 * (jnp.dot(residual, alpha) + size + residual.shape[0] * jnp.log(2 * jnp.pi))
    return everywhere((system.sections, made, alpha, jitter, objective), mesh)
