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
    """A Gaussian process `u` given its data: mean, variance, covariance and samples of any operator of it, anywhere.

    `condition` and `fit` make posteriors.

    **Arguments:**

    - `model`: the prior and its parameters.
    - `observations`: the data.
    - `sections`: the data as the engine needs them, one part for each observation.
    - `solver`: applies the inverse of the Gram matrix, by its Cholesky factor or by conjugate gradients.
    - `alpha`: the weights `K⁻¹ (y − A m)`.
    - `jitter`: what was added to the diagonal to factorise `K`, relative to each row's variance.
    - `objective`: the negative log evidence.
    - `calibration`: factors of the standard deviations, if they were compared with fresh values.
    - `training`: how the model was trained, if it was.

    !!! example
        ```python
        posterior = pk.condition(pk.ard(domain), data)
        mean, variance, _ = posterior.predict(points, heat)
        ```
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
        """What computes covariances: closed forms, or automatic differentiation."""
        return engine_of(self.model.engine)

    @property
    def gram(self) -> Gram:
        """The covariance matrix of the data, noise included, as the solver uses it."""
        noise = [item.noise_variance(self.model.log_noise) for item in self.observations]
        return Gram(self.engine, self.engine.parameters(self.model.kernel), self.sections, jnp.concatenate(noise))

    def predict(self, points: Any, operator: Operator = identity, *, batch_size: int | None = None) -> Prediction:
        """Mean and variance of `A u` at points, without the noise of measurements.

        **Arguments:**

        - `points`: an array of shape `(n, d)`.
        - `operator`: the operator `A`; `u` itself by default.
        - `batch_size`: how many points are computed at once, to bound the memory; chosen by default.

        **Returns:** a `Prediction`.

        !!! example
            ```python
            u, f = posterior.predict(points), posterior.predict(points, heat)
            ```
        """
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
        """The factor that standard deviations of `A u` are multiplied by, from comparison with fresh values.

        **Arguments:**

        - `operator`: the operator `A`.

        **Returns:** a number; 1 without a calibration.

        !!! example
            ```python
            assert posterior.scale() == 1.0
            ```
        """
        return jnp.ones(()) if self.calibration is None else self.calibration.factor(operator)

    def calibrated(self, fresh: Sequence[Observation] = ()) -> Posterior:
        """The same posterior with standard deviations that fit values it was not conditioned on. Means stay as they
        are.

        Fresh values of `u` lie on the boundary and at the start, and error bars are wanted inside. So each counts by
        how much it tells about the inside. Fresh values are exact, so the learned noise is not added; those with
        noise can only widen error bars. For an order of derivatives without fresh values, each value of the data is
        compared with its prediction from all others. Training has seen those, so they can only widen error bars too.

        **Arguments:**

        - `fresh`: new values, such as `problem.fresh(500, purpose="calibration")`; none to use the data alone.

        **Returns:** a `Posterior`.

        !!! example
            ```python
            wider = pk.condition(pk.ard(problem.domain), problem.sample(10, 10, 10)).calibrated()
            ```
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
        """The same posterior with the standard deviations that the model itself gives.

        **Arguments:** none.

        **Returns:** a `Posterior`.

        !!! example
            ```python
            assert posterior.uncalibrated().calibration is None
            ```
        """
        return dataclasses.replace(self, calibration=None)

    def compared(self, fresh: Observation, inside: np.ndarray | None = None) -> Compared:
        """The errors at values that were not conditioned on, beside the variances that were predicted there.

        **Arguments:**

        - `fresh`: the values, one observation.
        - `inside`: points inside. If they are given, values of `u` count by how much they tell about these points.

        **Returns:** a `Compared` with `errors`, `variance`, `noise` and `weight`.

        !!! example
            ```python
            new = pk.Observation(pk.identity, points[:5], values[:5], noise="exact")
            assert posterior.compared(new).errors.shape == (5,)
            ```
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
        """Each value of the data against its prediction from all others.

        **Arguments:** none.

        **Returns:** a `Compared` for each observation; an empty list where conjugate gradients took the place of the
        matrix.

        !!! example
            ```python
            (found,) = posterior.left_out()
            ```
        """
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
        """The posterior covariance of `A u` at some points with `B u` at others.

        **Arguments:**

        - `points`: an array of shape `(m, d)`.
        - `operator`: the operator `A`; `u` itself by default.
        - `other_points`: an array of shape `(n, d)`; by default the same points.
        - `other_operator`: the operator `B`; by default `A`.

        **Returns:** an array of shape `(m, n)`.

        !!! example
            ```python
            covariance = posterior.covariance(points[:3], pk.identity, points[:2], heat)
            ```
        """
        other = operator if other_operator is None else other_operator
        q = self._points(points, operator)
        q_ = self._points(points if other_points is None else other_points, other)
        check_fits(max(len(q), len(q_)), 2, "points to predict jointly")
        scale = float(self.scale(operator) * self.scale(other))
        few = len(q) * len(q_) <= FEW_ENTRIES
        return scale * np.asarray((_covariance_of_few if few else _covariance)(self, operator, q, other, q_))

    def sample(self, key: PRNGKeyArray, points: Any, operator: Operator = identity, *, count: int = 1) -> np.ndarray:
        """Joint draws of `A u` at points.

        **Arguments:**

        - `key`: a random key of JAX.
        - `points`: an array of shape `(n, d)`.
        - `operator`: the operator `A`; `u` itself by default.
        - `count`: how many draws.

        **Returns:** an array of shape `(count, n)`.

        !!! example
            ```python
            draws = posterior.sample(jax.random.key(0), points[:4], count=10)
            ```
        """
        q = self._points(points, operator)
        check_fits(q.shape[0], 3, "points to draw jointly")
        mean = self.predict(q, operator).mean
        # Posterior covariances are close to singular; eigenvalues tell rounding from variance where Cholesky gives up.
        eigenvalues, vectors = jnp.linalg.eigh(_covariance(self, operator, q, operator, q))
        root = self.scale(operator) * vectors * jnp.sqrt(jnp.maximum(eigenvalues, 0.0))
        return mean + np.asarray(jax.random.normal(key, (count, q.shape[0])) @ root.T)

    def mean(self, q: Float[Array, " d"]) -> Float[Array, ""]:
        """The posterior mean of `u` at one point, as a function that JAX can differentiate.

        **Arguments:**

        - `q`: a point.

        **Returns:** a number.

        !!! example
            ```python
            slope = jax.grad(posterior.mean)(jnp.asarray(points[0]))
            ```
        """
        return self.model.mean(q) + jnp.dot(self._with_data(q), self.alpha)

    def kernel(self, q: Float[Array, " d"], q_: Float[Array, " d"]) -> Float[Array, ""]:
        """The posterior covariance of `u` at two points, as a function that JAX can differentiate.

        **Arguments:**

        - `q`: a point.
        - `q_`: another point.

        **Returns:** a number.

        !!! example
            ```python
            covariance = posterior.kernel(jnp.asarray(points[0]), jnp.asarray(points[1]))
            ```
        """
        explained = jnp.dot(self._with_data(q), self.solver.solve(self.gram, self._with_data(q_)))
        return self.scale() ** 2 * (self.model.kernel(q, q_) - explained)

    def check(self, problem: Any, n: int = 500, seed: int = 0) -> Verdict:
        """Compare with fresh values of the source and of the conditions, and say what came out. No exact solution is
        needed.

        **Arguments:**

        - `problem`: the `Problem` that was solved.
        - `n`: how many fresh values of the source, and how many of the conditions.
        - `seed`: the seed of their points.

        **Returns:** a `Verdict`: whether error bars hold, how large the error of `u` is, what rules it, and what to do.

        !!! example
            ```python
            solved = pk.condition(pk.ard(problem.domain), problem.sample(10, 10, 10))
            print(solved.check(problem, n=5).advice)
            ```
        """
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
        """A picture of `A u`: along one coordinate with its band, or over a plane of two beside the width of the band.

        **Arguments:**

        - `*coordinates`: one or two coordinates, as names (`"x[0]"`, `"t"`) or as `Coordinates`; a group of two is a
          plane. By default the first and the last one.
        - `at`: values of the other coordinates, `{"t": 0.5}`, or a whole point; the middle of the domain by default.
        - `operator`: the operator `A`; `u` itself by default.
        - `exact`: the exact solution as a function of the point, to be drawn too.
        - `domain`: where to draw: a smaller `Domain` to look closer, or the problem's own to leave out what is outside
          a ball.
        - `level`: the probability of the band.

        **Returns:** a matplotlib `Figure`. Notebooks show it; `figure.savefig("u.png")` stores it.

        !!! example
            ```python
            figure = posterior.plot("x[0]", at={"t": 0.2})
            figure = posterior.plot(x[0], t, operator=heat)
            ```
        """
        from ..reports.slices import plotted

        return plotted(self, coordinates, at, operator, exact, domain, level)

    def save(self, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
        """Write everything that predictions need to one file, as data. `pdedkl.load(path)` gives the same bits again.

        Python functions are no data: a warning names those that `load` has to be given.

        **Arguments:**

        - `path`: the file.
        - `extra`: a dictionary of your own that JSON can hold, stored with it.

        !!! example
            ```python
            posterior.save("model.pdedkl", extra={"seed": 0})
            ```
        """
        from ..saving import save

        save(self, path, extra=extra, stacklevel=4)  # past this method and its wrapper in equinox

    def unknowns(self) -> dict[str, float]:
        """The values that were learned for the parameters of the operators.

        **Arguments:** none.

        **Returns:** numbers by name.

        !!! example
            ```python
            assert posterior.unknowns() == {}
            ```
        """
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
    """`u | y`: condition a model on observations.

    **Arguments:**

    - `model`: a `Model`, or a `Kernel` for a zero mean and noise levels at their start.
    - `observations`: an `Observation` or a list of them.
    - `solver`: `"dense"` for a Cholesky factorisation; `"iterative"` for conjugate gradients with a preconditioner,
      which never hold the Gram matrix; `"auto"` for the first if it fits into memory.
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
