"""The sensor that waits for what a stream has committed: where its DAG is parsed, on a worker and in the triggerer."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.triggers.base import TriggerEvent

from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.sensors.progress import StreamProgressSensor
from airflow_kstream.triggers.progress import StreamProgressTrigger
from tests.simulated.fleet import CONNECTION, START, Fleet, context
from tests.simulated.flink import FLINK_SPEC
from tests.simulated.life import SPEC
from tests.simulated.virtual_time import run

MINUTE, HOUR = 60.0, 3600.0
LIMITED = replace(SPEC, arguments=("--max-offsets-per-trigger=1000",))


def sensor(stream: Any = "orders", moment: object = START, **more: Any) -> StreamProgressSensor:
    return StreamProgressSensor(
        task_id="wait", cluster_conn_id=CONNECTION, stream=stream, moment=cast("Any", moment), **more
    )


def trigger_of(waiting: StreamProgressSensor) -> StreamProgressTrigger:
    """Return the trigger that a deferred task leaves in Airflow's database."""
    with pytest.raises(TaskDeferred) as raised:
        waiting.execute(context())
    name, fields = cast("StreamProgressTrigger", raised.value.trigger).serialize()
    assert name == "airflow_kstream.triggers.progress.StreamProgressTrigger"
    return StreamProgressTrigger(**json.loads(json.dumps(fields)))


async def fired(trigger: StreamProgressTrigger) -> dict[str, Any]:
    async with aclosing(cast("AsyncGenerator[TriggerEvent]", trigger.run())) as events:
        payload: dict[str, Any] = json.loads(json.dumps((await anext(events)).payload))
    return payload


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"stream": "Orders"}, "stream is 'Orders'; allowed is 1 to 50 of a-z"),
        ({"moment": "06:00"}, "moment is '06:00'; allowed is a moment with its time zone"),
        ({"moment": START.replace(tzinfo=None)}, "a moment with its time zone"),
        ({"quiet_after": "soon"}, "quiet_after: 'soon' is not a duration"),
        ({"stream": replace(SPEC, checkpoints=())}, "orders declares no checkpoint"),
        ({"stream": LIMITED}, r"orders limits what a batch reads \(max-offsets-per-trigger\)"),
        ({"stream": FLINK_SPEC}, "orders is a job of Flink's, whose checkpoints don't tell what it has read"),
    ],
)
def test_what_makes_no_sense_is_refused_where_the_dag_is_parsed(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        sensor(**fields)


def test_limited_batches_are_refused_there_for_a_stream_of_the_folder_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / CONNECTION).mkdir()
    declared = {name: value for name, value in LIMITED.to_mapping().items() if name != "airflow"}
    (tmp_path / CONNECTION / "orders.yaml").write_text(json.dumps(declared))
    (tmp_path / CONNECTION / "broken.yaml").write_text("{")
    monkeypatch.setenv("AIRFLOW__KSTREAM__STREAMS_FOLDER", str(tmp_path))
    with pytest.raises(InvalidInput, match="orders limits what a batch reads"):
        sensor()
    assert sensor("broken").stream == "broken", "its own DAG tells what is wrong"
    assert sensor("unknown").stream == "unknown"


def test_offsets_tell_of_limited_batches_and_a_template_is_known_to_the_task_alone() -> None:
    with_kafka = replace(LIMITED, kafka=KafkaPolicy("broker:9092"))
    assert (sensor(with_kafka).policies or {})["kafka"]["bootstrap_servers"] == "broker:9092"
    assert sensor("{{ params.stream }}", "{{ data_interval_end }}", quiet_after="{{ params.quiet }}").policies is None


def test_a_task_without_a_triggerer_says_what_proves_it(fleet: Fleet) -> None:
    fleet.declare("orders")
    moment, fleet.clock.ahead = fleet.clock.now(), timedelta(minutes=5)
    waiting = sensor(moment=moment)
    assert not waiting.poke(context())
    fleet.engine.complete_epoch(fleet.specs["orders"])
    assert (waiting.poke(context()).xcom_value or {})["proof"] == "batch"
    assert fleet.told("orders has committed what had arrived by 2026-03-01T00:00:00+00:00; /data/orders: batch 1") == 1


def test_the_first_look_is_the_workers_own(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.clock.ahead += timedelta(minutes=5)
    moment = fleet.clock.now() - timedelta(minutes=5)
    fleet.engine.complete_epoch(fleet.specs["orders"])
    assert sensor(moment=moment, deferrable=True).execute(context())["proof"] == "batch"


def test_an_hour_without_the_cluster_does_not_end_the_wait(fleet: Fleet) -> None:
    fleet.declare("orders")
    waiting = sensor(moment=fleet.clock.now(), deferrable=True)

    async def story() -> dict[str, Any]:
        event = asyncio.create_task(fired(trigger_of(waiting)))
        await asyncio.sleep(5 * MINUTE)
        fleet.yarn.away = True
        await asyncio.sleep(HOUR)
        fleet.engine.complete_epoch(fleet.specs["orders"])
        fleet.yarn.away = False
        return await event

    report = waiting.resume(context(), run(story(), fleet.loop))
    assert report["proof"] == "batch"
    assert fleet.told("nothing is known of it now: connection refused") <= 2, "it is logged once, and not each minute"
    assert fleet.told("orders has committed") == 2, "by the triggerer, and by the worker, whose log people open"


def test_a_refusal_that_no_wait_can_change_fails_the_task(fleet: Fleet) -> None:
    """The declaration is known to a supervisor alone, and limits its batches."""
    fleet.declare("orders", arguments=("limited",))
    waiting = sensor(moment=fleet.clock.now(), deferrable=True)
    fleet.clock.ahead += timedelta(minutes=5)
    with pytest.raises(AirflowFailException, match="its epochs are limited"):
        waiting.execute(context())
    event = run(fired(waiting.trigger()), fleet.loop)
    with pytest.raises(AirflowFailException, match="its epochs are limited"):
        waiting.resume(context(), event)


def test_a_thousand_sensors_of_one_cluster_share_its_looks(fleet: Fleet) -> None:
    """They wait for ten streams, each for a moment of its own, and began within one minute."""
    names = [f"s{number}" for number in range(10)]
    fleet.declare(*names)
    moment, listed = fleet.clock.now(), Counter[str]()

    async def begun(number: int) -> dict[str, Any]:
        await asyncio.sleep(number * MINUTE / 1000)
        return await fired(sensor(names[number % 10], moment - timedelta(seconds=number)).trigger())

    async def story() -> tuple[list[dict[str, Any]], Counter[str]]:
        events = asyncio.gather(*(begun(number) for number in range(1000)))
        await asyncio.sleep(2 * MINUTE)
        fleet.yarn.at_request = lambda request, about: listed.update([request])
        fleet.hdfs.at_request = lambda request, path: listed.update([f"{request} {path}"])
        await asyncio.sleep(10 * MINUTE)
        counted = listed.copy()
        for name in names:
            fleet.engine.complete_epoch(fleet.specs[name])
        return await events, counted

    done, counted = run(story(), fleet.loop)
    assert {event["report"]["proof"] for event in done} == {"batch"}
    assert {event["report"]["stream"] for event in done} == set(names)
    assert 10 <= counted["applications"] <= 41, "one listing each fifteen seconds at most"
    assert counted["read /data/s0/epochs.json"] <= 2 * 41, "one look at a stream in each round"


def test_a_question_that_is_given_up_takes_no_other_ones_answer_along(fleet: Fleet) -> None:
    fleet.declare("orders")
    moment = fleet.clock.now()

    async def story() -> dict[str, Any]:
        first, second = (asyncio.create_task(fired(sensor(moment=moment).trigger())) for _ in range(2))
        await asyncio.sleep(10.5)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        fleet.clock.ahead += timedelta(minutes=5)
        fleet.engine.complete_epoch(fleet.specs["orders"])
        return await second

    assert run(story(), fleet.loop)["report"]["proof"] == "batch"


def test_an_error_of_a_round_reaches_each_who_waits(fleet: Fleet) -> None:
    def refuse() -> None:
        raise Denied("streamer may not log in", tried="open a session")

    fleet.opening = refuse

    async def story() -> list[dict[str, Any]]:
        moments: list[datetime] = [START, START - timedelta(minutes=1)]
        return list(await asyncio.gather(*(fired(sensor(moment=moment).trigger()) for moment in moments)))

    assert [event["error"]["message"] for event in run(story(), fleet.loop)] == ["streamer may not log in"] * 2
