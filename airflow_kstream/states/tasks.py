"""What a task saw and did, from its worker: written at once, and no error of the task where that fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.generation import Life
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream_state import Rounds, StreamState, TaskIds
from airflow_kstream.model.streams.submission import ExplainedSubmission
from airflow_kstream.notifications import tasks as store
from airflow_kstream.policy.states.due import Kind
from airflow_kstream.states.reading import WATCHES
from airflow_kstream.states.recorder import is_not_named
from airflow_kstream.states.values import detail_row, ids_of, reached_of, report_row, reported, reported_detail, row_of

log = logging.getLogger(__name__)


def recalled(cluster: str, stream: str) -> ReachedPositions:
    """Return the furthest positions that a triggerer stored of the stream; nowhere if they can't be read."""
    try:
        return reached_of(store.get(asset_uri(cluster, stream), Kind.DETAIL.value))
    except Exception as error:
        if not is_not_named(error):
            log.warning("What was stored of %s can't be read: %r", stream, error)
    return NOWHERE


def stored_look(cluster: str, stream: str) -> StreamState | None:
    """Return the newest look at a stream that was stored; None if there is none, or it can't be read."""
    try:
        return StreamState.from_json(store.get(asset_uri(cluster, stream), Kind.VERDICT.value))
    except Exception as error:
        if not is_not_named(error):
            log.warning("The last look at %s can't be read: %r", stream, error)
    return None


def is_deferred(by: TaskIds) -> bool:
    """Return whether a task waits for its trigger, as Airflow's API server says; also where that can't be asked."""
    try:
        return _count(by.dag, by.map_index, task_ids=[by.task], run_ids=[by.run], states=["deferred"]) > 0
    except Exception as error:
        log.warning("Whether %s.%s is deferred can't be asked: %r", by.dag, by.task, error)
        return True


def is_watched(dag: str) -> bool:
    """Return whether a task of this DAG watches, or comes back to it by itself; not where that can't be asked."""
    try:
        return _count(dag, states=list(WATCHES)) > 0
    except Exception as error:
        log.warning("Whether a task of %s watches can't be asked: %r", dag, error)
        return False


def _count(*of: Any, **more: Any) -> int:
    # Importing it takes as long as a worker's start.
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    return RuntimeTaskInstance.get_ti_count(*of, **more)


def record(
    cluster: str,
    report: Report,
    instance: Any,
    lives: Sequence[Life] = (),
    planned: ExplainedSubmission | None = None,
    every: timedelta | None = None,
) -> None:
    """Store what the task of a stream reports, with the lives of its generations and the planned submission.

    `every` is the time between the looks that follow, if the task then waits. Nothing where no DAG names its asset.
    """
    rounds = Rounds(every.total_seconds(), begun=False) if every else None
    uri, now = asset_uri(cluster, report.stream), datetime.now(UTC)
    try:
        before = StreamState.from_json(store.get(uri, Kind.VERDICT.value))
        state = reported(report, replace(ids_of(instance), rounds=rounds), now, before)
        detail = reported_detail(report, store.get(uri, Kind.DETAIL.value), now)
        store.put(uri, Kind.VERDICT.value, row_of(state))
        store.put(uri, Kind.DETAIL.value, detail_row(state, detail))
        store.put(uri, Kind.REPORT.value, report_row(report, lives, planned))
    except Exception as error:
        if not is_not_named(error):
            log.warning("The state of %s can't be stored, so pages may show it late: %r", report.stream, error)
