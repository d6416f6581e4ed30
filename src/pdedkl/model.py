"""The prior with everything that training may change: kernel, mean, noise levels, unknown coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .equations import Nonlinear
from .kernels import Kernel
from .means import Mean, ZeroMean
from .observations import Observation, check_observations
from .operators import Operator, Parameter, bind, high_order, parameters_of
from .operators.base import applied
from .precision import require_float64
from .shown import Rows, Shown, known, listed, over

ENGINES = ("closed-form", "autodiff")


def positive_names(operators: Sequence[Operator]) -> tuple[str, ...]:
    """The names of the positive parameters of these operators. A model holds the logarithms of their values."""
    return tuple(sorted(name for name, parameter in parameters_of(list(operators)).items() if parameter.positive))


def bounds_of(operators: Sequence[Operator]) -> tuple[tuple[str, float | None, float | None], ...]:
    """The bounds of the parameters of these operators that have others than zero. A model holds unbounded numbers."""
    found = parameters_of(list(operators)).values()
    return tuple(sorted((one.name, *one.bounds) for one in found if one.bounds is not None))


class Model(Shown, eqx.Module):
    """`u ~ GP(m, k)`, with the noise of its observations and the unknown coefficients of their operators.

    **Arguments:**

    - `kernel`: the covariance `k`, such as `ard(domain)`.
    - `observations`: the data. They say which noise levels are learned and which coefficients are unknown.
    - `mean`: the prior mean `m`; zero by default.
    - `engine`: how covariances of operators are computed: `"closed-form"`, for order two or less, or `"autodiff"`, for
      any order and much slower. Neither falls back to the other.

    !!! example
        ```python
        model = pk.Model(pk.ard(domain), data)
        posterior = pk.condition(model, data)
        ```
    """

    kernel: Kernel
    mean: Mean
    log_noise: dict[str, Float[Array, ""]]
    coefficients: dict[str, Float[Array, ""]]
    engine: str = eqx.field(static=True)
    positive: tuple[str, ...] = eqx.field(static=True, default=())
    bounds: tuple[tuple[str, float | None, float | None], ...] = eqx.field(static=True, default=())
    numbers: tuple[Parameter, ...] = ()

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
        unknown = parameters_of([item.operator for item in found])
        self.coefficients = {name: parameter.raw for name, parameter in unknown.items()}
        self.positive = positive_names([item.operator for item in found])
        self.bounds = bounds_of([item.operator for item in found])
        # Those of a nonlinear equation are fields of the kernel.
        self.numbers = ()
        self.check(found)

    def check(self, observations: Sequence[Observation]) -> None:
        """Refuse observations that this model cannot condition on.

        **Arguments:**

        - `observations`: the observations to check.

        !!! example
            ```python
            pk.Model(pk.ard(domain), data).check([data])
            ```
        """
        names = {item.noise_name for item in observations}
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

            second = f"{item.noise_name} (2)"
            if item.name == applied(item.operator) and second in self.log_noise and second not in names:
                raise ValueError(
                    f"The model was built with several operators that print as {item.operator}, and fewer are given "
                    "here, so it is not clear which noise level is meant. Give each of these observations a name, "
                    "Observation(…, name=…)."
                )

    def check_operator(self, operator: Operator) -> None:
        """Refuse an operator that the kernel is too rough for, that the engine cannot handle, or whose parameters are
        unknown here.

        **Arguments:**

        - `operator`: the operator to check.

        !!! example
            ```python
            posterior.model.check_operator(heat)
            ```
        """
        if isinstance(operator, Nonlinear):
            raise ValueError(
                f"{operator} is not linear in its fields, and a Gaussian process is conditioned on linear rows: "
                "fit(problem, data) linearises it, again and again."
            )
        self.kernel.check(operator)
        if len(self.kernel.fields) > 1 and not isinstance(self.mean, ZeroMean):
            raise ValueError(f"Several fields have the prior mean zero: got {self.mean!r}. Leave out `mean`.")
        held = parameters_of(operator)
        for name, parameter in held.items():
            if name in self.coefficients and parameter.positive != (name in self.positive):
                raise ValueError(
                    f"The model learned Parameter({name!r}, positive={not parameter.positive}), and {operator} holds "
                    f"it with positive={parameter.positive}: use the Parameter that the model was built with."
                )
        if odd := set(bounds_of([operator])) - set(self.bounds):
            names = ", ".join(name for name, *_ in odd)
            raise ValueError(
                f"The model learned Parameter {names} with other bounds than {operator} holds it with: use the "
                "Parameter that the model was built with."
            )
        if unknown := set(held) - set(self.coefficients):
            raise ValueError(
                f"The model has no parameter {', '.join(sorted(unknown))} of {operator}: it has "
                f"{', '.join(sorted(self.coefficients)) or 'none'}. Use a number, or observe an operator that holds it."
            )
        if self.engine == "closed-form" and operator.order > 2:
            raise high_order(operator)

    def bound(self, operator: Operator) -> Operator:
        """The operator with its parameters set to the values that the model holds for them.

        **Arguments:**

        - `operator`: an operator, with parameters or without.

        **Returns:** an operator.

        !!! example
            ```python
            assert posterior.model.bound(heat) is heat
            ```
        """
        return bind(operator, self.coefficients) if self.coefficients else operator

    def with_noise(self, log_noise: dict[str, Array]) -> Model:
        """The same model with other noise levels.

        **Arguments:**

        - `log_noise`: logarithms of standard deviations by name, for all levels of the model.

        **Returns:** a `Model`.

        !!! example
            ```python
            model = pk.Model(pk.ard(domain), pk.Observation(pk.identity, points, values))
            less = model.with_noise({name: level - 1 for name, level in model.log_noise.items()})
            ```
        """
        return eqx.tree_at(lambda m: m.log_noise, self, log_noise) if log_noise else self

    def with_numbers(self, numbers: Sequence[Parameter]) -> Model:
        """The same model of an equation whose unknown numbers are fields of the kernel.

        **Arguments:**

        - `numbers`: the unknown numbers, with their priors.

        **Returns:** a `Model`.

        !!! example
            ```python
            assert posterior.model.with_numbers([]).numbers == ()
            ```
        """
        made = copy(self)
        object.__setattr__(made, "numbers", tuple(numbers))
        return made

    def noise(self) -> dict[str, float]:
        """The learned noise levels.

        **Arguments:** none.

        **Returns:** standard deviations by name.

        !!! example
            ```python
            learned = pk.Observation(pk.identity, points, values, name="sensors")
            assert set(pk.Model(pk.ard(domain), learned).noise()) == {"sensors"}
            ```
        """
        return {name: float(jnp.exp(value)) for name, value in self.log_noise.items()}

    def _described(self) -> tuple[str, Rows] | None:
        if not known(self.log_noise, self.coefficients) or (kernel := self.kernel._in_words()) is None:
            return None
        levels = [f"{name} {level:.3g}" for name, level in self.noise().items()]
        return f"Model: {', '.join(self.kernel.fields) or 'u'} is a Gaussian process over {over(self.kernel.layout)}", {
            "kernel": kernel,
            "mean": type(self.mean).__name__,
            "noise": listed(levels) or "known",
            "unknown": listed(sorted(self.coefficients)) or "nothing else",
            "engine": self.engine,
        }
