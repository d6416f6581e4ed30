import pytest


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """What the command line compiles is kept apart from the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
