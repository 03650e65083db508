"""A stream's restart while Airflow itself is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from tests.airflow.running.live import live_airflow
from tests.faults.kept import Clock, brisk_stream, kept
from tests.faults.proxies import Proxies
from tests.faults.table import Tell

pytestmark = pytest.mark.faults


def test_a_restart_happens_although_triggerer_and_scheduler_were_killed(
    faulty: Minicluster, proxies: Proxies, tell: Tell, tmp_path: Path
) -> None:
    """They are killed at the moment of the request, and start again; the task was deferred."""
    spec = brisk_stream("scheduled")
    with live_airflow(faulty, tmp_path / "airflow") as airflow, kept(faulty, proxies, tmp_path, spec) as stream:
        task = airflow.declare(spec)
        airflow.await_state(task, "deferred")
        assert stream.await_commits(1) == 1
        stream.ask_for_restart()
        for component in ("triggerer", "scheduler"):
            airflow.components.kill(component)
        clock = Clock()
        assert stream.await_commits(2) == 2
        seen = "both started again, and the deferred task restarted the stream"
        stream.conclude(tell, "triggerer and scheduler SIGKILLed", seen, clock.seconds)
