"""The prior with everything that training may move: kernel, mean, noise levels, unknown coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .kernels import Kernel
from .means import Mean, ZeroMean
from .observations import Observation, check_observations
from .operators import Operator, bind, high_order, parameters_of
from .precision import require_float64
from .shown import Rows, Shown, known, listed, over

ENGINES = ("closed-form", "autodiff")


class Model(Shown, eqx.Module):
    """A Gaussian process `u ~ GP(m, k)`, the noise of its observations, and unknown coefficients of their operators.

    `log_noise` and `coefficients` are by name. `engine` says how covariances of operators are computed: `closed-form`
    (order two or less) or `autodiff` (any order, slower); nothing falls back from one to the other.
    """

    kernel: Kernel
    mean: Mean
    log_noise: dict[str, Float[Array, ""]]
    coefficients: dict[str, Float[Array, ""]]
    engine: str = eqx.field(static=True)

    def __init__(
        self,
        kernel: Kernel,
        observations: Sequence[Observation] | Observation,
        mean: Mean | None = None,
        engine: str = "closed-form",
    ) -> None:
        require_float64()
        if engine not in ENGINES:
            raise ValueError(f"Unknown engine {engine!r}: choose one of {', '.join(ENGINES)}.")
        if not isinstance(kernel, Kernel):
            raise TypeError(f"`kernel` needs to be a Kernel, such as ard(domain): got {type(kernel).__name__}.")
        if not (mean is None or isinstance(mean, Mean)):
            raise TypeError(f"`mean` needs to be a Mean: got {mean!r}. Wrap a function as FunctionMean(fn).")
        found = check_observations(observations)
        self.kernel = kernel
        self.mean = ZeroMean() if mean is None else mean
        self.engine = engine
        starts: dict[str, list[float]] = {}
        for item in found:
            if item.noise_name is not None:
                starts.setdefault(item.noise_name, []).append(item.initial_noise())
        self.log_noise = {name: jnp.log(jnp.asarray(max(levels))) for name, levels in starts.items()}
        self.coefficients = parameters_of([item.operator for item in found])
        self.check(found)

    def check(self, observations: Sequence[Observation]) -> None:
        """Refuse observations that this model cannot condition on."""
        for item in observations:
            self.check_operator(item.operator)
            if item.points.shape[1] != self.kernel.dim:
                raise ValueError(
                    f"Observation {item.name!r} has points with {item.points.shape[1]} coordinates "
                    f"and the kernel is over {self.kernel.dim}."
                )
            if item.noise_name is not None and item.noise_name not in self.log_noise:
                raise ValueError(
                    f"The model has no noise level {item.noise_name!r} for observation {item.name!r}: "
                    f"it has {sorted(self.log_noise) or 'none'}. Build the model with all its observations."
                )

    def check_operator(self, operator: Operator) -> None:
        self.kernel.check(operator)
        if unknown := set(parameters_of(operator)) - set(self.coefficients):
            raise ValueError(
                f"The model knows no parameter {', '.join(sorted(unknown))} of {operator}: it has "
                f"{', '.join(sorted(self.coefficients)) or 'none'}. Use a number, or observe an operator that holds it."
            )
        if self.engine == "closed-form" and operator.order > 2:
            raise high_order(operator)

    def bound(self, operator: Operator) -> Operator:
        """The operator with its unknown coefficients set to what the model holds for them."""
        return bind(operator, self.coefficients) if self.coefficients else operator

    def noise(self) -> dict[str, float]:
        """The standard deviations of the learned noise levels."""
        return {name: float(jnp.exp(value)) for name, value in self.log_noise.items()}

    def _described(self) -> tuple[str, Rows] | None:
        if not known(self.log_noise, self.coefficients) or (kernel := self.kernel._in_words()) is None:
            return None
        levels = [f"{name} {level:.3g}" for name, level in self.noise().items()]
        return f"Model: u is a Gaussian process over {over(self.kernel.layout)}", {
            "kernel": kernel,
            "mean": type(self.mean).__name__,
            "noise": listed(levels) or "known",
            "unknown": listed(sorted(self.coefficients)) or "nothing else",
            "engine": self.engine,
        }
