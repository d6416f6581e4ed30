"""Tests run with the shapes in the signatures checked, wherever arrays flow (user input has checks of its own).

What one process of a test run compiles, the others load: most of the time of the tests is compilation.
"""

import gc
import os
import shutil
import tempfile
from pathlib import Path

RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
COMPILED = Path(tempfile.gettempdir()) / f"pdedkl-tests-{RUN}"
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(COMPILED)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"

# Two processes share the machine: threads of linear algebra only wait for each other, which takes their time too. NumPy
# may be here already; the processes that tests start look at the environment.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import pytest  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

CHECKED = ["pdedkl.embeddings", "pdedkl.inference", "pdedkl.kernels", "pdedkl.means", "pdedkl.operators.symbol"]

with install_import_hook(CHECKED, "shape_checks.typechecker"):
    import quick_programs  # noqa: F401

    import pdedkl.api  # noqa: F401
    from pdedkl.compilation import make_room

threadpool_limits(1)

# Tracing makes many objects, few of which are garbage: looking for it seldom saves a twentieth of the time.
gc.freeze()
gc.set_threshold(400_000, 20, 50)


@pytest.fixture(scope="module", autouse=True)
def room_for_programs():
    """A process may hold only so many programs, and a run of all tests compiles more."""
    make_room()


def pytest_xdist_make_scheduler(config, log):
    """For `--dist loadscope`; xdist decides about the rest."""
    if config.getoption("dist") != "loadscope":
        return None
    from scheduling import ByFolder

    return ByFolder(config, log)


def pytest_sessionfinish(session):
    """The process that started the others is the last to end."""
    if not hasattr(session.config, "workerinput"):
        run = getattr(session.config.pluginmanager.getplugin("dsession"), "nodemanager", None)
        name = f"pdedkl-tests-{run.testrunuid}" if run is not None else COMPILED.name
        shutil.rmtree(COMPILED.with_name(name), ignore_errors=True)
