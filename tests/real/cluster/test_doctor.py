"""The doctor on the minicluster as it starts by default: what it finds there is true, written down and accepted."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster_facts import (
    ClusterFacts,
    DriverFacts,
    EffectiveConf,
    SparkClient,
    StateDirFacts,
)
from airflow_kstream.model.finding import Baseline
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec, TicketCredentials
from airflow_kstream.policy.doctor.checks import CHECKS, examine
from airflow_kstream.policy.doctor.news import without_accepted
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.doctor.examination import cluster_facts
from airflow_kstream.supervise.doctor.stream_facts import driver_facts
from tests.live import sleepers
from tests.live.cli import cluster_file, ran
from tests.live.streams import await_that, cluster, rate_stream, submit_by_hand
from tests.simulated.values import changed

ACCEPTED = Path(__file__).parents[3] / "airflow_kstream/minicluster/accepted_findings.yaml"
TODAY = date(2026, 12, 1)


@pytest.fixture(scope="module")
def facts(minicluster: Minicluster) -> ClusterFacts:
    with cluster(minicluster, "supervisor") as opened, open_session(opened, opened.watcher) as session:
        found = cluster_facts(session)
        assert isinstance(found.state_dir, StateDirFacts)
        # Those of other tests' streams, which the cluster still knows.
        empty = replace(found.state_dir, folders=(), strangers={})
        return changed(found, streams=(), impersonations=(), state_dir=empty)


def test_every_finding_on_the_default_minicluster_is_written_down_and_accepted(facts: ClusterFacts) -> None:
    report = without_accepted(examine(facts), Baseline.from_yaml(ACCEPTED.read_text()), TODAY)
    assert (report.findings, report.notes) == ((), ())
    known = {"rm-privileges", "nm-recovery", "hdfs-17861", "hdfs-17430", "plain-http", "unbounded"}
    assert {one.finding.id for one in report.accepted} == known
    assert report.undecided == ()
    assert {*report.passed, *report.idle} == {row.id for row in CHECKS} - {one.finding.id for one in report.accepted}


def test_this_host_s_client_and_its_conf_folder_are_known(facts: ClusterFacts) -> None:
    assert isinstance(facts.client, SparkClient)
    assert isinstance(facts.client.conf, EffectiveConf)
    assert facts.client.conf.properties["fs.defaultFS"].value == Minicluster.default_fs
    assert str(facts.client.hadoop) == "3.5.0"


def test_a_command_finds_the_same_and_its_exit_code_and_baseline_are_for_ci(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    here = str(cluster_file(minicluster, "watcher", tmp_path))
    found = ran("doctor", "--cluster", here, "--json")
    ids = [one["id"] for one in found.data["findings"]]
    assert found.code == 1
    assert {"rm-privileges", "nm-recovery"} <= set(ids)
    baseline = tmp_path / "accepted.yaml"
    written = [{"finding": each, "by": "ci", "why": "known", "until": "2099-01-01"} for each in ids]
    baseline.write_text(yaml.safe_dump({"accepted": written}))
    accepted = ran("doctor", "--cluster", here, "--baseline", str(baseline))
    assert (accepted.code, accepted.err) == (0, "")
    assert "accepted until 2099-01-01 by ci: rm-privileges: known" in accepted.out
    page = ran("doctor", "--cluster", here, "--html").out
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert "rm-privileges" in page


def test_an_unknown_stream_is_refused(minicluster: Minicluster, tmp_path: Path) -> None:
    refused = ran("doctor", "--cluster", str(cluster_file(minicluster, "watcher", tmp_path)), "--stream", "nobody")
    assert refused.code == 1
    assert "/kstream has no such stream" in refused.err or "could not be asked" in refused.out


def test_status_shows_each_stream_what_it_has_to_expect_and_when(minicluster: Minicluster, tmp_path: Path) -> None:
    """By what the ResourceManager runs with at that moment, whatever the conf folder says."""
    with cluster(minicluster) as opened, open_session(opened, opened.watcher) as session:
        spec = StreamSpec("expecting", KeytabCredentials(session.identity.principal), "/jobs/orders.py", ())
        stream = sleepers.claim(session, spec, learn_lifetimes(session.hdfs, session.identity))
        claimed = session.hdfs.status(f"{stream.folder}/{claim_file(1)}").modified
        with closing(kerberos_session(session.identity, opened.tls)) as http:
            app = sleepers.submit(session.yarn.active(), http, stream)
        try:
            await_that(lambda: session.yarn.application(app).alive, "it is accepted")
            here = str(cluster_file(minicluster, "streamer", tmp_path))
            told = ran("streams", "status", spec.name, "--cluster", here, "--json").data[spec.name]
        finally:
            session.yarn.kill(app, "the test is over", timedelta(seconds=60))
            session.hdfs.delete(stream.folder, recursive=True)
    ends = claimed + timedelta(days=7)
    assert f"its logs are lost if it ends from {ends:%Y-%m-%d %H:%M} UTC on (rm-privileges)" in told["foretold"]
    assert "it can't replace an executor (staging-missing)" in told["foretold"]


def test_an_application_that_is_no_stream_tells_its_confs_and_its_date(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    """Its environment is its driver's own, and its second attempt would begin with the tokens of its first."""
    spec = rate_stream("doctored", TicketCredentials())
    submit_by_hand(minicluster, spec, "doctored", **{"spark.yarn.maxAppAttempts": "2", "spark.speculation": "true"})
    with cluster(minicluster) as opened, open_session(opened, opened.watcher) as session:
        await_that(lambda: any(app.state == "RUNNING" for app in session.yarn.applications("doctored")), "it runs")
        (app,) = session.yarn.applications("doctored")
        try:
            # It registers before its web server has answered anybody.
            await_that(lambda: isinstance(driver_facts(session, [app.id])[app.id], DriverFacts), "its driver answers")
            here = str(cluster_file(minicluster, "streamer", tmp_path))
            found = ran("doctor", "--cluster", here, "--application-id", app.id, "--json").data
        finally:
            session.yarn.kill(app.id, "the test is over", timedelta(seconds=60))
    findings = {one["id"]: one for one in found["findings"]}
    assert {"second-attempt", "attempt-window:unlimited", "speculation", "token-end"} <= set(findings)
    assert findings["second-attempt"]["proof"] == f"spark.yarn.maxAppAttempts=2 (the environment of {app.id})"
    assert app.started is not None
    (concern,) = findings["second-attempt"]["concerns"]
    assert concern["since"] is not None
