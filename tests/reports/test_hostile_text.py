"""Text that reaches a page stays text: no formula, name or number brings a script along."""

from __future__ import annotations

from dataclasses import replace as changed
from types import SimpleNamespace

import browser
import models
import pytest

import pdedkl as pk
from pdedkl import reports
from pdedkl.reports.mathml import checked
from pdedkl.training import Training

RUN = "window.harmed=1"
TEXTS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</style></title></textarea></noscript><script>{RUN}</script>",
    f'"><img src=x onerror="{RUN}">',
    f"'><svg onload={RUN}>",
    f"--><svg><script>{RUN}</script>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<a id=x href='javascript:{RUN}' autofocus onfocus={RUN}>",
    "<!--<script>",
    "\u2028\u2029\\u003c/script\\u003e",
    "{{ problem }} {% if",
    "]]>",
    "&lt;script&gt;",
]
HOSTILE = " ".join(TEXTS)
FORMULAS = [
    f'<math><!--><img src=x onerror="{RUN}">--><mi>u</mi></math>',
    f'<math><?x ><img src=x onerror="{RUN}"> ?><mi>u</mi></math>',
    f"<math><mtext><![CDATA[</mtext></math><script>{RUN}</script>]]></mtext></math>",
    f"<math><mi>&lt;img src=x onerror={RUN}&gt;</mi></math>",
    f"<math><mi>&#60;img src=x onerror={RUN}&#62;</mi></math>",
    f"<math display='&quot;>&lt;img src=x onerror={RUN}>'><mi>u</mi></math>",
    f"<math display='block\" onclick=\"{RUN}'><mi>u</mi></math>",
    f"<math><mi>u</mi></math><!--><script>{RUN}</script>-->",
    f"<?xml version='1.0'?><!-- ><img src=x onerror={RUN}> --><math><mi>u</mi></math>",
]
REFUSED = {
    "not well-formed": "<math><mi>u</mi>",
    "two elements": "<math/><math/>",
    "a named entity": "<math><mi>&alpha;</mi></math>",
    "another element": "<p>u</p>",
    "a token alone": "<mi>u</mi>",
    "script": "<math><script>alert(1)</script></math>",
    "style": "<math><style>@import 'x'</style></math>",
    "an event": "<math onclick='x()'><mi>u</mi></math>",
    "an event inside": "<math><mi onmouseover='x()'>u</mi></math>",
    "a link": "<math><mi href='javascript:x()'>u</mi></math>",
    "a link by another name": "<math xmlns:l='http://www.w3.org/1999/xlink' l:href='javascript:x()'/>",
    "a style": "<math style='background: url(//x)'><mi>u</mi></math>",
    "a document type": "<!DOCTYPE math><math><mi>u</mi></math>",
    "an entity of its own": '<!DOCTYPE math [<!ENTITY a "<script>x()</script>">]><math><mi>&a;</mi></math>',
    "an entity of a file": '<!DOCTYPE math [<!ENTITY a SYSTEM "file:///etc/passwd">]><math><mi>&a;</mi></math>',
    "HTML in an annotation": "<math><annotation-xml encoding='text/html'><img/></annotation-xml></math>",
    "an action": "<math><maction actiontype='statusline'><mi>u</mi></maction></math>",
    "HTML by its namespace": "<math><mi xmlns='http://www.w3.org/1999/xhtml'>u</mi></math>",
    "SVG by its namespace": "<math xmlns='http://www.w3.org/2000/svg'><mi>u</mi></math>",
    "an element in a token": "<math><mtext><mtable/></mtext></math>",
    "a formula in a formula": "<math><math><mi>u</mi></math></math>",
    "half a character": "<math><mi>\ud800</mi></math>",
    "too deep": f"<math>{'<mrow>' * 5000}{'</mrow>' * 5000}</math>",
    "too long": f"<math><mi>{'u' * 200_000}</mi></math>",
}


@pytest.mark.parametrize("name", REFUSED)
def test_formulas_bring_nothing_along(name):
    with pytest.raises(ValueError, match="`mathml` needs one"):
        checked(REFUSED[name])


def test_formulas_are_written_anew():
    given = "<m:math xmlns:m='http://www.w3.org/1998/Math/MathML' display='block'><m:mo>&lt;</m:mo><!-- b --></m:math>"
    assert checked(given) == '<math display="block"><mo>&lt;</mo></math>'
    assert checked(FORMULAS[0]) == checked(FORMULAS[1]) == "<math><mi>u</mi></math>"
    assert checked(checked(FORMULAS[2])) == checked(FORMULAS[2])
    assert checked(" \n") == ""
    for entry in pk.problems.BUILT_IN.values():
        assert checked(entry.mathml) == entry.mathml
    with pytest.raises(TypeError, match="`mathml` needs a string"):
        checked(b"<math/>")


def hostile_posterior() -> pk.Posterior:
    """A posterior with such text wherever a user can put one."""
    found = models.posterior("ard")
    data = [changed(item, name=HOSTILE) for item in found.observations]
    operator = data[1].operator + pk.Coefficient(lambda q: 0.0 * q[0], name=HOSTILE) * pk.identity
    data[1] = changed(data[1], operator=operator)
    training = Training(
        recipe=HOSTILE, model=HOSTILE, seed=3, kernel=HOSTILE, objective=-12.0, left_out=1e-3, validated=None,
        rejected=0, trace_seconds=0.5, candidates=((HOSTILE, -12.0), (TEXTS[0], 4.0)), stopped=HOSTILE, seconds=2.0,
        compile_seconds=1.0, history=(),
    )  # fmt: skip
    return changed(found, observations=tuple(data), training=training)


def write(path, **changes):
    problem = models.problem(
        name=HOSTILE, equation=HOSTILE, statements=[SimpleNamespace(label=text) for text in TEXTS], **changes
    )
    results = reports.evaluate(models.posterior("ard"), models.problem(), n=8)
    settings = {"data": [f"{HOSTILE}.csv", "not text \udcff"], HOSTILE: HOSTILE}
    metrics = results.metrics() | {HOSTILE: 1.0}
    return reports.write_report(
        path, hostile_posterior(), problem, metrics, settings, results=results, shown=[]
    ).read_text("utf-8")


def test_text_in_a_page_does_not_run(tmp_path):
    path = tmp_path / "page.html"
    write(path, mathml="")
    with browser.open_page(path) as page:
        browser.wait_until_drawn(page)
        assert page.evaluate("window.harmed") is None and page.problems == []
        assert page.locator("h1").inner_text().split() == HOSTILE.split()
        assert page.locator("body svg, body iframe, body a").count() == 0
        assert page.locator("script").count() == 3


def test_formulas_in_a_page_do_not_run(tmp_path):
    """All of them in one page: each stands where the one formula stood."""
    path, mark = tmp_path / "page.html", checked("<math><mi>mark</mi></math>")
    text = write(path, mathml=mark)
    path.write_text(text.replace(mark, "".join(map(checked, FORMULAS))), "utf-8")
    with browser.open_page(path) as page:
        browser.wait_until_drawn(page)
        assert page.locator("math").count() == len(FORMULAS) and page.locator("math *:not(mi, mtext)").count() == 0
        for formula in page.locator("math").all():
            formula.dispatch_event("click")
        assert page.evaluate("window.harmed") is None and page.problems == []


def test_the_policy_stops_what_gets_into_a_page_nevertheless(tmp_path):
    path = tmp_path / "page.html"
    report = write(path, mathml="")
    with browser.open_page() as page:
        for text in TEXTS:
            if RUN not in text:
                continue
            path.write_text(report.replace("<header>", f"<header>{text}"), "utf-8")
            page.problems.clear()
            page.goto(path.as_uri())
            page.wait_for_timeout(100)
            assert page.evaluate("window.harmed") is None, text
            assert any("Content Security Policy" in problem for problem in page.problems), text
