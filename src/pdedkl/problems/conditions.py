"""Boundary conditions, initial conditions and measurements, as plain data."""

from __future__ import annotations

import abc
import inspect
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..domain import Coordinates, Domain
from ..equations import Term
from ..equations.terms import applied
from ..observations import Learned, _check_operator_at, _numbers, _read_noise
from ..operators import Coefficient, D, Operator, Shift, identity
from ..operators.coefficients import AbstractCoefficient
from ..regions import Region
from .equations import fields_of, less, on_row, operator_of
from .functions import FAILURES, Function, evaluate, read_function, split
from .normals import normal_derivative


@dataclass(frozen=True, eq=False)
class Statement:
    """`A u = value` on a region or at given points: the common form of all conditions.

    `noise` is `None` where the condition leaves it to the problem. Such statements with the same operator share one
    learned noise level.
    """

    label: str
    operator: Operator
    where: Region | np.ndarray
    value: Function | np.ndarray
    noise: Any = None
    name: str | None = None
    measured: bool = False

    @property
    def budget(self) -> str | None:
        """Which number of points it is sampled from (boundary, initial or source); `None` if its points are given."""
        return self.where.budget if isinstance(self.where, Region) else None

    @property
    def noise_unknown(self) -> bool:
        learned = isinstance(self.noise, str) and self.noise == "learned"
        return self.noise is None or learned or isinstance(self.noise, Learned)


class FieldFirst(abc.ABCMeta):
    """Conditions may take their `row` first, as in `Dirichlet(u, on=…, value=…)`."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if given and isinstance(given[0], Term):
            given, named = given[1:], {**named, "row": given[0]}
        return super().__call__(*given, **named)

    @property
    def __signature__(cls) -> inspect.Signature:
        made = inspect.signature(vars(cls).get("__init__", object.__init__))
        return made.replace(parameters=list(made.parameters.values())[1:])


class Condition(metaclass=FieldFirst):
    """A condition of a problem. `stated` turns it into a `Statement` on a domain, and checks it."""

    @abc.abstractmethod
    def stated(self, domain: Domain) -> Statement:
        """The condition as `A u = value` on a region of this domain, after checking it.

        **Arguments:**

        - `domain`: the domain of the problem.

        **Returns:** a `Statement`.

        !!! example
            ```python
            statement = pk.Dirichlet(on=domain.boundary(x), value=0.0).stated(domain)
            ```
        """


@dataclass(frozen=True, eq=False)
class Dirichlet(Condition):
    """`u = value` on a region, or at given points.

    **Arguments:**

    - `on`: a region, such as `domain.boundary(x)`, or an array of points of shape `(n, d)`.
    - `value`: a number, a function of the point, or one number for each of your own points.
    - `noise`: a standard deviation, `"exact"`, `"learned"`, `"robust"`, or `None` to leave it to the problem.
    - `row`: the field or row that it is of, if fields have names; it may also come first, as in `Dirichlet(u, …)`.

    !!! example
        ```python
        walls = pk.Dirichlet(on=domain.boundary(x), value=lambda q: jnp.sin(t(q)))
        ```
    """

    on: Any
    value: Any
    noise: Any = None
    row: Any = None

    def stated(self, domain: Domain) -> Statement:
        where, label = _where(self.on, _of(self.row, "Dirichlet condition"), domain)
        return _statement(label, identity, where, self.value, self.noise, domain, row=self.row)


@dataclass(frozen=True, eq=False)
class Initial(Condition):
    """`A u = value` at the initial time.

    **Arguments:**

    - `t`: the coordinate of time.
    - `value`: a number or a function of the point.
    - `operator`: the operator `A`: `u` itself by default, `D(t)` for the second condition of a wave equation.
    - `noise`: a standard deviation, `"exact"`, `"learned"`, `"robust"`, or `None` to leave it to the problem.
    - `row`: the field or row that it is of, if fields have names; it may also come first, as in `Initial(u, …)`.

    !!! example
        ```python
        start = pk.Initial(t, value=lambda q: jnp.sin(x(q)[0]))
        at_rest = pk.Initial(t, value=0.0, operator=pk.D(t))
        ```
    """

    t: Coordinates
    value: Any
    operator: Operator = identity
    noise: Any = None
    row: Any = None

    def stated(self, domain: Domain) -> Statement:
        region = domain.initial(self.t)
        what = "" if self.operator is identity else f" of {self.operator} {self.row if self.row is not None else 'u'}"
        label = f"{_of(None if what else self.row, 'initial condition')}{what} on {region}"
        return _statement(label, self.operator, region, self.value, self.noise, domain, row=self.row)


@dataclass(frozen=True, eq=False)
class Neumann(Condition):
    """`∂u/∂n = value`, the derivative along the outward normal.

    **Arguments:**

    - `on`: a region, such as `domain.boundary(x)`, or an array of points of shape `(n, d)`.
    - `value`: a number, a function of the point, or one number for each of your own points.
    - `normals`: a function of the point or, for given points, one vector for each point or the coordinates whose faces
      the points lie on. By default normals come from the region, or from the faces that the points lie on. Vectors have
      all coordinates of the domain.
    - `noise`: a standard deviation, `"exact"`, `"learned"`, `"robust"`, or `None` to leave it to the problem.
    - `row`: the field or row that it is of, if fields have names; it may also come first, as in `Neumann(u, …)`.

    !!! example
        ```python
        insulated = pk.Neumann(on=domain.face(x[0], "upper"), value=0.0)
        ```
    """

    on: Any
    value: Any
    normals: Any = None
    noise: Any = None
    row: Any = None

    def stated(self, domain: Domain) -> Statement:
        where, label = _where(self.on, _of(self.row, "Neumann condition"), domain)
        operator = normal_derivative(where, self.normals, domain, label)
        return _statement(label, operator, where, self.value, self.noise, domain, name="∂/∂n", row=self.row)


@dataclass(frozen=True, eq=False)
class Robin(Condition):
    """`a u + b ∂u/∂n = value`, with the derivative along the outward normal.

    **Arguments:**

    - `on`: a region, such as `domain.boundary(x)`, or an array of points of shape `(n, d)`.
    - `value`: a number, a function of the point, or one number for each of your own points.
    - `a`: the factor of `u`: a number, a function of the point or a `Parameter`.
    - `b`: the factor of the derivative: a number, a function of the point or a `Parameter`.
    - `normals`: a function of the point or, for given points, one vector for each point or the coordinates whose faces
      the points lie on. By default normals come from the region, or from the faces that the points lie on. Vectors have
      all coordinates of the domain.
    - `noise`: a standard deviation, `"exact"`, `"learned"`, `"robust"`, or `None` to leave it to the problem.
    - `row`: the field or row that it is of, if fields have names; it may also come first, as in `Robin(u, …)`.

    !!! example
        ```python
        cooled = pk.Robin(on=domain.boundary(x), value=0.0, a=2.0, b=1.0)
        ```
    """

    on: Any
    value: Any
    a: Any = 1.0
    b: Any = 1.0
    normals: Any = None
    noise: Any = None
    row: Any = None

    def stated(self, domain: Domain) -> Statement:
        where, label = _where(self.on, _of(self.row, "Robin condition"), domain)
        a, b = (_coefficient(value, f"`{name}` of the {label}", name) for value, name in ((self.a, "a"), (self.b, "b")))
        operator = a * identity + b * normal_derivative(where, self.normals, domain, label)
        return _statement(label, operator, where, self.value, self.noise, domain, row=self.row)


@dataclass(frozen=True, eq=False)
class Periodic(Condition):
    """`u` is the same on the lower and on the upper face of one coordinate.

    An equation of second order in `x` needs the same condition on `∂u/∂x`.

    **Arguments:**

    - `x`: the coordinate.
    - `derivative`: whether the condition is on `∂u/∂x` instead of `u`.
    - `noise`: a standard deviation, `"exact"`, `"learned"`, `"robust"`, or `None` to leave it to the problem.
    - `row`: the field or row that it is of, if fields have names; it may also come first, as in `Periodic(u, …)`.

    !!! example
        ```python
        conditions = [pk.Periodic(x[0]), pk.Periodic(x[0], derivative=True)]
        ```
    """

    x: Coordinates
    derivative: bool = False
    noise: Any = None
    row: Any = None

    def stated(self, domain: Domain) -> Statement:
        region = domain.face(self.x, "lower")
        index = self.x.indices[0]
        shift = Shift(self.x, float(domain.upper[index] - domain.lower[index]))
        operator = identity - shift
        if self.derivative:
            operator = D(self.x) - shift @ D(self.x)
        label = f"periodic condition of {'∂u/∂' if self.derivative else 'u in '}{self.x}"
        # All coordinates use the same name, so that they share one learned noise level.
        name = "periodic ∂u/∂x" if self.derivative else "periodic u"
        return _statement(label, operator, region, 0.0, self.noise, domain, name=name, row=self.row)


@dataclass(frozen=True, eq=False)
class Sensors(Condition):
    """Measured values of `u`, or of `A u`, at given points.

    **Arguments:**

    - `points`: an array of shape `(n, d)`, all coordinates of the domain in their order.
    - `values`: the `n` values.
    - `operator`: what was measured; `u` itself by default.
    - `noise`: the standard deviation of the values, a number or one for each point; `"robust"`; `"learned"` by default.
    - `row`: the field or row that it is of, if fields have names; it may also come first, as in `Sensors(u, …)`.

    !!! example
        ```python
        sensors = pk.Sensors(points, values, noise=0.01)
        ```
    """

    points: Any
    values: Any
    operator: Operator = identity
    noise: Any = "learned"
    row: Any = None

    def stated(self, domain: Domain) -> Statement:
        where, label = _where(self.points, _of(self.row, "sensors"), domain)
        if isinstance(where, Region):
            raise TypeError(f"Sensors(points, values) needs an array of points: got {where}.")
        values = _values(self.values, len(where), label)
        return _statement(
            label, self.operator, where, values, self.noise, domain, name="sensors", measured=True, row=self.row
        )


def _statement(
    label: str,
    operator: Operator,
    where: Region | np.ndarray,
    value: Any,
    noise: Any,
    domain: Domain,
    name: str | None = None,
    measured: bool = False,
    row: Any = None,
) -> Statement:
    if isinstance(value, Term):
        # What is not known stands on the left: `u − u₀ = 0` for an unknown initial state.
        if row is None:
            raise TypeError(
                f"The {label} has the unknown value {value}: say of which field it is, as in Initial(u, …)."
            )
        operator, known = operator_of(applied(operator, row) - value)
        value = 0.0
    else:
        operator, known = on_row(operator, row, label)
    operator, value = split(operator, value)
    if name is not None and fields_of([operator]):
        name = f"{name} of {', '.join(fields_of([operator]))}"
    if not isinstance(operator, Operator):
        raise TypeError(f"The {label} needs an operator such as identity or D(t): got {operator!r}.")
    if operator.layout not in (None, domain.layout):
        raise ValueError(f"The {label} has the operator {operator}, which acts on coordinates of another domain.")
    try:
        _check_operator_at(operator, 0.5 * (domain.lower + domain.upper))
    except FAILURES as error:
        raise ValueError(f"The operator of the {label} could not be evaluated at a point: {error}") from error
    points = None if isinstance(where, Region) else len(where)
    _check_noise(noise, points, label)
    if points is not None and not callable(value) and np.ndim(value) > 0:
        found: Any = _values(value, points, label)
        if known is not None:
            found = found - evaluate(np.asarray(where), known)[0]
    else:
        found = less(read_function(value, f"The {label}", domain), known)
    return Statement(label, operator, where, found, noise, name, measured)


def _of(row: Any, what: str) -> str:
    return what if row is None else f"{what} of {row}"


def _where(on: Any, what: str, domain: Domain) -> tuple[Region | np.ndarray, str]:
    """A region of this domain, or points in it; and the name of the condition in messages."""
    if isinstance(on, Region):
        if on.domain != domain:
            raise ValueError(f"The {what} is on {on} of another domain, {on.domain}: the problem's domain is {domain}.")
        return on, f"{what} on {on}"
    if isinstance(on, Coordinates) or callable(on) or isinstance(on, str):
        raise TypeError(f"The {what} needs a region such as domain.boundary(x), or an array of points: got {on!r}.")
    points = _numbers("points", on)
    if points.ndim != 2 or points.shape[1] != domain.dim or len(points) == 0:
        raise ValueError(
            f"The {what} needs points of shape (n, {domain.dim}), all coordinates of the domain: "
            f"got shape {points.shape}."
        )
    if outside := np.flatnonzero(~np.asarray(domain.contains(jnp.asarray(points)))).tolist():
        raise ValueError(
            f"The {what} has points outside the domain {domain}: the first is points[{outside[0]}] = "
            f"{points[outside[0]].tolist()}, {len(outside)} in all."
        )
    return points.copy(), f"{what} at {len(points)} given points"


def _values(values: Any, n: int, label: str) -> np.ndarray:
    found = _numbers("values", values)
    if found.shape != (n,):
        raise ValueError(f"The {label} needs one value for each of its {n} points: got shape {found.shape}.")
    return found.copy()


def _check_noise(noise: Any, points: int | None, label: str) -> None:
    if noise is None:
        return
    if points is None and not isinstance(noise, str | Learned) and np.ndim(noise) > 0:
        raise ValueError(f"The {label} is sampled, so its noise is one number, 'exact' or 'learned': got {noise!r}.")
    try:
        _read_noise(noise, points or 1)
    except ValueError as error:
        raise ValueError(f"The {label}: {error}") from None


def _coefficient(value: Any, what: str, name: str) -> Any:
    if isinstance(value, AbstractCoefficient) or not callable(value):
        if not isinstance(value, AbstractCoefficient) and np.ndim(value) != 0:
            raise TypeError(f"{what} needs a number or a function of the point q: got {value!r}.")
        return value
    return Coefficient(value, name=name)
