"""Which process runs which tests, for `pytest --dist loadscope`: a folder of tests is not split.

Tests of one folder have the same fits, fixtures and programs. In two processes each of them would make its own. Long
folders begin first, so that both processes end at about the same time.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# Seconds, roughly. Folders and files that are not named take less.
LONG = {
    "tests/training": 250,
    "tests/inference": 220,
    "tests/cli": 180,
    "tests/test_examples.py": 120,
    "tests/kernels": 110,
    "tests/equations": 100,
    "tests/checking": 80,
    "tests/reports": 40,
    "tests/fuzz": 40,
    "tests/embeddings": 30,
    "tests/test_search.py": 30,
}


class ByFolder(LoadScopeScheduling):
    """Tests of a folder one after the other in one process, those in no folder by file, the longest first."""

    def _split_scope(self, nodeid):
        file = nodeid.split("::", 1)[0]
        folder = "/".join(file.split("/")[:2])
        return folder if folder != "tests" else file

    def _assign_work_unit(self, node):
        first = max(self.workqueue, key=lambda name: LONG.get(name, 0))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
