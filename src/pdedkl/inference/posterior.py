"""The posterior: mean, variance, covariance and samples of any operator of `u`, anywhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..domain import Domain
from ..equations import Linear, Term, as_operator
from ..kernels import Kernel
from ..model import Model
from ..observations import Observation, as_points
from ..operators import Operator, Parameter, Row, identity
from ..operators.base import applied
from ..precision import require_float64
from ..shown import Rows, Shown, known, listed, over
from ..verdicts import UNCHECKED, Verdict
from . import rows
from .calibration import Calibration, by_cause
from .cholesky import half_solve
from .comparing import Comparing
from .engines import Engine, engine_of
from .estimates import Estimates, slopes_at
from .iterative import Iterative
from .memory import check_fits
from .prediction import Prediction
from .quantities import Quantity, quantity_of
from .shares import Interactions, interactions_of
from .solver import Factorised, Gram, Solver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..checking.parameters import Parameters

# Entries of the matrix between one batch of test points and the data; bounds the memory of a prediction. Conjugate
# gradients compute all covariances of the data anew for each batch, so their batches are large.
ENTRIES_PER_BATCH = {Factorised: 1 << 22, Iterative: 1 << 26}
# The largest distance of a point from the centre of the domain, in half-widths of the domain.
FARTHEST = 1e15


class PredictedParts(NamedTuple):
    """Mean and variance at points; the variance is the sum of its parts `by_cause`, and `rounding` is that of the mean.

    `of_numbers` is what learned numbers add to the variance. `clamped` counts variances that rounding made negative.
    """

    points: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    by_cause: np.ndarray
    rounding: np.ndarray
    clamped: int
    of_numbers: np.ndarray

    @property
    def besides(self) -> np.ndarray:
        """The variance that factors of the calibration do not change."""
        return self.rounding + self.of_numbers


class Posterior(Comparing, Shown, eqx.Module):
    """A Gaussian process `u` given its data: mean, variance, covariance and samples of any operator of `u`, anywhere.

    `condition` and `fit` make posteriors.

    **Arguments:**

    - `model`: the prior and its parameters.
    - `observations`: the data.
    - `sections`: the data as the engine needs them, one part for each observation.
    - `solver`: applies the inverse of the Gram matrix, by its Cholesky factor or by conjugate gradients.
    - `alpha`: the weights `K⁻¹ (y − A m)`.
    - `jitter`: the number added to the diagonal to factorise `K`, relative to each row's variance.
    - `objective`: the negative log evidence.
    - `calibration`: factors of the standard deviations, if they were compared with fresh values.
    - `training`: how the model was trained, if it was.
    - `verdict`: how far it can be trusted, as `fit` found it; "unchecked" where nothing was compared.
    - `estimates`: the covariance of learned numbers, which error bars contain; `parameters` shows it.

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
    verdict: Verdict = eqx.field(default=UNCHECKED, static=True)
    estimates: Estimates | None = None

    @property
    def engine(self) -> Engine:
        """What computes covariances: closed forms, or automatic differentiation."""
        return engine_of(self.model.engine)

    @property
    def gram(self) -> Gram:
        """The covariance matrix of the data, noise included, as the solver uses it."""
        noise = [item.noise_variance(self.model.log_noise) for item in self.observations]
        return Gram(self.engine, self.engine.parameters(self.model.kernel), self.sections, jnp.concatenate(noise))

    def predict(self, points: Any, operator: Any = identity, *, batch_size: int | None = None) -> Prediction:
        """Mean and variance of `A u` at points, without the noise of measurements.

        **Arguments:**

        - `points`: an array of shape `(n, d)`.
        - `operator`: the operator `A`; `u` itself by default. Of several fields, a field, a row of them, or a term such
          as a positive unknown function or `a * (D(x) @ u)`.
        - `batch_size`: how many points are computed at once, to bound the memory; chosen by default.

        **Returns:** a `Prediction`.

        !!! example
            ```python
            u, f = posterior.predict(points), posterior.predict(points, heat)
            ```
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"`batch_size` needs to be at least 1: got {batch_size}.")
        if isinstance(operator, Term) and not isinstance(operator, Linear):
            from .of_terms import predicted

            return predicted(self, operator, points, batch_size)
        operator = self._of_field(operator)
        found = self._predicted(points, operator, batch_size)
        names, what = self.model.kernel.names, applied(operator)
        return Prediction(found.mean, found.variance + found.besides, found.clamped, found.points, names, what)

    def quantity(self, operator: Any, at: Any = None) -> Quantity:
        """One number that depends on `u`: an integral or a mean over a region, or a value at a point.

        **Arguments:**

        - `operator`: an operator, a row or a field, such as `Integral(domain.interior) @ u`.
        - `at`: the point, where it is not an integral over all coordinates.

        **Returns:** a `Quantity` with mean, standard deviation and intervals.

        !!! example
            ```python
            outflow = posterior.quantity(pk.Integral(domain.face(x[0], "upper")) @ pk.D(x[0]))
            print(outflow.mean, outflow.std, posterior.quantity(pk.identity, at=points[0]))
            ```
        """
        return quantity_of(self, operator, at)

    def covariance(
        self,
        points: Any,
        operator: Any = identity,
        other_points: Any = None,
        other_operator: Any = None,
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
        operator = self._of_field(operator)
        other = operator if other_operator is None else self._of_field(other_operator)
        q = self._points(points, operator)
        q_ = self._points(points if other_points is None else other_points, other)
        check_fits(max(len(q), len(q_)), 2, "points to predict jointly")
        return rows.covariance(self, operator, q, other, q_)

    def sample(self, key: PRNGKeyArray, points: Any, operator: Any = identity, *, count: int = 1) -> np.ndarray:
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
        operator = self._of_field(operator)
        q = self._points(points, operator)
        check_fits(q.shape[0], 3, "points to draw jointly")
        mean = self.predict(q, operator).mean
        # Posterior covariances are close to singular: eigenvalues can be cut off at zero where Cholesky would fail.
        eigenvalues, vectors = jnp.linalg.eigh(jnp.asarray(rows.covariance(self, operator, q, operator, q)))
        root = vectors * jnp.sqrt(jnp.maximum(eigenvalues, 0.0))
        return mean + np.asarray(jax.random.normal(key, (count, q.shape[0])) @ root.T)

    def mean(self, q: Float[Array, " d"], field: str | None = None) -> Float[Array, ""]:
        """The posterior mean of `u` at one point, as a function that JAX can differentiate.

        **Arguments:**

        - `q`: a point.
        - `field`: the name of a field, if there are several.

        **Returns:** a number.

        !!! example
            ```python
            slope = jax.grad(posterior.mean)(jnp.asarray(points[0]))
            ```
        """
        return self.model.mean(q) + jnp.dot(self._with_data(q, self.sections, self._field(field)), self.alpha)

    def kernel(
        self, q: Float[Array, " d"], q_: Float[Array, " d"], field: str | None = None, other: str | None = None
    ) -> Float[Array, ""]:
        """The posterior covariance of `u` at two points, as a function that JAX can differentiate.

        **Arguments:**

        - `q`: a point.
        - `q_`: another point.
        - `field`: the name of the field at `q`, if there are several.
        - `other`: the name of that at `q_`; by default the same.

        **Returns:** a number.

        !!! example
            ```python
            covariance = posterior.kernel(jnp.asarray(points[0]), jnp.asarray(points[1]))
            ```
        """
        one, two = self._field(field), self._field(field if other is None else other)
        left, right = self._with_data(q, self.sections, one), self._with_data(q_, self.sections, two)
        plain = self.model.kernel.between(one, q, two, q_) - jnp.dot(left, self.solver.solve(self.gram, right))
        of_numbers = jnp.zeros(())
        if (numbers := self.estimates) is not None:
            of_numbers = (left @ numbers.solved) @ numbers.covariance @ (right @ numbers.solved)
        if self.calibration is None:
            return plain + of_numbers
        plain = self.calibration.factors[-1] ** 2 * plain + of_numbers
        if (probes := self.calibration.probes) is None:
            return plain
        pairs = zip(probes.operators, probes.points)
        sections = tuple(self.engine.rows(self.model.kernel, self.model.bound(op), points) for op, points in pairs)
        sides = ((q, one, left), (q_, two, right))
        with_probes = [self._with_data(p, sections, name) - probes.solved.T @ k for p, name, k in sides]
        whitened, others = half_solve(probes.factor, jnp.stack(with_probes, axis=1)).T
        return plain + jnp.dot(self.calibration.weights() * whitened, others)

    def check(self, problem: Any, n: int = 500, seed: int = 0) -> Verdict:
        """Compare with fresh values of the source and of the conditions, and judge the result. No exact solution is
        needed.

        **Arguments:**

        - `problem`: the `Problem` that was solved.
        - `n`: how many fresh values of the source, and how many of the conditions.
        - `seed`: the seed of their points.

        **Returns:** a `Verdict`: whether error bars hold, how large the error of `u` is, what causes it, what to do.

        !!! example
            ```python
            solved = pk.condition(pk.ard(problem.domain), problem.sample(10, 10, 10))
            print(solved.check(problem, n=5).advice)
            ```
        """
        from ..checking.check import check

        return check(self, problem, n, seed)

    def interactions(self, operator: Any = identity, *, domain: Domain | None = None, seed: int = 0) -> Interactions:
        """Which inputs `A u` depends on, alone and together: shares of its variance over a box, the Sobol indices.

        Integrals are exact for `u` itself if the kernel is a sum over sets of at most three inputs. Otherwise they come
        from evenly spread random points, and sets of three and more inputs are in the rest. Standard deviations hold
        what is unknown about `u`, calibrated if the posterior is, and the error of the sample.

        **Arguments:**

        - `operator`: the operator `A`; `u` itself by default. Of several fields, a field or a row of them.
        - `domain`: the box over which inputs vary, each evenly and on its own; that of the kernel by default.
        - `seed`: the seed of the points.

        **Returns:** `Interactions`: sets of inputs with their shares, the largest first.

        !!! example
            ```python
            found = posterior.interactions()
            print(found.sets[0], found.share[0], found.std[0])
            ```
        """
        return interactions_of(self, as_operator(operator), domain, seed)

    def plot(
        self,
        *coordinates: Any,
        at: Any = None,
        operator: Operator = identity,
        exact: Any = None,
        domain: Domain | None = None,
        level: float = 0.95,
    ) -> Figure:
        """A picture of `A u`: along one coordinate with its band, or over two coordinates, next to the band's width.

        **Arguments:**

        - `*coordinates`: one or two coordinates, as names (`"x[0]"`, `"t"`) or as `Coordinates`; a group of two is a
          plane. By default the first and the last one.
        - `at`: values of the other coordinates, `{"t": 0.5}`, or a whole point; the middle of the domain by default.
        - `operator`: the operator `A`; `u` itself by default.
        - `exact`: the exact solution as a function of the point, to be drawn too.
        - `domain`: where to draw: a smaller `Domain` to look closer, or the problem's own domain, to leave out points
          outside a ball.
        - `level`: the probability of the band.

        **Returns:** a matplotlib `Figure`. Notebooks show it; `figure.savefig("u.png")` stores it.

        !!! example
            ```python
            figure = posterior.plot("x[0]", at={"t": 0.2})
            figure = posterior.plot(x[0], t, operator=heat)
            ```
        """
        from ..reports.slices import plotted

        return plotted(self, coordinates, at, as_operator(operator), exact, domain, level)

    def save(self, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
        """Write everything that predictions need to one file, as data. `pdedkl.load(path)` gives the same bits again.

        Python functions cannot be stored as data: a warning names those that have to be given to `load`.

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
        found = {leaf.name: float(leaf.value) for leaf in leaves if isinstance(leaf, Parameter)}
        return found | ({name: one.estimate for name, one in self.parameters.items()} if self.model.numbers else {})

    @property
    def parameters(self) -> Parameters:
        """What the data say about the unknown numbers of the operators: a table when printed, estimates by name.

        !!! example
            ```python
            assert len(posterior.parameters) == 0  # this posterior has no unknown numbers
            ```
        """
        from ..checking.parameters import parameters_of_posterior

        return parameters_of_posterior(self)

    def _described(self) -> tuple[str, Rows] | None:
        if not known(self.alpha, self.objective, self.jitter) or (kernel := self.model.kernel._in_words()) is None:
            return None
        found = {
            "data": listed([f"{len(item)} of {applied(item.operator)}" for item in self.observations]),
            "kernel": kernel,
            "noise": listed([f"{name} {level:.3g}" for name, level in self.model.noise().items()]) or "known",
        }
        if unknowns := self.unknowns():
            learned = [f"{name} = {value:.4g}{self._plus_minus(name)}" for name, value in unknowns.items()]
            found["learned"] = listed(learned)
        jitter = f", with a jitter of {float(self.jitter):.0e}" if float(self.jitter) else ""
        found["evidence"] = f"log p(y) = {-float(self.objective):.2f}{jitter}"
        if self.calibration is not None:
            found["error bars"] = self.calibration._in_words()
        if self.verdict.status != "unchecked":
            found["verdict"] = self.verdict.headline()
        if self.training is not None:
            found["training"] = self.training._in_words()
        fields = ", ".join(self.model.kernel.fields) or "u"
        return f"Posterior of {fields} over {over(self.model.kernel.layout)}, from {len(self.alpha)} values", found

    def _plus_minus(self, name: str) -> str:
        return "" if self.estimates is None and not self.model.numbers else f" ± {self.parameters[name].std:.1g}"

    def _predicted(self, points: Any, operator: Operator, batch_size: int | None = None) -> PredictedParts:
        """Mean and variance of `A u` at points, the variance also by its causes."""
        q = self._points(points, operator)
        size = batch_size or max(1, ENTRIES_PER_BATCH[type(self.solver)] // self.alpha.shape[0])
        # Powers of two, so that calls with different numbers of points share a few compilations.
        size = min(size, 1 << (q.shape[0] - 1).bit_length())
        data = rows.data_of(self)
        batches = []
        for start in range(0, q.shape[0], size):
            part = q[start : start + size]
            padded = np.concatenate([part, np.broadcast_to(part[-1], (size - len(part), q.shape[1]))])
            predicted = rows.predict(self, data, operator, padded)
            *found, following = (np.asarray(leaf)[..., : len(part)] for leaf in predicted)
            batches.append((*self._by_cause(*found), following))
        mean, by_cause, rounding, clamped, following = (np.concatenate(columns, axis=-1) for columns in zip(*batches))
        of_numbers = self._of_numbers(q, operator, following)
        _check_finite(q, mean + np.sum(by_cause, axis=0) + rounding + of_numbers, operator)
        variance = np.sum(by_cause, axis=0)
        return PredictedParts(q, mean, variance, by_cause, rounding, int(np.sum(clamped)), of_numbers)

    def _of_numbers(self, q: np.ndarray, operator: Operator, following: np.ndarray) -> np.ndarray:
        """What learned numbers add to the variance of rows; `following` is `k(B, D) K⁻¹ J`, a row for each number."""
        if self.estimates is None:
            return np.zeros(len(q))
        return np.sum(((slopes_at(self, operator, q) - following.T) @ self.estimates.root) ** 2, axis=1)

    def _by_cause(
        self, mean: np.ndarray, variance: np.ndarray, spare: np.ndarray, rounding: np.ndarray, whitened: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mean, calibrated variance by causes, rounding error of the mean, and where the variance was negative."""
        clamped = variance < 0
        total = np.maximum(variance, 0.0) + spare
        if self.calibration is None:
            return mean, total[None], rounding, clamped
        counts = () if self.calibration.probes is None else self.calibration.probes.counts
        parts = by_cause(whitened**2, counts) if counts else np.zeros((1, len(total)))
        parts[-1] += np.maximum(total - np.sum(parts, axis=0), 0.0)
        return mean, np.asarray(self.calibration.factors)[:, None] ** 2 * parts, rounding, clamped

    def _with_data(self, q: Array, sections: tuple[Any, ...], field: str | None = None) -> Array:
        """The prior covariances of `u(q)` with rows."""
        return jnp.concatenate([self.engine.with_value(self.model.kernel, q, rows, field) for rows in sections])

    def _field(self, field: Any) -> str | None:
        """The name of a field of the model; `None` for one without a name."""
        names = self.model.kernel.fields
        if field is None and len(self.model.kernel.functions) == 1:
            return self.model.kernel.functions[0]
        if field is None and len(names) > 1:
            raise ValueError(f"There are several fields: give one of {', '.join(names)}.")
        if field is not None and str(field) not in names:
            known = ", ".join(names) or "one field without a name"
            raise ValueError(f"The field {field} is not known here: there is {known}.")
        return str(field) if field is not None else names[0] if names else None

    def _of_field(self, operator: Any) -> Any:
        """The operator; of the only field where there are unknown numbers beside it."""
        found, kernel = as_operator(operator), self.model.kernel
        alone = len(kernel.functions) == 1 and len(kernel.fields) > 1
        return Row(kernel.functions, (found,)) if alone and not isinstance(found, Row) else found

    def _points(self, points: Any, operator: Operator) -> np.ndarray:
        if not isinstance(operator, Operator):
            raise TypeError(f"`operator` needs to be an operator such as identity or Laplacian(x): got {operator!r}.")
        require_float64()
        self.model.check_operator(operator)
        q = as_points(points, operator, self.model.kernel.dim)
        _check_near(q, self.model.kernel)
        return q


def _check_near(q: np.ndarray, kernel: Kernel) -> None:
    """Refuse points so far away that powers of their distances overflow."""
    normalisation = kernel.components[0].normalisation
    with np.errstate(over="ignore"):
        away = np.max(np.abs((q - np.asarray(normalisation.centre)) * np.asarray(normalisation.scale)), axis=1)
    if len(far := np.flatnonzero(~(away < FARTHEST))):
        index = int(far[0])
        raise ValueError(
            f"Point {index}, {q[index].tolist()}, is {away[index]:.0e} times the size of the domain away from it: "
            f"predictions are possible up to {FARTHEST:.0e} times. Check its units."
        )


def _check_finite(q: np.ndarray, found: np.ndarray, operator: Operator) -> None:
    if len(bad := np.flatnonzero(~np.isfinite(found))):
        index = int(bad[0])
        raise ValueError(
            f"{applied(operator)} has no finite value at point {index}, {q[index].tolist()}, and at {len(bad) - 1} "
            "others: is a coefficient infinite there? Leave such points out."
        )
