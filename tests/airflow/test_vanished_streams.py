"""A stream whose file was removed: looked after from its claim, loudly, until a person stops it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.assets import asset_uri
from airflow_kstream.dags.ids import stream_id
from airflow_kstream.model.errors import Denied, Unavailable
from airflow_kstream.model.streams.declarations import DeclarationFolder, KeptKind, written_streams
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, DesiredState
from airflow_kstream.model.streams.stream import ProxyUserCredentials
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.airflow import notifiers
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import CLUSTER, ONE_WEEK

UNDECLARED = "kstream.simulated.cluster.undeclared_streams"


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    fleet.declare("orders", "sales", "by-hand")
    return fleet


PLACE = DeclarationFolder("", CONNECTION)
OWN = f"{CLUSTER.state_dir}/declared.streamer"
FILE = f"{OWN}/{PLACE.file_name(KeptKind.STREAMS)}"
ROW = (asset_uri(CONNECTION), "known_streams")


class Runs:
    """The runs of the task that looks after them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @property
    def known(self) -> list[str]:
        return sorted(self._fleet.session.declarations.streams(PLACE))

    def run(self, *declared: str, prefix: str = "") -> list[str]:
        task = VanishedStreamsOperator(
            task_id="look_after",
            declared=declared,
            cluster_conn_id=CONNECTION,
            prefix=prefix,
            dag_of=partial(stream_id, CONNECTION),
        )
        return task.execute(cast("Context", {}))


def test_a_stream_whose_file_is_gone_is_restarted_at_its_horizon(fleet: Fleet) -> None:
    runs = Runs(fleet)
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
    runs = Runs(fleet)
    runs.run("orders", "sales")
    stop(fleet, "orders")
    assert runs.run("sales") == []
    assert runs.known == ["sales"]


def stop(fleet: Fleet, name: str) -> None:
    for _, app in fleet.generations(name):
        fleet.yarn.end(app.id)
    set_desired(fleet.run_of(name), DesiredState.STOPPED, "its file is gone")


def test_a_stream_that_was_never_started_is_forgotten(fleet: Fleet) -> None:
    """Its DAG was paused for as long as its file was there."""
    runs = Runs(fleet)
    runs.run("orders", "sales", "draft")
    assert runs.run("orders", "sales") == []
    assert runs.known == ["orders", "sales"]


def test_a_stream_that_ended_fails_one_run_and_is_not_started_again(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)
    with pytest.raises(AirflowFailException, match="orders is declared no longer, and application_1_0001 ended"):
        runs.run("sales")
    assert runs.run("sales") == []
    assert len(fleet.generations("orders")) == 1


def test_servers_that_are_away_make_it_forget_nothing(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    fleet.yarn.away = True
    assert runs.run("sales") == ["orders"]
    assert runs.known == ["orders", "sales"]
    assert fleet.told("orders is declared no longer and is not seen: ") == 1


def test_namenodes_that_are_away_for_an_hour_make_it_forget_nothing(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")

    def refuse(request: str, path: str) -> None:
        raise Unavailable("connection refused", tried=request, server="http://nn:9870")

    answers, fleet.hdfs.at_request = fleet.hdfs.at_request, refuse
    for _ in range(12):
        with pytest.raises(Unavailable):
            runs.run("sales")
    fleet.hdfs.at_request = answers
    assert runs.run("sales") == ["orders"]
    assert runs.known == ["orders", "sales"]


def test_a_look_that_fails_forgets_nobody(fleet: Fleet) -> None:
    """What was declared since is known all the same."""
    runs = Runs(fleet)
    runs.run("orders")

    def fail(request: str, tag: str) -> None:
        raise RuntimeError("a defect")

    answers, fleet.yarn.at_request = fleet.yarn.at_request, fail
    with pytest.raises(AirflowFailException, match="a defect"):
        runs.run("sales")
    fleet.yarn.at_request = answers
    assert runs.run("sales") == ["orders"]
    assert runs.known == ["orders", "sales"]


def test_while_nothing_changes_it_writes_nothing(fleet: Fleet) -> None:
    runs = Runs(fleet)
    writes: list[str] = []
    runs.run("orders", "sales")
    fleet.at_tasks_write = writes.append
    fleet.hdfs.at_request = lambda request, path: writes.append(path) if request in {"write", "rename"} else None
    for _ in range(5):
        runs.run("orders", "sales")
    assert [path for path in writes if "told" not in path] == []


FORGED_ROWS: list[Any] = [
    ["by-hand"],
    ["by-hand", "orders", "sales"],
    [],
    None,
    "by-hand",
    {"by-hand": 1},
    [None, 7, ["by-hand"], "../by-hand", "by-hand\nWARNING all is well", "a" * 100_000],
    [f"s{number}" for number in range(100_000)],
    float("inf"),
]


@pytest.mark.parametrize("row", FORGED_ROWS, ids=range(len(FORGED_ROWS)))
def test_a_row_that_somebody_wrote_starts_and_restarts_nothing(fleet: Fleet, row: object) -> None:
    """By-hand is due for a restart, and nobody's folder declares it."""
    runs = Runs(fleet)
    runs.run("sales", "orders")
    fleet.clock.ahead += 0.8 * ONE_WEEK
    fleet.store[ROW] = row
    assert runs.run("sales") == ["orders"]
    assert runs.known == ["orders", "sales"]
    assert [number for number, _ in fleet.generations("by-hand")] == [1]
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    for _, app in fleet.generations("by-hand"):
        fleet.yarn.end(app.id)
    assert runs.run("sales") == ["orders"]
    assert len(fleet.generations("by-hand")) == 1


def test_a_name_that_only_the_store_has_is_listed_for_a_person(fleet: Fleet) -> None:
    """Until its file is back. As where the state_dir was lost."""
    runs = Runs(fleet)
    runs.run("orders", "sales")
    fleet.hdfs.delete(FILE)
    assert runs.run("sales") == []
    assert runs.run("sales") == []
    assert fleet.told("Only Airflow's store has orders, so nothing is done about them") == 2
    assert fleet.told("put its file back, and look at it with `kstream streams status NAME`") == 2
    assert fleet.store[ROW] == ["orders", "sales"]
    runs.run("orders", "sales")
    assert runs.run("sales") == ["orders"]
    assert fleet.told("Only Airflow's store has orders") == 2


def test_what_a_stranger_keeps_is_looked_after_by_nobody(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("sales")
    fleet.hdfs.modes |= {CLUSTER.state_dir: "1777", OWN: "777"}
    text = written_streams(PLACE, ["by-hand", "orders"], "streamer@EXAMPLE.COM")
    with fleet.hdfs.as_user("mallory"):
        for folder in ("declared.mallory", "declared.streamer.2"):
            fleet.hdfs.make_folder(f"{CLUSTER.state_dir}/{folder}", "755")
            fleet.hdfs.write(f"{CLUSTER.state_dir}/{folder}/{FILE.rpartition('/')[2]}", text)
        fleet.hdfs.delete(FILE)
        fleet.hdfs.write(FILE, text)
    assert runs.known == []
    assert runs.run("sales") == []


def test_a_new_principal_of_the_connection_takes_over_what_its_former_one_kept(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    fleet.hdfs.write(f"{CLUSTER.state_dir}/supervisors", "backup\n")
    fleet.hdfs.modes[CLUSTER.state_dir] = "1777"
    with fleet.hdfs.as_user("backup"):
        assert runs.run("sales") == ["orders"]
        stop(fleet, "orders")
        assert runs.run("sales") == []
        assert runs.known == ["sales"], "what its former one kept counts no longer"


def test_another_installation_looks_after_its_own(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    # The name of an installation is a setting of Airflow's.
    monkeypatch.setenv("AIRFLOW__KSTREAM__INSTALLATION", "test")
    assert runs.run("by-hand") == []
    assert runs.run() == ["by-hand"]


@pytest.fixture
def blind_watcher(fleet: Fleet) -> None:
    """A watcher that may no longer list the applications of all streams; each stream's own user lists its own."""

    def refuse(request: str, tag: str) -> None:
        if tag == ALL_STREAMS_TAG:
            raise Denied("not allowed", tried=request)

    fleet.yarn.at_request = refuse


@pytest.mark.usefixtures("blind_watcher")
def test_one_that_its_watcher_does_not_see_is_restarted_by_its_own_user(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    assert runs.run() == ["orders", "sales"]
    assert len(fleet.generations("orders")) == 1
    fleet.clock.ahead += 0.8 * ONE_WEEK
    assert runs.run() == ["orders", "sales"]
    for name in ("orders", "sales"):
        assert [number for number, _ in fleet.generations(name)] == [1, 2]


def test_a_defect_at_one_stream_costs_no_other_its_restart(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    answers = fleet.yarn.at_request

    def fail(request: str, tag: str) -> None:
        if "orders" in tag:
            raise RuntimeError("a defect")
        answers(request, tag)

    fleet.clock.ahead += 0.8 * ONE_WEEK
    fleet.yarn.at_request = fail
    with pytest.raises(AirflowFailException, match=r"^orders .*, and what is due can't be done: .*a defect"):
        runs.run()
    assert [number for number, _ in fleet.generations("sales")] == [1, 2]


@pytest.mark.usefixtures("blind_watcher")
def test_servers_that_are_away_are_asked_once(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    fleet.yarn.away = True
    assert runs.run() == ["orders", "sales"]
    assert fleet.told("is not seen with its own rights either") == 1


@pytest.mark.usefixtures("blind_watcher")
def test_one_that_nobody_may_see_fails_its_run(fleet: Fleet) -> None:
    fleet.declare("theirs", credentials=ProxyUserCredentials("etl"))
    runs = Runs(fleet)
    runs.run("orders", "theirs")
    fleet.refusal = Denied("etl may not be impersonated", tried="list applications")
    with pytest.raises(AirflowFailException, match=r"^theirs .*, and nobody sees it: .*impersonated"):
        runs.run()
    assert runs.known == ["orders", "theirs"]


@pytest.mark.parametrize("dead", [False, True])
def test_a_held_stream_is_called_held_whether_it_runs_or_not(fleet: Fleet, *, dead: bool) -> None:
    runs = Runs(fleet)
    runs.run("orders", "sales")
    for _, app in fleet.generations("orders") if dead else ():
        fleet.yarn.end(app.id)
    set_desired(fleet.run_of("orders"), DesiredState.HELD, "its file moves")
    assert runs.run("sales") == ["orders"]
    assert fleet.told("orders is declared no longer and is held: ") == 1


def test_somebody_hears_once_of_a_stream_that_runs_undeclared(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.Recording")
    notifiers.forget()
    runs = Runs(fleet)
    for declared in (["orders", "sales"], ["sales"], ["sales"], ["orders", "sales"]):
        runs.run(*declared)

    begin, end = (text for _, text in notifiers.told)
    assert begin.startswith("simulated: a stream runs and is declared no longer (orders): ")
    assert end.startswith("simulated: the stream no longer runs undeclared (orders), after ")


def test_a_notifier_that_hangs_or_raises_fails_no_task(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    # A worker waits in a real thread, for half a minute.
    monkeypatch.setattr("airflow_kstream.notifications.tasks.DEADLINE", 1.0)
    # One that hangs may have told it, and one that raised did not.
    for name, attempts in {"Hanging": 1, "Raising": 2}.items():
        notifiers.forget()
        fleet.store.clear()
        fleet.hdfs.delete(f"{CLUSTER.state_dir}/told.streamer", recursive=True)
        monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.{name}")
        runs = Runs(fleet)
        runs.run("orders", "sales")
        assert runs.run("sales") == ["orders"]
        assert runs.run("sales") == ["orders"]
        assert len(notifiers.attempts) == attempts
        notifiers.released.set()
    assert (fleet.told("A notification is dropped"), fleet.told("the next run tells it")) == (1, 2)


@pytest.mark.usefixtures("recording")
def test_streams_whose_dags_got_a_prefix_are_looked_after_until_the_new_ones_are_on(fleet: Fleet) -> None:
    """Three streams, watched by DAGs of yesterday: Airflow looks no longer at their deferred tasks."""
    fleet.declare("web")
    names, runs = ("orders", "sales", "web"), Runs(fleet)
    assert runs.run(*names) == []
    assert fleet.variables == {}
    assert runs.run(*names, prefix="etl-") == ["orders", "sales", "web"]
    [shown] = fleet.variables.values()
    assert json.loads(shown) == {name: f"stream-simulated.{name}" for name in names}
    [told] = {text for _, text in notifiers.told}
    assert "nobody watches a stream (orders): stream-simulated.orders, which watched it, is gone" in told
    assert "And so for 2 more: sales, web" in told
    assert "unpause its DAG with the prefix 'etl-'" in told
    assert fleet.gauges[UNDECLARED] == [0, 0]

    fleet.clock.ahead += 0.8 * ONE_WEEK
    fleet.on = {"etl-stream-simulated.sales"}
    assert runs.run(*names, prefix="etl-") == ["orders", "web"]
    assert [len(fleet.generations(name)) for name in names] == [2, 1, 2]

    fleet.on |= {"etl-stream-simulated.orders", "etl-stream-simulated.web"}
    assert runs.run(*names, prefix="etl-") == []
    assert fleet.variables == {}
    assert any("watched again" in text for _, text in notifiers.told)
    # A person may turn them off again: that is no change of a prefix.
    fleet.on = set()
    assert runs.run(*names, prefix="etl-") == []


def test_a_prefix_that_is_taken_back_leaves_its_streams_to_their_former_dags(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders")
    assert runs.run("orders", prefix="etl-") == ["orders"]
    assert runs.run("orders") == []


def test_streams_that_are_new_with_a_prefix_wait_for_their_dag_as_ever(fleet: Fleet) -> None:
    runs = Runs(fleet)
    assert runs.run("orders", prefix="etl-") == []
    assert runs.run("orders", "sales", prefix="etl-") == []


def test_servers_that_are_away_turn_off_no_watch_of_a_moved_stream(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders")
    runs.run("orders", prefix="etl-")
    fleet.yarn.away = True
    assert runs.run("orders", prefix="etl-") == ["orders"]
