"""Data of one's own: noisy, clustered, with outliers, far from zero, with or without an equation."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import pdedkl as pk

from .common import PLACES, Case, measured, of_data, of_problem, on_faces, on_rows, uniform


def square() -> tuple[pk.Domain, pk.Coordinates]:
    domain = pk.Domain(x=[(0.0, 1.0)] * 2)
    return domain, domain.coordinates("x")


def places_in(domain: pk.Domain, seed: int) -> np.ndarray:
    return uniform(domain, PLACES, np.random.default_rng([seed, 1]))


def hills(q: np.ndarray) -> np.ndarray:
    """`sin 3x cos 2y + e^{−4 |q − 0.6|²}`."""
    return np.sin(3 * q[:, 0]) * np.cos(2 * q[:, 1]) + np.exp(-4 * np.sum((q - 0.6) ** 2, axis=1))


def laplacian_of_hills(q: np.ndarray) -> np.ndarray:
    r = np.sum((q - 0.6) ** 2, axis=1)
    return -13 * np.sin(3 * q[:, 0]) * np.cos(2 * q[:, 1]) + (64 * r - 16) * np.exp(-4 * r)


def regression(seed: int) -> Case:
    """Values of `u` and nothing else."""
    domain, _ = square()
    rng = np.random.default_rng(seed)
    at = uniform(domain, 200, rng)
    data = [pk.Observation(pk.identity, at, measured(hills(at), 0.05, rng))]
    title = "200 values of u in 2-D with 5 % noise, no equation"
    return of_data(title, domain, data, places_in(domain, seed), hills, wanted=3e-2)


def laplacian_data(seed: int) -> Case:
    domain, x = square()
    rng = np.random.default_rng(seed)
    of_u, of_f = uniform(domain, 60, rng), uniform(domain, 100, rng)
    values = [hills(of_u) + 1e-3 * rng.normal(size=60), laplacian_of_hills(of_f) + 1e-3 * rng.normal(size=100)]
    data = [
        pk.Observation(pk.identity, of_u, values[0], noise=1e-3),
        pk.Observation(pk.Laplacian(x), of_f, values[1], noise=1e-3),
    ]
    title = "u and Δu at points of one's own in 2-D, noise 0.001"
    places = places_in(domain, seed)
    return of_data(title, domain, data, places, hills, pk.Laplacian(x), laplacian_of_hills, wanted=3e-3)


def clustered(seed: int) -> Case:
    """Walls are measured sparsely; most sensors sit in three clusters, closer together than anything varies."""
    domain, x = square()
    rng = np.random.default_rng(seed)
    centres = np.array([[0.25, 0.3], [0.7, 0.75], [0.6, 0.2]])
    clusters = np.repeat(centres, 40, axis=0) + rng.uniform(-0.01, 0.01, (120, 2))
    at = np.concatenate([clusters, on_faces(domain, (0, 1), 40, rng)])
    inside = uniform(domain, 100, rng)
    data = [
        pk.Observation(pk.identity, at, measured(hills(at), 0.01, rng)),
        pk.Observation(pk.Laplacian(x), inside, laplacian_of_hills(inside)),
    ]
    title = "Δu = f in 2-D, 120 of 160 sensors in three small clusters, 1 % noise"
    places = places_in(domain, seed)
    return of_data(title, domain, data, places, hills, pk.Laplacian(x), laplacian_of_hills, wanted=2e-2)


def broken_sensors(seed: int) -> Case:
    """A tenth of the sensors show something else."""
    domain = pk.Domain(x=(0.0, 1.0), t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    exact = lambda q: np.sin(np.pi * q[:, 0]) * np.exp(-0.1 * np.pi**2 * q[:, 1])
    rng = np.random.default_rng(seed)
    at = uniform(domain, 150, rng)
    values = measured(exact(at), 0.02, rng)
    values[:15] = rng.uniform(-1.0, 2.0, 15)
    conditions = [pk.Sensors(at, values), pk.Dirichlet(on=domain.boundary(x), value=0.0)]
    operator = pk.D(t) - 0.1 * pk.Laplacian(x)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=30, source=100))
    title = "u_t = 0.1 u_xx, 150 sensors with 2 % noise, 15 of them wrong"
    return of_problem(title, problem, exact, seed, wanted=5e-2)


def wrong_source(seed: int) -> Case:
    """A tenth of the values of `f` are wrong; the walls are right."""
    domain, x = square()
    rng = np.random.default_rng(seed)
    wall, inside = on_faces(domain, (0, 1), 60, rng), uniform(domain, 150, rng)
    values = laplacian_of_hills(inside)
    values[:15] = values[:15] + rng.normal(size=15) * 3 * np.std(values)
    data = [pk.Observation(pk.identity, wall, hills(wall)), pk.Observation(pk.Laplacian(x), inside, values)]
    title = "Δu = f in 2-D, 15 of 150 values of f wrong"
    places = places_in(domain, seed)
    return of_data(title, domain, data, places, hills, pk.Laplacian(x), laplacian_of_hills, wanted=5e-2)


def offset(seed: int) -> Case:
    """Pressure in pascal: varies by a few about a hundred thousand. The error is relative to the variation."""
    domain, x = square()
    rng = np.random.default_rng(seed)
    exact = lambda q: 101325.0 + 5 * hills(q)
    source = lambda q: 5 * laplacian_of_hills(q)
    at, inside = uniform(domain, 100, rng), uniform(domain, 100, rng)
    data = [
        pk.Observation(pk.identity, at, measured(exact(at), 0.01, rng)),
        pk.Observation(pk.Laplacian(x), inside, source(inside)),
    ]
    title = "Δu = f in 2-D, u about 101325, 100 sensors with 1 % noise"
    return of_data(title, domain, data, places_in(domain, seed), exact, pk.Laplacian(x), source, wanted=2e-2)


def all_noisy(seed: int) -> Case:
    domain, x = square()
    rng = np.random.default_rng(seed)
    wall, inside = on_faces(domain, (0, 1), 100, rng), uniform(domain, 150, rng)
    data = [
        pk.Observation(pk.identity, wall, measured(hills(wall), 0.05, rng)),
        pk.Observation(pk.Laplacian(x), inside, measured(laplacian_of_hills(inside), 0.05, rng)),
    ]
    title = "Δu = f in 2-D, all values with 5 % noise"
    places = places_in(domain, seed)
    return of_data(title, domain, data, places, hills, pk.Laplacian(x), laplacian_of_hills, wanted=3e-2)


def noisy_heat(seed: int) -> Case:
    """Noise is added by `sample`."""
    domain = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 1.0))
    x, t = domain.coordinates("x", "t")
    u = lambda q: jnp.exp(-t(q)) * jnp.sin(x(q)[0] + 2 * x(q)[1])
    conditions = [pk.Dirichlet(on=domain.boundary(x), value=u), pk.Initial(t, value=u)]
    operator = pk.D(t) - 0.2 * pk.Laplacian(x)
    problem = pk.Problem(domain, operator, 0.0, conditions, points=pk.Points(boundary=100, initial=60, source=150))
    title = "u_t = 0.2 Δu in 2-D, values of u with 5 % noise"
    return of_problem(title, problem, on_rows(u), seed, noise=0.05, wanted=3e-2)


CASES: dict[str, Callable[[int], Case]] = {
    "regression": regression,
    "laplacian-data": laplacian_data,
    "clustered-sensors": clustered,
    "broken-sensors": broken_sensors,
    "wrong-source": wrong_source,
    "offset": offset,
    "all-noisy": all_noisy,
    "noisy-heat": noisy_heat,
}
