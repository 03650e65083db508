"""Of each test that passes, one report instead of five events crosses from its worker to the controller. A plugin.

The controller took 4 s of CPU for those of the unit tests, on a machine whose two cores the workers keep busy.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

# In seconds. The list of the slowest tests begins far above it.
_NOTICEABLE = 0.1


class ShortReports:
    """Runs a test as pytest does, and tells what somebody reads; of a worker alone."""

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run the test in the place of pytest's own hook, which does not run once one has answered."""
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if is_read(report):
                # A log may quote what a job wrote, and half a character ends the worker.
                report.sections = [(name, sendable(text)) for name, text in report.sections]
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def sendable(text: str) -> str:
    """Return what UTF-8 can hold of a text."""
    return text.encode(errors="backslashreplace").decode()


def is_read(report: pytest.TestReport) -> bool:
    """Return False for a setup or teardown that passed in no time."""
    return report.when == "call" or not report.passed or report.duration >= _NOTICEABLE


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(ShortReports())
