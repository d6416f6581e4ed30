"""Compiled programs on disk: kept by default, bounded, and never where the user has said otherwise."""

from __future__ import annotations

import os

import jax
import numpy as np
import pytest

import pdedkl as pk
from pdedkl import cache

NAMES = ("jax_compilation_cache_dir", *cache.SETTINGS)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user who has chosen nothing."""
    before = {name: getattr(jax.config, name) for name in NAMES}
    for name in ("JAX_COMPILATION_CACHE_DIR", "PDEDKL_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache._set({"jax_compilation_cache_dir": None})
    yield tmp_path / "pdedkl" / "compiled"
    cache._set(before)


def compile_something(size):
    return jax.jit(lambda x: x @ x.T + size)(np.ones((size, 3)))


def test_what_a_fit_compiles_is_kept_and_the_settings_are_put_back(home):
    before = {name: getattr(jax.config, name) for name in NAMES}
    with cache.cached():
        compile_something(5)
    assert any(home.iterdir())
    assert {name: getattr(jax.config, name) for name in NAMES} == before
    kept = set(home.iterdir())
    compile_something(6)
    assert set(home.iterdir()) == kept


def test_a_fit_does_so(home):
    jax.clear_caches()  # what other tests have compiled is not stored again
    domain = pk.Domain(x=(0.0, 1.0))
    q = np.linspace(0, 1, 7)[:, None]
    data = pk.Observation(pk.identity, q, np.sin(3 * q[:, 0]), noise=0.01)
    pk.fit(domain, data, model="gp", profile=pk.SquaredExponential(), progress=False)
    assert len(list(home.iterdir())) > 10


def test_not_where_the_user_has_said_otherwise(home, monkeypatch, tmp_path):
    monkeypatch.setenv("PDEDKL_CACHE", "off")
    with cache.cached():
        compile_something(7)
    assert not home.exists()
    monkeypatch.delenv("PDEDKL_CACHE")
    chosen = tmp_path / "chosen"
    cache.use_compilation_cache(chosen)
    with cache.cached():
        assert jax.config.jax_compilation_cache_dir == str(chosen)
        compile_something(8)
    assert any(chosen.iterdir()) and not home.exists()


def test_a_home_that_cannot_be_written_to_costs_nothing_but_time(home, monkeypatch):
    home.parent.parent.mkdir(exist_ok=True)
    home.parent.write_text("a file in the place of the folder")
    with cache.cached():
        assert float(np.asarray(compile_something(9))[0, 0]) == 12.0


def test_the_oldest_programs_go_first(tmp_path):
    for age in range(6):
        path = tmp_path / f"program {age}"
        path.write_bytes(b"x" * 100)
        os.utime(path, (1e9 - age, 1e9 - age))
    assert cache.trim(tmp_path, 350) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"program 0", "program 1", "program 2"}
    assert cache.trim(tmp_path, 350) == 0 and cache.trim(tmp_path / "nowhere") == 0


def test_warmup_compiles_the_usual_programs(home, monkeypatch, capsys):
    from pdedkl.cli import main, warmup
    from pdedkl.problems import built_in

    assert all(built_in(name, **options) for name, options in warmup.USUAL)
    monkeypatch.setattr(warmup, "USUAL", (("poisson", {"dim": 1}),))
    monkeypatch.setattr("pdedkl.training.fit", lambda problem, data, progress: compile_something(problem.domain.dim))
    main(["warmup"])
    assert str(home) in capsys.readouterr().err and any(home.iterdir())
