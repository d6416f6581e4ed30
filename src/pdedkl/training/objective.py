"""What training minimises, as a function of one flat vector.

    −log p(y | y₀, x) + ½ γ Σ w_i² fan-in_i + weak priors on log σ², log ℓ and the noise levels + those of unknowns

Each prior term is zero at its centre. So parameters that the data say nothing about cost nothing, however many there
are.

`x` holds the weights `w` of all embeddings, in units of their prior standard deviation `1/√fan-in`, and after them
all other trained parameters: variances, length scales, noise levels, means, coefficients of operators.

Values of functions, and values that are all the same, are no measurements. What a kernel cannot follow there is misfit
and must not be explained as noise, so their noise levels have a ceiling. Training lowers the ceiling in steps: noise
that is large at first makes the objective smooth, and by the end there is none.

`y₀` are values that are zero everywhere, or the same everywhere, such as those of a homogeneous equation. The smaller
`u` is, the likelier are zeros, so data that may be noise would all be explained as noise. As long as any may be, as
measurements with learned noise always are, the objective is therefore the evidence of the others, given `y₀`. Once all
values are exact, all of them count and there is no `y₀`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import array_of, compiled, compiled_quickly, library_for
from ..embeddings.base import Linear
from ..embeddings.push_forward import Normalisation
from ..inference import condition
from ..inference.evidence import EvidenceInfo, negative_log_evidence
from ..inference.solver import Factorised
from ..inference.staged import STAGED_VALUES, System, evaluate, filled_system, pulled_back
from ..kernels import Component
from ..model import Model
from ..observations import Observation
from ..operators import Parameter, parameters_of
from ..scales import NOISE_OF_EXACT, conditions, data_scales, exact_levels, may_be_noise, signal_variance

Vector = Float[Array, " p"] | Float[np.ndarray, " p"]

# Noise below this fraction of the size of the data is rounding. Less noise would lose digits in the factorisation.
NOISE_FLOOR = 1e-6

# A prior variance below this multiple of that of the noise is rounding.
SQUARED_ROUNDING = 1e-9

# A level that is this far beyond its floor or its ceiling, as a logarithm, is at it.
AT_A_LIMIT = 4.0

# The mean square of a hundred errors may exceed the known variance by this factor, by chance.
KNOWN_NOISE_MARGIN = 1.3

# A handful of values, such as those at the two ends of an interval, cannot be predicted from each other.
FEWEST_TO_LEAVE_OUT = 5

# Standard deviations of log-normal priors. They are wide, but bound the parameters that the data say nothing about. The
# centre for length scales is `√k` in a group of `k` coordinates, since distances grow like `√k`. The centre for the
# variances of the groups of a component is an equal share of the variance of the data. The mean logarithm of these
# variances counts once, and each group's difference from that mean counts, so that fifty equal groups cost the same as
# one.
LOG_LENGTHSCALE_SPREAD = 3.0
LOG_VARIANCE_SPREAD = 4.0

# Noise is expected at this fraction of the size of the data, within three orders of magnitude either way. Many data
# overrule this prior. One or two values do not, since they cannot tell noise from signal.
USUAL_NOISE = 1e-3
LOG_NOISE_SPREAD = 3.0


def trainable(model: Model) -> Any:
    """A tree of booleans: true for arrays that training may change. The domain's bounds are arrays too, but fixed."""
    held = lambda node: isinstance(node, Component) and node.held
    is_fixed = lambda node: isinstance(node, Normalisation | Parameter) or held(node)

    def mark(node: Any) -> Any:
        if is_fixed(node):
            return jax.tree.map(lambda _: False, node)
        return eqx.is_inexact_array(node)

    return jax.tree.map(mark, model, is_leaf=is_fixed)


def weights_of(model: Model) -> Any:
    """A tree of booleans: true for matrices and offsets of the embeddings."""

    def mark(node: Any) -> Any:
        if isinstance(node, Linear):
            return jax.tree.map(eqx.is_inexact_array, node)
        return jax.tree.map(lambda _: False, node)

    return jax.tree.map(mark, model, is_leaf=lambda node: isinstance(node, Linear))


class Objective(eqx.Module):
    """The objective of one model on one set of observations; `prior_strength` is `γ`.

    `given` are the numbers of the observations `y₀`; by default those that are all zero or all the same.
    """

    template: Model
    observations: tuple[Observation, ...]
    noise_floor: dict[str, Float[Array, ""]]
    noise_ceiling: dict[str, Float[Array, ""]]
    log_variance: Float[Array, ""]
    prior_strength: Float[Array, ""]
    unknown: dict[str, Parameter]
    kernel_priors: bool = eqx.field(static=True)
    alike: int = eqx.field(static=True)
    given: int = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        observations: Sequence[Observation],
        prior_strength: float = 0.1,
        kernel_priors: bool = True,
        given: Sequence[int] | None = None,
    ) -> None:
        self.template = model
        first = conditions(observations) if given is None else list(given)
        others = [i for i in range(len(observations)) if i not in first]
        self.alike = len(first) if others else 0
        noisy = given is not None or may_be_noise([observations[i] for i in others], observations)
        self.given = self.alike if noisy else 0
        self.observations = tuple(observations[i] for i in (*first, *others))
        scales = data_scales(observations)
        self.noise_floor = {name: jnp.log(NOISE_FLOOR * scales[name]) for name in model.log_noise}
        exact = exact_levels(observations)
        self.noise_ceiling = {name: jnp.log(NOISE_OF_EXACT * scales[name]) for name in model.log_noise if name in exact}
        self.log_variance = jnp.log(signal_variance(observations))
        self.prior_strength = jnp.asarray(float(prior_strength))
        self.unknown = parameters_of([item.operator for item in observations])
        self.kernel_priors = kernel_priors

    @property
    def weight_count(self) -> int:
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.template, weights_of(self.template))))

    def start(self) -> np.ndarray:
        """The template's own parameters as a flat vector."""
        weights, others, _ = self._parts()
        return np.concatenate([_flat(weights) / self.units(), _flat(others)])

    def ceilings(self) -> np.ndarray:
        """The logarithms of the ceilings, in the order of their names."""
        return np.asarray([float(self.noise_ceiling[name]) for name in sorted(self.noise_ceiling)])

    def of_conditions(self) -> np.ndarray:
        """Which of the levels with a ceiling are those of zeros and constants, in the order of their names."""
        found = {self.observations[i].noise_name for i in conditions(self.observations)}
        return np.asarray([name in found for name in sorted(self.noise_ceiling)], dtype=bool)

    def under(self, ceilings: np.ndarray, given: int | None = None) -> Objective:
        """The same objective with other ceilings, and with the first `given` observations given."""
        levels = {name: array_of(level) for name, level in zip(sorted(self.noise_ceiling), ceilings)}
        other = eqx.tree_at(lambda o: o.noise_ceiling, self, levels) if levels else copy.copy(self)
        if given is not None:
            object.__setattr__(other, "given", given)
        return other

    def eased(self, ceilings: np.ndarray) -> Objective:
        """The same objective with higher ceilings; while any is higher, zeros and constants are given."""
        return self.under(ceilings, self.given if np.all(ceilings <= self.ceilings()) else self.alike)

    def levels(self, x: Vector) -> np.ndarray:
        """The logarithms of the noise levels that have a ceiling, in the order of their names."""
        noise = self.model(x).log_noise
        return np.asarray([float(noise[name]) for name in sorted(self.noise_ceiling)])

    def lowered(self, x: np.ndarray) -> np.ndarray:
        """The same parameters with noise levels at their ceilings at most: above one its derivative is almost zero."""
        if not self.noise_ceiling:
            return x
        model = self._unbounded(x)
        low = {k: np.minimum(v, self.noise_ceiling.get(k, np.inf)) for k, v in model.log_noise.items()}
        _, others, _ = self._parts(eqx.tree_at(lambda m: m.log_noise, model, low))
        return np.concatenate([x[: self.weight_count], _flat(others)])

    def with_tolerances(self, x: np.ndarray, factor: float) -> tuple[Objective, np.ndarray]:
        """The objective and parameters whose exact values have this multiple of their noise, and of its floor."""
        moved = lambda levels: {k: v + np.log(factor) if k in self.noise_ceiling else v for k, v in levels.items()}
        other = eqx.tree_at(lambda o: o.noise_floor, self, moved(self.noise_floor))
        model = self._unbounded(x)
        _, others, _ = self._parts(model.with_noise(moved(model.log_noise)))
        return other, np.concatenate([x[: self.weight_count], _flat(others)])

    def _unbounded(self, x: Vector) -> Model:
        """The model with noise levels as they are in `x`."""
        weights, others, fixed = self._parts()
        w, rest = x[: self.weight_count], x[self.weight_count :]
        return eqx.combine(_filled(weights, w * self.units()), _filled(others, rest), fixed)

    def model(self, x: Vector) -> Model:
        model = self._unbounded(x)
        # Outside of a program that is traced NumPy does this, since JAX would compile each step.
        xp = jnp if isinstance(x, jax.core.Tracer) else np
        # The floor is smooth: below it the derivative goes to zero, so the optimiser has nothing to gain there.
        noise = {name: xp.logaddexp(level, self.noise_floor[name]) for name, level in model.log_noise.items()}
        noise |= {name: -xp.logaddexp(-noise[name], -ceiling) for name, ceiling in self.noise_ceiling.items()}
        return (
            eqx.tree_at(lambda m: m.log_noise, model, {k: jnp.asarray(v) for k, v in noise.items()}) if noise else model
        )

    def unlimited(self, log_noise: dict[str, Array]) -> dict[str, Array]:
        """The levels that become these ones between floor and ceiling: the opposite of what `model` does to them."""
        found = {}
        for name, level in log_noise.items():
            over, under = float(self.noise_ceiling.get(name, np.inf)), float(self.noise_floor[name])
            # At a limit any level far beyond it will do.
            below = -np.log(max(np.exp(-float(level)) - np.exp(-over), np.exp(-over - AT_A_LIMIT)))
            found[name] = jnp.asarray(np.log(max(np.exp(below) - np.exp(under), np.exp(under - AT_A_LIMIT))))
        return found

    def value(self, x: Vector) -> tuple[Float[Array, ""], EvidenceInfo]:
        model = self.model(x)
        evidence, info = negative_log_evidence(model, self.observations, given=self.given)
        return evidence + self.prior(x, model), info

    def prior(self, x: Vector, model: Model) -> Float[Array, ""]:
        """The terms that do not depend on the data."""
        of_weights = 0.5 * self.prior_strength * jnp.sum(x[: self.weight_count] ** 2)
        # Their values are where they start: training moves those of the model.
        numbers = [one._energy(model.coefficients[name]) for name, one in sorted(self.unknown.items())]
        return of_weights + self._kernel_prior(model) + sum(numbers, jnp.zeros(()))

    def _kernel_prior(self, model: Model) -> Float[Array, ""]:
        total = jnp.zeros(())
        if not self.kernel_priors:
            return total
        for component in [one for one in model.kernel.components if not one.held]:
            usual = _usual_log_lengthscale(component)
            total += 0.5 * jnp.sum(((component.log_lengthscale - usual) / LOG_LENGTHSCALE_SPREAD) ** 2)
            sizes = component.base.log_variance
            middle, share = jnp.mean(sizes), self.log_variance - np.log(len(sizes))
            total += 0.5 * ((middle - share) / LOG_VARIANCE_SPREAD) ** 2
            total += 0.5 * jnp.sum(((sizes - middle) / LOG_VARIANCE_SPREAD) ** 2)
        for name, level in model.log_noise.items():
            usual = self.noise_floor[name] + np.log(USUAL_NOISE / NOISE_FLOOR)
            total += 0.5 * ((level - usual) / LOG_NOISE_SPREAD) ** 2
        return total

    def _parts(self, model: Model | None = None) -> tuple[Any, Any, Any]:
        """A model, the template by default, as weights, other trained parameters, and what stays as it is."""
        model, mask = model or self.template, weights_of(self.template)
        weights, rest = eqx.partition(model, mask)
        others, fixed = eqx.partition(
            rest, jax.tree.map(lambda move, w: move and not w, trainable(self.template), mask)
        )
        return weights, others, fixed

    def units(self) -> Float[np.ndarray, " w"]:
        """The prior standard deviation of each weight."""
        is_layer = lambda node: isinstance(node, Linear)
        layers = [node for node in jax.tree.leaves(self.template, is_leaf=is_layer) if is_layer(node)]
        parts = [np.zeros(0)]
        for layer in layers:
            parts.append(np.full(layer.matrix.size, layer.matrix.shape[1] ** -0.5))
            if layer.offset is not None:
                parts.append(np.ones(layer.offset.size))
        return np.concatenate(parts)


def _flat(tree: Any) -> np.ndarray:
    """All numbers of a tree, one after the other."""
    return np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in jax.tree.leaves(tree))])


def _filled(tree: Any, numbers: Vector) -> Any:
    """The tree with other numbers: the opposite of `_flat`."""
    leaves, structure = jax.tree.flatten(tree)
    ends = np.cumsum([0, *(leaf.size for leaf in leaves)])
    array = array_of if library_for(numbers) is np else jnp.asarray
    parts = [array(numbers[i:j].reshape(leaf.shape)) for leaf, i, j in zip(leaves, ends, ends[1:])]
    return jax.tree.unflatten(structure, parts)


def _usual_log_lengthscale(component: Component) -> np.ndarray:
    """`log √k` for each latent coordinate, where `k` is the size of the largest group that contains it."""
    largest = np.ones(component.latent_dim)
    for group in component.base.groups:
        largest[list(group)] = np.maximum(largest[list(group)], len(group))
    return 0.5 * np.log(largest)


def value_and_gradient(objective: Objective, x: Vector) -> tuple[Array | float, Array, Array | float]:
    """Objective, gradient, and the jitter that the factorisation needed.

    It runs in stages (`inference/staged.py`), so that most of what is compiled serves other objectives as well. Inside
    of another program, or without the matrix, it is one program.
    """
    if isinstance(x, jax.core.Tracer) or not _in_stages(objective):
        return _in_one(objective, x)
    prior, system = staged_system(objective, x)
    found = evaluate(system)
    of_parts = pulled_back(system.parts, found.weights)
    gradient = _to_parameters(objective, x, of_parts, found.of_noise, found.of_residual)
    return float(found.value) + float(prior), gradient, float(found.jitter)


def _in_stages(objective: Objective) -> bool:
    return sum(map(len, objective.observations)) <= STAGED_VALUES


@compiled
def _in_one(objective: Objective, x: Vector) -> tuple[Array, Array, Array]:
    (value, info), gradient = jax.value_and_grad(objective.value, has_aux=True)(x)
    return value, gradient, info.jitter


@compiled_quickly
def staged_system(objective: Objective, x: Vector) -> tuple[Array, System]:
    model = objective.model(x)
    return objective.prior(x, model), filled_system(model, objective.observations, objective.given)[0]


@compiled_quickly
def _to_parameters(objective: Objective, x: Vector, of_parts: Any, of_noise: Array, of_residual: Array) -> Array:
    """The gradient with respect to `x`, from that with respect to the parts, the noise and the residual."""

    def arrays(x: Vector) -> tuple[Any, ...]:
        prior, system = staged_system(objective, x)
        moving = [(eqx.filter(part.parameters, eqx.is_inexact_array), part.sections) for part in system.parts]
        return prior, moving, system.noise, system.residual

    return jax.vjp(arrays, x)[1]((jnp.ones(()), of_parts, of_noise, of_residual))[0]


def left_out_rows(objective: Objective, x: Vector) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each value minus its prediction from all others, and the fraction of its variance that these leave.

    There is one pair for each observation; NaN if the factorisation fails. The variances are without noise. Values that
    a kernel knows whatever the data are, as on walls where it is zero, have none to leave.
    """
    ends = np.cumsum([len(item) for item in objective.observations])[:-1]
    if _in_stages(objective):
        _, system = staged_system(objective, x)
        found, place = evaluate(system), np.asarray(system.place)
        parts = (found.left_out, found.before, found.after, system.noise)
        errors, before, after, noise = (np.asarray(part)[place] for part in parts)
    else:
        posterior = condition(objective.model(x), objective.observations, solver="dense")
        items = posterior.left_out()
        errors, noise = (np.concatenate([getattr(item, name) for item in items]) for name in ("errors", "noise"))
        assert isinstance(posterior.solver, Factorised)
        before = np.sum(np.asarray(posterior.solver.factor) ** 2, axis=1)
        after = np.concatenate([item.variance + item.noise for item in items])
    known = before - noise <= SQUARED_ROUNDING * noise
    left = np.where(known, 0.0, (after - noise) / np.where(known, 1.0, before - noise))
    return list(zip(np.split(errors, ends), np.split(left, ends)))


class LeftOut(NamedTuple):
    """The left-out error of one observation: root mean square, relative to the size of its data.

    If the noise is known, `error` is only the part that this noise, with a margin for chance, does not explain. `noise`
    is the learned noise level, or zero if the noise is known. `name` is that of the level, or of the observation.
    `alike` says whether the values are all zero, or all the same. `open` is the fraction of the variance of a value
    that all others leave.
    """

    name: str
    error: float
    noise: float
    alike: bool = False
    open: float = 0.0


def left_out(objective: Objective, x: Vector) -> list[LeftOut]:
    """A `LeftOut` for each observation. Observations with only a few values count only if there are no larger ones."""
    scales = data_scales(objective.observations)
    levels = objective.model(x).log_noise
    found = []
    most = max(map(len, objective.observations))
    alike = conditions(objective.observations)
    for i, (item, (errors, left)) in enumerate(zip(objective.observations, left_out_rows(objective, x))):
        if len(item) < min(FEWEST_TO_LEAVE_OUT, most):
            continue
        learned = item.noise_name is not None
        variance = float(jnp.mean(item.noise_variance(levels)))
        excess = float(np.mean(errors**2)) - (0.0 if learned else KNOWN_NOISE_MARGIN * variance)
        name = item.noise_name or item.name
        error = float(np.sqrt(excess if not excess < 0 else 0.0)) / scales[name]
        noise = float(np.sqrt(variance)) / scales[name] if learned else 0.0
        found.append(LeftOut(name, error, noise, i in alike, float(np.mean(left))))
    return found


def largest_error(found: Sequence[LeftOut]) -> float:
    errors = [item.error for item in found]
    return max(errors) if np.all(np.isfinite(errors)) else float("inf")
