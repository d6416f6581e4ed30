"""Latent jets against automatic differentiation of `g∘h`, for every embedding and operator."""

from __future__ import annotations

import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import pdedkl as pk
from pdedkl.embeddings import Activation, Normalisation, lecun, push_forward


def derivatives(u, q):
    return u(q), jax.grad(u)(q), jax.hessian(u)(q)


def on_latent(jet, value, slope, curvature):
    """`c g + drift·∇g + diffusion:∇∇ᵀg`."""
    total = 0.0 if jet.c is None else jet.c * value
    if jet.drift is not None:
        total += jnp.dot(jet.drift, slope)
    if jet.diffusion is not None:
        total += jnp.vdot(jet.diffusion, curvature if jet.diffusion.ndim == 2 else jnp.diagonal(curvature))
    return total


@pytest.mark.parametrize("name", cases.embeddings(1))
def test_jet_equals_autodiff_of_the_composition(name, d=3):
    """Of the composition, all derivatives are taken once, and the coefficients of each operator make its value of them.

    That coefficients are what an operator means is tested with the operators.
    """
    embedding, operators = cases.embeddings(d)[name], list(cases.operators(d).values())
    normalise = Normalisation(cases.domain(d))
    q = jnp.asarray(cases.points(d, 1)[0])
    g = lambda z: jnp.sin(jnp.sum(z * jnp.arange(1.0, z.shape[0] + 1.0))) + jnp.sum(z) ** 2

    @oracles.quick_jit
    def both(operators, embedding):
        jets = [push_forward(op.symbol(q), embedding, normalise, q) for op in operators]
        inside = derivatives(g, jets[0].z)
        value, slope, curvature = derivatives(lambda p: g(embedding(normalise(p))), q)
        reference = []
        for op in operators:
            c, b, V, s = oracles.coefficients(op, q, d + 13)
            reference.append(c * value + b @ slope + jnp.einsum("r,ri,ij,rj", s, V, curvature, V))
        places = jnp.stack([jet.z for jet in jets])
        return jnp.stack([on_latent(jet, *inside) for jet in jets]), jnp.stack(reference), places

    got, expected, places = both(operators, embedding)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(places, np.tile(places[0], (len(operators), 1)), rtol=1e-14)


@pytest.mark.parametrize("name", ("gelu", "tanh", "silu", "sine", "square"))
def test_derivatives_of_activations(name):
    value, slope, curvature = Activation(name).derivatives()
    y = jnp.linspace(-4, 4, 41)
    np.testing.assert_allclose(slope(y), oracles.at_points(jax.grad(value), y), atol=1e-14)
    np.testing.assert_allclose(curvature(y), oracles.at_points(jax.grad(jax.grad(value)), y), atol=1e-14)


def test_gelu_is_the_exact_one():
    y = jnp.linspace(-3, 3, 13)
    np.testing.assert_allclose(Activation("gelu").derivatives()[0](y), jax.nn.gelu(y, approximate=False), atol=1e-15)


def test_unknown_activation_is_refused():
    with pytest.raises(ValueError, match=r"'relu'.*gelu"):
        pk.MLP(2, 1, activation="relu", key=jax.random.key(0))


def test_weights_are_lecun_normal_and_biases_zero():
    layer = lecun(400, 300, key=jax.random.key(0))
    assert float(jnp.var(layer.matrix)) == pytest.approx(1 / 400, rel=0.03)
    assert not np.any(layer.offset)


def test_inputs_are_normalised_by_the_bounds():
    box = pk.Domain(x=[(-3, 1), (10, 30)])
    normalise = Normalisation(box)
    np.testing.assert_allclose(normalise(jnp.asarray(box.lower)), [-1, -1])
    np.testing.assert_allclose(normalise(jnp.asarray(box.upper)), [1, 1])


def test_a_bottleneck_caps_the_number_of_directions():
    """At d = 2,000 a full jet would carry 2,000 directions through the network: 2 GB for 2,000 points."""
    d = 2000
    box = pk.Domain(x=[(0, 1)] * d)
    network = pk.MLP(4, 2, width=8, depth=2, key=jax.random.key(0))
    kernel = pk.deep(box, pk.Bottleneck(d, network, key=jax.random.key(1)))
    jets = lambda q: kernel.components[0].jets(pk.Laplacian(box.coordinates("x")), q)
    compiled = jax.jit(jets).lower(jax.ShapeDtypeStruct((100, d), jnp.float64)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 8 * 100 * 2 * d  # a few arrays of the size of the points
