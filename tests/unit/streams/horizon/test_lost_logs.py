"""Which generations leave no aggregated logs, from when, and who is told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.logs.container_log import Process
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.model.streams.stream_policies import RestartPolicy, StopPolicy
from airflow_kstream.policy.streams.horizon.launch_tokens import logs_end, must_be_fetched
from airflow_kstream.supervise.clusters.connection import cluster_of, connection_fields
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.views.streams import streams_table
from airflow_kstream.views.tables import lines
from tests.simulated.engine import FakeEngine
from tests.simulated.life import Life
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, claim_of

KEYTAB = KeytabCredentials("streamer@EXAMPLE.COM", "/etc/streamer.keytab")
DAY, POLICY = timedelta(days=1), RestartPolicy()


@pytest.mark.parametrize("credentials", [TICKET_SPEC.credentials, KEYTAB])
def test_logs_are_aggregated_with_the_tokens_of_the_launch_keytab_or_not(credentials: KeytabCredentials) -> None:
    claim = claim_of(replace(TICKET_SPEC, credentials=credentials), 1, START)
    assert logs_end(POLICY, claim, renewed=True, privileged=False) == START + 7 * DAY
    assert logs_end(POLICY, claim, renewed=False, privileged=False) == START + DAY


def test_a_resourcemanager_with_proxy_user_privileges_makes_other_tokens_for_logs() -> None:
    assert logs_end(POLICY, claim_of(TICKET_SPEC, 1, START), renewed=True, privileged=True) is None


def test_what_can_not_be_known_is_unknown() -> None:
    claim = changed(claim_of(TICKET_SPEC, 1, START), lifetimes=None)
    assert logs_end(POLICY, claim, renewed=True, privileged=False) is None
    assert logs_end(POLICY, None, renewed=True, privileged=False) is None


def test_logs_are_fetched_where_a_stop_could_last_until_they_are_lost() -> None:
    """Its four means take eight minutes at most, by default."""
    end = START + 7 * DAY
    assert not must_be_fetched(StopPolicy(), end, end - timedelta(minutes=9))
    assert must_be_fetched(StopPolicy(), end, end - timedelta(minutes=8))
    assert must_be_fetched(StopPolicy(), end, end + 30 * DAY)
    assert not must_be_fetched(StopPolicy(), None, end)


def shown(verdict: Verdict) -> str:
    """Return the words of its row without the table's borders and line breaks."""
    return " ".join(
        word for line in lines(streams_table({"orders": verdict})) for word in line.split() if word.isascii()
    )


def test_status_says_from_when_a_streams_end_leaves_no_logs(life: Life) -> None:
    life.run = changed(life.run, credentials=KEYTAB)
    life.begin()
    verdict = life.watch()
    assert verdict.credentials.logs_left is not None
    assert timedelta(days=6) < verdict.credentials.logs_left <= timedelta(days=7)
    assert verdict.to_json()["logs_seconds"] == verdict.credentials.logs_left.total_seconds()
    assert "its logs are not aggregated if it ends in 7d or later" in shown(verdict)
    assert "its logs are not aggregated when it ends" in shown(changed(verdict, logs_left=-DAY))
    retries = "its logs are not aggregated and its ApplicationMaster can't be started again if it ends in 7d or later"
    assert (
        retries in shown(verdict),
        retries in shown(changed(verdict, may_retry=True)),
    ) == (False, True)


def test_a_horizon_that_takes_the_logs_along_is_shown_without_more_words(life: Life) -> None:
    life.begin()
    verdict = life.watch()
    assert verdict.credentials.logs_left == verdict.credentials.remaining
    assert "aggregated" not in shown(verdict)


def test_what_was_never_submitted_has_no_logs_to_lose(life: Life) -> None:
    assert life.watch().credentials.logs_left is None


@dataclass
class Refusing(FakeEngine):
    """An engine that fails where it is to name the processes whose logs are kept."""

    refused: list[Exception] = field(default_factory=list)
    error: Exception | None = None

    def processes(self, session: ClusterSession, app: Application) -> tuple[Process, ...]:
        assert self.error
        self.refused.append(self.error)
        raise self.error


@pytest.mark.parametrize("error", [Unavailable("it is away"), ZeroDivisionError("a defect")], ids=["server", "defect"])
def test_logs_that_can_not_be_kept_hold_up_no_stop(life: Life, error: Exception) -> None:
    """Real servers refuse in the loopback tests; here one defect of ours is played as well, which none can cause."""
    engine = Refusing(life.hdfs, life.yarn, error=error)
    life.use(life.hdfs, engine)
    slow = replace(life.run.spec.stop, kill_wait=8 * DAY)
    life.run = changed(life.run, stop=slow)
    life.begin()
    life.request_restart()
    assert life.reconcile().generation == 2
    assert engine.refused == [error]


@pytest.mark.parametrize(("value", "privileged"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_the_conf_folder_tells_of_proxy_user_privileges(tmp_path: Path, value: str, privileged: bool) -> None:
    key = "yarn.resourcemanager.proxy-user-privileges.enabled"
    entry = f"<property><name>{key}</name><value>{value}</value></property>"
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{entry}</configuration>")
    for name in ("core-site.xml", "hdfs-site.xml"):
        (tmp_path / name).write_text("<configuration/>")
    given = {
        "principal": "watcher@EXAMPLE.COM",
        "keytab_path": "/no/such/keytab",
        "state_dir": "/kstream",
        "resourcemanagers": "http://rm:8088",
        "namenodes": "http://nn:9870",
        "default_fs": "hdfs://nn",
    }
    with cluster_of("prod", connection_fields("prod", given | {"hadoop_conf_dir": str(tmp_path)})) as cluster:
        assert cluster.client.proxy_user_privileges is privileged
    with cluster_of("prod", connection_fields("prod", given)) as cluster:
        assert not cluster.client.proxy_user_privileges
