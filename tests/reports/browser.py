"""Where the scripts of a report are run: in a browser if there is one, else in node; what is missing is said.

With PDEDKL_BROWSER_TESTS=1 a missing browser is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MODEL = files("pdedkl.reports").joinpath("model.js").read_text("utf-8")
# Mean and standard deviation at points, for a packed posterior.
VALUES = """({data, arrays, points}) => {
    const model = pdedklModel(data, arrays);
    return {mean: points.map(model.mean), std: points.map(model.std)};
}"""


def find_browser() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def needs_browser(what: str) -> None:
    """Say what was not checked, or fail if the environment asks for a browser."""
    message = f"{what} was not checked: it needs one of {', '.join(BROWSERS)} on the PATH."
    assert os.environ.get("PDEDKL_BROWSER_TESTS") != "1", message
    print(message)


@contextmanager
def open_page(path: Path | None = None, **options: Any) -> Iterator[Any]:
    """A page of a headless browser, and on it, as `problems`, all errors and all requests beyond the file itself."""
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


def values(jobs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]] | None:
    """The page's own mean and standard deviation for each job; `None` where nothing here runs JavaScript."""
    if find_browser():
        with open_page() as page:
            page.add_script_tag(content=MODEL)
            return {name: page.evaluate(VALUES, job) for name, job in jobs.items()}
    if node := shutil.which("node"):
        program = f"{MODEL}\nconst one = {VALUES};\nconst jobs = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        program += "for (const name in jobs) jobs[name] = one(jobs[name]);\nconsole.log(JSON.stringify(jobs));"
        done = subprocess.run([node, "-e", program], input=json.dumps(jobs), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    return None
