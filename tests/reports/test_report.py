"""Pictures and the page: complete, self-contained, alive in a browser."""

from __future__ import annotations

import re
from dataclasses import replace as changed

import browser
import equinox as eqx
import jax.numpy as jnp
import matplotlib
import models
import numpy as np
import pytest
from matplotlib.text import Text

import pdedkl as pk
from pdedkl import reports
from pdedkl.training import Step, Training
from pdedkl.verdicts import STATUSES, Comparison, Verdict

PHASES = [("directions 1", 4), ("projection", 12), ("projection + additive", 6)]
HISTORY = tuple(
    Step(name, i, 50.0 / (i + 1), 1.0, {"1": 0.1 / (i + 1), "heat": 0.2}, 1.0, 1.0, 1.0)
    for name, count in PHASES
    for i in range(count)
)
TRAINING = Training(
    recipe="default", model="dkl", seed=3, kernel="projection", objective=-12.0, left_out=1e-3, validated=None,
    rejected=0, trace_seconds=0.5,
    candidates=(("projection", -12.0), ("ridges", 4.0)), stopped=None, seconds=2.0, compile_seconds=1.0,
    history=HISTORY,
)  # fmt: skip


@pytest.fixture(scope="module")
def posterior():
    return changed(models.posterior("ard"), training=TRAINING)


@pytest.fixture(scope="module")
def results(posterior):
    return reports.evaluate(posterior, models.problem(), n=256)


@pytest.fixture(scope="module")
def shown(posterior, results):
    return reports.pictures(posterior, models.problem(), results)


@pytest.fixture(scope="module")
def report(posterior, results, shown, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    settings = {"data seed": 7}
    return reports.write_report(path, posterior, models.problem(), settings=settings, results=results, shown=shown)


def test_results_hold_what_metrics_json_needs(posterior, results):
    found = results.metrics()
    for key in ("error_u", "error_f", "coverage_u", "coverage_f", "z_rms_u", "nlpd_u", "crps_u", "sharpness_u"):
        assert found[key] is not None, key
    assert found["error_u"] < found["line_u"] < found["constant_u"]
    unknown = reports.evaluate(posterior, models.problem(exact=None, source=None), n=8)
    assert unknown.fields[0].truth is None and set(unknown.metrics()) == {"parts", "clamped_u", "clamped_f"}


def test_pictures_are_legible_and_leave_settings_alone(shown, tmp_path):
    before = dict(matplotlib.rcParams)
    assert [p.name for p in shown] == ["truth", "slice", "calibration", "inputs", "latent", "training"]
    wide = pk.Domain(x=[(0, 1)] * 50)
    figures = [(p.name, p.figure) for p in shown] + [("fifty", reports.which_inputs_matter(wide, np.ones(50)))]
    sets = ((0,), (1, 2), (0, 1, 3))
    together = pk.Interactions(tuple("abcd"), sets, np.array([0.6, 0.3, 0.1]), np.eye(3), pk.Share(0.0, 0.0), 1.0, True)
    figures.append(("graph", reports.which_inputs_act_together(together)))
    for name, figure in figures:
        png, svg = reports.save(figure, tmp_path, name)
        assert png.read_bytes().startswith(b"\x89PNG") and b"<svg" in svg.read_bytes()
        written = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
        assert written and min(text.get_fontsize() for text in written) >= 8, name
        assert figure.get_figwidth() * 2.54 <= 16.01
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(ValueError, match="without its folder"):
        reports.save(shown[0].figure, tmp_path, "../truth")


def test_sensitivity_is_the_slope_of_the_mean(posterior):
    problem = models.problem()
    q, width, step = models.points(32, 5), models.DOMAIN.upper - models.DOMAIN.lower, 1e-5
    problem.interior = lambda n, seed: q
    slopes = [
        (posterior.predict(q + step * unit).mean - posterior.predict(q - step * unit).mean) / (2 * step)
        for unit in np.eye(models.DIM)
    ]
    expected = np.sqrt(np.mean(np.square(slopes), axis=1)) * width
    np.testing.assert_allclose(reports.sensitivity(posterior, problem), expected, rtol=1e-5)


def test_the_page_is_complete_and_escaped(report):
    text = report.read_text("utf-8")
    assert "Heat &amp; &lt;b&gt;reaction&lt;/b&gt;" in text and "<b>reaction" not in text
    assert "<mi>𝒜</mi>" in text and "data seed" in text and pk.__version__ in text
    for part in ("best constant", "best straight line", "ridges", "seed of the training", "explorer-arrays"):
        assert part in text, part
    assert text.count("<img ") == 6
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?!data:)[a-z/.]""", text.split("<script")[0])


def test_the_page_is_alive(posterior, report):
    pixels = "() => document.querySelector('[data-role=mean]').toDataURL()"
    with browser.open_page(report, viewport={"width": 390, "height": 800}) as page:
        browser.wait_until_drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390  # nothing sticks out of a phone
        grid = page.evaluate(
            "() => ({...pdedkl.drawn(), mean: [...pdedkl.drawn().mean], std: [...pdedkl.drawn().std]})"
        )
        assert_drawn(grid, posterior)
        first = page.evaluate(pixels)
        free = next(i for i in range(models.DIM) if i not in (grid["a"], grid["b"]))
        page.locator(".slider input").nth(free).fill(str(models.DOMAIN.upper[free]))
        browser.wait_until_drawn(page)
        moved = page.evaluate(pixels)
        assert moved != first
        page.locator("[data-role=across]").select_option(str(free))
        browser.wait_until_drawn(page)
        assert page.evaluate(pixels) != moved and page.evaluate("pdedkl.drawn().a") == free
        assert page.locator(".slider input").nth(free).is_disabled()
        q = models.points(1, 3)
        expected = posterior.predict(q)
        assert page.evaluate("q => pdedkl.mean(q)", q[0].tolist()) == pytest.approx(expected.mean[0], rel=1e-9)
        assert page.evaluate("q => pdedkl.std(q)", q[0].tolist()) == pytest.approx(expected.std[0], rel=1e-6)
        page.locator("[data-role=mean]").hover()
        assert "mean" in page.locator("[data-role=read-out]").inner_text()
        assert page.problems == []


def assert_drawn(grid, posterior):
    columns, lines, box = grid["columns"], grid["lines"], models.DOMAIN
    q = np.tile(grid["q"], (columns * lines, 1))
    for axis, count, place in (
        (grid["a"], columns, np.arange(columns * lines) % columns),
        (grid["b"], lines, np.arange(columns * lines) // columns),
    ):
        q[:, axis] = box.lower[axis] + (box.upper[axis] - box.lower[axis]) * (place + 0.5) / count
    expected = posterior.predict(q)
    np.testing.assert_allclose(grid["mean"], expected.mean, rtol=0, atol=1e-9 * np.abs(expected.mean).max())
    np.testing.assert_allclose(grid["std"], expected.std, rtol=1e-6)


def test_a_page_without_truth_and_without_explorer(posterior, tmp_path):
    guess = eqx.tree_at(lambda p: p.model.mean, posterior, pk.FunctionMean(lambda q: jnp.sum(q)))
    problem = models.problem(exact=None, source=None, mathml="")
    found = reports.evaluate(guess, problem, n=256)
    with pytest.raises(ValueError, match="Nothing is known"):
        reports.calibration(found)
    text = reports.write_report(tmp_path / "r.html", guess, problem, results=found, shown=[]).read_text("utf-8")
    assert "the prior mean FunctionMean cannot be evaluated in a page" in text and "explorer-data" not in text
    assert "there is nothing to compare with" in text and "∂u/∂t − Δu + u/2 = f" in text


@pytest.mark.parametrize("status", STATUSES)
def test_the_page_states_the_verdict_in_its_own_words(status, posterior, results, tmp_path):
    compared = Comparison("u", 500, 1.0, 0.3, 0.1, float("inf"), 0.5, (0.1, 0.2), 0.9)
    verdict = Verdict(status, ("It <is> so.",), 0.25, "points", "Add points.", "fresh values", (compared,))
    judged, path = changed(posterior, verdict=verdict), tmp_path / "r.html"
    problem = models.problem()
    text = reports.write_report(path, judged, problem, results=results, shown=[]).read_text("utf-8")
    for part in (verdict.headline(), "It &lt;is&gt; so.", "Add points.", "calibrated with: fresh values"):
        assert part in text, part
    assert f'<div class="verdict {status.replace(" ", "-")}">' in text and "50.0 %" in text
    assert ("the error of u is about" in text) == (status != "undetermined")


def test_a_page_of_a_run_shows_the_check_in_its_metrics(posterior, results, tmp_path):
    """A run without a verdict in its model is checked when it is measured; older runs have no status."""
    row = {"name": "u", "points": 5, "coverage": None, "error": 0.1, "claimed": 0.1, "z_rms": None}
    check = {"calibrated": False, "error_u": None, "ruled_by": "noise", "advice": "More.", "comparisons": [row]}
    metrics = results.metrics() | {"check": check}
    write = lambda found: reports.write_report(
        tmp_path / "r.html", posterior, models.problem(), found, results=results, shown=[]
    ).read_text("utf-8")
    text = write(metrics)
    assert 'class="verdict not-calibrated"' in text and "Not calibrated; the error of u is not known." in text
    assert 'class="verdict unchecked"' in write(None) and "posterior.check(problem) compares" in write(None)


def test_a_sum_over_few_inputs_has_a_graph_of_them(results):
    data = models.observations(models.HEAT)
    posterior = pk.condition(pk.deep(models.DOMAIN, pk.IdentityEmbedding(), groups=[(0,), (1, 3)]), data)
    drawn = {name: draw for name, _, _, draw in reports.html._drawings(posterior, models.problem(), results, 0)}
    assert drawn["interactions"]().axes[0].lines
