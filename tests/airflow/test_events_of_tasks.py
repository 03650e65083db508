"""Tickets, keytabs and stuck files, as a notifier hears of them. What their tasks find is simulated."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, KeytabFinding
from airflow_kstream.model.leases.lease import Attribution, Decision, FileCondition, Judgement
from airflow_kstream.model.leases.open_file import Block, FileHistory, FileState, OpenFile
from airflow_kstream.model.leases.requests import RecoverySettings
from airflow_kstream.notifications.outbox import NotReturned, in_time
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator, KeytabCheckOperator
from airflow_kstream.policy.tickets import TicketState
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck
from airflow_kstream.supervise.leases.executor import RecoveryRun
from airflow_kstream.supervise.leases.findings import FileFinding, Survey
from airflow_kstream.supervise.leases.judging import Intent
from airflow_kstream.supervise.leases.recover import RecoveryReport
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport
from tests.airflow import notifiers
from tests.simulated.fleet import FIELDS, Fleet, context

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GOOD = RenewalOutcome.KEPT, TicketState.FRESH
LATE = RenewalOutcome.FAILED, TicketState.EXPIRED
EARLY = RenewalOutcome.FAILED, TicketState.FRESH

pytestmark = pytest.mark.usefixtures("recording", "worker")
AWAY = Unavailable("connection refused", tried="ask HDFS", server="http://nn:9870")


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A worker's own folder for what it could not note on HDFS."""
    monkeypatch.setenv("AIRFLOW_CONN_PROD", json.dumps({"conn_type": "kstream", "extra": FIELDS}))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    return tmp_path / "kstream-told"


def hdfs_is_away(fleet: Fleet, *requests: str) -> None:
    def answer(request: str, path: str) -> None:
        if not requests or request in requests:
            raise AWAY

    fleet.hdfs.at_request = answer


def hdfs_is_back(fleet: Fleet) -> None:
    fleet.hdfs.at_request = lambda request, path: None


def told() -> list[str]:
    return [text.split(":")[1].split(", after")[0].strip() for _, text in notifiers.told]


def notes(fleet: Fleet) -> list[str]:
    return [path for path in fleet.hdfs.files if "/told.streamer/" in path]


class Renew(KerberosTicketRenewOperator):
    reports: list[RenewalReport]

    def _renewed(self) -> list[RenewalReport]:
        return self.reports


class CheckKeytabs(KeytabCheckOperator):
    found: KeytabCheck

    def _checks(self) -> list[KeytabCheck]:
        return [self.found]


class Recover(HdfsLeaseRecoverOperator):
    stuck = 0

    def _recovered(self, context: Context) -> tuple[RecoverySettings, RecoveryReport]:
        settings = self._settings(context)
        found = tuple(stuck_file(f"{self.path}/{number}") for number in range(self.stuck))
        intents = tuple(Intent(finding, Decision(False, "nobody approved it")) for finding in found)
        health = HdfsHealth("nn1", safe_mode=False, dead=0, stale=0, version="3.4.3")
        survey = Survey(NOW, "listOpenFiles", health, found, {})
        return settings, RecoveryReport(survey, intents, None if settings.dry_run else RecoveryRun("run", ()))


def stuck_file(path: str) -> FileFinding:
    state = FileState(path, 1, "alice", NOW - timedelta(hours=1), True, 5, Block(1, 1, 5, False))
    history = FileHistory(OpenFile(path), state, NOW, NOW - timedelta(hours=1), NOW, checks=2)
    return FileFinding(history, Judgement(FileCondition.HOLDER_DEAD, "its lease ended"), Attribution())


def renew(outcomes: dict[str, tuple[RenewalOutcome, TicketState]], principal: str = "") -> None:
    """Run the task, also each of its tries, with these outcomes of `a` and `b`."""
    task = Renew(task_id="renew", cluster_conn_id="prod", principal=principal or None)
    task.reports = [
        RenewalReport("prod", name, f"/tmp/{name}", outcome, state, error="the KDC is away")
        for name, (outcome, state) in outcomes.items()
    ]
    with suppress(Unavailable):
        task.execute(context())


def test_each_principal_begins_and_ends_once_over_runs_and_retries(fleet: Fleet) -> None:
    for outcomes in ({"a": GOOD, "b": GOOD}, {"a": EARLY, "b": GOOD}, {"a": LATE, "b": GOOD}, {"a": LATE, "b": GOOD}):
        renew(outcomes)
    renew({"a": LATE, "b": LATE})
    renew({"a": GOOD, "b": LATE})

    assert told() == [
        "a ticket is not renewed (a)",
        "a ticket is not renewed (b)",
        "the ticket is renewed (a)",
    ]


@pytest.mark.parametrize("dark", ["false", "true"])
def test_what_a_notifier_raised_for_the_next_run_tells(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, dark: str
) -> None:
    """A mail server that is away for a moment, as the ticket expires, would cost the only message of that."""
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.Raising")
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER_KWARGS", f'{{"times": 1, "dark": {dark}}}')
    for _ in range(3):
        renew({"a": LATE})
    assert told() == ["a ticket is not renewed (a)"]


def test_tasks_that_find_nothing_note_nothing(fleet: Fleet) -> None:
    for _ in range(3):
        renew({"a": GOOD})
    assert notes(fleet) == []


def test_an_hour_without_hdfs_is_one_message_of_each_worker(
    fleet: Fleet, worker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is noted on the worker's disk, and on HDFS once that is back; the end is told once."""
    hdfs_is_away(fleet)
    for _ in range(6):
        renew({"a": LATE})
    assert told() == ["a ticket is not renewed (a)"]
    assert [file.stat().st_mode & 0o777 for file in (worker, *worker.iterdir())] == [0o700, 0o600]
    with monkeypatch.context() as another:
        another.setenv("AIRFLOW_HOME", str(worker.parent / "another"))
        (worker.parent / "another").mkdir()
        renew({"a": LATE})
    assert len(told()) == 2
    hdfs_is_back(fleet)
    renew({"a": LATE})
    assert (len(told()), len(notes(fleet)), [*worker.iterdir()]) == (2, 1, [])
    with monkeypatch.context() as another:
        another.setenv("AIRFLOW_HOME", str(worker.parent / "another"))
        renew({"a": LATE})
        renew({"a": GOOD})
    renew({"a": GOOD})
    assert told()[2:] == ["the ticket is renewed (a)"]


def test_an_end_while_hdfs_is_away_is_one_message(fleet: Fleet) -> None:
    renew({"a": LATE})
    hdfs_is_away(fleet)
    renew({"a": LATE})
    renew({"a": GOOD})
    assert told()[-1] == "the ticket is renewed (a)"
    count = len(told())
    hdfs_is_back(fleet)
    for _ in range(3):
        renew({"a": GOOD})
    assert len(told()) == count


def test_hdfs_that_never_answers_holds_up_no_task() -> None:
    """A thread can't be ended, so it is left behind."""
    released = threading.Event()
    with pytest.raises(NotReturned, match="it has not returned within 0 s"):
        in_time(0.01, released.wait)
    released.set()
    assert in_time(10, lambda: "in time") == "in time"


def test_a_quota_costs_no_message_and_no_second_one(fleet: Fleet, worker: Path) -> None:
    hdfs_is_away(fleet, "write")
    for _ in range(3):
        renew({"a": LATE})
    assert told() == ["a ticket is not renewed (a)"]
    assert len([*worker.iterdir()]) == 1


@pytest.mark.parametrize("what", ["link", "open", "file"])
def test_a_folder_that_is_not_the_workers_alone_is_not_used(fleet: Fleet, worker: Path, what: str) -> None:
    """The message leaves, and a warning is all that it costs."""
    elsewhere = worker.parent / "elsewhere"
    elsewhere.mkdir(0o700)
    if what == "link":
        worker.symlink_to(elsewhere)
    elif what == "file":
        worker.write_text("")
    else:
        worker.mkdir(0o700)
        worker.chmod(0o777)
    hdfs_is_away(fleet)
    renew({"a": LATE})
    assert told() == ["a ticket is not renewed (a)"]
    assert [*elsewhere.iterdir()] == []
    assert worker.is_file() or [*worker.iterdir()] == []
    assert fleet.told("What was told can't be noted on this worker either")


@pytest.mark.parametrize("key", ["tickets ", "told_tickets_", "told"])
def test_a_forged_row_suppresses_no_event_of_a_task(fleet: Fleet, key: str) -> None:
    lasting = [{"kind": "ticket_not_renewed", "about": "a", "since": NOW.isoformat(), "why": "x"}]
    fleet.store[asset_uri("prod"), key] = {"version": 1, "changes": 10**9, "lasting": lasting}
    renew({"a": LATE})
    assert told() == ["a ticket is not renewed (a)"]


def test_an_alert_of_a_ticket_is_a_gauge_of_its_principal(fleet: Fleet) -> None:
    for outcomes in ({"a": GOOD, "b": GOOD}, {"a": EARLY, "b": GOOD}, {"a": LATE, "b": GOOD}, {"a": GOOD, "b": GOOD}):
        renew(outcomes)

    assert fleet.gauges["kstream.prod.a.ticket.alert"] == [0, 0, 1, 0]
    assert fleet.gauges["kstream.prod.b.ticket.alert"] == [0, 0, 0, 0]


def test_a_kdc_that_is_away_is_one_message_of_all_principals(fleet: Fleet) -> None:
    renew({"a": LATE, "b": LATE})

    [(_, text)] = notifiers.told
    assert text.endswith("the KDC is away. And so for 1 more: b")


def test_a_task_of_one_principal_ends_no_event_of_another(fleet: Fleet) -> None:
    renew({"a": LATE}, "a")
    renew({"b": GOOD}, "b")

    assert len(notifiers.told) == 1


def test_a_keytab_that_fails_its_check_is_one_event(fleet: Fleet) -> None:
    finding = KeytabFinding(FindingKind.KEY_REFUSED, Severity.ERROR, "The KDC refuses its key.", "Fetch a new one.")
    refused = KeytabCheck(KeytabPlace("etl@EXAMPLE.COM", "/etc/etl.keytab"), (finding,))
    good = replace(refused, findings=())
    task = CheckKeytabs(task_id="check", cluster_conn_id="prod")
    for task.found in (good, refused, refused, good):
        with suppress(AirflowFailException):
            task.execute(context())

    begin, end = (text for _, text in notifiers.told)
    subject = "prod: a keytab can't be used (etl@EXAMPLE.COM, /etc/etl.keytab): "
    assert begin == f"{subject}The KDC refuses its key. Fetch a new one."
    assert end.startswith("prod: the keytab can be used (etl@EXAMPLE.COM, /etc/etl.keytab), after ")
    assert fleet.gauges["kstream.prod.etl_EXAMPLE_COM.keytab.unusable"] == [0, 1, 1, 0]


def test_stuck_files_are_one_event_of_each_path(fleet: Fleet) -> None:
    """A dry run tells nobody, and a task of one path ends no event of another."""
    for path, stuck, dry_run in (
        ("/a", 2, True),
        ("/a", 2, False),
        ("/a", 3, False),
        ("/b", 0, False),
        ("/a", 0, True),
        ("/a", 0, False),
    ):
        task = Recover(task_id="recover", cluster_conn_id="prod", path=path, dry_run=dry_run)
        task.stuck = stuck
        task.execute(context())

    begin, end = (text for _, text in notifiers.told)
    assert begin.startswith("prod: stuck files are left alone (/a): 2 of them; ")
    assert end.startswith("prod: no stuck file is left alone (/a), after ")
    assert fleet.gauges["kstream.prod./a.lease.stuck_files_left_alone"] == [2, 3, 0]


def test_what_tasks_find_is_kept_for_pages(fleet: Fleet) -> None:
    renew({"a": GOOD, "b": LATE})
    task = CheckKeytabs(task_id="check", cluster_conn_id="prod")
    task.found = KeytabCheck(KeytabPlace("etl@EXAMPLE.COM", "/etc/etl.keytab"), ())
    task.execute(context())

    kept = {key: value for (uri, key), value in fleet.store.items() if uri == asset_uri("prod")}
    assert kept["ticket a"]["state"] == "fresh"
    assert (kept["ticket b"]["alert"], kept["ticket b"]["error"]) == (True, "the KDC is away")
    assert kept["keytab etl@EXAMPLE.COM /etc/etl.keytab"]["findings"] == []


def test_a_store_that_fails_costs_no_task_its_work(fleet: Fleet) -> None:
    def fail(uri: str) -> None:
        raise OSError("the database is away")

    fleet.at_tasks_write = fail
    renew({"a": GOOD})
    assert fleet.told("can't be stored, so pages may show it late")
