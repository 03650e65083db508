"""Who may read which stored rows: what Airflow says of DAGs decides about streams, clusters and what tasks found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

import pytest
from airflow.api_fastapi.app import create_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from sqlalchemy.orm import Session

from airflow_kstream.model.streams.event import EventKind, LastingEvent, Ledger
from airflow_kstream.model.streams.stream_state import StreamState, TaskIds
from airflow_kstream.plugin.readable import Readable, may_run, readable
from airflow_kstream.states.reading import DeclaredStream, StoredState, StoredValue

NOW = datetime(2026, 3, 1, tzinfo=UTC)
AWAY = LastingEvent(EventKind.UNREACHABLE, NOW, "connection refused")
ORDERS, SALES = "stream-east.orders", "stream-west.sales"


class Rights(SimpleAuthManager):
    """An auth manager with rights on single DAGs: who may read which, and who may run them, too."""

    read: ClassVar[dict[str, set[str]]] = {}
    run: ClassVar[dict[str, set[str]]] = {}

    def get_authorized_dag_ids(self, *, user: Any, **_: Any) -> set[str]:
        return self.read[user]

    def is_authorized_dag(self, *, details: DagDetails | None = None, user: Any, **_: Any) -> bool:
        return details is not None and details.id in self.run.get(user, set())


@pytest.fixture(autouse=True)
def rights(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Rights]]:
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", f"{__name__}.Rights")
    purge_cached_app()
    create_auth_manager()
    yield Rights
    Rights.read, Rights.run = {}, {}
    purge_cached_app()


def stream(cluster: str, name: str, dag: str) -> StoredState:
    state = StreamState("running", "nothing is due", 1, None, NOW, by=TaskIds(dag, "run", "keep"))
    return StoredState(cluster, name, True, state, NOW, None, Ledger())


def cluster(name: str) -> StoredState:
    """Return what a trigger told of the cluster, and what tasks over its files and tickets found."""
    found = {f"{kind} /a": StoredValue({}, NOW, f"{kind}-{name}") for kind in ("leases", "tickets")}
    return StoredState(name, "", True, None, None, None, Ledger({AWAY.key: AWAY}, 1), others=found)


STORED = (
    cluster("east"),
    stream("east", "orders", ORDERS),
    cluster("west"),
    stream("west", "sales", SALES),
    # A later version stored it, or its task is unknown.
    replace(stream("west", "odd", ""), state=None),
)


def read(dags: set[str]) -> Readable:
    Rights.read = {"ann": dags}
    return readable(cast("Session", None), "ann", STORED)


DECLARED = (
    DeclaredStream("east", "orders", ORDERS, "keep", paused=True),
    DeclaredStream("east", "new", "stream-east.new", "keep", paused=True),
    DeclaredStream("east", "new", "tests", "keep", paused=False),
    DeclaredStream("west", "odd", "stream-west.odd", "keep", paused=False),
    DeclaredStream("west", "sales", "tests", "keep", paused=False),
    DeclaredStream("west", "", "tests", "look", paused=False),
)


@pytest.mark.parametrize(
    ("dags", "unseen"),
    [
        (set(), []),
        ({ORDERS, SALES, "stream-west.odd"}, [("odd", "stream-west.odd")]),
        ({"stream-east.new"}, [("new", "stream-east.new")]),
        ({"stream-east.new", "tests"}, [("new", "stream-east.new"), ("new", "tests")]),
        # Its rows are another DAG's: who may not read that one learns nothing of the stream.
        ({"tests"}, [("new", "tests")]),
    ],
)
def test_a_declared_stream_is_unseen_until_a_look_at_it_is_stored(
    dags: set[str], unseen: list[tuple[str, str]]
) -> None:
    Rights.read = {"ann": dags}
    mine = readable(cast("Session", None), "ann", STORED, DECLARED)
    assert [(each.stream, each.dag) for each in mine.unseen] == unseen


@pytest.mark.parametrize(
    ("dags", "streams", "clusters"),
    [
        (set(), [], {}),
        ({ORDERS}, ["orders"], {}),
        ({SALES, ORDERS}, ["orders", "sales"], {}),
        ({"control-east"}, [], {"east": (1, set())}),
        ({"fleet-west", SALES}, ["sales"], {"west": (1, set())}),
        ({"undeclared-west"}, [], {"west": (1, set())}),
        ({"leases-east"}, [], {"east": (0, {"leases /a"})}),
        ({"leases-east", "tickets-west"}, [], {"east": (0, {"leases /a"}), "west": (0, {"tickets /a"})}),
        ({"control-east", "tickets-east"}, [], {"east": (1, {"tickets /a"})}),
        ({"doctor-east", "control-north"}, [], {}),
    ],
)
def test_the_dags_that_somebody_may_read_decide_what_they_see(
    dags: set[str], streams: list[str], clusters: dict[str, tuple[int, set[str]]]
) -> None:
    """Of a cluster: what triggers told of it, and what each of its tasks found."""
    mine = read(dags)
    assert [each.stream for each in mine.streams] == streams
    assert {each.cluster: (len(each.told.lasting), set(each.others)) for each in mine.clusters} == clusters
    assert mine.dags == dags


def test_a_row_that_names_no_dag_hides_no_declared_stream() -> None:
    Rights.read = {"ann": {ORDERS}}
    mine = readable(cast("Session", None), "ann", [stream("east", "orders", "")], DECLARED)
    assert [each.stream for each in mine.unseen] == ["orders"]


def test_to_read_a_dag_is_not_to_run_it() -> None:
    Rights.run = {"ann": {"control-east"}}
    assert may_run("ann", "control-east")
    assert not may_run("ann", "control-west")
    assert not may_run("eve", "control-east")
