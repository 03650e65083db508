"""End a generation: by marker, at a quiescent point, by SIGTERM, by kill; and see that it is dead."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from airflow_kstream.jobs.kstream_driver import started_marker
from airflow_kstream.model.application import Application
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.plan import Stop
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.state_folder import StreamFolder


def stop(session: ClusterSession, stream: StreamId, spec: StreamSpec, step: Stop) -> tuple[Application, str]:
    """The ended application, and by which means it ended. Every means is idempotent.

    A driver with the helper stops itself at the marker. One without gets SIGTERM right after a commit, so that no
    batch is redone, and what outlives that is killed. Raise Unavailable when even the kill isn't confirmed.
    """
    folder = StreamFolder(session.hdfs, stream)
    folder.ask_to_stop(step.generation, step.why)
    policy = spec.stop
    if started_marker(step.generation) in folder.names():
        ended = _await_end(session, step.application, spec, policy.marker_grace)
        if ended:
            return ended, "its driver stopped at the marker"
    _await(lambda: _quiescent(session, spec), spec.watch.look_every, policy.quiescent_wait)
    if _signalled(session, step.application):
        ended = _await_end(session, step.application, spec, policy.signal_grace)
        if ended:
            return ended, "SIGTERM ended its driver"
    diagnostics = f"kstream: {step.why}"
    return session.yarn.kill(step.application, diagnostics, policy.kill_wait), "it was killed"


def _await_end(session: ClusterSession, application: str, spec: StreamSpec, wait: timedelta) -> Application | None:
    ended: list[Application] = []

    def look() -> bool:
        app = session.yarn.application(application)
        if not app.alive:
            ended.append(app)
        return not app.alive

    return ended[0] if _await(look, spec.watch.look_every, wait) else None


def _quiescent(session: ClusterSession, spec: StreamSpec) -> bool:
    return all(session.hdfs.checkpoint(path).quiescent for path in spec.checkpoints)


def _signalled(session: ClusterSession, application: str) -> bool:
    """A cluster that lets nobody signal containers is no obstacle: the kill follows."""
    try:
        return session.yarn.signal_driver(application)
    except (Denied, NotFound):
        return False


def _await(condition: Callable[[], bool], every: timedelta, wait: timedelta) -> bool:
    """Ask until it holds; False when it doesn't within `wait`. A server that is away is asked again."""
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        try:
            if condition():
                return True
        except Unavailable:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            return False
        time.sleep(every.total_seconds())
