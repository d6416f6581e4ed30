"""Solutions that vary along many directions or in many dimensions, and those that others have published figures for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk

PLACES = 1000


@dataclass(frozen=True)
class Case:
    """A problem, and the error that is wanted.

    **Arguments:**

    - `title`: the solution in one line.
    - `problem`: the problem, with its number of points where these are given; or the domain of `data`.
    - `wanted`: the relative error of `u` to reach.
    - `seconds`: the time that `solve` has; `None` where `fit` has the problem's own points.
    - `source`: who published the figure that is wanted.
    - `data`: observations at points of one's own.
    - `at`: the points at which `u` is compared, given a seed; 1,000 uniform ones inside by default.
    - `truth`: values of `u` there, where `problem.exact` does not say.
    """

    title: str
    problem: pk.Problem | pk.Domain
    wanted: float
    seconds: float | None = None
    source: str = ""
    data: tuple[pk.Observation, ...] | None = None
    at: Callable[[int], np.ndarray] | None = None
    truth: Callable[[np.ndarray], np.ndarray] | None = None

    def places(self, seed: int) -> np.ndarray:
        return self.problem.interior(PLACES, seed) if self.at is None else self.at(seed)

    def values(self, places: np.ndarray) -> np.ndarray:
        return self.problem.truth(places) if self.truth is None else self.truth(places)


def poisson(
    name: str, d: int, exact: Callable[[Any], Any], boundary: int, source: int, side: float = 1.0
) -> pk.Problem:
    """`−Δu = f` in a cube, with the values of `u` on its faces."""
    domain = pk.Domain(x=[(0.0, side)] * d)
    x = domain.coordinates("x")
    points = pk.Points(boundary=boundary, source=source)
    return of_exact(name, domain, -pk.Laplacian(x), exact, [pk.Dirichlet(on=domain.boundary(x), value=exact)], points)


def of_exact(
    name: str, domain: pk.Domain, operator: pk.Operator, exact: Any, conditions: list[Any], points: pk.Points | None
) -> pk.Problem:
    """The problem that has this solution."""
    return pk.Problem(domain, operator, operator(exact), conditions, exact, name=name, points=points)


def two_body(x: Any, y: Any) -> Any:
    """The term of two neighbours that is used in papers on many dimensions."""
    return jnp.sin(x + jnp.cos(y) + y * jnp.cos(x))


def weights(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def chain_of_two(d: int) -> Callable[[Any], Any]:
    c = weights(2026, d - 1)
    return lambda q: jnp.dot(c, two_body(q[:-1], q[1:]))


def chain_of_three(d: int) -> Callable[[Any], Any]:
    c = weights(2030, d - 2)
    return lambda q: jnp.dot(c, jnp.exp(q[:-2] * q[1:-1] * q[2:]))


def pairs_of_a_graph(d: int, count: int) -> Callable[[Any], Any]:
    rng = np.random.default_rng(2031)
    all_pairs = np.stack(np.triu_indices(d, 1), axis=1)
    first, second = all_pairs[rng.choice(len(all_pairs), count, replace=False)].T
    c = rng.normal(size=count)
    return lambda q: jnp.dot(c, two_body(q[first], q[second]))


def random_network(d: int) -> Callable[[Any], Any]:
    """Two layers of 40 `tanh` with random weights."""
    rng = np.random.default_rng(2032)
    first, second, last = rng.normal(size=(40, d)), rng.normal(size=(40, 40)) / math.sqrt(40), rng.normal(size=40)
    shift = rng.normal(size=40)
    return lambda q: jnp.dot(last, jnp.tanh(second @ jnp.tanh(first @ (2 * q - 1) + shift))) / math.sqrt(40)


def two_ridges(d: int) -> Callable[[Any], Any]:
    first, second = np.random.default_rng(2033).normal(size=(2, d)) * math.sqrt(3 / d)
    return lambda q: jnp.sin(jnp.dot(first, q)) + jnp.cos(jnp.dot(second, q))


def of_the_mean(d: int) -> Callable[[Any], Any]:
    """A function of the mean of all inputs, which varies little over the cube: so it is scaled to vary."""
    return lambda q: jnp.sin(math.sqrt(d) * (jnp.mean(q) - 0.5) * 2)


def geometric_basket(d: int) -> Case:
    """A call on the geometric mean of `d` assets, in logarithms of prices; one asset is exact (Black–Scholes)."""
    rate, volatility, strike = 0.05, 0.3, 1.0
    domain = pk.Domain(x=[(-0.5, 0.5)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    drift = rate - volatility**2 / 2
    operator = pk.D(t) - volatility**2 / 2 * pk.Laplacian(x) - drift * pk.Directional(x, [1.0] * d) + rate
    spread = volatility / math.sqrt(d)

    def exact(q: Any) -> Any:
        """`t` is the time to maturity. The mean of logarithms is normal."""
        left = jnp.maximum(q[d], 1e-12)
        mean, deviation = jnp.mean(q[:d]) + drift * left, spread * jnp.sqrt(left)
        above = (mean - math.log(strike)) / deviation
        grown = jnp.exp(mean + deviation**2 / 2) * jax.scipy.stats.norm.cdf(above + deviation)
        return jnp.exp(-rate * left) * (grown - strike * jax.scipy.stats.norm.cdf(above))

    payoff = lambda q: jnp.maximum(jnp.exp(jnp.mean(q[:d])) - strike, 0.0)
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=exact), pk.Initial(t, value=payoff)]
    problem = pk.Problem(domain, operator, 0.0, conditions, exact, name=f"geometric basket, {d} assets")
    return Case("call on a geometric mean, kinked payoff", problem, 5e-3, 300.0)


def product(d: int, size: float) -> Callable[[Any], Any]:
    return lambda q: jnp.prod(1 + size * jnp.sin(jnp.pi * q))


def sines_on_zero_walls() -> Case:
    d = 4
    domain = pk.Domain(x=[(0.0, 1.0)] * d)
    x = domain.coordinates("x")
    exact = lambda q: jnp.prod(jnp.sin(jnp.pi * q))
    wall = pk.Dirichlet(on=domain.boundary(x), value=0.0)
    points = pk.Points(boundary=100, source=300)
    return Case("Π sin πx_i", of_exact("sines", domain, -pk.Laplacian(x), exact, [wall], points), 1e-5)


FRONTIER: dict[str, Callable[[], Case]] = {
    "chain-2-10": lambda: Case("chain of pairs", poisson("chain", 10, chain_of_two(10), 300, 300), 1e-5),
    "chain-2-20": lambda: Case("chain of pairs", poisson("chain", 20, chain_of_two(20), 400, 400), 1e-4),
    "chain-3-10": lambda: Case("chain of triples", poisson("chain", 10, chain_of_three(10), 500, 500), 1e-3),
    "graph-20": lambda: Case("15 random pairs", poisson("graph", 20, pairs_of_a_graph(20, 15), 500, 500), 1e-3),
    "sines-4": sines_on_zero_walls,
    "product-10": lambda: Case("Π(1 + 0.3 sin πx_i)", poisson("product", 10, product(10, 0.3), 400, 400), 1e-3),
    "network-10": lambda: Case(
        "random network of two layers", poisson("network", 10, random_network(10), 400, 400), 1e-3, 200.0
    ),
    "ridges-100": lambda: Case("two ridges", poisson("ridges", 100, two_ridges(100), 500, 500), 1e-6, 300.0),
    "mean-200": lambda: Case("function of the mean", poisson("mean", 200, of_the_mean(200), 500, 500), 1e-5, 300.0),
    "mean-1000": lambda: Case("function of the mean", poisson("mean", 1000, of_the_mean(1000), 500, 500), 1e-5, 300.0),
    "basket-10": lambda: geometric_basket(10),
}


def poisson_of_pinnacle() -> Case:
    exact = lambda q: jnp.sum(jnp.sin(jnp.pi / 2 * q))
    return Case("PNd: −Δu = f, u = Σ sin(πx_i/2), d = 5", poisson("PNd", 5, exact, 200, 200), 4.7e-4)


def heat_of_pinnacle() -> Case:
    d = 5
    domain = pk.Domain(x=pk.Ball([0.0] * d, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    exact = lambda q: jnp.exp(jnp.sum(q[:d] ** 2) / 2 + q[d])
    operator = pk.D(t) - (1 / d) * pk.Laplacian(x)
    conditions = [pk.Neumann(on=domain.boundary(x), value=exact), pk.Initial(t, value=exact)]
    return Case(
        "HNd: u_t = Δu/d + f in the ball, u = e^{|x|²/2 + t}, d = 5",
        of_exact("HNd", domain, operator, exact, conditions, None),
        1.2e-4,
    )


def heat_of_sines() -> Case:
    d = 4
    domain = pk.Domain(x=[(0.0, 1.0)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    exact = lambda q: jnp.exp(-q[d]) * jnp.sum(jnp.sin(2 * q[:d]))
    operator = pk.D(t) - 0.25 * pk.Laplacian(x)
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=exact), pk.Initial(t, value=exact)]
    return Case(
        "u_t = Δu/4, u = e^{−t} Σ sin 2x_i, 4 + 1", of_exact("heat", domain, operator, exact, conditions, None), 1.0e-5
    )


def two_body_in_a_ball() -> Case:
    """The test problem of stochastic Taylor derivative estimators, zero on the sphere."""
    d = 100
    domain = pk.Domain(x=pk.Ball([0.0] * d, 1.0))
    x = domain.coordinates("x")
    exact = lambda q: (1 - jnp.sum(q**2)) * chain_of_two(d)(q)
    wall = pk.Dirichlet(on=domain.boundary(x), value=0.0)
    return Case(
        "Δu = f in the ball, (1 − |x|²) × chain of pairs, d = 100",
        of_exact("STDE", domain, pk.Laplacian(x), exact, [wall], None),
        3.5e-3,
        300.0,
    )


def hamilton_jacobi_bellman() -> Case:
    """`u_t + Δu − |∇u|² = 0`, `u(x, 1) = ln((1 + |x|²)/2)`, by `v = e^{−u}`: the heat equation, backwards from the end.

    Points lie where the diffusion that starts in the origin goes: `x = √(2t) z`.
    """
    d, n = 100, 400
    domain = pk.Domain(x=[(-8.0, 8.0)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    rng = np.random.default_rng(2034)

    def along_paths(time: np.ndarray) -> np.ndarray:
        walk = np.clip(np.sqrt(2 * time)[:, None] * rng.normal(size=(len(time), d)), -8.0, 8.0)
        return np.column_stack([walk, time])

    final, inside = along_paths(np.ones(n)), along_paths(rng.uniform(size=n))
    data = (
        pk.Observation(pk.identity, final, 2 / (1 + np.sum(final[:, :d] ** 2, axis=1)), "exact"),
        pk.Observation(pk.D(t) + pk.Laplacian(x), inside, np.zeros(n), "exact"),
    )
    origin, value = np.zeros((1, d + 1)), math.exp(-4.590162)
    title = "HJB after Cole–Hopf, e^{−u} at the origin, d = 100"
    return Case(
        title, domain, 0.0017 * 4.590162, data=data, at=lambda _: origin, truth=lambda q: np.full(len(q), value)
    )


NATURAL = "natural-gradient PINN, thousands of seconds on a GPU"
YARDSTICKS: dict[str, Callable[[], Case]] = {
    "pinnacle-poisson": lambda: replace(poisson_of_pinnacle(), source="PINNacle, best of its methods"),
    "pinnacle-heat": lambda: replace(heat_of_pinnacle(), source="PINNacle, best of its methods"),
    "cosines-5": lambda: Case(
        "−Δu = f, u = Σ cos πx_i, d = 5",
        poisson("cosines", 5, lambda q: jnp.sum(jnp.cos(jnp.pi * q)), 200, 200),
        1.6e-7,
        source=NATURAL,
    ),
    "products-10": lambda: Case(
        "−Δu = 0, u = Σ x_{2k−1} x_{2k}, d = 10",
        poisson("products", 10, lambda q: jnp.sum(q[::2] * q[1::2]), 200, 200),
        1.2e-5,
        source=NATURAL,
    ),
    "square-100": lambda: Case(
        "−Δu = −200, u = |x|², d = 100",
        poisson("square", 100, lambda q: jnp.sum(q**2), 500, 500),
        3.6e-3,
        source=NATURAL,
    ),
    "heat-sines": lambda: replace(heat_of_sines(), source=NATURAL),
    "stde-100": lambda: replace(two_body_in_a_ball(), source="stochastic Taylor derivative estimator, H200"),
    "hjb-100": lambda: replace(hamilton_jacobi_bellman(), source="deep BSDE, 0.17 % of u"),
}
