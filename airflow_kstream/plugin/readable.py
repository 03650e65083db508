"""What a user may read of the stored states: rows of streams whose DAG they may read, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from sqlalchemy.orm import Session

from airflow_kstream.dags.ids import control_id, fleet_id, stream_id, undeclared_id
from airflow_kstream.model.streams.event import Ledger
from airflow_kstream.model.streams.stream_state import TaskIds
from airflow_kstream.states.reading import WATCHES, DeclaredStream, StoredState, WatchingTask, watchers
from airflow_kstream.views.pages.fleet import StoredStream, UnseenStream

# The DAGs of a folder, each of which concerns all streams of its cluster.
_OF_A_CLUSTER = (control_id, fleet_id, undeclared_id)


@dataclass(frozen=True)
class Readable:
    """The stored states that one user may read. `clusters` are the rows of clusters, `dags` the ids of their DAGs.

    `unseen` are declared streams without a stored look, each as often as a DAG declares it.
    """

    streams: tuple[StoredState, ...]
    clusters: tuple[StoredState, ...]
    dags: frozenset[str]
    unseen: tuple[DeclaredStream, ...] = ()


def readable(
    session: Session, user: Any, stored: Sequence[StoredState], declared: Sequence[DeclaredStream] = ()
) -> Readable:
    """Return what this user may read of what is stored and declared.

    A stream's row belongs to the DAG whose task watches it; one that names none is shown to nobody. Before its first
    look, the stream belongs to the DAG that declares it. A row of a cluster that a task wrote belongs to its DAG; what
    triggers tell of a cluster is for those who may read a DAG of its folder.
    """
    dags = frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET", session=session))
    streams = tuple(each for each in stored if each.stream and each.state and each.state.by.dag in dags)
    return Readable(streams, tuple(_of_clusters(stored, dags)), dags, tuple(_unseen(stored, declared, dags)))


def _unseen(
    stored: Sequence[StoredState], declared: Sequence[DeclaredStream], dags: frozenset[str]
) -> Iterator[DeclaredStream]:
    # Nobody sees a row that names no DAG: it hides nothing.
    known = {(each.cluster, each.stream) for each in stored if each.state and each.state.by.dag}
    return (each for each in declared if each.dag in dags and each.stream and _subject(each) not in known)


def _subject(it: DeclaredStream) -> tuple[str, str]:
    return it.cluster, it.stream


def _of_clusters(stored: Sequence[StoredState], dags: frozenset[str]) -> Iterator[StoredState]:
    for each in stored:
        if each.stream:
            continue
        others = {key: written for key, written in each.others.items() if written.by in dags}
        if any(id_of(each.cluster) in dags for id_of in _OF_A_CLUSTER):
            yield replace(each, others=others)
        elif others:
            yield replace(each, told=Ledger(), others=others)


def seen_by(session: Session, streams: Sequence[StoredState]) -> list[StoredStream]:
    """Return what is known of each stream, with the task that watches it."""
    tasks = {watcher.ids: watcher for watcher in watchers(session, _dags(streams))}
    return [_seen(each, tasks.get(each.state.by)) for each in streams if each.state]


def unseen_by(session: Session, unseen: Sequence[DeclaredStream]) -> list[UnseenStream]:
    """Return the declared streams, each once, with the task that watches it or is about to."""
    dags = {each.dag for each in unseen}
    found = watchers(session, dags) if dags else ()
    # Of two runs, that one whose task is nearer to a look: it stands last, so it is kept.
    nearest = sorted(found, key=lambda watcher: WATCHES.index(watcher.state), reverse=True)
    tasks = {(watcher.ids.dag, watcher.ids.task): watcher for watcher in nearest}
    return [_declared(each, tasks) for _, each in groupby(sorted(unseen, key=_subject), _subject)]


def _declared(declarers: Iterable[DeclaredStream], tasks: Mapping[tuple[str, str], WatchingTask]) -> UnseenStream:
    """Return the stream of these declarers: by the one that watches it, else by its own DAG, else by one that runs."""
    it = min(declarers, key=lambda each: ((each.dag, each.task) not in tasks, not _is_own(each), each.paused, each.dag))
    watcher = tasks.get((it.dag, it.task))
    by = watcher.ids if watcher else TaskIds(it.dag, task=it.task)
    return UnseenStream(it.cluster, it.stream, by, watcher.state if watcher else "", it.paused, _is_own(it))


def _is_own(it: DeclaredStream) -> bool:
    """Return whether the DAG has the id of the stream's own: anybody can name an asset in theirs."""
    return it.dag == stream_id(it.cluster, it.stream)


def _dags(streams: Sequence[StoredState]) -> set[str]:
    return {each.state.by.dag for each in streams if each.state}


def _seen(stored: StoredState, watcher: WatchingTask | None) -> StoredStream:
    assert stored.state is not None
    return StoredStream(
        stored.cluster,
        stored.stream,
        stored.state,
        stored.told,
        stored.detail or {},
        stored.report or {},
        task=watcher.state if watcher else "",
        paused=watcher.paused if watcher else False,
    )


def may_run(user: Any, dag: str) -> bool:
    """Return whether the user may start a run of this DAG; the run itself asks Airflow again."""
    details, entity = DagDetails(id=dag), DagAccessEntity.RUN
    return get_auth_manager().is_authorized_dag(method="POST", access_entity=entity, details=details, user=user)
