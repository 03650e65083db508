"""Rows of a fleet in an Airflow's database, as triggers and tasks write them: for pages, without a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.models.asset import AssetActive, AssetModel
from airflow.models.asset_state_store import AssetStateStoreModel
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from sqlalchemy import create_engine, event, insert
from sqlalchemy.orm import Session

from airflow_kstream.assets import asset_uri
from airflow_kstream.dags.ids import control_id, fleet_id, stream_id
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.model.streams.event import EventKind, LastingEvent, Ledger
from airflow_kstream.model.streams.generation import (
    ClaimFacts,
    Desired,
    DesiredState,
    GenerationFacts,
    Progress,
    TokenFacts,
)
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.stream_state import StoredProgress, StreamState, TaskIds
from airflow_kstream.states.values import detail_row, row_of
from tests.simulated.values import changed

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
RUN = "scheduled__2026-11-01T00:00:00+00:00"
BATCHES = tuple((number, 2.0 + (number * 7 % 5) * 0.4) for number in range(120, 180))


@dataclass(frozen=True)
class Stored:
    """A stream as it was last seen. `task` is the state of the task that watches it, empty without one."""

    cluster: str
    name: str
    state: StreamState
    facts: GenerationFacts
    more: Mapping[str, Any] = field(default_factory=dict)
    told: Ledger = field(default_factory=Ledger)
    task: str = "deferred"
    report: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dag(self) -> str:
        return stream_id(self.cluster, self.name)


def healthy(cluster: str, name: str, generation: int = 3) -> Stored:
    """Return a stream that runs on the tokens of its launch, two days old."""
    issued = NOW - 2 * DAY
    ends = Horizon(HorizonReason.TOKEN_MAX_LIFETIME, issued + 7 * DAY, issued + 5 * DAY, issued + 6.5 * DAY)
    progress = Progress(f"/data/{name}/checkpoint", 179, 179, NOW - timedelta(seconds=4), None, 10 * HOUR / 60, BATCHES)
    desired = Desired(DesiredState.RUNNING, 0, "", None, "")
    facts = GenerationFacts(
        generation=generation,
        claim=ClaimFacts(
            claimed=issued, claimed_by="airflow@worker-3", reason="the token's horizon was near", adopted=False
        ),
        tokens=TokenFacts(credentials="ticket", issued=issued, renew_interval=DAY, max_lifetime=7 * DAY),
        horizon=ends,
        desired=desired,
        progress=(progress,),
    )
    state = StreamState(
        state="running",
        verdict="it runs and nothing is due",
        generation=generation,
        application=f"application_1763000000000_{abs(hash(name)) % 9000 + 1000}",
        seen=NOW - timedelta(seconds=20),
        progress=StoredProgress(
            pulse="HEALTHY", committed=progress.last_commit, batches=tuple(seconds for _, seconds in BATCHES[-20:])
        ),
        horizon=ends.hard,
        plan=ends.plan,
        desired=desired,
        by=TaskIds(stream_id(cluster, name), RUN, "keep"),
    )
    return Stored(cluster, name, state, facts, more={"pulse_why": "batch 179 is committed"})


def troubled(it: Stored, kind: EventKind, why: str, since: datetime = NOW - HOUR, **state: Any) -> Stored:
    """Return the stream with an event that lasts."""
    lasting = LastingEvent(kind, since, why)
    return replace(it, told=Ledger({lasting.key: lasting}, 1), state=changed(it.state, **state))


def keys_of(it: Stored) -> dict[str, Any]:
    detail = {"facts": it.facts.to_json(), **it.more}
    rows = {"verdict": row_of(it.state), "detail": detail_row(it.state, detail), "told": it.told.to_json()}
    return rows | ({"report": it.report} if it.report else {}) | dict(it.others)


@contextmanager
def database(home: AirflowHome) -> Iterator[Session]:
    """Open the database of this Airflow."""
    engine = create_engine(f"sqlite:///{home.root}/airflow.db?timeout=30")
    # A task here has no serialized DAG.
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys=OFF"))
    with Session(engine) as session:
        yield session
        session.commit()
    engine.dispose()


def store(home: AirflowHome, fleet: Sequence[Stored], clusters: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Write the fleet with its DAGs and their tasks. `clusters` are further rows of clusters."""
    with database(home) as session:
        if session.get(DagBundleModel, "dags") is None:
            session.add(DagBundleModel(name="dags"))
        names = {it.cluster for it in fleet}
        dags = {it.dag for it in fleet} | {id_of(name) for name in names for id_of in (control_id, fleet_id)}
        dags |= {dag for rows in (clusters or {}).values() for dag in rows}
        for dag in sorted(dags):
            if session.get(DagModel, dag) is None:
                session.add(_dag(dag))
        for it in fleet:
            _store_keys(session, asset_uri(it.cluster, it.name), keys_of(it), "")
            if it.task:
                _store_task(session, it.state.by, it.task)
        for cluster, rows in (clusters or {}).items():
            for dag, keys in rows.items():
                _store_keys(session, asset_uri(cluster), keys, dag)


def _dag(dag_id: str) -> DagModel:
    dag = DagModel(dag_id=dag_id, bundle_name="dags", is_stale=False, is_paused=False)  # type: ignore[no-untyped-call]
    dag.max_active_tasks, dag.max_consecutive_failed_dag_runs, dag.has_task_concurrency_limits = 16, 0, False
    return dag


def _store_keys(session: Session, uri: str, keys: Mapping[str, Any], by: str) -> None:
    asset = session.query(AssetModel).filter_by(uri=uri).one_or_none()
    if asset is None:
        asset = AssetModel(name=uri, uri=uri, group="asset", extra={})
        session.add_all([asset, AssetActive(name=uri, uri=uri)])
        session.flush()
    writer = {"last_updated_by_kind": "task", "last_updated_by_dag_id": by} if by else {}
    session.add_all(
        AssetStateStoreModel(asset_id=asset.id, key=key, value=json.dumps(value), updated_at=NOW, **writer)
        for key, value in keys.items()
    )


def _store_task(session: Session, ids: TaskIds, state: str) -> None:
    run = {"dag_id": ids.dag, "run_id": ids.run, "run_type": "scheduled", "state": "running", "run_after": NOW}
    session.execute(insert(DagRun.__table__).values(**run, logical_date=NOW - 9 * DAY))
    task = {"dag_id": ids.dag, "run_id": ids.run, "task_id": ids.task, "map_index": ids.map_index}
    session.execute(insert(TaskInstance.__table__).values(**task, state=state, pool="default_pool"))
