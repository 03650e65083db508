from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_kstream.cli import state, stream_freeze, streams
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams import acting, freeze_warnings, status
from airflow_kstream.supervise.streams.watch import Watch
from tests.simulated.fixtures import life
from tests.simulated.life import Life

__all__ = ["life"]


@pytest.fixture
def served(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands of this process speak to the life's servers, and watch its engine."""

    @contextmanager
    def open_session(*of: object) -> Iterator[ClusterSession]:
        yield life.run.session

    for module in (acting, state, stream_freeze, streams):
        # A command is given words alone: it opens its session itself.
        monkeypatch.setattr(module, "open_session", open_session)
    for module in (freeze_warnings, status):
        # Declarations name no engine, and Spark's is the only one that is shipped.
        monkeypatch.setattr(module, "Watch", lambda session, **_: Watch(session, lambda spec: life.engine))
