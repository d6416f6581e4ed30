"""Programs that are compiled quickly compute the same."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from pdedkl import compilation


class Scaled(eqx.Module):
    by: jax.Array
    name: str

    def __call__(self, x):
        return self.by * jnp.sin(x) @ jnp.cos(x)


def test_a_program_compiled_quickly_computes_the_same():
    function = compilation.compiled_quickly(lambda module, x: module(x))
    x = jnp.linspace(0, 1, 1000)
    module = Scaled(jnp.asarray(3.0), "a name that is no array")
    np.testing.assert_allclose(function(module, x), module(x), rtol=1e-13)
    # Within another program, too, and differentiated.
    slope = jax.jit(jax.grad(lambda x: function(module, x)))(x)
    np.testing.assert_allclose(slope, jax.grad(module)(x), rtol=1e-12, atol=1e-13)


def test_all_settings_are_known_here():
    assert all(compilation.is_known(name, value) for name, value in compilation.UNOPTIMISED.items())


def test_settings_that_this_xla_does_not_have_are_left_out(monkeypatch):
    monkeypatch.setattr(compilation, "UNOPTIMISED", {"xla_is_to_make_coffee": True})
    assert not compilation.is_known("xla_is_to_make_coffee", True)
    assert float(compilation.compiled_quickly(lambda x: 2 * x)(jnp.asarray(1.5))) == 3.0
