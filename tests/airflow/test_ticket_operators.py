"""Operator and sensor of tickets where no KDC is asked: wrong words, and a wait that the triggerer goes on with."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_kstream.model.kerberos.ticket import cache_file_name
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator
from airflow_kstream.sensors.tickets import KerberosTicketExpirySensor
from airflow_kstream.triggers import awaiting
from airflow_kstream.triggers.tickets import TicketExpiryTrigger
from tests.simulated.tickets import write_cache

WATCHER = "watcher@EXAMPLE.COM"


@pytest.fixture(autouse=True)
def cache(cluster_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache that is kept for the connection's own principal, with a fresh ticket."""
    folder = cluster_file.parent
    monkeypatch.setenv("AIRFLOW__KSTREAM__TICKETS_FOLDER", str(folder))
    (folder / "prod.yaml").write_text(f"folder: {folder}/caches\n")
    connection = {"conn_type": "kstream", "extra": yaml.safe_load(cluster_file.read_text())}
    monkeypatch.setenv("AIRFLOW_CONN_PROD", json.dumps(connection))
    now, cache = datetime.now(UTC), folder / "caches" / "prod" / cache_file_name(WATCHER)
    cache.parent.mkdir(parents=True)
    write_cache(cache, WATCHER, now, now + timedelta(hours=9), now + timedelta(hours=9))
    return cache


def sensor(**more: Any) -> KerberosTicketExpirySensor:
    return KerberosTicketExpirySensor(task_id="wait", cluster_conn_id="prod", **more)


async def test_the_triggerer_gives_the_same_answer(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    # No worker of a scheduler has to end before this trigger fires.
    monkeypatch.setattr(awaiting, "SETTLING_SECONDS", 0.0)
    assert not sensor().poke({})
    with pytest.raises(TaskDeferred) as raised:
        sensor(deferrable=True, poke_interval=0.1).execute({})
    name, kwargs = raised.value.trigger.serialize()
    assert name == "airflow_kstream.triggers.tickets.TicketExpiryTrigger"
    await asyncio.to_thread(cache.unlink)
    event = await anext(TicketExpiryTrigger(**json.loads(json.dumps(kwargs))).run())
    report = event.payload["report"]
    assert [(row["principal"], row["state"]) for row in report["expiring"]] == [(WATCHER, "missing")]
    here = sensor().poke({}).xcom_value
    assert here is not None
    assert here["expiring"] == report["expiring"]
    assert sensor().resume({}, event.payload) == report


@pytest.mark.parametrize(
    ("task", "field", "why"),
    [
        (KerberosTicketRenewOperator, {"force": "perhaps"}, "allowed are true and false"),
        (KerberosTicketRenewOperator, {"renew_at": "7"}, "renew_at"),
        (KerberosTicketExpirySensor, {"within": "soon"}, "is not a duration"),
    ],
)
def test_what_makes_no_sense_fails_for_good(task: type[BaseOperator], field: dict[str, Any], why: str) -> None:
    with pytest.raises(AirflowFailException, match=why):
        task(task_id="task", cluster_conn_id="prod", **field).execute({})
