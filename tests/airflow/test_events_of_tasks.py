"""Tickets, keytabs and stuck files, as a notifier hears of them. What their tasks find is simulated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.keytab import FindingKind, KeytabFinding
from airflow_kstream.notifications import tasks
from airflow_kstream.operators.keytabs import KeytabCheckOperator
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator
from airflow_kstream.policy.tickets.renewal import TicketState
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck
from airflow_kstream.supervise.leases.requests import RecoveryRequest
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport
from airflow_kstream.views import leases as lease_views
from tests.airflow import notifiers
from tests.simulated.fleet import Fleet, context

GOOD = RenewalOutcome.KEPT, TicketState.FRESH
LATE = RenewalOutcome.FAILED, TicketState.EXPIRED
EARLY = RenewalOutcome.FAILED, TicketState.FRESH


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Fleet]:
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.Recording")
    notifiers.forget()
    fleet = Fleet(monkeypatch, caplog)
    yield fleet
    fleet.loop.close()


def renew(
    patch: pytest.MonkeyPatch, outcomes: dict[str, tuple[RenewalOutcome, TicketState]], principal: str = ""
) -> None:
    """Run the task, also each of its tries, with these outcomes of `a` and `b`."""
    reports = [
        RenewalReport("prod", name, f"/tmp/{name}", outcome, state, error="the KDC is away")
        for name, (outcome, state) in outcomes.items()
    ]
    patch.setattr(KerberosTicketRenewOperator, "_renewed", lambda self: reports)
    task = KerberosTicketRenewOperator(task_id="renew", cluster_conn_id="prod", principal=principal or None)
    with suppress(Unavailable):
        task.execute(context())


def test_each_principal_begins_and_ends_once_over_runs_and_retries(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for outcomes in ({"a": GOOD, "b": GOOD}, {"a": EARLY, "b": GOOD}, {"a": LATE, "b": GOOD}, {"a": LATE, "b": GOOD}):
        renew(monkeypatch, outcomes)
    renew(monkeypatch, {"a": LATE, "b": LATE})
    renew(monkeypatch, {"a": GOOD, "b": LATE})

    assert [text.split(":")[1].split(", after")[0].strip() for _, text in notifiers.told] == [
        "a ticket is not renewed (a)",
        "a ticket is not renewed (b)",
        "the ticket is renewed (a)",
    ]


def test_an_alert_of_a_ticket_is_a_gauge_of_its_principal(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for outcomes in ({"a": GOOD, "b": GOOD}, {"a": EARLY, "b": GOOD}, {"a": LATE, "b": GOOD}, {"a": GOOD, "b": GOOD}):
        renew(monkeypatch, outcomes)

    assert fleet.gauges["kstream.prod.a.ticket.alert"] == [0, 0, 1, 0]
    assert fleet.gauges["kstream.prod.b.ticket.alert"] == [0, 0, 0, 0]


def test_a_kdc_that_is_away_is_one_message_of_all_principals(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    renew(monkeypatch, {"a": LATE, "b": LATE})

    [(_, text)] = notifiers.told
    assert text.endswith("the KDC is away. And so for 1 more: b")


def test_a_task_of_one_principal_ends_no_event_of_another(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    renew(monkeypatch, {"a": LATE}, "a")
    renew(monkeypatch, {"b": GOOD}, "b")

    assert len(notifiers.told) == 1


def test_a_keytab_that_fails_its_check_is_one_event(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = KeytabFinding(FindingKind.KEY_REFUSED, Severity.ERROR, "The KDC refuses its key.", "Fetch a new one.")
    refused = KeytabCheck(KeytabPlace("etl@EXAMPLE.COM", "/etc/etl.keytab"), (finding,))
    good = replace(refused, findings=())
    task = KeytabCheckOperator(task_id="check", cluster_conn_id="prod")
    for check in (good, refused, refused, good):
        monkeypatch.setattr(KeytabCheckOperator, "_checks", lambda self, check=check: [check])
        with suppress(AirflowFailException):
            task.execute(context())

    begin, end = (text for _, text in notifiers.told)
    subject = "prod: a keytab can't be used (etl@EXAMPLE.COM, /etc/etl.keytab): "
    assert begin == f"{subject}The KDC refuses its key. Fetch a new one."
    assert end.startswith("prod: the keytab can be used (etl@EXAMPLE.COM, /etc/etl.keytab), after ")
    assert fleet.gauges["kstream.prod.etl_EXAMPLE_COM.keytab.unusable"] == [0, 1, 1, 0]


def test_stuck_files_are_one_event_of_each_path(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run tells nobody, and a task of one path ends no event of another."""
    monkeypatch.setattr(HdfsLeaseRecoverOperator, "_log_result", lambda *of: None)
    monkeypatch.setattr(lease_views, "bounded", lambda *of: {})
    for path, stuck, dry_run in (
        ("/a", 2, True),
        ("/a", 2, False),
        ("/a", 3, False),
        ("/b", 0, False),
        ("/a", 0, True),
        ("/a", 0, False),
    ):
        task = HdfsLeaseRecoverOperator(task_id="recover", cluster_conn_id="prod", path=path)
        settings = RecoveryRequest.from_mapping({"path": path, "dry_run": dry_run}).settings()
        found = settings, SimpleNamespace(incomplete=False)
        monkeypatch.setattr(HdfsLeaseRecoverOperator, "_recovered", lambda self, context, found=found: found)
        monkeypatch.setattr(lease_views, "left_alone", lambda report, stuck=stuck: ("a file",) * stuck)
        task.execute(context())

    begin, end = (text for _, text in notifiers.told)
    assert begin.startswith("prod: stuck files are left alone (/a): 2 of them; ")
    assert end.startswith("prod: no stuck file is left alone (/a), after ")
    assert fleet.gauges["kstream.prod./a.lease.stuck_files_left_alone"] == [2, 3, 0]


def test_what_tasks_find_is_kept_for_pages(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    renew(monkeypatch, {"a": GOOD, "b": LATE})
    keytab = KeytabCheck(KeytabPlace("etl@EXAMPLE.COM", "/etc/etl.keytab"), ())
    monkeypatch.setattr(KeytabCheckOperator, "_checks", lambda self: [keytab])
    KeytabCheckOperator(task_id="check", cluster_conn_id="prod").execute(context())

    kept = {key: value for (uri, key), value in fleet.store.items() if uri == asset_uri("prod")}
    assert kept["ticket a"]["state"] == "fresh"
    assert (kept["ticket b"]["alert"], kept["ticket b"]["error"]) == (True, "the KDC is away")
    assert kept["keytab etl@EXAMPLE.COM /etc/etl.keytab"]["findings"] == []


def test_a_store_that_fails_costs_no_task_its_work(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*of: object) -> None:
        raise OSError("the database is away")

    monkeypatch.setattr(tasks, "put", fail)
    renew(monkeypatch, {"a": GOOD})
    assert fleet.told("can't be stored, so pages may show it late")
