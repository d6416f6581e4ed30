"""Programs that are compiled quickly compute the same, and a process does not run out of room for them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import as_users_have_it

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
    np.testing.assert_allclose(function(module, x), as_users_have_it(module)(x), rtol=1e-13)
    # Within another program, too, and differentiated.
    slope = as_users_have_it(jax.grad(lambda x: function(module, x)))(x)
    np.testing.assert_allclose(slope, jax.grad(module)(x), rtol=1e-12, atol=1e-13)


def test_all_settings_are_known_here():
    settings = (compilation.UNOPTIMISED | compilation.OPTIMISED)[jax.default_backend()]
    assert all(compilation.is_known(name, value) for name, value in settings.items())


def test_settings_that_this_xla_does_not_have_are_left_out(monkeypatch):
    monkeypatch.setattr(compilation, "UNOPTIMISED", {jax.default_backend(): {"xla_is_to_make_coffee": True}})
    assert not compilation.is_known("xla_is_to_make_coffee", True)
    assert float(compilation.compiled_quickly(lambda x: 2 * x)(jnp.asarray(1.5))) == 3.0


@pytest.mark.skipif(not compilation.MAPPINGS.exists(), reason="only Linux counts them")
def test_programs_are_forgotten_where_a_process_has_too_many():
    count = lambda: compilation.MAPPINGS.read_bytes().count(b"\n")
    doubled = [jax.jit(lambda x, i=i: jnp.sin(i * x) @ x) for i in range(30)]
    x = jnp.arange(3.0)
    first = [function(x) for function in doubled]
    before = count()
    assert not compilation.make_room(share=1.0) and count() >= before
    assert compilation.make_room(share=0.0) and count() < before - 30
    np.testing.assert_array_equal([function(x) for function in doubled], first)


def test_a_machine_without_such_a_limit(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation, "MAPPINGS", tmp_path / "none")
    assert not compilation.make_room(share=0.0)
