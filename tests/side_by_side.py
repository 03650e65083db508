"""Which tests run on which worker when several run side by side: what shares servers stays together."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# A server is shared by a file, or by all files below one of these.
TOGETHER = (
    "tests/contract/",
    "tests/kdc/",
    "tests/stories/",
    "tests/real/airflow/",
    "tests/real/faults/",
    "tests/slow/clusters/abroad/",
    "tests/slow/clusters/three_datanodes/",
    "tests/spark/",
)
# Each test of these shares no server: it has a cluster of its own, or none.
APART = ("tests/slow/predictions/", "tests/simulation/test_histories.py")
# These mostly wait for limits of the NameNode and of tickets; the others keep both cores busy.
WAITING = tuple(f"tests/real/cluster/test_{kind}" for kind in ("lease", "recovery", "rescue", "token_commands"))
# They take longest: begun late, one would run on alone.
LONGEST = (
    "tests/slow/test_pushed_lives.py",
    "tests/slow/faults/test_pushes.py",
    "tests/slow/clusters/test_rotated_keytab.py",
    "tests/real/airflow/",
    "tests/real/cluster/test_stream_life.py",
    "tests/real/cluster/test_stalls.py",
    "tests/tools/test_benchmarks.py",
    "tests/tools/test_minicluster.py",
    "tests/simulation/test_never_two_at_once.py",
    "tests/simulation/test_noninterference.py",
    "tests/airflow/test_pages.py",
    "tests/spark/",
)
_WAITS_FIRST = "gw1"


class SharedServers(LoadScopeScheduling):  # type: ignore[misc]  # untyped
    """A queue of files and folders: a worker that runs out of tests takes the next one, whole.

    They stay in the order of their collection, long ones first; by default xdist begins with those of many tests, and
    the longest files have two. Of the workers, the second one begins with what waits, so that it runs beside what
    computes.
    """

    def __init__(self, config: pytest.Config, log: object) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a file that is done, too: after each test all that a worker has are counted, twice."""
        super().mark_test_complete(node, item_index, duration)
        scope = scope_of(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = next_scope(node.gateway.id, list(self.workqueue))
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)


def scope_of(nodeid: str) -> str:
    """Return what a test runs with, on one worker: its file, a folder, or nothing but itself."""
    file = nodeid.partition("::")[0]
    if file.startswith(APART):
        return nodeid
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def next_scope(worker: str, scopes: list[str]) -> str | None:
    """Return what this worker takes of the queue; None if it is done."""
    waiting = [scope for scope in scopes if scope.startswith(WAITING)]
    busy = sorted((scope for scope in scopes if scope not in waiting), key=_rank)
    order = (waiting, busy) if worker == _WAITS_FIRST else (busy, waiting)
    return next((kind[0] for kind in order if kind), None)


def _rank(scope: str) -> int:
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SharedServers:
    return SharedServers(config, log)
