"""A keytab rotates under a running stream: its end is predicted, comes as predicted, or a restart prevents it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from airflow_kstream.cli.tickets import check
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import RestartAborted
from airflow_kstream.model.kerberos.keytab import FindingKind, LoginResult
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.doctor.keytabs import AffectedStream, KeytabCheck, check_keytabs
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.triage.scan import own_catalogue, triage_path
from tests.live.brief_clusters import brief_cluster
from tests.live.streams import (
    BRISK_RESTART,
    await_commits,
    await_that,
    cluster,
    fields,
    kept_logs,
    look,
    rate_stream,
    reconciler,
)

pytestmark = pytest.mark.clusters

INTERVAL = timedelta(seconds=150)
# The log has whole seconds.
SECOND = timedelta(seconds=1)
# A batch or two until a connection is opened, and the JVM's exit.
BLUR = timedelta(seconds=30)


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    """A minicluster with one NameNode and short-lived tokens that have to be issued again and again."""
    with brief_cluster(tmp_path_factory.mktemp("brief"), INTERVAL, 3 * INTERVAL) as up:
        yield up


def keytab_stream(minicluster: Minicluster, name: str, who: str) -> StreamSpec:
    """Return a stream whose idle connections close at once: a server never checks the token of an open one again."""
    return rate_stream(
        name,
        KeytabCredentials(minicluster.principal(who), str(minicluster.keytab(who))),
        conf={"spark.hadoop.ipc.client.connection.maxidletime": "100"},
        restart=replace(BRISK_RESTART, adopt_margin=timedelta(seconds=20)),
    )


@contextmanager
def running(minicluster: Minicluster, spec: StreamSpec) -> Iterator[Reconciler]:
    with reconciler(minicluster, spec, who="watcher") as supervisor:
        supervisor.run()
        await_commits(supervisor.session, spec)
        yield supervisor


def checked(minicluster: Minicluster, who: str) -> KeytabCheck:
    with cluster(minicluster, "watcher") as found:
        checks = {check.place.principal: check for check in check_keytabs(found)}
    assert checks[minicluster.principal("watcher")].findings == ()
    return checks[minicluster.principal(who)]


def driver_said(logs: Path, what: str) -> datetime | None:
    """Return the time of the first log line of the driver that contains `what`."""
    for log in sorted(logs.glob("container_*_000001/stderr")):
        for line in log.read_text(errors="replace").splitlines():
            if what in line and (stamp := re.match(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d", line)):
                return datetime.strptime(stamp[0], "%y/%m/%d %H:%M:%S").astimezone(UTC)
    return None


def test_a_stream_whose_key_was_changed_is_named_with_its_hour_and_dies_in_it(
    brief: Minicluster, tmp_path: Path
) -> None:
    spec = keytab_stream(brief, "doomed", "streamer")
    with running(brief, spec) as supervisor:
        assert checked(brief, "streamer").findings == ()
        brief.change_key("streamer")
        rotated = datetime.now(UTC)
        check = checked(brief, "streamer")
        doomed = the_only(check)
        assert (check.kdc.login if check.kdc else None) is LoginResult.KEY_REFUSED
        assert check.findings[0].kind is FindingKind.BEHIND
        assert "the KDC has kvno 2, this keytab kvno 1: it was rotated after" in check.findings[0].words
        assert (
            f"streams that started with it fail at their next renewal: doomed ({doomed.application}) "
            in check.findings[0].words
        )
        assert_the_command_tells(brief, doomed)
        request_restart(supervisor.subject, "try")
        with pytest.raises(RestartAborted, match=r"most likely it was rotated after .*: get a new one.* keeps running"):
            supervisor.run(Mode.WATCH)
        observation = look(supervisor.session, spec)
        assert observation.current is not None
        assert observation.current.alive
        assert doomed.loss is not None
        logs = kept_logs(brief, doomed.application, tmp_path)
        await_that(lambda: not supervisor.session.yarn.application(doomed.application).alive, "it dies")
        died = supervisor.session.yarn.application(doomed.application)
        failed = driver_said(logs, "Failed to update tokens")
        verdict = triage_path(logs, own_catalogue())
        brief.export_keytab("streamer")
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
    print(
        f"\nrotated {rotated:%T}; renewal foretold {doomed.loss.fails_from:%T} to {doomed.loss.fails_by:%T}, "
        f"failed {failed:%T}; death foretold {doomed.loss.dies_from:%T} to {doomed.loss.dies_by:%T}, "
        f"finished {died.finished:%T}"
    )
    assert failed is not None
    assert doomed.loss.fails_from <= failed <= doomed.loss.fails_by + SECOND
    assert died.finished is not None
    assert doomed.loss.dies_from <= died.finished <= doomed.loss.dies_by + BLUR
    assert "Token  has expired" in brief.log("nn1").read_text()
    assert verdict.cause in {"kerberos-key-rotated", "kerberos-preauth-failed"}
    assert {"tokens-not-updated", "hdfs-token-expired"} <= set(verdict.chain)


def test_a_stream_is_restarted_before_the_foretold_end_once_its_keytab_is_there(brief: Minicluster) -> None:
    spec = keytab_stream(brief, "saved", "streamer/edge.kstream.test")
    with running(brief, spec) as supervisor:
        assert supervisor.run(Mode.WATCH).generation == 1
        brief.rotate("streamer/edge.kstream.test")
        observation = look(supervisor.session, spec)
        ends = horizon_of(spec, observation)
        assert ends is not None
        assert ends.hard is not None
        assert (ends.reason, ends.force) == (HorizonReason.KEYTAB_ROTATED, None)
        found = checked(brief, "streamer/edge.kstream.test")
        assert found.findings[0].kind is FindingKind.OLD_KEY_RUNS
        assert the_only(found).stream == "saved"
        report = supervisor.run(Mode.WATCH)
        assert (report.phase in {Phase.RUNNING, Phase.STARTING}, report.generation) == (True, 2)
        await_commits(supervisor.session, spec, generation=2)
        saved = look(supervisor.session, spec)
        after = horizon_of(spec, saved)
        print(f"\nforetold {ends.hard:%T}, generation 2 has committed at {saved.now:%T}")
        first = next(app for number, app in saved.applications if number == 1)
        assert first.finished is not None
        assert first.finished < ends.hard
        assert after is not None
        assert after.reason is HorizonReason.NONE
        assert checked(brief, "streamer/edge.kstream.test").findings == ()
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
        supervisor.run()


def assert_the_command_tells(minicluster: Minicluster, doomed: AffectedStream) -> None:
    app = typer.Typer()
    app.command()(check)
    file = minicluster.root / "cluster.yaml"
    file.write_text(
        yaml.safe_dump({name: said for name, said in asdict(fields(minicluster, "watcher")).items() if said})
    )
    ran = CliRunner().invoke(app, ["--cluster", str(file), "--json"])
    assert ran.exit_code == 1
    said = {each["principal"]: each for each in json.loads(ran.output)}[minicluster.principal("streamer")]
    assert (said["kvno"], said["kdc_kvno"], said["severity"]) == (1, 2, "error")
    assert [each["application"] for each in said["streams"]] == [doomed.application]
    shown = CliRunner().invoke(app, ["--cluster", str(file)], env={"COLUMNS": "240"})
    assert shown.exit_code == 1
    assert "the KDC has kvno 2, this keytab kvno 1" in shown.output


def the_only(check: KeytabCheck) -> AffectedStream:
    assert len(check.streams) == 1
    return check.streams[0]
