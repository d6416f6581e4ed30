import pytest
import quick


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """What the command line compiles is kept apart from the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def quick_fit(monkeypatch):
    """`pdedkl solve` without training."""
    monkeypatch.setattr("pdedkl.runs.solve.fit", quick.fit)


@pytest.fixture
def no_report(monkeypatch):
    """`pdedkl solve` without pictures."""
    monkeypatch.setattr("pdedkl.runs.solve.report", lambda folder, solved: [])
