"""Each alert fires and ends on a real Airflow and a real cluster: causes are made, told, undone, and told again.

Not made here: `environment` needs three streams that end within ten minutes, `queued_too_long` a full queue. Their
tests are in virtual time: tests/simulation/test_fleets.py and tests/airflow/test_waiting_tasks.py. That a killed
triggerer is an alert of Prometheus is seen in tests/slow/monitoring.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.streams.event import EventKind
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.model.streams.stream_policies import FailurePolicy, RestartPolicy
from tests.live.airflow import CONNECTION
from tests.live.lease_commands import await_leases_worn_off
from tests.live.streams import await_that
from tests.live.writers import writer
from tests.slow.alerts.conftest import Forgotten, brisk
from tests.slow.alerts.told import Alerts

pytestmark = pytest.mark.alerts

CONTROL = f"control-{CONNECTION}"
_KILL = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"


def freezes(alerts: Alerts, action: str) -> None:
    form: dict[str, object] = {"action": action, "reason": "an upgrade", "lasts": "6d"}
    assert alerts.run(CONTROL, form) == "success"


def test_a_freeze_into_which_a_restart_falls(alerts: Alerts, watched: StreamSpec) -> None:
    with alerts.cause(EventKind.FROZEN, "frozen for 6 days by the form", lambda: freezes(alerts, "unfreeze")):
        freezes(alerts, "freeze")


def test_a_stream_that_makes_no_progress(alerts: Alerts, watched: StreamSpec) -> None:
    frozen = alerts.executors(watched)
    assert frozen

    def wake() -> None:
        for process in frozen:
            process.resume()

    with alerts.cause(EventKind.STALLED, "its executor was frozen", wake):
        for process in frozen:
            process.pause()


def test_a_stream_that_nobody_can_see(alerts: Alerts, watched: StreamSpec) -> None:
    folder = alerts.folder(watched)
    with alerts.cause(EventKind.BLIND, "its folder was made unreadable", lambda: alerts.dfs("-chmod", "755", folder)):
        alerts.dfs("-chmod", "000", folder)


def test_a_cluster_that_does_not_answer(alerts: Alerts, watched: StreamSpec) -> None:
    both = ("rm1", "rm2")

    def back() -> None:
        for name in both:
            alerts.minicluster.start(name)

    with alerts.cause(EventKind.UNREACHABLE, "both ResourceManagers were killed", back):
        for name in both:
            alerts.minicluster.kill(name)


def test_a_stream_that_a_person_killed(alerts: Alerts, watched: StreamSpec) -> None:
    app = alerts.application(watched).id

    def start() -> None:
        assert alerts.airflow.control(watched.name, "start", "it is wanted again") == "success"

    with alerts.cause(EventKind.KILLED, "killed by the user hdfs", start):
        killed = alerts.minicluster.hadoop_main(_KILL, "application", "-kill", app, as_="hdfs")
        assert killed.returncode == 0, killed.stderr


def test_a_restart_that_is_blocked_and_overdue(alerts: Alerts) -> None:
    """It is due after half of its age, and its folder can't be written."""
    age = RestartPolicy(plan_ratio=0.5, jitter_ratio=0.0, max_age=timedelta(minutes=5))
    spec = brisk("aged", restart=age)
    alerts.declare(spec)
    folder, how = alerts.folder(spec), "its folder was made read-only"
    alerts.dfs("-chmod", "555", folder)
    began = time.time()
    blocked = alerts.wait_for_begin(EventKind.BLOCKED, began)
    overdue = alerts.wait_for_begin(EventKind.OVERDUE, began)
    undone = time.time()
    alerts.dfs("-chmod", "755", folder)
    for kind, told in ((EventKind.BLOCKED, blocked), (EventKind.OVERDUE, overdue)):
        alerts.row(kind.value, f"{how}, due after 150 s", f"{told:.0f}", f"{alerts.wait_for_end(kind, undone):.0f}")
    assert alerts.airflow.control(spec.name, "stop", "the test is over") == "success"


@pytest.mark.timeout(3000)
def test_a_stream_that_dies_at_each_start(alerts: Alerts) -> None:
    """Its job may not write its table. Three starts in vain take ten minutes on a busy machine."""
    quick = FailurePolicy(
        backoff=timedelta(seconds=1), repeats=3, repeated_over=timedelta(), probe_every=timedelta(minutes=1)
    )
    spec = brisk("dying", failure=quick)
    table = f"{spec.arguments[0]}/table"
    alerts.dfs("-mkdir", "-p", spec.arguments[0], as_="streamer")
    alerts.dfs("-mkdir", table)

    def allow() -> None:
        alerts.dfs("-chmod", "777", table)

    with alerts.cause(EventKind.BREAKER, "its job may not write", allow, within=1800):
        alerts.airflow.declare(spec)
    assert alerts.airflow.control(spec.name, "stop", "the test is over") == "success"


def test_a_keytab_that_was_rotated(alerts: Alerts) -> None:
    """The old generation runs on for as long as its tokens do; the restart comes at its planned time, or by a word."""
    principal = alerts.minicluster.principal("etl")
    alerts.minicluster.add_principal("etl")
    alerts.dfs("-mkdir", "-p", "/user/etl")
    alerts.dfs("-chown", "etl", "/user/etl")
    keytab = KeytabCredentials(principal, str(alerts.minicluster.keytab("etl")))
    late = RestartPolicy(jitter_ratio=0.2)
    folder = "/user/etl/rotated"
    spec = brisk("rotated", restart=late)
    spec = replace(
        spec, credentials=keytab, arguments=(folder, *spec.arguments[1:]), checkpoints=(f"{folder}/checkpoint",)
    )
    # Its user is no member of the group that may create in state_dir.
    for made in (alerts.folder(spec), f"{alerts.folder(spec).rpartition('/')[0]}/orders.etl"):
        alerts.dfs("-mkdir", made)
        alerts.dfs("-chown", "etl", made)
    alerts.declare(spec)

    def restart() -> None:
        assert alerts.airflow.control(spec.name, "restart", "its keytab was rotated") == "success"

    with alerts.cause(EventKind.KEYTAB_ROTATED, "the principal got a new key", restart):
        alerts.minicluster.rotate("etl")
    assert alerts.airflow.control(spec.name, "stop", "the test is over") == "success"


def test_a_stream_without_a_file(alerts: Alerts, watched: StreamSpec) -> None:
    dag_id = f"undeclared-{CONNECTION}"
    file = alerts.airflow.root / "streams" / CONNECTION / f"{watched.name}.yaml"
    text = file.read_text()
    assert alerts.run(dag_id) == "success"

    def back() -> None:
        file.write_text(text)
        await_that(lambda: alerts.run(dag_id) == "success" and ended(alerts, EventKind.UNDECLARED), "it is declared")

    with alerts.cause(EventKind.UNDECLARED, "its file was removed", back):
        file.unlink()
        await_that(lambda: alerts.run(dag_id) == "success" and begun(alerts, EventKind.UNDECLARED), "it is noticed")


def begun(alerts: Alerts, kind: EventKind) -> bool:
    return f'"kind": "{kind.value}", "ended": false' in alerts.told.read_text()


def ended(alerts: Alerts, kind: EventKind) -> bool:
    return f'"kind": "{kind.value}", "ended": true' in alerts.told.read_text()


def test_stuck_files_that_are_left_alone(alerts: Alerts) -> None:
    """Their holder lives and has forgotten one: only a person may say that it may be closed."""
    folder, dag_id = "/tmp/alerts", f"leases-{CONNECTION}"
    leaked = f"{folder}/leaked"
    alerts.airflow.write_declaration("leases", CONNECTION, {"paths": [folder], "min_age": "1s", "every": "30d"})
    alerts.dfs("-mkdir", folder, as_="streamer")
    assert alerts.airflow.end(dag_id, alerts.airflow.scheduled(dag_id)) == "success"
    form: dict[str, object] = {"paths": [folder], "min_age": "1s", "leak_after": "1s"}

    def approve() -> None:
        assert alerts.run(dag_id, {**form, "approve": [leaked]}) == "success"

    with writer(alerts.minicluster) as living:
        living.leave(leaked, 500)
        living.leave(f"{folder}-other", 10)
        living.abandon(leaked)
        await_leases_worn_off(alerts.minicluster)
        with alerts.cause(EventKind.STUCK, "its holder lives and has forgotten it", approve):
            assert alerts.run(dag_id, form) == "success"


def test_tickets_and_keytabs_that_end(alerts: Alerts) -> None:
    """Its key is changed, so its keytab is of no use; then it is exported again."""
    minicluster = alerts.minicluster
    minicluster.add_principal("ops")
    renewal, check = f"tickets-{CONNECTION}", f"keytabs-{CONNECTION}"
    named = [{"principal": minicluster.principal("ops"), "keytab": str(minicluster.keytab("ops"))}]
    caches = alerts.airflow.root / "caches"
    declaration = {"principals": named, "folder": str(caches), "every": "30d", "check_every": "30d"}
    alerts.airflow.write_declaration("tickets", CONNECTION, declaration)

    def renew() -> None:
        minicluster.export_keytab("ops")
        assert alerts.run(renewal) == "success"

    with alerts.cause(EventKind.TICKET, "its keytab has an old key", renew):
        minicluster.change_key("ops")
        assert alerts.run(renewal) == "failed"

    def repair() -> None:
        minicluster.export_keytab("ops")
        assert alerts.run(check) == "success"

    with alerts.cause(EventKind.KEYTAB, "its keytab has an old key", repair):
        minicluster.change_key("ops")
        assert alerts.run(check) == "failed"


# Its twenty minutes began before the first test.
@pytest.mark.timeout(2400)
def test_a_stream_that_nobody_watches(alerts: Alerts, forgotten: Forgotten) -> None:
    """Its restart is overdue by then: that hides it from nobody."""
    told = alerts.wait_for_begin(EventKind.UNWATCHED, forgotten.since, within=1800)
    undone = time.time()
    alerts.airflow.start(forgotten.task.dag_id)
    end = alerts.wait_for_end(EventKind.UNWATCHED, undone)
    alerts.row(EventKind.UNWATCHED.value, "its task was marked as failed, its DAG paused", f"{told:.0f}", f"{end:.0f}")
    assert alerts.airflow.control("forgotten", "stop", "the test is over") == "success"
