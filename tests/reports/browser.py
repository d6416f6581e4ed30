"""Where the scripts of a report are run: in a browser if there is one, else in node.

A test that finds neither is skipped. With PDEDKL_REQUIRE_BROWSER=1 it fails instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MODEL = files("pdedkl.reports").joinpath("model.js").read_text("utf-8")
# Mean and standard deviation at points, for a packed posterior and the number of a field.
VALUES = """({data, arrays, points, field}) => {
    const model = pdedklModel(data, arrays);
    model.show(field || 0);
    return {mean: points.map(model.mean), std: points.map(model.std)};
}"""


def find_browser() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def without_browser(what: str) -> NoReturn:
    """Skip the test and say why, or fail if the environment asks for a browser."""
    message = f"{what} was not checked: it needs one of {', '.join(BROWSERS)} on the PATH."
    if os.environ.get("PDEDKL_REQUIRE_BROWSER") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@contextmanager
def open_page(path: Path | None = None, **options: Any) -> Iterator[Any]:
    """A page of a headless browser, and on it, as `problems`, all errors and all requests beyond the file itself."""
    if not find_browser():
        without_browser("What a page does in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = browser.new_page(**options)
        page.problems = []
        page.on("console", lambda m: page.problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        local = ("data:", "file:", "about:")
        page.on("request", lambda r: None if r.url.startswith(local) else page.problems.append(r.url))
        if path is not None:
            page.goto(path.resolve().as_uri())
        yield page
        browser.close()


def wait_until_drawn(page: Any, seconds: float = 30.0) -> None:
    """Until the explorer has drawn its maps. The page's policy forbids playwright's own way to wait for that."""
    end = time.monotonic() + seconds
    while not page.evaluate("Boolean(window.pdedkl && window.pdedkl.idle())"):
        assert time.monotonic() < end, f"the explorer was not drawn within {seconds} s: {page.problems}"
        page.wait_for_timeout(20)


def values(jobs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The page's own mean and standard deviation for each job."""
    if find_browser():
        with open_page() as page:
            page.add_script_tag(content=MODEL)
            return {name: page.evaluate(VALUES, job) for name, job in jobs.items()}
    if node := shutil.which("node"):
        program = f"{MODEL}\nconst one = {VALUES};\nconst jobs = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        program += "for (const name in jobs) jobs[name] = one(jobs[name]);\nconsole.log(JSON.stringify(jobs));"
        done = subprocess.run([node, "-e", program], input=json.dumps(jobs), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    without_browser("What a page computes")
