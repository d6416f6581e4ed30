"""The problems of `make accuracy`: the paper's seven rows, and three whose solutions vary along many directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk

TEST_POINTS = 1000


@dataclass(frozen=True)
class Limits:
    """Relative errors to reach, the paper's own, and how many times the points its recipe is given here for them.

    The paper does not print its numbers of points.
    """

    u: float
    f: float
    paper: tuple[float, float] | None = None
    times: int = 1


@dataclass(frozen=True)
class Case:
    """An equation with its exact solution, and how many points of it are given."""

    domain: pk.Domain
    operator: pk.Operator
    exact: Callable[[Any], Any]
    boundary: int
    initial: int
    source: int
    limits: Limits

    def for_the_paper(self) -> Case:
        """The same equation with the points that the paper's recipe is given."""
        times = self.limits.times
        return replace(self, boundary=times * self.boundary, initial=times * self.initial, source=times * self.source)

    @property
    def points(self) -> str:
        return f"{self.boundary} + {self.initial} + {self.source}"

    def sample(self, seed: int) -> tuple[list[pk.Observation], np.ndarray]:
        """The data, and fresh interior points to test on, all uniform."""
        rng = np.random.default_rng([seed, 1])
        lower, upper = np.asarray(self.domain.lower), np.asarray(self.domain.upper)
        names = [name for name, size in self.domain.layout for _ in range(size)]
        space = np.asarray([i for i, name in enumerate(names) if name == "x"])

        def inside(n: int) -> np.ndarray:
            return rng.uniform(lower, upper, (n, self.domain.dim))

        faces = inside(self.boundary)
        axis = rng.choice(space, self.boundary)
        faces[np.arange(self.boundary), axis] = np.where(rng.random(self.boundary) < 0.5, lower[axis], upper[axis])
        start = inside(self.initial)
        if self.initial:
            start[:, names.index("t")] = lower[names.index("t")]
        of_u, of_f = np.concatenate([faces, start]), inside(self.source)
        data = [
            pk.Observation(pk.identity, of_u, self.u(of_u)),
            pk.Observation(self.operator, of_f, self.f(of_f)),
        ]
        return data, inside(TEST_POINTS)

    def problem(self, name: str) -> pk.Problem:
        """The same as a problem that can be sampled anew: values on all sides of space, and at the start."""
        x = self.domain.coordinates("x")
        conditions: list[Any] = [pk.Dirichlet(on=self.domain.boundary(x), value=self.exact)]
        if self.initial:
            conditions.append(pk.Initial(self.domain.coordinates("t"), value=self.exact))
        points = pk.Points(boundary=self.boundary, initial=self.initial, source=self.source)
        return pk.Problem(
            self.domain, self.operator, self.operator(self.exact), conditions, self.exact, name=name, points=points
        )

    def u(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(jax.jit(jax.vmap(self.exact))(q))

    def f(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(jax.jit(jax.vmap(self.operator(self.exact)))(q))


def built_in(name: str, limits: Limits, dim: int | None = None) -> Case:
    """A problem of the paper, with its own numbers of points."""
    p = pk.problems.built_in(name, dim)
    return Case(p.domain, p.operator, p.exact, p.points.boundary, p.points.initial, p.points.source, limits)


def random_ridges(d: int, boundary: int, source: int, limits: Limits) -> Case:
    domain, x = box(d)
    rng = np.random.default_rng(2024)
    amplitudes, directions = rng.normal(size=4), rng.normal(size=(4, d))
    exact = lambda q: jnp.dot(amplitudes, jnp.sin(directions @ q))
    return Case(domain, pk.Laplacian(x), exact, boundary, 0, source, limits)


def sum_of_sines(d: int, boundary: int, source: int, limits: Limits) -> Case:
    domain, x = box(d)
    return Case(domain, pk.Laplacian(x), lambda q: jnp.sum(jnp.sin(jnp.pi * q / 2)), boundary, 0, source, limits)


def anisotropic(d: int, boundary: int, source: int, limits: Limits) -> Case:
    domain, x = box(d)
    rng = np.random.default_rng(2025)
    first, second = rng.normal(size=(2, d))
    rotation, _ = np.linalg.qr(rng.normal(size=(d, d)))
    tensor = (rotation * np.logspace(-3, 0, d)) @ rotation.T
    exact = lambda q: jnp.sin(first @ q) * jnp.cos(second @ q)
    return Case(domain, pk.Diffusion(x, 0.5 * (tensor + tensor.T)), exact, boundary, 0, source, limits)


def radial(d: int, boundary: int, source: int, limits: Limits) -> Case:
    domain, x = box(d)
    exact = lambda q: jnp.exp(-6 * jnp.sum((q - 0.5) ** 2) / d)
    return Case(domain, pk.Laplacian(x), exact, boundary, 0, source, limits)


def two_body(d: int, boundary: int, source: int, limits: Limits) -> Case:
    domain, x = box(d)
    c = np.random.default_rng(2026).normal(size=d - 1)
    exact = lambda q: jnp.sum(c * jnp.sin(q[:-1] + jnp.cos(q[1:]) + q[1:] * jnp.cos(q[:-1])))
    return Case(domain, pk.Laplacian(x), exact, boundary, 0, source, limits)


def box(d: int) -> tuple[pk.Domain, pk.Coordinates]:
    domain = pk.Domain(x=[(0, 1)] * d)
    return domain, domain.coordinates("x")


CASES: dict[str, Callable[[], Case]] = {
    "poisson-10": lambda: built_in("poisson", Limits(1e-5, 1e-4, (9.0e-3, 1.1e-2), 3), 10),
    "poisson-50": lambda: built_in("poisson", Limits(1e-5, 1e-4, (3.4e-2, 4.3e-2), 4), 50),
    "heat-10": lambda: built_in("heat", Limits(1e-5, 1e-4, (2.9e-3, 2.1e-2), 2), 10),
    "heat-50": lambda: built_in("heat", Limits(2e-5, 5e-4, (1.5e-2, 2.7e-2), 2), 50),
    "adr-10": lambda: built_in("advection-diffusion-reaction", Limits(1e-5, 1e-4, (7.1e-3, 2.6e-2), 2), 10),
    "adr-50": lambda: built_in("advection-diffusion-reaction", Limits(2e-5, 5e-4, (2.3e-2, 3.0e-2), 2), 50),
    "parametric-heat": lambda: built_in("parametric-heat", Limits(1e-3, 2e-3, (7.2e-3, 8.2e-3), 3)),
    "ridges-10": lambda: random_ridges(10, 300, 300, Limits(1e-4, 1e-4)),
    "sines-50": lambda: sum_of_sines(50, 500, 500, Limits(1e-4, 1e-4)),
    "anisotropic-10": lambda: anisotropic(10, 300, 300, Limits(1e-4, 1e-4)),
}

# More, for error bars.
MORE_CASES: dict[str, Callable[[], Case]] = {
    "sines-10": lambda: sum_of_sines(10, 300, 300, Limits(1e-4, 1e-4)),
    "radial-10": lambda: radial(10, 300, 300, Limits(np.inf, np.inf)),
    "two-body-10": lambda: two_body(10, 300, 300, Limits(np.inf, np.inf)),
}

# The paper's seven problems, and five kinds of solutions in ten dimensions.
CALIBRATION_CASES = {name: case for name, case in (CASES | MORE_CASES).items() if name != "sines-50"}
