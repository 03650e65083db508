"""Tickets in a real Airflow, on the real cluster: renewed by the shipped DAG, waited for, and given to tasks."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.ticket import Ticket, cache_file_name
from tests.live.airflow import CONNECTION, LiveAirflow
from tests.live.airflow_api import TaskRef
from tests.live.streams import await_that

RENEWAL, KEYTABS = f"tickets-{CONNECTION}", f"keytabs-{CONNECTION}"
ETL, OPS, BRIEF = "etl", "ops", "brief"
LIFE = timedelta(seconds=120)
# A user's own DAG; the renewal and the check are the shipped ones.
READERS = f'''
import os

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, task
from airflow.sdk.configuration import conf

from airflow_kstream.hooks.kerberos import KerberosHook
from airflow_kstream.sensors.tickets import KerberosTicketExpirySensor

with DAG("expiring", schedule=None):
    KerberosTicketExpirySensor(
        task_id="wait",
        cluster_conn_id="{CONNECTION}",
        principal="{BRIEF}@KSTREAM.TEST",
        cache=conf.get("kstream", "tickets_folder") + "/brief.ccache",
        within="20s",
        poke_interval=1,
        deferrable=True,
    )

with DAG("asking", schedule=None):

    @task
    def ask(principal):
        with KerberosHook("{CONNECTION}", principal=principal).environment() as env:
            child = SubprocessHook().run_command(["sh", "-c", "env; klist; kvno HTTP/localhost"], env=env)
            cache = env["KRB5CCNAME"].removeprefix("FILE:")
        return {{"exit": child.exit_code, "ambient": os.environ.get("KRB5CCNAME"), "left": os.path.exists(cache)}}

    ask.expand(principal=["{ETL}@KSTREAM.TEST", "{OPS}@KSTREAM.TEST"])
'''


@dataclass(frozen=True)
class TicketAirflow(LiveAirflow):
    """An Airflow whose DAGs are the shipped ones for tickets and those of READERS."""

    @property
    def declarations(self) -> Path:
        return self.root / "tickets"

    @property
    def caches(self) -> Path:
        """Return the declaration's folder."""
        return self.root / "caches"

    def renew(self, **form: Any) -> dict[str, Renewed]:
        """Run the shipped DAG by hand and return the outcome for each principal."""
        return self.renewed(self.start(RENEWAL, form))

    def renewed(self, run: str) -> dict[str, Renewed]:
        self.end(RENEWAL, run)
        views = [view for view in self.api.task_instances(RENEWAL, run) if view.ref.task_id == "renew"]
        renewals = [Renewed(view.ref, view.state, self.api.xcom_entry(view.ref, "return_value")[0]) for view in views]
        return {renewed.report["principal"].partition("@")[0]: renewed for renewed in renewals}

    def cache(self, principal: str) -> Path:
        return self.caches / CONNECTION / cache_file_name(principal)


@dataclass(frozen=True)
class Renewed:
    ref: TaskRef
    state: str | None
    report: dict[str, Any]

    @property
    def outcome(self) -> tuple[str | None, str, int]:
        """Return the task's state, the renewal's outcome, and the number of consecutive failures."""
        return self.state, self.report["outcome"], self.report["failures"]


def outcomes(renewed: dict[str, Renewed]) -> dict[str, tuple[str | None, str, int]]:
    return {name: one.outcome for name, one in renewed.items()}


@pytest.fixture(scope="module")
def principals(minicluster: Minicluster) -> None:
    minicluster.add_principal(ETL, OPS, BRIEF)
    minicluster.limit_life(BRIEF, LIFE)


@pytest.fixture(scope="module")
def airflow(minicluster: Minicluster, live: LiveAirflow, principals: None) -> Iterator[TicketAirflow]:
    airflow = TicketAirflow(live.home, live.api, live.root, live.metrics, live.components)
    named = [{"principal": minicluster.principal(name), "keytab": str(minicluster.keytab(name))} for name in (ETL, OPS)]
    declaration = {"principals": named, "folder": str(airflow.caches), "every": "30d", "check_every": "30d"}
    airflow.write_declaration("tickets", CONNECTION, declaration)
    with airflow.dag_file("ticket_readers", READERS):
        yield airflow


@dataclass(frozen=True)
class Waiting:
    """A deferred sensor, and the ticket that it watches."""

    ref: TaskRef
    ticket: Ticket


@pytest.fixture(scope="module", autouse=True)
def waiting(minicluster: Minicluster, airflow: TicketAirflow) -> Waiting:
    """A sensor that waits while the other tests run."""
    cache = airflow.declarations / "brief.ccache"
    airflow.await_parsed("expiring")
    tickets.acquire(Identity(minicluster.principal(BRIEF), keytab=str(minicluster.keytab(BRIEF))), cache)
    ref = TaskRef("expiring", airflow.start("expiring"), "wait")
    await_that(lambda: airflow.api.task_instance(ref).state == "deferred", "it is deferred")
    ticket = tickets.inspect(str(cache)).granting
    assert ticket is not None
    return Waiting(ref, ticket)


def test_a_broken_keytab_is_warned_of_counted_and_stops_no_other(
    minicluster: Minicluster, airflow: TicketAirflow
) -> None:
    """While the ticket lives it is a warning, then its task alone fails; once repaired, it counts from zero."""
    first = airflow.renewed(airflow.scheduled(RENEWAL))
    acquired = ("success", "acquired", 0)
    assert outcomes(first) == {"streamer": acquired, ETL: acquired, OPS: acquired}

    minicluster.change_key(OPS)
    again = airflow.renew(force=True)
    assert outcomes(again) == {"streamer": acquired, ETL: acquired, OPS: ("success", "failed", 1)}
    log = airflow.api.task_log(again[OPS].ref, 1)
    assert "not renewed, 1 failure since" in log
    assert "the ticket at hand is fresh, good until" in log

    principal = minicluster.principal(OPS)
    airflow.cache(principal).unlink()
    only = airflow.renew(principal=principal)
    assert outcomes(only) == {OPS: ("failed", "failed", 2)}
    assert only[OPS].report["state"] == "missing"
    assert f"not renewed, and can't wait: {principal}" in airflow.api.task_log(only[OPS].ref, 1)
    name = f"airflow.kstream.{CONNECTION}.ops_KSTREAM_TEST.ticket"
    await_that(lambda: airflow.metrics.value(f"{name}.failures") == 2, "the failures are measured")
    assert airflow.metrics.value(f"{name}.remaining") == 0

    checked = airflow.scheduled(KEYTABS)
    assert airflow.end(KEYTABS, checked) == "failed"
    log = airflow.api.task_log(TaskRef(KEYTABS, checked, "check"), 1)
    assert f"1 of 3 keytabs can't be used: {principal}" in log
    assert "Remedy:" in log

    minicluster.export_keytab(OPS)
    assert outcomes(airflow.renew(principal=principal)) == {OPS: acquired}


def test_a_deferred_sensor_tells_which_ticket_expires_and_when(
    minicluster: Minicluster, airflow: TicketAirflow, waiting: Waiting
) -> None:
    await_that(lambda: airflow.api.task_instance(waiting.ref).state == "success", "the ticket is about to expire")

    [expiring] = airflow.api.xcom_entry(waiting.ref, "return_value")["expiring"]
    assert expiring["principal"] == minicluster.principal(BRIEF)
    assert datetime.fromisoformat(expiring["expiry"]) == waiting.ticket.expiry
    assert 0 < expiring["remaining_seconds"] <= 20


def test_a_task_gives_a_child_process_a_ticket_that_nobody_else_sees(airflow: TicketAirflow) -> None:
    run = airflow.start("asking")
    assert airflow.end("asking", run) == "success"
    views = airflow.api.task_instances("asking", run)
    assert len(views) == 2
    for view in views:
        assert airflow.api.xcom_entry(view.ref, "return_value") == {"exit": 0, "ambient": None, "left": False}
    logs = [airflow.api.task_log(view.ref, 1) for view in views]
    assert sorted("Default principal: etl@KSTREAM.TEST" in log for log in logs) == [False, True]
    assert sorted("Default principal: ops@KSTREAM.TEST" in log for log in logs) == [False, True]
    assert not [log for log in logs if "AIRFLOW__" in log or "KRB5_CLIENT_KTNAME" in log]


def test_the_form_refuses_what_is_no_principal(airflow: TicketAirflow) -> None:
    with pytest.raises(InvalidInput, match="principal"):
        airflow.api.trigger_dag_run(RENEWAL, {"principal": "nobody"})


def test_nothing_that_airflow_wrote_holds_a_key(minicluster: Minicluster, airflow: TicketAirflow) -> None:
    """Search Airflow's logs, database and configuration after all the other tests."""
    keys = [minicluster.keytab(name).read_bytes()[-16:] for name in ("streamer", ETL, OPS, BRIEF)]
    signs = [sign for key in keys for sign in (key, key.hex().encode(), base64.b64encode(key)[:20])]
    written = [path for path in airflow.home.root.rglob("*") if path.is_file()]

    assert len(written) > 5
    assert [path for path in written if any(sign in path.read_bytes() for sign in signs)] == []
