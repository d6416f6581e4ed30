"""Thin sheets across which a solution turns: where they are, and kernels that are steep there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.training.fronts import Sheet, across, sheets, torn

PLANE = pk.Domain(x=(-1, 1), t=(-1, 1))
POINTS = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))


def found_in(function):
    return sheets(POINTS, np.asarray(jax.vmap(jax.hessian(function))(jnp.asarray(POINTS))))


def test_a_front_is_found_where_it_is():
    (sheet,) = found_in(lambda q: jnp.tanh((0.8 * q[0] - 0.6 * q[1] - 0.2) / 0.1) + 0.3 * q[0] ** 2)
    assert abs(sheet.normal @ [0.8, -0.6]) > 0.999 and abs(abs(sheet.offset) - 0.2) < 0.1 / 3
    assert 0.05 < sheet.width < 0.15


def test_two_kinks_that_cross_are_two_sheets():
    soft = lambda s: 0.05 * jnp.log(jnp.cosh(s / 0.05))
    two = found_in(lambda q: soft(q[0] - q[1]) + 0.8 * soft(q[0] + q[1]))
    assert len(two) == 2
    for sheet, normal in zip(two, ([1, -1], [1, 1])):
        assert abs(sheet.normal @ normal) / np.sqrt(2) > 0.99 and abs(sheet.offset) < 0.05


@pytest.mark.parametrize("function", [lambda q: jnp.sin(2 * q[0]) * jnp.cos(q[1]), lambda q: 0.0 * q[0]])
def test_nothing_is_found_where_nothing_is_thin(function):
    assert all(sheet.width > 0.1 for sheet in found_in(function))


def test_a_kernel_across_a_front_follows_it():
    """From values alone: a front that is steeper than points are dense."""
    front = lambda q: np.tanh((q[:, 0] - 0.3 * q[:, 1]) / 0.04) * (1 + 0.3 * q[:, 1])
    data = pk.Observation(pk.identity, POINTS[:120], front(POINTS[:120]), noise=1e-4)
    unit = np.asarray([1.0, -0.3]) / np.hypot(1.0, 0.3)
    kernel = across(PLANE, 1.0, [sheets_at(unit, 0.04)])
    assert kernel.components[0].latent_dim == 4
    at = np.random.default_rng(1).uniform(-1, 1, size=(200, 2))
    error = lambda k: float(np.sqrt(np.mean((pk.condition(k, data).predict(at).mean - front(at)) ** 2)))
    assert error(kernel) < 1e-2 < 0.1 * error(pk.ard(PLANE, variance=4.0, lengthscale=0.5))


def test_a_sheet_between_points_lets_functions_jump():
    line = np.linspace(-1, 1, 21)[:, None] * np.ones(2) + 0.05
    steep = lambda offset, width: across(PLANE, 1.0, [Sheet(np.ones(2) / np.sqrt(2), offset, width)])
    assert torn(steep(0.0, 0.01), line) and not torn(steep(0.0, 0.4), line)
    # Where all points are on one side, nothing can jump.
    assert not torn(steep(5.0, 0.01), line)


def sheets_at(normal, width):
    return Sheet(normal, 0.0, width)
