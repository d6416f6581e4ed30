"""Prices of options. Payoffs have a kink, at the strike."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr as jax_ndtr
from scipy.special import ndtr

import pdedkl as pk

from .common import Case, of_problem, on_faces, on_rows

RATE, VOLATILITY = 0.05, 0.2


def forward_call(forward: Any, strike: float, deviation: Any, xp: Any = np, normal: Any = ndtr) -> Any:
    """`E max(F e^{s Z − s²/2} − K, 0)` for a standard normal `Z`."""
    s = xp.maximum(deviation, 1e-12)
    d = xp.log(xp.maximum(forward, 1e-300) / strike) / s
    return forward * normal(d + s / 2) - strike * normal(d - s / 2)


def call(price: np.ndarray, strike: float, left: np.ndarray) -> np.ndarray:
    """The price of a European call with a time `left`, by Black and Scholes."""
    grown = price * np.exp(RATE * left)
    return np.exp(-RATE * left) * forward_call(grown, strike, VOLATILITY * np.sqrt(left))


def log_price(lower: float, upper: float) -> tuple[pk.Domain, Any, Any, pk.Operator]:
    """The equation in `x = log(price / strike)` and the time left, which runs forwards."""
    domain = pk.Domain(x=(lower, upper), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    operator = pk.D(t) - 0.5 * VOLATILITY**2 * pk.D(x, x) - (RATE - 0.5 * VOLATILITY**2) * pk.D(x) + RATE
    return domain, x, t, operator


def european(kind: str, seed: int) -> Case:
    """The values on the walls, which are five standard deviations away, are those of an option far from its strike."""
    domain, x, t, operator = log_price(-1.2, 1.2)
    sign = 1.0 if kind == "call" else -1.0
    far, worthless = ("upper", "lower") if kind == "call" else ("lower", "upper")
    conditions = [
        pk.Initial(t, value=lambda q: jnp.maximum(sign * (jnp.exp(x(q)) - 1), 0.0)),
        pk.Dirichlet(on=domain.face(x, far), value=lambda q: sign * (jnp.exp(x(q)) - jnp.exp(-RATE * t(q)))),
        pk.Dirichlet(on=domain.face(x, worthless), value=0.0),
    ]
    points = pk.Points(boundary=40, initial=60, source=150)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=points)

    def exact(q: np.ndarray) -> np.ndarray:
        found = call(np.exp(q[:, 0]), 1.0, q[:, 1])
        return found if kind == "call" else found - np.exp(q[:, 0]) + np.exp(-RATE * q[:, 1])

    title = f"Black–Scholes in log price, a European {kind}"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-9)


def barrier_call(seed: int) -> Case:
    """A call that is lost when the price falls to the barrier: the method of images."""
    low = np.log(0.8)
    domain, x, t, operator = log_price(low, 1.2)
    conditions = [
        pk.Initial(t, value=lambda q: jnp.maximum(jnp.exp(x(q)) - 1, 0.0)),
        pk.Dirichlet(on=domain.face(x, "lower"), value=0.0),
        pk.Dirichlet(on=domain.face(x, "upper"), value=lambda q: jnp.exp(x(q)) - jnp.exp(-RATE * t(q))),
    ]
    points = pk.Points(boundary=40, initial=60, source=150)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=points)

    def exact(q: np.ndarray) -> np.ndarray:
        above = q[:, 0] - low
        image = np.exp((1 - 2 * RATE / VOLATILITY**2) * above) * call(np.exp(low - above), 1.0, q[:, 1])
        return call(np.exp(q[:, 0]), 1.0, q[:, 1]) - image

    title = "Black–Scholes in log price, a call with a barrier"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-9)


def price_call(seed: int) -> Case:
    """Prices between 0 and 300 with a strike of 100; time runs backwards from the payoff."""
    strike, top = 100.0, 300.0
    domain = pk.Domain(S=(0.0, top), t=(0.0, 1.0))
    S, t = domain.coordinates("S", "t")
    price = pk.Coefficient(lambda q: S(q), name="S")
    operator = (
        pk.D(t)
        + 0.5 * VOLATILITY**2 * pk.Coefficient(lambda q: S(q) ** 2, name="S²") * pk.D(S, S)
        + RATE * (price * pk.D(S))
        - RATE
    )
    conditions = [
        pk.Dirichlet(on=domain.final(t), value=lambda q: jnp.maximum(S(q) - strike, 0.0)),
        pk.Dirichlet(on=domain.face(S, "lower"), value=0.0),
        pk.Dirichlet(on=domain.face(S, "upper"), value=lambda q: top - strike * jnp.exp(-RATE * (1 - t(q)))),
    ]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=40, initial=60, source=150))

    def exact(q: np.ndarray) -> np.ndarray:
        return call(q[:, 0], strike, 1 - q[:, 1])

    title = "Black–Scholes in the price itself, 0 to 300, a call with strike 100"
    return of_problem(title, problem, exact, seed, wanted=1e-2, accuracy=1e-9)


def correlated(d: int, correlation: float) -> np.ndarray:
    return VOLATILITY**2 * ((1 - correlation) * np.eye(d) + correlation)


def basket_operator(x: Any, t: Any, covariance: np.ndarray) -> pk.Operator:
    """`½ Σ a_ij ∂_ij + Σ (r − ½ a_ii) ∂_i − r` in log prices."""
    drift = RATE - 0.5 * np.diag(covariance)
    return pk.Diffusion(x, 0.5 * covariance) + pk.Directional(x, drift) - RATE


def geometric_basket(seed: int) -> Case:
    """The geometric mean of the prices is log-normal."""
    d = 3
    domain = pk.Domain(x=[(-0.5, 0.5)] * d, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    covariance = correlated(d, 0.3)
    variance = float(np.sum(covariance)) / d**2
    drift = RATE - 0.5 * VOLATILITY**2 + 0.5 * variance

    def formula(q: Any) -> Any:
        forward = jnp.exp(jnp.mean(x(q)) + drift * t(q))
        return jnp.exp(-RATE * t(q)) * forward_call(forward, 1.0, jnp.sqrt(variance * t(q)), jnp, jax_ndtr)

    conditions = [
        pk.Initial(t, value=lambda q: jnp.maximum(jnp.exp(jnp.mean(x(q))) - 1, 0.0)),
        pk.Dirichlet(on=domain.boundary(x), value=formula),
    ]
    operator = pk.D(t) - basket_operator(x, t, covariance)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=100, initial=100, source=200))
    title = "Black–Scholes in three log prices, a call on their geometric mean"
    return of_problem(title, problem, on_rows(formula), seed, wanted=1e-2)


ASSETS, CORRELATION = 5, 0.3


def basket_price(x: np.ndarray, left: np.ndarray, nodes: int = 8) -> np.ndarray:
    """A call on the mean of five correlated prices.

    A move of all log prices by the same amount multiplies the mean, so this direction is integrated by the formula of
    Black and Scholes. The other four are integrated by Gauss and Hermite; what is left to them is smooth.
    """
    d = ASSETS
    common = VOLATILITY * np.sqrt((1 + (d - 1) * CORRELATION) / d)
    basis = np.linalg.svd(np.eye(d) - 1 / d)[0][:, : d - 1]
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    shifts = np.array(list(product(z, repeat=d - 1))) @ basis.T * VOLATILITY * np.sqrt(1 - CORRELATION)
    weights = np.prod(list(product(w / np.sum(w), repeat=d - 1)), axis=1)
    kept = weights > 1e-14
    shifts, weights = np.exp(shifts[kept]), weights[kept]
    out = np.empty(len(x))
    for rows in np.array_split(np.arange(len(x)), max(len(x) // 50, 1)):
        time = left[rows]
        grown = np.exp(x[rows] + ((RATE - 0.5 * VOLATILITY**2 + 0.5 * common**2) * time)[:, None])
        forward = np.zeros((len(rows), len(shifts)))
        for i in range(d):
            forward += grown[:, i : i + 1] * shifts[:, i] ** np.sqrt(time)[:, None] / d
        prices = forward_call(forward, 1.0, (common * np.sqrt(time))[:, None])
        out[rows] = np.exp(-RATE * time) * (prices @ weights)
    return out


def basket_call(seed: int) -> Case:
    """Only the payoff is known, as in the literature. Time runs backwards.

    With the discounted payoff on the walls, `u` in the inner half of the box would change by less than a thousandth.
    """
    domain = pk.Domain(x=[(-0.5, 0.5)] * ASSETS, t=(0.0, 0.5))
    x, t = domain.coordinates("x", "t")
    operator = pk.D(t) + basket_operator(x, t, correlated(ASSETS, CORRELATION))
    payoff = lambda q: jnp.maximum(jnp.mean(jnp.exp(x(q))) - 1, 0.0)
    conditions = [pk.Dirichlet(on=domain.final(t), value=payoff)]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(initial=200, source=300))
    exact = lambda q: basket_price(q[:, :ASSETS], 0.5 - q[:, ASSETS])
    half = np.full(ASSETS, 0.25)
    within = (np.append(-half, 0.0), np.append(half, 0.5))
    title = "Black–Scholes in five log prices, a call on their mean, 500 values, no walls"
    return of_problem(title, problem, exact, seed, within=within, wanted=3e-2, accuracy=1e-9)


def basket_call_walls(seed: int) -> Case:
    """The same over a year with values on the walls, from a simulation. Time runs forwards."""
    domain = pk.Domain(x=[(-0.5, 0.5)] * ASSETS, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    operator = pk.D(t) - basket_operator(x, t, correlated(ASSETS, CORRELATION))
    exact = lambda q: basket_price(q[:, :ASSETS], q[:, ASSETS])
    wall = on_faces(domain, range(ASSETS), 250, np.random.default_rng([seed, 2]))
    conditions = [
        pk.Initial(t, value=lambda q: jnp.maximum(jnp.mean(jnp.exp(x(q))) - 1, 0.0)),
        pk.Dirichlet(on=wall, value=exact(wall)),
    ]
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(initial=250, source=300))
    title = "Black–Scholes in five log prices, a call on their mean, 800 values with walls"
    return of_problem(title, problem, exact, seed, wanted=3e-2, accuracy=1e-9)


CASES: dict[str, Callable[[int], Case]] = {
    "european-call": lambda seed: european("call", seed),
    "european-put": lambda seed: european("put", seed),
    "barrier-call": barrier_call,
    "price-call": price_call,
    "geometric-basket": geometric_basket,
    "basket-call": basket_call,
    "basket-call-walls": basket_call_walls,
}
