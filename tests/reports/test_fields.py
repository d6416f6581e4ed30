"""Pages of several fields: pictures, metrics and the explorer."""

from __future__ import annotations

import browser
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl import reports
from pdedkl.reports import figures
from pdedkl.reports.packing import pack

SQUARE = pk.Domain(x=[(0, 1)] * 2)
X = SQUARE.coordinates("x")
U, V = pk.fields("u", "v")
EXACT = {U: lambda q: jnp.sin(q[0]) * jnp.cos(q[1]), V: lambda q: -jnp.cos(q[0]) * jnp.sin(q[1])}
PROBLEM = pk.Problem(
    SQUARE,
    equations=[pk.D(X[0]) @ U + pk.D(X[1]) @ V == 0, U * (pk.D(X[1]) @ U) - V**2 == 0],
    conditions=[pk.Dirichlet(f, on=SQUARE.boundary(X), value=EXACT[f]) for f in (U, V)],
    exact=EXACT,
    name="two fields",
    silenced=["exact"],
)


@pytest.fixture(scope="module")
def posterior():
    boundary = PROBLEM.sample(source=6, boundary=12)[:3]
    shared = pk.ard(SQUARE, variance=0.5).of(U, V, weights=[0.4, -1.1])
    return pk.condition(pk.ard(SQUARE).of(U) + pk.ard(SQUARE, lengthscale=0.7).of(V) + shared, boundary)


def test_the_page_predicts_each_field(posterior, monkeypatch):
    """Also from the most important directions only, which are an upper bound for every field."""
    points, jobs = PROBLEM.interior(5), {}
    for number in range(2):
        data, arrays = pack(posterior)
        jobs[f"exact {number}"] = {"data": data, "arrays": arrays, "points": points.tolist(), "field": number}
        data, arrays = pack(posterior, most_bytes=0)
        jobs[f"bound {number}"] = {"data": data, "arrays": arrays, "points": points.tolist(), "field": number}
    found = browser.values(jobs)
    for number, field in enumerate((U, V)):
        wanted = posterior.predict(points, field)
        np.testing.assert_allclose(found[f"exact {number}"]["mean"], wanted.mean, atol=1e-9)
        np.testing.assert_allclose(found[f"exact {number}"]["std"], wanted.std, rtol=1e-5)
        assert np.all(np.asarray(found[f"bound {number}"]["std"]) > 0.999 * wanted.std)


def test_results_have_a_part_for_each_field_and_each_equation(posterior):
    results = reports.evaluate(posterior, PROBLEM, n=20)
    found = results.metrics()
    assert found["parts"] == ["u", "v", "equation_1", "equation_2"] and found["error_v"] < 0.5
    assert [part.name for part in results.known()] == ["u", "v"]
    # A nonlinear equation is that of the mean, with the error bars of its linearisation.
    u, v, slope = (posterior.predict(results.points, row).mean for row in (U, V, pk.D(X[1]) @ U))
    by_hand = u * slope - v**2
    np.testing.assert_allclose(results.equations[1].found.mean, by_hand, atol=1e-9)


def test_the_page_shows_every_field(posterior, tmp_path):
    path = reports.write_report(tmp_path / "report.html", posterior, PROBLEM)
    page = path.read_text()
    for text in (
        "A slice of the domain: u",
        "A slice of the domain: v",
        "The vector (u, v)",
        "of v</span>",
        "equation",
    ):
        assert text in page, text
    with browser.open_page(path) as shown:
        browser.wait_until_drawn(shown)
        q = [0.3, 0.6]
        for number, field in enumerate((U, V)):
            shown.select_option("[data-role=field]", str(number))
            browser.wait_until_drawn(shown)
            wanted = posterior.predict([q], field)
            np.testing.assert_allclose(shown.evaluate(f"window.pdedkl.mean({q})"), wanted.mean[0], atol=1e-9)
        assert shown.inner_text("[data-role=name]") == "v" and not shown.problems


def test_a_vector_is_told_by_its_divergence():
    assert figures.vector_in_the_plane(PROBLEM) == (0, 1, 0, 1)
    alone = pk.Problem(
        SQUARE,
        equations=[pk.Laplacian(X) @ U + V == 0, pk.Laplacian(X) @ V + U == 0],
        conditions=[pk.Dirichlet(f, on=SQUARE.boundary(X), value=0.0) for f in (U, V)],
        silenced=["zero"],
    )
    assert figures.vector_in_the_plane(alone) is None
