"""What is kept of a generation that its supervisor stopped tells triage why it ended, and what its driver said."""

from __future__ import annotations

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.generation_end import NOTHING_KEPT
from airflow_kstream.supervise.streams.pulse.evidence import folder_of, keep
from airflow_kstream.supervise.streams.pulse.triage import kept_of
from tests.simulated.life import Life

STOPPED = "it was generation 1 of orders, and its supervisor stopped it: a restart was requested"


def test_a_generation_that_was_asked_to_stop_is_known_with_the_reason_and_its_logs(life: Life) -> None:
    application = life.yarn.application(str(life.begin().job.application))
    keep(life.run, 1, {"driver-stderr.txt": "the end", "threads-1.txt": "a dump"})
    life.run.folder.ask_to_stop(1, "a restart was requested")
    kept = kept_of(life.run.session, application)
    assert kept.stopped == STOPPED
    assert kept.logs == {f"{folder_of(life.run.id, 1)}/driver-stderr.txt": "the end"}


def test_one_that_nobody_asked_to_stop_ended_for_a_cause(life: Life) -> None:
    application = life.yarn.application(str(life.begin().job.application))
    assert kept_of(life.run.session, application) == NOTHING_KEPT


def test_logs_that_hdfs_refuses_leave_the_reason(life: Life) -> None:
    application = life.yarn.application(str(life.begin().job.application))
    keep(life.run, 1, {"driver-stderr.txt": "the end"})
    life.run.folder.ask_to_stop(1, "a restart was requested")

    def refused(request: str, path: str) -> None:
        if request == "read" and "/evidence/" in path:
            raise Denied(f"user=watcher, access=READ, inode={path}")

    life.hdfs.at_request = refused
    kept = kept_of(life.run.session, application)
    assert (kept.stopped, kept.logs) == (STOPPED, {})
    assert "access=READ" in kept.unread[0]
