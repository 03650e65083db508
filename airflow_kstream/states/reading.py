"""What is stored of streams and clusters, for pages; and triggers that no triggerer serves, against their capacity.

It reads Airflow's database, so it runs in the API server, and for `airflow kstream` where that reaches the database.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf

from airflow_kstream.assets import SCHEME, asset_uri, subject_of
from airflow_kstream.model.streams.event import Ledger
from airflow_kstream.model.streams.stream_state import StreamState, TaskIds
from airflow_kstream.notifications.ledgers import KEY
from airflow_kstream.policy.states.due import Kind

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# A triggerer takes what is new within seconds; one that restarts, within this time.
_PATIENCE = timedelta(minutes=1)

# States of a task that watches, or comes back to it by itself.
WATCHES = ("deferred", "running", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule")


@dataclass(frozen=True)
class StoredValue:
    """A stored value, when it was written by the database's clock, and the DAG of the task that wrote it.

    `by` is empty for what a trigger wrote.
    """

    value: Any
    at: datetime
    by: str


@dataclass(frozen=True)
class StoredState:
    """The rows of a stream, or with an empty `stream` of the cluster; each part is None if it is not there.

    `active` is whether a DAG names its asset. `written` is when the state was written, by the database's clock.
    `report` is what its task reported last. `others` are the rows under any other key.
    """

    cluster: str
    stream: str
    active: bool
    state: StreamState | None
    written: datetime | None
    detail: Mapping[str, Any] | None
    told: Ledger
    report: Mapping[str, Any] | None = None
    others: Mapping[str, StoredValue] = field(default_factory=dict)


def stored_states(session: Session) -> tuple[StoredState, ...]:
    """Return what is stored of all streams and clusters, by cluster and stream, in one query.

    What can't be read is left out: it is a cache, and a later version may have written it.
    """
    return _stored_where(session)


def stored_of(session: Session, cluster: str, stream: str) -> tuple[StoredState, ...]:
    """Return what is stored of one stream and of its cluster."""
    from airflow.models.asset import AssetModel

    return _stored_where(session, AssetModel.uri.in_([asset_uri(cluster, stream), asset_uri(cluster)]))


def stored_clusters(session: Session) -> tuple[StoredState, ...]:
    """Return what is stored of the clusters alone."""
    from airflow.models.asset import AssetModel

    return _stored_where(session, AssetModel.uri.endswith("/"))


def _stored_where(session: Session, *conditions: Any) -> tuple[StoredState, ...]:
    from airflow.models.asset import AssetModel
    from airflow.models.asset_state_store import AssetStateStoreModel as Store
    from sqlalchemy import select

    columns = AssetModel.uri, AssetModel.active.has(), Store.key, Store.value, Store.updated_at
    rows = session.execute(
        select(*columns, Store.last_updated_by_dag_id)
        .join(Store, Store.asset_id == AssetModel.id)
        .where(AssetModel.uri.startswith(f"{SCHEME}://"), *conditions)
    )
    found: dict[tuple[str, bool], dict[str, StoredValue]] = defaultdict(dict)
    for uri, active, key, value, at, by in rows:
        found[uri, active][key] = StoredValue(_json(value), at, by or "")
    return tuple(sorted((_stored(*asset, keys) for asset, keys in found.items()), key=lambda s: (s.cluster, s.stream)))


def number_of_streams(session: Session) -> int:
    """Return how many streams are stored, which tells how often each row is written."""
    from airflow.models.asset_state_store import AssetStateStoreModel as Store
    from sqlalchemy import func, select

    return session.scalar(select(func.count()).where(Store.key == Kind.VERDICT.value)) or 0


@dataclass(frozen=True)
class DeclaredStream:
    """A stream that a task declares, by the newest parse of its DAG, and whether that DAG is paused."""

    cluster: str
    stream: str
    dag: str
    task: str
    paused: bool


def declared_streams(session: Session, *subject: str) -> tuple[DeclaredStream, ...]:
    """Return the declared streams, or the one of this cluster and name, in one query.

    A stream whose name only the rendered task knows is not among them.
    """
    from airflow.models.asset import AssetModel, TaskOutletAssetReference
    from airflow.models.dag import DagModel
    from sqlalchemy import select

    uri = AssetModel.uri
    rows = session.execute(
        select(uri, TaskOutletAssetReference.dag_id, TaskOutletAssetReference.task_id, DagModel.is_paused)
        .join(TaskOutletAssetReference, TaskOutletAssetReference.asset_id == AssetModel.id)
        .join(DagModel, DagModel.dag_id == TaskOutletAssetReference.dag_id)
        .where(uri == asset_uri(*subject) if subject else uri.startswith(f"{SCHEME}://"), ~DagModel.is_stale)
        .order_by(uri, TaskOutletAssetReference.dag_id)
    )
    return tuple(DeclaredStream(*subject_of(each), dag, task, paused) for each, dag, task, paused in rows)


@dataclass(frozen=True)
class WatchingTask:
    """A task that watches a stream: its state, and whether its DAG is paused."""

    ids: TaskIds
    state: str
    paused: bool


def watchers(session: Session, dags: Collection[str]) -> tuple[WatchingTask, ...]:
    """Return the tasks of these DAGs that watch a stream now, or come back to it by themselves."""
    from airflow.models.dag import DagModel
    from airflow.models.taskinstance import TaskInstance as Task
    from sqlalchemy import select

    columns = Task.dag_id, Task.run_id, Task.task_id, Task.map_index, Task.state, DagModel.is_paused
    rows = session.execute(
        select(*columns)
        .join(DagModel, DagModel.dag_id == Task.dag_id)
        .where(Task.dag_id.in_(dags), Task.state.in_(WATCHES))
    )
    return tuple(
        WatchingTask(TaskIds(dag, run, task, index), state or "", paused)
        for dag, run, task, index, state, paused in rows
    )


_OWN = {Kind.VERDICT.value, Kind.DETAIL.value, Kind.REPORT.value, KEY}


def _stored(uri: str, active: bool, keys: Mapping[str, StoredValue]) -> StoredState:
    verdict = keys.get(Kind.VERDICT)
    return StoredState(
        *subject_of(uri),
        active=active,
        state=StreamState.from_json(verdict.value if verdict else None),
        written=verdict.at if verdict else None,
        detail=_mapping(keys, Kind.DETAIL),
        told=Ledger.from_json(_mapping(keys, KEY)),
        report=_mapping(keys, Kind.REPORT),
        others=dict(_others(keys)),
    )


def _others(keys: Mapping[str, StoredValue]) -> Iterator[tuple[str, StoredValue]]:
    return ((key, written) for key, written in keys.items() if key not in _OWN)


def _mapping(keys: Mapping[str, StoredValue], key: str) -> Mapping[str, Any] | None:
    value = keys[key].value if key in keys else None
    return value if isinstance(value, Mapping) else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class TriggerersLoad:
    """The triggers that have `waited` for a triggerer for longer than a minute, those in all, and who may serve them.

    `capacity` is one triggerer's, by the configuration of the process that asks: a triggerer may have another one.
    """

    waited: int
    triggers: int
    triggerers: int
    capacity: int

    @property
    def words(self) -> str:
        """Return what waits and what to set; empty if nothing waits."""
        if not self.waited:
            return ""
        who = "1 trigger has" if self.waited == 1 else f"{self.waited} triggers have"
        whose = "its task" if self.waited == 1 else "their tasks"
        waits = f"{who} waited for a triggerer for longer than a minute, and nobody watches for {whose}"
        if not self.triggerers:
            return f"{waits}: no triggerer is alive. Start one"
        room = f"{self.triggerers * self.capacity} ({self.triggerers} living, [triggerer] capacity {self.capacity})"
        if self.triggers > self.triggerers * self.capacity:
            needed = -(-self.triggers // self.triggerers)
            more = f"Set [triggerer] capacity to {needed} or more for each triggerer, or start another one"
            return f"{waits}: there are {self.triggers}, and room for {room}. {more}"
        see = "See whether each triggerer has this capacity, and serves the queue and the team of these triggers"
        return f"{waits}: there are {self.triggers}, and room for {room}. {see}"


def triggerers_load(session: Session, now: datetime) -> TriggerersLoad:
    """Return how the triggerers are loaded, in two queries."""
    from airflow.jobs.job import Job
    from airflow.models.trigger import Trigger
    from sqlalchemy import case, func, or_, select

    threshold = timedelta(seconds=conf.getfloat("triggerer", "triggerer_health_check_threshold"))
    unended = select(Job.id).where(Job.job_type == "TriggererJob", Job.end_date.is_(None))
    alive = unended.where(Job.latest_heartbeat > now - threshold)
    triggerers = session.scalar(select(func.count()).select_from(alive.subquery())) or 0
    # One whose triggerer stopped a moment ago is taken by the next one.
    lately = unended.where(Job.latest_heartbeat > now - max(threshold, _PATIENCE))
    unserved = or_(Trigger.triggerer_id.is_(None), Trigger.triggerer_id.not_in(lately))
    waits = case((unserved & (Trigger.created_date < now - _PATIENCE), 1), else_=0)
    triggers, waited = session.execute(select(func.count(), func.sum(waits)).select_from(Trigger)).one()
    return TriggerersLoad(waited or 0, triggers, triggerers, conf.getint("triggerer", "capacity"))
