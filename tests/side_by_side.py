"""Which tests run on one worker when several run side by side: those that share servers of their own."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling

# A server is shared by a file, or by all files below one of these.
_TOGETHER = ("tests/airflow/running/", "tests/spark/")


class SharedServers(LoadScopeScheduling):  # type: ignore[misc]  # untyped
    """A queue of files and folders: a worker that runs out of tests takes the next one, whole.

    They stay in the order of their collection, long ones first. By default xdist begins with those of many tests; the
    longest files have two.
    """

    def __init__(self, config: pytest.Config, log: object) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in _TOGETHER if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SharedServers:
    return SharedServers(config, log)
