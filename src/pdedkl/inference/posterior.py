"""The posterior: mean, variance, covariance and samples of any operator of `u`, anywhere."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, PRNGKeyArray

from ..compilation import compiled, compiled_quickly
from ..domain import Domain
from ..kernels import Kernel
from ..means import observed_mean
from ..model import Model
from ..observations import Observation, as_points, check_observations
from ..operators import Operator, Parameter, identity
from ..operators.base import applied
from ..precision import require_float64
from ..shown import Rows, Shown, known, listed, over
from .calibration import Calibration, Compared, alikeness, calibration_of, votes
from .cholesky import JITTER_LADDER, factorise, left_out, solve
from .engines import Engine, engine_of
from .estimated import log_determinant
from .evidence import linear_system, value_from
from .gram import assemble
from .iterative import Iterative, chosen_solver, everywhere, plain_mesh, solved
from .memory import check_fits
from .prediction import Prediction
from .solver import Factorised, Gram, Solver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..checking.check import Verdict

# A variance is a difference of two numbers of the size of the prior's: it is not known better than to a few roundings.
ROUNDING = 16 * float(np.finfo(float).eps)

# Entries of the matrix between one batch of test points and the data; bounds the memory of a prediction. Conjugate
# gradients compute all covariances of the data anew for each batch, so theirs are large.
ENTRIES_PER_BATCH = {Factorised: 1 << 22, Iterative: 1 << 26}

# Errors of conjugate gradients that deserve a warning.
UNCONVERGED = 1e-6
# Matrices of n × n that are alive at once in a factorisation.
MATRICES = 3
# So many are conditioned on, or predicted from, in less time than a compiler needs to make that faster.
FEW_VALUES = 2000
FEW_ENTRIES = 1 << 20

Points = Float[np.ndarray, "m d"] | Float[Array, "m d"]
OtherPoints = Float[np.ndarray, "n d"] | Float[Array, "n d"]


class Posterior(Shown, eqx.Module):
    """A model conditioned on observations.

    `solver` applies the inverse of the Gram matrix: by its Cholesky factor, or by conjugate gradients where that does
    not fit into memory. `alpha` are the weights `K⁻¹ (y − A m)`, `jitter` is what the factorisation needed, relative to
    each row's variance, and `objective` the negative log evidence. `calibration` holds the factors of its standard
    deviations, where they were compared with fresh values. `training` says how the model came to be, where it was
    fitted.
    """

    model: Model
    observations: tuple[Observation, ...]
    sections: tuple[Any, ...]
    solver: Solver
    alpha: Float[Array, " n"]
    jitter: Float[Array, ""]
    objective: Float[Array, ""]
    calibration: Calibration | None = None
    training: Any = eqx.field(default=None, static=True)

    @property
    def engine(self) -> Engine:
        return engine_of(self.model.engine)

    @property
    def gram(self) -> Gram:
        noise = [item.noise_variance(self.model.log_noise) for item in self.observations]
        return Gram(self.engine, self.engine.parameters(self.model.kernel), self.sections, jnp.concatenate(noise))

    def predict(self, points: Any, operator: Operator = identity, *, batch_size: int | None = None) -> Prediction:
        """Mean and variance of `A u`, noise excluded, at `n` points, in batches that bound the memory."""
        q = self._points(points, operator)
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"`batch_size` needs to be at least 1: got {batch_size}.")
        size = batch_size or max(1, ENTRIES_PER_BATCH[type(self.solver)] // self.alpha.shape[0])
        # Powers of two, so that calls with different numbers of points share a few compilations.
        size = min(size, 1 << (q.shape[0] - 1).bit_length())
        predict_batch = _predict_few if q.shape[0] * self.alpha.shape[0] <= FEW_ENTRIES else _predict_batch
        means, variances, clamped = np.empty(q.shape[0]), np.empty(q.shape[0]), 0
        for start in range(0, q.shape[0], size):
            part = q[start : start + size]
            padded = np.concatenate([part, np.broadcast_to(part[-1], (size - len(part), q.shape[1]))])
            mean, variance, rounding = (
                np.asarray(found)[: len(part)] for found in predict_batch(self, operator, padded)
            )
            means[start : start + size] = mean
            clamped += int(np.sum(variance < 0))
            variances[start : start + size] = np.maximum(variance, 0.0) + rounding
        variances *= float(self.scale(operator)) ** 2
        return Prediction(means, variances, clamped, q, self.model.kernel.names, applied(operator))

    def scale(self, operator: Operator = identity) -> Float[Array, ""]:
        """What standard deviations of `A u` are multiplied by, from comparison with fresh values; 1 without one."""
        return jnp.ones(()) if self.calibration is None else self.calibration.factor(operator)

    def calibrated(self, fresh: Sequence[Observation] = ()) -> Posterior:
        """The same posterior with standard deviations that fit what it was not conditioned on; means stay.

        `fresh` are new values of the conditions and of the source, such as `problem.fresh(500, purpose="calibration")`.
        Values of `u` count by what they say of the points of the highest order among them, which are inside.
        Learned noise is not theirs, so measured ones need a noise of known size, and only widen. Of orders of
        derivatives that they do not have, each value of the data is compared with its prediction from all others;
        training has seen those, so they only widen too.
        """
        found = check_observations(fresh) if len(fresh) else ()
        plain = self.uncalibrated()
        highest = max((item.operator.order for item in found), default=0)
        inside = [np.asarray(item.points) for item in found if item.operator.order == highest > 0]
        compared = [plain.compared(item, np.concatenate(inside) if inside else None) for item in found]
        orders = {item.order for item in compared}
        missing = any(item.operator.order not in orders for item in self.observations)
        others = [item for item in plain.left_out() if item.order not in orders] if missing else []
        names = ["fresh values"] * bool(compared) + ["left-out values"] * bool(others)
        if not (compared or others):
            return plain
        calibration = calibration_of(compared, others, " and ".join(names))
        return dataclasses.replace(self, calibration=calibration)

    def uncalibrated(self) -> Posterior:
        """The same posterior with the standard deviations that the model itself claims."""
        return dataclasses.replace(self, calibration=None)

    def compared(self, fresh: Observation, inside: np.ndarray | None = None) -> Compared:
        """The errors at values that were not conditioned on, beside what was claimed.

        Values of `u` count by what they say of the points `inside`, if those are given.
        """
        predicted = self.predict(fresh.points, fresh.operator)
        known = np.zeros(len(fresh)) if fresh.noise_name else np.broadcast_to(fresh.noise_variance({}), len(fresh))
        weight, told = np.ones(len(fresh)), 1.0
        if inside is not None and fresh.of_values:
            covariance = self.covariance(inside, fresh.operator, fresh.points, fresh.operator)
            claimed = np.outer(self.predict(inside, fresh.operator).std, predicted.std)
            correlation = covariance / claimed
            weight, told = votes(correlation), float(np.mean(alikeness(correlation)))
        errors = np.asarray(fresh.values) - predicted.mean
        return Compared(fresh.operator.order, errors, predicted.variance, known, weight, told)

    def left_out(self) -> list[Compared]:
        """Each value against its prediction from all others; not to be had without the whole matrix."""
        if not isinstance(self.solver, Factorised):
            return []
        ends = np.cumsum([len(item) for item in self.observations])[:-1]
        parts = (np.split(np.asarray(array), ends) for array in _left_out(self.solver.factor, self.alpha))
        found = []
        for item, errors, variance in zip(self.observations, *parts):
            noise = np.broadcast_to(np.asarray(item.noise_variance(self.model.log_noise)), len(item))
            claimed = np.maximum(variance - noise, 0.0)
            found.append(Compared(item.operator.order, errors, claimed, noise, np.ones(len(item))))
        return found

    def covariance(
        self,
        points: Any,
        operator: Operator = identity,
        other_points: Any = None,
        other_operator: Operator | None = None,
    ) -> np.ndarray:
        """The posterior covariance of `A u` at the points with `A' u` at the other points (by default the same)."""
        other = operator if other_operator is None else other_operator
        q = self._points(points, operator)
        q_ = self._points(points if other_points is None else other_points, other)
        check_fits(max(len(q), len(q_)), 2, "points to predict jointly")
        scale = float(self.scale(operator) * self.scale(other))
        few = len(q) * len(q_) <= FEW_ENTRIES
        return scale * np.asarray((_covariance_of_few if few else _covariance)(self, operator, q, other, q_))

    def sample(self, key: PRNGKeyArray, points: Any, operator: Operator = identity, *, count: int = 1) -> np.ndarray:
        """`count` joint draws of `A u` at the points, as rows."""
        q = self._points(points, operator)
        check_fits(q.shape[0], 3, "points to draw jointly")
        mean = self.predict(q, operator).mean
        # Posterior covariances are close to singular; eigenvalues tell rounding from variance where Cholesky gives up.
        eigenvalues, vectors = jnp.linalg.eigh(_covariance(self, operator, q, operator, q))
        root = self.scale(operator) * vectors * jnp.sqrt(jnp.maximum(eigenvalues, 0.0))
        return mean + np.asarray(jax.random.normal(key, (count, q.shape[0])) @ root.T)

    def mean(self, q: Float[Array, " d"]) -> Float[Array, ""]:
        """The posterior mean of `u` at one point, as a function that JAX can differentiate."""
        return self.model.mean(q) + jnp.dot(self._with_data(q), self.alpha)

    def kernel(self, q: Float[Array, " d"], q_: Float[Array, " d"]) -> Float[Array, ""]:
        """The posterior covariance of `u` at two points, as a function that JAX can differentiate."""
        explained = jnp.dot(self._with_data(q), self.solver.solve(self.gram, self._with_data(q_)))
        return self.scale() ** 2 * (self.model.kernel(q, q_) - explained)

    def check(self, problem: Any, n: int = 500, seed: int = 0) -> Verdict:
        """Compare with `n` fresh values each of the source and of the conditions, and say what came out."""
        from ..checking.check import check

        return check(self, problem, n, seed)

    def plot(
        self,
        *coordinates: Any,
        at: Any = None,
        operator: Operator = identity,
        exact: Any = None,
        domain: Domain | None = None,
        level: float = 0.95,
    ) -> Figure:
        """A picture of `A u` along one coordinate with its band, or over a plane of two."""
        from ..reports.slices import plotted

        return plotted(self, coordinates, at, operator, exact, domain, level)

    def save(self, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
        """Write all that predictions need to one file, as data; `pdedkl.load(path)` gives the same bits again.

        `extra` is anything in JSON that should travel with it. Python functions cannot: a warning names them.
        """
        from ..saving import save

        save(self, path, extra=extra, stacklevel=4)  # past this method and its wrapper in equinox

    def unknowns(self) -> dict[str, float]:
        """The values that were learned for the unknown coefficients, by name."""
        bound = [self.model.bound(item.operator) for item in self.observations]
        leaves = jax.tree.leaves(bound, is_leaf=lambda node: isinstance(node, Parameter))
        return {leaf.name: float(leaf.value) for leaf in leaves if isinstance(leaf, Parameter)}

    def _described(self) -> tuple[str, Rows] | None:
        if not known(self.alpha, self.objective, self.jitter) or (kernel := self.model.kernel._in_words()) is None:
            return None
        rows = {
            "data": listed([f"{len(item)} of {applied(item.operator)}" for item in self.observations]),
            "kernel": kernel,
            "noise": listed([f"{name} {level:.3g}" for name, level in self.model.noise().items()]) or "known",
        }
        if found := self.unknowns():
            rows["learned"] = listed([f"{name} = {value:.4g}" for name, value in found.items()])
        jitter = f", with a jitter of {float(self.jitter):.0e}" if float(self.jitter) else ""
        rows["evidence"] = f"log p(y) = {-float(self.objective):.2f}{jitter}"
        if self.calibration is not None:
            rows["error bars"] = self.calibration._in_words()
        if self.training is not None:
            rows["training"] = self.training._in_words()
        return f"Posterior of u over {over(self.model.kernel.layout)}, from {len(self.alpha)} values", rows

    def _with_data(self, q: Array) -> Array:
        parts = [self.engine.with_value(self.model.kernel, q, rows) for rows in self.sections]
        return jnp.concatenate(parts)

    def _points(self, points: Any, operator: Operator) -> np.ndarray:
        if not isinstance(operator, Operator):
            raise TypeError(f"`operator` needs to be an operator such as identity or Laplacian(x): got {operator!r}.")
        require_float64()
        self.model.check_operator(operator)
        return as_points(points, operator, self.model.kernel.dim)


def condition(
    model: Model | Kernel,
    observations: Sequence[Observation] | Observation,
    *,
    solver: str = "auto",
    mesh: Mesh | None = None,
) -> Posterior:
    """Condition a model on observations; a kernel alone stands for a zero-mean model with default noise.

    `solver` is `"dense"`, a Cholesky factorisation; `"iterative"`, conjugate gradients with a low-rank preconditioner,
    which never hold the Gram matrix; or `"auto"`, the first if it fits into memory. With a `mesh` of devices the
    rows of the matrix are shared out among them, in iterative solves.
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
        conditioned = (_condition_on_few if n <= FEW_VALUES else _condition)(model, found)
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
            f"Conjugate gradients did not converge in {int(made.steps)} steps: the error of the mean is up to "
            f"{float(made.error):.0e} of what the data tell. More noise, a smoother kernel or fewer values help.",
            stacklevel=2,
        )
    return Posterior(model, found, sections, made, alpha, jitter, objective)


def _condition_densely(model: Model, observations: tuple[Observation, ...]):
    system = linear_system(model, observations)
    gram = assemble(partial(system.engine.block, system.parameters), system.sections)
    factor, jitter = factorise(gram, system.noise)
    alpha = solve(factor, system.residual)
    return system.sections, Factorised(factor), alpha, jitter, value_from(factor, alpha, system.residual)


_condition, _condition_on_few = compiled(_condition_densely), compiled_quickly(_condition_densely)
_left_out = compiled_quickly(left_out)


@compiled
def _condition_iteratively(model: Model, observations: tuple[Observation, ...], mesh: Mesh | None):
    *parts, residual = system = linear_system(model, observations)
    gram = Gram(*parts)
    made, alpha, complete, jitter = solved(gram, residual, mesh)
    size = log_determinant(gram, made, complete)
    objective = 0.5 * (jnp.dot(residual, alpha) + size + residual.shape[0] * jnp.log(2 * jnp.pi))
    return everywhere((system.sections, made, alpha, jitter, objective), mesh)


class _TestRows(NamedTuple):
    parameters: Any
    rows: Any
    with_data: Float[Array, "m n"]


def _test_rows(posterior: Posterior, operator: Operator, points: Any) -> _TestRows:
    engine, kernel = posterior.engine, posterior.model.kernel
    parameters = engine.parameters(kernel)
    rows = engine.rows(kernel, posterior.model.bound(operator), points)
    blocks = [engine.block(parameters, rows, data) for data in posterior.sections]
    return _TestRows(parameters, rows, jnp.concatenate(blocks, axis=1))


def _predict(posterior: Posterior, operator: Operator, points: Points) -> tuple[Array, Array, Array]:
    """Mean, variance, and what of the variance is rounding."""
    test = _test_rows(posterior, operator, points)
    prior_mean = observed_mean(posterior.model.mean, posterior.model.bound(operator), jnp.asarray(points))
    prior = posterior.engine.diagonal(test.parameters, test.rows)
    variance = prior - posterior.solver.explained(posterior.gram, test.with_data.T)
    return prior_mean + test.with_data @ posterior.alpha, variance, ROUNDING * jnp.abs(prior)


_predict_batch, _predict_few = compiled(_predict), compiled_quickly(_predict)


def _jointly(
    posterior: Posterior, operator: Operator, points: Points, other_operator: Operator, other_points: OtherPoints
) -> Float[Array, "m n"]:
    left = _test_rows(posterior, operator, points)
    right = _test_rows(posterior, other_operator, other_points)
    prior = posterior.engine.block(left.parameters, left.rows, right.rows)
    return prior - posterior.solver.cross(posterior.gram, left.with_data.T, right.with_data.T)


_covariance, _covariance_of_few = compiled(_jointly), compiled_quickly(_jointly)
