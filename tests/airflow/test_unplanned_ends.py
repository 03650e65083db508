"""Ends that nobody planned, as tasks and triggers tell them, in virtual time on simulated servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, cast

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms, set_supervisor_comms

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import StreamEnded, Unavailable
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.triggers.stream_metrics import Environment
from tests.simulated.fleet import CONNECTION, Fleet, context

MINUTE, DAY = 60.0, 86400.0
CALM = WatchPolicy(every=timedelta(minutes=10))
KAFKA_IS_SILENT = (
    "User class threw exception: org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching",
    "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: describeTopics",
    "Bootstrap broker kafka1:9092 (id: -1 rack: null) disconnected",
)
BY_BOB = "Application application_1_0001 was killed by user bob at 10.0.0.7"


async def nothing() -> None:
    """Let the tasks defer or end, and tell nothing."""
    await asyncio.sleep(0)


def killed(fleet: Fleet, *names: str) -> None:
    """Let bob kill these streams, and somebody be told at once; their tasks are tried again."""
    fleet.declare(*names, watch=CALM)
    for name, application in zip(names, list(fleet.yarn.apps), strict=True):
        fleet.yarn.end(application, ApplicationState.KILLED, BY_BOB)
        assert Reconciler(fleet.run_of(name), tell=lambda line: None).run(Mode.WATCH).ended


def test_a_stream_that_a_person_killed_is_an_event_each_day_until_it_is_started(fleet: Fleet) -> None:
    killed(fleet, "orders")
    waits = "orders has waited for a person for"

    async def story() -> None:
        for day in range(1, 3):
            await asyncio.sleep(DAY - 30 * MINUTE if day == 1 else DAY)
            assert fleet.told(waits) == day, "as the task was deferred, and each day"
        assert fleet.gauges["kstream.simulated.orders.waits_for_a_person_seconds"][-1] > 1.9 * DAY
        assert fleet.wakings == [], "a reminder takes no worker"
        set_desired(fleet.run_of("orders"), DesiredState.RUNNING, "bob is sorry")
        await asyncio.sleep(DAY)
        assert fleet.told(waits) == 2
        assert fleet.gauges["kstream.simulated.orders.waits_for_a_person_seconds"][-1] == 0

    fleet.live(story)
    assert fleet.ended == {}
    assert fleet.told("nothing starts it until `kstream streams start orders`") >= 2


def test_a_triggerer_that_was_restarted_reminds_at_once_and_counts_the_same_days(fleet: Fleet) -> None:
    """It keeps nothing: the days follow from the record of the end."""
    killed(fleet, "orders")
    fleet.clock.ahead += timedelta(days=3, hours=23)

    async def story() -> None:
        await asyncio.sleep(15 * MINUTE)
        assert fleet.told("has waited for a person for 3d 23h") == 1
        await asyncio.sleep(60 * MINUTE)
        assert fleet.told("has waited for a person for") == 2
        await asyncio.sleep(DAY - 90 * MINUTE)
        assert fleet.told("has waited for a person for") == 2

    fleet.live(story)


def test_reminders_of_many_streams_take_no_worker(fleet: Fleet) -> None:
    killed(fleet, *(f"stream-{number}" for number in range(10)))
    fleet.clock.ahead += timedelta(hours=22)

    async def story() -> None:
        await asyncio.sleep(DAY / 6)

    fleet.live(story)
    assert fleet.wakings == []
    assert fleet.told("has waited for a person for") == 20


class Outage:
    """Servers that the jobs need: while one is away, each job ends of it some minutes after its start."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.hdfs_is_away, self.words = fleet, False, "connection refused"
        fleet.hdfs.at_request = self._unless_away

    def _unless_away(self, request: str, path: str) -> None:
        if self.hdfs_is_away:
            raise Unavailable(self.words, tried=f"{request} {path}")

    async def lasts(self, hours: float, errors: Sequence[str]) -> None:
        """Let the jobs that run end of these errors, in turn."""
        for number in range(int(hours * 10)):
            await asyncio.sleep(6 * MINUTE)
            for app in [app for app in self.fleet.yarn.apps.values() if app.alive]:
                self.fleet.yarn.end(app.id, ApplicationState.FAILED, errors[number % len(errors)])

    async def works(self, hours: float) -> None:
        for _ in range(int(hours * 12)):
            await asyncio.sleep(5 * MINUTE)
            for name, spec in self.fleet.specs.items():
                if any(app.alive for _, app in self.fleet.generations(name)):
                    self.fleet.engine.complete_epoch(spec)


def test_kafka_and_then_hdfs_are_away_for_long_and_all_come_back_without_a_person(fleet: Fleet) -> None:
    """Kafka's silence has several errors. An HDFS that is away is the watcher's own event."""
    names = ["orders", "sales"]
    fleet.declare(*names, watch=WatchPolicy(every=timedelta(minutes=3)))
    outage = Outage(fleet)

    async def story() -> None:
        await outage.works(0.5)
        await outage.lasts(1, KAFKA_IS_SILENT)
        assert fleet.gauges["kstream.simulated.cluster.environment_ended"][-1] == len(names)
        assert fleet.told("Streams of cluster simulated end without a fault of theirs (Kafka), ") == 1
        await outage.works(1)
        assert fleet.told("The streams of cluster simulated work again (Kafka), after ") == 1
        assert fleet.gauges["kstream.simulated.cluster.environment_ended"][-1] == 0
        outage.hdfs_is_away = True
        await outage.lasts(0.5, ["org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.ipc.StandbyException): READ"])
        assert fleet.told("Cluster simulated is unreachable") == 1
        outage.hdfs_is_away = False
        await outage.works(1)

    fleet.live(story)
    assert fleet.told("Cluster simulated is reachable again") == 1
    assert fleet.told("The streams of cluster simulated work again (HDFS), after ") == 1
    assert fleet.ended == {}, "no task failed or ended"
    assert not fleet.told("circuit breaker")
    assert all(any(app.alive for _, app in fleet.generations(name)) for name in names)
    assert not any("desired" in path for path in fleet.hdfs.files), "nobody said a word"
    assert {values[-1] for name, values in fleet.gauges.items() if name.endswith(".pulse")} <= {0.0, 1.0}


@pytest.mark.parametrize(("words", "ends"), [("SafeModeException: Name node is in safe mode", 0), ("refused", 1)])
def test_what_ends_while_hdfs_is_in_safe_mode_fails_no_task(fleet: Fleet, words: str, ends: int) -> None:
    """Its driver could leave no error. The watcher was refused at that time, and tells the task."""
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(minutes=3)))
    outage = Outage(fleet)
    outage.words = words

    async def story() -> None:
        await outage.works(0.5)
        outage.hdfs_is_away = True
        await outage.lasts(0.2, ["User application exited with status 1"])
        outage.hdfs_is_away = False
        await outage.works(1)

    fleet.live(story)
    assert len(fleet.ended) == ends
    assert fleet.told("it is the environment's, because HDFS did not answer") == 1 - ends


@pytest.mark.parametrize(("schedule", "max_tries", "fails"), [(None, 0, False), (None, 1, True), ("@daily", 0, True)])
def test_a_failure_after_which_nobody_would_watch_fails_no_task(
    fleet: Fleet, schedule: str | None, max_tries: int, *, fails: bool
) -> None:
    """As of a run of yesterday, which has the retries that its DAG had then. The next one follows by itself."""
    fleet.declare("orders")
    [app] = fleet.yarn.apps
    fleet.yarn.end(app, ApplicationState.FAILED, "User application exited with status 1")
    with DAG("orders", schedule=schedule), nullcontext() if schedule else pytest.warns(UserWarning, match="schedule"):
        keep = SparkStreamOperator(
            task_id="keep", cluster_conn_id=CONNECTION, stream=fleet.specs["orders"], retries=max_tries
        )
    of_try = context()
    of_try["ti"].try_number, of_try["ti"].max_tries = 1, max_tries
    with pytest.raises(StreamEnded if fails else TaskDeferred, match="status 1" if fails else None):
        keep.resume(of_try, {"stream": "orders", "why": "it ended"})
    assert fleet.told("Nothing would follow this try, so it watches on") == (not fails)


@pytest.mark.parametrize(("unstorable", "stored"), [("\0", r"\x00"), ("\udc80", r"\udc80")])
def test_whatever_a_job_says_at_its_end_airflow_can_store_it(fleet: Fleet, unstorable: str, stored: str) -> None:
    """A triggerer ends, with all of its triggers, when an event can't be sent to it or stored by it."""
    fleet.declare("orders")

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.yarn.end("application_1_0001", ApplicationState.FAILED, f"lost {unstorable}")
        await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert f"lost {stored}" in str(fleet.ended["orders"])
    assert [waking.stream for waking in fleet.wakings] == ["orders"]


def test_a_paused_stream_prolongs_no_event() -> None:
    environment = Environment("prod")
    environment.saw("one", "Kafka", 0.0)
    environment.saw("two", "Kafka", 10.0)
    environment.saw("two", "", 3000.0)
    assert environment.causes == {"Kafka"}
    environment.saw("two", "Kafka", 3700.0)
    environment.saw("two", "", 3800.0)
    assert environment.causes == set()


def test_an_event_of_a_forgotten_stream_ends_before_the_next_one_begins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    environment = Environment("prod")
    environment.saw("one", "Kafka", 0.0)
    environment.saw("two", "Kafka", 4000.0)
    assert [line.getMessage().partition(" (")[0] for line in caplog.records] == [
        "Streams of cluster prod end without a fault of theirs",
        "Nobody looks any longer at the last stream of cluster prod that ended",
        "Streams of cluster prod end without a fault of theirs",
    ]


def test_the_last_stream_of_an_event_may_be_paused_while_others_are_well(caplog: pytest.LogCaptureFixture) -> None:
    environment = Environment("prod")
    environment.saw("one", "Kafka", 0.0)
    environment.saw("two", "", 3500.0)
    assert environment.causes == {"Kafka"}
    environment.saw("two", "", 3700.0)
    assert environment.causes == set()
    assert "Nobody looks any longer at the last stream of cluster prod that ended (Kafka), 1h 1m" in caplog.text
    assert "work again" not in caplog.text


@pytest.fixture
def in_one_process() -> Iterator[None]:
    """What `airflow dags test` and `airflow tasks test` give to a task, and no worker does."""
    with set_supervisor_comms(InProcessSupervisorComms(supervisor=cast("Any", None))):
        yield


@pytest.mark.usefixtures("in_one_process")
class TestAirflowsOwnTest:
    def test_it_ends_after_the_first_look(self, fleet: Fleet) -> None:
        fleet.declare("orders")
        fleet.live(nothing)
        report = cast("dict[str, Any]", fleet.ended["orders"])
        assert report["phase"] == "running"
        assert fleet.told("This was a test: it ends after the first look, and nobody watches the stream") == 1
        assert fleet.wakings == []

    def test_it_fails_where_no_look_comes_to_a_conclusion(self, fleet: Fleet) -> None:
        fleet.declare("orders")
        fleet.yarn.away = True
        fleet.live(nothing)
        assert isinstance(fleet.ended["orders"], AirflowFailException)
        assert fleet.told("connection refused") >= 1
