"""A stream whose file was removed: looked after from its claim, loudly, until a person stops it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.model.generation import DesiredState
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator
from airflow_kstream.supervise.streams.desired import set_desired
from tests.airflow.fleet import CONNECTION, Fleet
from tests.unit.streams.simulated_servers import ONE_WEEK

UNDECLARED = "kstream.simulated.cluster.undeclared_streams"


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Fleet]:
    fleet = Fleet(monkeypatch, caplog)
    fleet.declare("orders", "sales", "by-hand")
    yield fleet
    fleet.loop.close()


class Runs:
    """The runs of the task that looks after them, and the XCom of the last one."""

    def __init__(self) -> None:
        self.known: list[str] | None = None

    def run(self, *declared: str) -> list[str]:
        task = VanishedStreamsOperator(task_id="look_after", declared=declared, cluster_conn_id=CONNECTION)
        return task.execute(cast("Context", {"ti": self}))

    def xcom_pull(self, *, task_ids: str, key: str, include_prior_dates: bool) -> Any:
        assert (task_ids, key, include_prior_dates) == ("look_after", "known", True)
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
