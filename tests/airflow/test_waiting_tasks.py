"""The deferred task of a stream that is stopped, blocked, queued or edited: when it wakes, and what it measures."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stall import Pulse, Stall
from airflow_kstream.model.streams.stream import ProxyUserCredentials
from airflow_kstream.model.streams.stream_policies import RestartPolicy, WatchPolicy
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.policy.streams.restart.blocked import BlockedRestart
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from airflow_kstream.triggers.memory import Blindness, Memory
from airflow_kstream.triggers.stream_metrics import PULSES
from airflow_kstream.triggers.streams import StreamTrigger
from tests.simulated.engine import FakeEngine
from tests.simulated.fleet import CONNECTION, Fleet, context
from tests.simulated.servers import ONE_WEEK

MINUTE, HOUR = 60.0, 3600.0
# Half as many looks as by default, for stories of hours.
CALM = WatchPolicy(every=timedelta(seconds=30))


def last(fleet: Fleet, metric: str) -> float:
    return fleet.gauges[f"kstream.simulated.orders.{metric}"][-1]


def one_alive(fleet: Fleet) -> Application:
    [alive] = [app for app in fleet.yarn.apps.values() if app.alive]
    return alive


def test_a_stopped_stream_keeps_its_task_and_takes_no_worker_until_it_is_wanted(fleet: Fleet) -> None:
    fleet.declare("orders")

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "maintenance")
        await asyncio.sleep(MINUTE)
        assert not any(app.alive for app in fleet.yarn.apps.values())
        fleet.wakings.clear()
        await asyncio.sleep(HOUR)
        assert fleet.wakings == []
        set_desired(fleet.run_of("orders"), DesiredState.RUNNING, "over")
        await asyncio.sleep(16)
        assert len(fleet.generations("orders")) == 2
        assert one_alive(fleet)

    fleet.live(story)
    assert fleet.ended == {}


@pytest.mark.parametrize("refused", [False, True])
def test_a_stopped_stream_costs_no_run_all_week(fleet: Fleet, refused: bool) -> None:
    """Beyond its horizon, too. Each run that ended would be followed by the next one in five minutes: 288 a day."""
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(hours=1)))
    set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "the shop is closed")
    fleet.refused = {"orders"} if refused else set()

    async def story() -> None:
        await asyncio.sleep(2 * HOUR)
        fleet.wakings.clear()
        await asyncio.sleep(8 * 24 * HOUR)

    fleet.live(story)
    assert (fleet.wakings, fleet.ended) == ([], {})
    assert len(fleet.generations("orders")) == 1


def test_a_checkpoint_that_is_restored_behind_the_tasks_back_is_not_written_twice(fleet: Fleet) -> None:
    """The task looked once, hours ago; only its trigger has seen what the stream came to."""
    fleet.declare("orders")
    spec = fleet.specs["orders"]
    epochs = f"{spec.checkpoints[0]}/epochs.json"

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        request_restart(fleet.run_of("orders"), "a new jar")
        for _ in range(3):
            await asyncio.sleep(20 * MINUTE)
            fleet.engine.complete_epoch(spec)
        await asyncio.sleep(MINUTE)
        fleet.hdfs.files[epochs] = (json.dumps(json.loads(fleet.hdfs.read(epochs))[:2]), fleet.hdfs.now())
        fleet.yarn.end("application_1_0002", ApplicationState.KILLED, "Container preempted by scheduler")
        await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert len(fleet.generations("orders")) == 2
    assert "is older than it was" in str(fleet.ended["orders"])


def test_a_stream_that_ended_before_it_was_stopped_starts_as_soon_as_it_is_wanted(fleet: Fleet) -> None:
    fleet.declare("orders")
    set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "it fails all the time")
    fleet.yarn.end("application_1_0001", ApplicationState.FAILED)

    async def story() -> None:
        await asyncio.sleep(HOUR)
        assert fleet.wakings == []
        set_desired(fleet.run_of("orders"), DesiredState.RUNNING, "repaired")
        await asyncio.sleep(2 * MINUTE)
        assert len(fleet.generations("orders")) == 2

    fleet.live(story)
    assert fleet.ended == {}


def test_a_stream_that_is_stopped_before_its_first_claim_starts_when_it_is_wanted(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.hdfs.files.clear()
    fleet.yarn.apps.clear()
    set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "not yet")

    async def story() -> None:
        await asyncio.sleep(HOUR)
        assert fleet.wakings == []
        set_desired(fleet.run_of("orders"), DesiredState.RUNNING, "now")
        await asyncio.sleep(MINUTE)
        assert [number for number, _ in fleet.generations("orders")] == [1]

    fleet.live(story)


def test_a_start_is_carried_out_whatever_yarns_clock_says_of_the_end(fleet: Fleet) -> None:
    """That clock is ahead: by it, the job succeeded after the person's word."""
    fleet.declare("orders")
    set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "maintenance")
    app = fleet.yarn.end("application_1_0001")
    fleet.yarn.apps[app.id] = replace(app, finished=fleet.clock.now() + timedelta(minutes=5))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        set_desired(fleet.run_of("orders"), DesiredState.RUNNING, "over")
        await asyncio.sleep(2 * MINUTE)
        assert len(fleet.generations("orders")) == 2

    fleet.live(story)
    assert fleet.ended == {}


def refuse() -> None:
    raise InvalidInput("the queue is gone")


def nothing() -> None:
    pass


def test_a_restart_that_can_not_be_done_is_one_event_and_is_tried_ever_less_often(fleet: Fleet) -> None:
    """From its plan to its force, the job runs on; then the restart is forced."""
    fleet.declare("orders", watch=CALM)
    fleet.clock.ahead += 0.749 * ONE_WEEK
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(0.01 * ONE_WEEK.total_seconds())
        assert last(fleet, "restart_blocked") == 1
        first_hour = [waking for waking in fleet.wakings if waking.at < fleet.wakings[0].at + HOUR]
        assert 5 <= len(first_hour) <= 9
        assert all(b.at - a.at <= 16 * MINUTE for a, b in pairwise(fleet.wakings))
        assert last(fleet, "blind_seconds") == 0
        fleet.wakings.clear()
        await asyncio.sleep(HOUR)
        assert 3 <= len(fleet.wakings) <= 5
        fleet.engine.at_preflight = nothing
        await asyncio.sleep(16 * MINUTE)

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    assert fleet.told("orders: its restart is blocked: ") == 1
    assert fleet.told("its restart is still blocked, since") >= 8
    assert fleet.told("its restart is not blocked any longer") == 1
    assert last(fleet, "restart_blocked") == 0
    assert fleet.ended == {}


def test_a_blocked_restart_is_tried_at_once_when_a_person_asks_or_stops_it(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.clock.ahead += 0.76 * ONE_WEEK
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(HOUR)
        fleet.wakings.clear()
        request_restart(fleet.run_of("orders"), "the queue is back")
        await asyncio.sleep(20)
        assert len(fleet.wakings) == 1
        set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "enough")
        await asyncio.sleep(30)
        assert not any(app.alive for app in fleet.yarn.apps.values())

    fleet.live(story)


def test_a_forced_restart_waits_for_no_pause(fleet: Fleet) -> None:
    fleet.declare("orders")
    force = ONE_WEEK - timedelta(hours=1)
    fleet.clock.ahead += force - timedelta(minutes=50)
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(49 * MINUTE)
        assert len(fleet.generations("orders")) == 1
        await asyncio.sleep(3 * MINUTE)
        assert len(fleet.generations("orders")) == 2

    fleet.live(story)


NO_LOGIN = [CredentialError("Checksum failed"), InvalidInput("no keytab")]


@pytest.mark.parametrize("error", NO_LOGIN, ids=lambda error: type(error).__name__)
def test_a_running_stream_stays_watched_although_its_user_can_do_nothing(fleet: Fleet, error: KstreamError) -> None:
    fleet.declare("orders", credentials=ProxyUserCredentials("etl"), watch=CALM)
    fleet.clock.ahead += 0.749 * ONE_WEEK

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.refusal = error
        await asyncio.sleep(0.01 * ONE_WEEK.total_seconds())
        assert last(fleet, "restart_blocked") == 1
        assert last(fleet, "blind_seconds") == 0
        assert one_alive(fleet)
        fleet.wakings.clear()
        await asyncio.sleep(HOUR)
        assert 3 <= len(fleet.wakings) <= 5
        fleet.refusal = None
        await asyncio.sleep(20 * MINUTE)

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    assert fleet.told("orders: its restart is blocked: ") == 1
    assert last(fleet, "restart_blocked") == 0
    assert fleet.ended == {}


def test_a_forced_restart_that_its_user_can_not_do_is_tried_once_a_minute(fleet: Fleet) -> None:
    fleet.declare("orders", credentials=ProxyUserCredentials("etl"))
    fleet.clock.ahead += ONE_WEEK - timedelta(minutes=40)
    fleet.refusal = CredentialError("Checksum failed")

    async def story() -> None:
        await asyncio.sleep(20 * MINUTE)
        assert 15 <= len(fleet.wakings) <= 21
        assert one_alive(fleet)

    fleet.live(story)
    assert fleet.ended == {}


def test_a_user_who_can_not_log_in_fails_the_task_of_a_stream_that_does_not_run(fleet: Fleet) -> None:
    fleet.declare("orders", credentials=ProxyUserCredentials("etl"))
    for app in fleet.yarn.apps.values():
        fleet.yarn.end(app.id, ApplicationState.FAILED)
    fleet.refusal = CredentialError("Checksum failed")

    async def story() -> None:
        await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert isinstance(fleet.ended["orders"], CredentialError)


def test_a_running_stream_is_kept_as_it_was_where_its_cluster_refuses_an_edit(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)
    fleet.specs["orders"] = replace(fleet.specs["orders"], checkpoints=("hdfs://elsewhere/data/orders",))
    fleet.clock.ahead += 0.749 * ONE_WEEK

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        assert fleet.wakings == []
        await asyncio.sleep(0.01 * ONE_WEEK.total_seconds())

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    assert fleet.told("The declaration is refused; orders is kept as it was last submitted. ") == 2
    assert fleet.told("lies on hdfs://elsewhere") >= 2
    assert fleet.ended == {}


def test_an_application_that_yarn_does_not_start_is_an_event_and_is_not_killed(fleet: Fleet) -> None:
    fleet.declare("orders")
    app = replace(one_alive(fleet), state=ApplicationState.ACCEPTED)
    fleet.yarn.apps[app.id] = app

    async def story() -> None:
        await asyncio.sleep(9 * MINUTE)
        assert last(fleet, "queued_too_long") == 0
        assert 8 * MINUTE < last(fleet, "queued_seconds") < 10 * MINUTE
        await asyncio.sleep(51 * MINUTE)
        assert last(fleet, "queued_too_long") == 1
        fleet.yarn.apps[app.id] = replace(app, state=ApplicationState.RUNNING)
        await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert (fleet.told("its queue may be full"), fleet.told("waits in YARN no longer")) == (1, 1)
    assert (last(fleet, "queued_too_long"), last(fleet, "queued_seconds")) == (0, 0)
    assert (fleet.wakings, one_alive(fleet).id) == ([], app.id)


def test_each_pulse_is_a_number() -> None:
    assert set(PULSES) == set(Pulse)


def test_a_stream_without_a_commit_has_a_pulse_and_an_age(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.hdfs.delete("/data/orders", recursive=True)

    async def story() -> None:
        await asyncio.sleep(20 * MINUTE)

    fleet.live(story)
    assert last(fleet, "pulse") == PULSES[Pulse.NO_CHECKPOINT]
    assert 19 * MINUTE < last(fleet, "commit_age_seconds") <= 20 * MINUTE


def test_a_stream_that_declares_no_checkpoint_has_no_pulse_that_wakes_somebody(fleet: Fleet) -> None:
    fleet.declare("orders", checkpoints=())
    fleet.live(lambda: asyncio.sleep(20 * MINUTE))
    assert last(fleet, "blind_seconds") == 0
    assert fleet.gauges["kstream.simulated.orders.pulse"] == []


@pytest.mark.parametrize(
    ("wanted", "lives", "pulses"),
    [(DesiredState.STOPPED, False, False), (DesiredState.HELD, False, False), (DesiredState.HELD, True, True)],
)
def test_a_stream_not_to_run_has_a_pulse_and_a_horizon_only_while_it_lives(
    fleet: Fleet, wanted: DesiredState, *, lives: bool, pulses: bool
) -> None:
    """Its last generation had not committed, and had credentials: both would call for somebody for ever."""
    fleet.declare("orders")
    fleet.hdfs.delete("/data/orders", recursive=True)
    if not lives:
        fleet.yarn.end(one_alive(fleet).id)
    set_desired(fleet.run_of("orders"), wanted, "the source is gone")
    fleet.live(lambda: asyncio.sleep(20 * MINUTE))
    assert bool(fleet.gauges["kstream.simulated.orders.pulse"]) is pulses
    assert bool(fleet.gauges["kstream.simulated.orders.horizon_seconds"]) is lives


@pytest.mark.parametrize(
    ("claimed", "declared", "generations"),
    [(timedelta(hours=10), timedelta(hours=1), 2), (timedelta(hours=2), timedelta(days=5), 1)],
)
def test_a_declared_max_age_reaches_the_watcher_without_a_new_claim(
    fleet: Fleet, claimed: timedelta, declared: timedelta, generations: int
) -> None:
    """Lowered, it restarts the stream in time; raised, it wakes no worker for nothing."""
    fleet.declare("orders", restart=RestartPolicy(jitter_ratio=0, max_age=claimed), watch=CALM)
    fleet.specs["orders"] = replace(fleet.specs["orders"], restart=RestartPolicy(jitter_ratio=0, max_age=declared))

    async def story() -> None:
        await asyncio.sleep(50 * MINUTE if generations == 2 else 2.5 * HOUR)

    fleet.live(story)
    assert len(fleet.generations("orders")) == generations
    assert len(fleet.wakings) == generations - 1


@pytest.mark.parametrize("broken", ["there is no spark-submit on this host", "raises"])
def test_a_worker_without_a_client_watches_and_stops(fleet: Fleet, broken: str) -> None:
    fleet.declare("orders")
    fleet.engine.obstacle = broken
    if broken == "raises":

        class NoConnection(FakeEngine):
            def submission(self, order: SubmissionOrder) -> Submission:
                raise InvalidInput("connection spark_prod has deploy-mode client")

        fleet.engine = NoConnection(fleet.hdfs, fleet.yarn)

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        assert fleet.ended == {}
        set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "no client is needed")
        await asyncio.sleep(MINUTE)
        assert not any(app.alive for app in fleet.yarn.apps.values())

    fleet.live(story)
    assert fleet.ended == {}


def test_a_stream_whose_declaration_is_refused_is_watched_and_restarted_as_it_was(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)
    fleet.refused.add("orders")
    fleet.clock.ahead += 0.749 * ONE_WEEK

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        assert fleet.wakings == []
        await asyncio.sleep(0.01 * ONE_WEEK.total_seconds())

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    assert fleet.told("The declaration is refused; orders is kept as it was last submitted. it is not YAML") == 2
    assert fleet.ended == {}


def test_a_refused_declaration_of_a_stream_that_never_ran_fails_with_the_refusal(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.hdfs.files.clear()
    fleet.yarn.apps.clear()
    fleet.refused.add("orders")

    async def story() -> None:
        await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert isinstance(fleet.ended["orders"], AirflowFailException)
    assert str(fleet.ended["orders"]).startswith("it is not YAML. And there is nothing to keep: ")
    assert fleet.yarn.apps == {}


def test_a_refused_mapping_in_a_dag_of_ones_own_watches_what_runs(fleet: Fleet) -> None:
    fleet.declare("orders")
    with pytest.warns(UserWarning, match="kredentials"):
        keep = SparkStreamOperator(
            task_id="keep", cluster_conn_id=CONNECTION, stream={"name": "orders", "kredentials": {}}
        )
    with pytest.raises(TaskDeferred):
        keep.execute(context())
    assert fleet.told("orders is kept as it was last submitted. kredentials: there is no such field") == 1
    assert len(fleet.generations("orders")) == 1
    fleet.hdfs.files.clear()
    fleet.yarn.apps.clear()
    with pytest.raises(AirflowFailException, match=r"kredentials.* And there is nothing to keep"):
        keep.execute(context())
    assert fleet.yarn.apps == {}


def test_a_task_keeps_nothing_that_would_ask_its_cluster_after_its_work(fleet: Fleet) -> None:
    fleet.declare("orders")
    keep = SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=fleet.specs["orders"])
    before = {name for name, value in vars(keep).items() if callable(value)}
    with pytest.raises(TaskDeferred):
        keep.execute(context())
    assert {name for name, value in vars(keep).items() if callable(value)} == before


def test_a_refused_declarations_task_waits_for_servers_that_are_away(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.refused.add("orders")
    fleet.yarn.away = True

    async def story() -> None:
        await asyncio.sleep(30 * MINUTE)
        fleet.yarn.away = False
        await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert 1 <= len(fleet.wakings) <= 3
    assert fleet.ended == {}


def test_a_deferral_of_an_earlier_version_is_understood(fleet: Fleet) -> None:
    """Of its trigger, and of the event that such a trigger fired; a later version's facts are forgotten."""
    old: dict[str, Any] = {"cluster_conn_id": "prod", "stream": "orders", "every_seconds": 15.0, "pause_seconds": 0.0}
    _, fields = StreamTrigger(**old).serialize()
    unset = {"blind_after_seconds": 300.0, "policies": None, "memory": None, "follows_edits": False}
    assert fields == old | unset
    for unknown in (None, {"plan": "soon"}, {"wakings": "many"}, "text", {"new": 1}):
        assert Memory.from_json(unknown) == Memory()
    fleet.declare("orders")
    operator = SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=fleet.specs["orders"])
    with pytest.raises(TaskDeferred):
        operator.resume(context(), {"stream": "orders", "why": "its restart is due"})


def test_another_batch_is_examined_in_its_own_time() -> None:
    """The one before was examined an hour ago, and would be again in hours."""
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    stall = Stall(1, "nonce", "/data/orders", 3, timedelta(minutes=10), lasts=timedelta(hours=12))
    memory = Memory().examines(stall, moment)
    later = moment + timedelta(hours=1)
    assert not memory.may_examine(stall, later)
    assert memory.may_examine(stall, moment + timedelta(hours=12))
    assert memory.may_examine(replace(stall, batch=4), later)


def test_what_a_deferral_hands_on_survives_the_database() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    blocked = BlockedRestart(moment, 2, moment, moment)
    memory = Memory(moment, moment, stopped=True, blocked=blocked, blindness=Blindness(moment, 3))
    assert Memory.from_json(json.loads(json.dumps(memory.to_json()))) == memory
