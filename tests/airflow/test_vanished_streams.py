"""A stream whose file was removed: looked after from its claim, loudly, until a person stops it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.generation import ALL_STREAMS_TAG, DesiredState
from airflow_kstream.model.stream import ProxyUserCredentials
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator
from airflow_kstream.supervise.streams.desired import set_desired
from tests.airflow import notifiers
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import ONE_WEEK

UNDECLARED = "kstream.simulated.cluster.undeclared_streams"


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    fleet.declare("orders", "sales", "by-hand")
    return fleet


class Runs:
    """The runs of the task that looks after them, and the XCom of the last one."""

    def __init__(self) -> None:
        self.known: list[str] | None = None

    def run(self, *declared: str) -> list[str]:
        task = VanishedStreamsOperator(task_id="look_after", declared=declared, cluster_conn_id=CONNECTION)
        return task.execute(cast("Context", {"ti": self}))

    def xcom_pull(self, *, task_ids: str, key: str, map_indexes: int, include_prior_dates: bool) -> Any:
        assert (task_ids, key, map_indexes, include_prior_dates) == ("look_after", "known", -1, True)
        return self.known

    def xcom_push(self, key: str, value: list[str]) -> None:
        assert key == "known"
        self.known = value


def test_a_stream_whose_file_is_gone_is_restarted_at_its_horizon(fleet: Fleet) -> None:
    runs = Runs()
    assert runs.run("orders", "sales") == []
    assert runs.run("sales") == ["orders"]
    assert fleet.gauges[UNDECLARED] == [0, 1]
    assert fleet.told("orders is declared no longer and still runs") == 1
    assert len(fleet.generations("orders")) == 1
    fleet.clock.ahead += 0.8 * ONE_WEEK
    assert runs.run("sales") == ["orders"]
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    # Both are watched elsewhere: by their own DAG, and by whoever submitted it.
    assert len(fleet.generations("sales")) == len(fleet.generations("by-hand")) == 1


def test_a_stopped_stream_is_forgotten(fleet: Fleet) -> None:
    runs = Runs()
    runs.run("orders", "sales")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)
    set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "its file is gone")
    assert runs.run("sales") == []
    assert runs.known == ["sales"]


def test_a_stream_that_was_never_started_is_forgotten(fleet: Fleet) -> None:
    """Its DAG was paused for as long as its file was there."""
    runs = Runs()
    runs.run("orders", "sales", "draft")
    assert runs.run("orders", "sales") == []
    assert runs.known == ["orders", "sales"]


def test_a_stream_that_ended_fails_one_run_and_is_not_started_again(fleet: Fleet) -> None:
    runs = Runs()
    runs.run("orders", "sales")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)
    with pytest.raises(AirflowFailException, match="orders is declared no longer, and application_1_0001 ended"):
        runs.run("sales")
    assert runs.run("sales") == []
    assert len(fleet.generations("orders")) == 1


def test_servers_that_are_away_make_it_forget_nothing(fleet: Fleet) -> None:
    runs = Runs()
    runs.run("orders", "sales")
    fleet.yarn.away = True
    assert runs.run("sales") == ["orders"]
    assert runs.known == ["orders", "sales"]
    assert fleet.told("orders is declared no longer and is not seen: ") == 1


@pytest.mark.parametrize("lost", ["its asset's state", "the newest XCom"])
def test_what_it_knows_is_kept_in_two_places(fleet: Fleet, lost: str) -> None:
    runs = Runs()
    runs.run("orders", "sales")
    if lost == "the newest XCom":
        runs.known = None
    else:
        fleet.store.clear()
    assert runs.run("sales") == ["orders"]


@pytest.fixture
def blind_watcher(fleet: Fleet) -> None:
    """A watcher that may no longer list the applications of all streams; each stream's own user lists its own."""

    def refuse(request: str, tag: str) -> None:
        if tag == ALL_STREAMS_TAG:
            raise Denied("not allowed", tried=request)

    fleet.yarn.at_request = refuse


@pytest.mark.usefixtures("blind_watcher")
def test_one_that_its_watcher_does_not_see_is_restarted_by_its_own_user(fleet: Fleet) -> None:
    runs = Runs()
    runs.run("orders", "sales")
    assert runs.run() == ["orders", "sales"]
    assert len(fleet.generations("orders")) == 1
    fleet.clock.ahead += 0.8 * ONE_WEEK
    assert runs.run() == ["orders", "sales"]
    for name in ("orders", "sales"):
        assert [number for number, _ in fleet.generations(name)] == [1, 2]


@pytest.mark.usefixtures("blind_watcher")
def test_servers_that_are_away_are_asked_once(fleet: Fleet) -> None:
    runs = Runs()
    runs.run("orders", "sales")
    fleet.yarn.away = True
    assert runs.run() == ["orders", "sales"]
    assert fleet.told("is not seen with its own rights either") == 1


@pytest.mark.usefixtures("blind_watcher")
def test_one_that_nobody_may_see_fails_its_run(fleet: Fleet) -> None:
    fleet.declare("theirs", credentials=ProxyUserCredentials("etl"))
    runs = Runs()
    runs.run("orders", "theirs")
    fleet.refusal = Denied("etl may not be impersonated", tried="list applications")
    with pytest.raises(AirflowFailException, match=r"^theirs .*, and nobody sees it: .*impersonated"):
        runs.run()
    assert runs.known == ["orders", "theirs"]


@pytest.mark.parametrize("dead", [False, True])
def test_a_held_stream_is_called_held_whether_it_runs_or_not(fleet: Fleet, *, dead: bool) -> None:
    runs = Runs()
    runs.run("orders", "sales")
    for _, app in fleet.generations("orders") if dead else ():
        fleet.yarn.end(app.id)
    set_desired(fleet.run_of("orders"), DesiredState.HELD, "its file moves")
    assert runs.run("sales") == ["orders"]
    assert fleet.told("orders is declared no longer and is held: ") == 1


def test_somebody_hears_once_of_a_stream_that_runs_undeclared(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.Recording")
    notifiers.forget()
    runs = Runs()
    for declared in (["orders", "sales"], ["sales"], ["sales"], ["orders", "sales"]):
        runs.run(*declared)

    begin, end = (text for _, text in notifiers.told)
    assert begin.startswith("simulated: a stream runs and is declared no longer (orders): ")
    assert end.startswith("simulated: the stream no longer runs undeclared (orders), after ")


def test_a_notifier_that_hangs_or_raises_fails_no_task(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    # A worker waits in a real thread, for half a minute.
    monkeypatch.setattr("airflow_kstream.notifications.tasks.DEADLINE", 0.1)
    for name in ("Hanging", "Raising"):
        notifiers.forget()
        fleet.store.clear()
        monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.{name}")
        runs = Runs()
        runs.run("orders", "sales")
        assert runs.run("sales") == ["orders"]
        assert runs.run("sales") == ["orders"]
        assert len(notifiers.attempts) == 1
        notifiers.released.set()
    assert fleet.told("A notification is dropped") == 2
