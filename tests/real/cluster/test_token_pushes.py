"""Jobs without a keytab that outlive the tokens of their submission, each as one application."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.tokens import cancel_by_identifier, mint
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.kerberos.credentials_file import credentials_file
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.contract import push_file, pushes, tokens_file
from airflow_kstream.model.streams.stream import ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.token_push import Pushes, TokenPush
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.restart.token_pushes import cancel_pushed, fresh_tokens
from tests.live.streams import (
    JOBS,
    PUSHABLE_BY_HAND,
    UNAWARE,
    await_that,
    look,
    rate_stream,
    reconciler,
)
from tests.live.token_pushes import (
    LONG_HENCE,
    committed,
    launch_identifiers,
    lay,
    push,
    refreshed,
    require_pushable_by_hand,
    why_refused,
)

# Its messages are sealed, and its executors come and go.
AUTHENTICATED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
}
FILESYSTEMS = "spark.kerberos.access.hadoopFileSystems"


def announced(supervisor: Reconciler, *, folder: bool = False) -> TokenPush:
    """Announce a push whose file is gone, or a folder."""
    made = TokenPush(1, time.time_ns() // 1_000_000, LONG_HENCE)
    if folder:
        supervisor.session.hdfs.make_folder(f"{supervisor.stream.folder}/{tokens_file(made)}", "700")
    supervisor.subject.folder.put(push_file(made), "{}")
    return made


@pytest.mark.parametrize(
    ("spec", "who"),
    [
        (rate_stream("pushed", TicketCredentials(refresh=True), application=UNAWARE), "streamer"),
        (
            rate_stream(
                "pushed-for",
                ProxyUserCredentials(getuser(), refresh=True),
                application=str(JOBS / "two_queries.py"),
                checkpoints=tuple(f"/user/{getuser()}/pushed-for/{name}/checkpoint" for name in ("one", "two")),
                conf=AUTHENTICATED,
            ),
            "gateway",
        ),
    ],
    ids=[
        "ticket, a job that knows nothing of it",
        "proxy user, the two lines, two queries, spark.authenticate and dynamic allocation",
    ],
)
def test_a_job_outlives_its_launch_tokens(minicluster: Minicluster, spec: StreamSpec, who: str) -> None:
    """Push, cancel what it was launched with, fail over: new connections need what was pushed, and it commits on.

    Its executor is killed right before the push, so that another one starts with it.
    """
    with refreshed(minicluster, spec, who) as supervisor:
        session, conf = supervisor.session, HadoopConf(str(supervisor.session.cluster.hadoop_conf_dir))
        before = look(session, spec)
        assert before.current
        assert before.claim
        assert [str(token) for token in before.claim.credentials.tokens or ()] == [
            "HDFS_DELEGATION_TOKEN of ha-hdfs:kstream"
        ]
        launched = launch_identifiers(minicluster, before.current.id)
        assert launched
        kill_an_executor(before.current.id)
        assert "executors use them" in push(supervisor)
        await_executors_took_tokens(minicluster, before.current.id)
        for _, identifier in launched:
            cancel_by_identifier(conf, session.cluster.default_fs, session.identity, identifier)
        minicluster.failover()
        commits = committed(session, spec)
        await_that(
            lambda: all(now > then + 3 for now, then in zip(committed(session, spec), commits, strict=True)),
            "it commits on",
        )
        after = look(session, spec)
        assert after.current
        assert after.current.id == before.current.id
        assert session.hdfs.list(f"{supervisor.stream.folder}/tokens") == ()
    folder = supervisor.subject.folder
    assert cancel_pushed(supervisor.subject, folder.names(), 1) == 1
    assert pushes(folder.names(), 1) == Pushes()


def kill_an_executor(application: str) -> None:
    """Kill the JVM of its first executor, which no ApplicationMaster's container is."""
    first = executors_of(application)[f"{application.replace('application', 'container')}_01_000002"]
    for pid in first:
        os.kill(pid, signal.SIGKILL)


def await_executors_took_tokens(minicluster: Minicluster, application: str) -> None:
    """Wait for the executors that run now: one that registers at a push has its tokens when they are sent again."""
    logs = minicluster.root / "logs" / "containers" / application
    for container in executors_of(application):
        await_that(
            lambda log=logs / container / "stderr": "Received tokens of" in log.read_text(errors="replace"),  # type: ignore[misc]
            f"{container} has its tokens",
        )


def executors_of(application: str) -> Mapping[str, list[int]]:
    """Return the processes of each executor that runs, by its container."""
    container = re.compile(rf"{application.replace('application', 'container')}_\d+_\d+")
    found = defaultdict(list)
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = file.read_text(errors="replace")
            if "YarnCoarseGrainedExecutorBackend" in command and (its := container.search(command)):
                found[its[0]].append(int(file.parent.name))
    return found


def test_a_driver_refuses_what_renews_none_of_its_tokens_and_runs_on(minicluster: Minicluster) -> None:
    """Garbage, another user's token, another nameservice's, an older one, one that is gone; and supervisors that push
    at once."""
    spec = rate_stream("refusing", TicketCredentials(refresh=True), conf=PUSHABLE_BY_HAND)
    with refreshed(minicluster, spec, "streamer") as supervisor:
        session, conf = supervisor.session, HadoopConf(str(supervisor.session.cluster.hadoop_conf_dir))
        older = fresh_tokens(supervisor.subject, look(session, spec).claim)
        gateway = Identity(minicluster.principal("gateway"), str(minicluster.keytab("gateway")))
        hers = mint(conf, session.cluster.default_fs, gateway)
        elsewhere = replace(older[0], service="ha-hdfs:elsewhere")
        # An edit of its declaration concerns the next generation: this driver has no token of what it names.
        edited = replace(spec, conf={**spec.conf, FILESYSTEMS: f"hdfs://{conf.namenode_rpcs()[0]}"})
        with reconciler(minicluster, edited) as later:
            assert "executors use them" in push(later)
        whys = [
            why_refused(supervisor, lay(supervisor, content))
            for content in (
                b"no tokens",
                credentials_file((hers,)).reveal(),
                credentials_file((elsewhere,)).reveal(),
                credentials_file(older).reveal(),
            )
        ]
        words = ("not a credentials file", "somebody else", "has no token for", "not younger")
        assert [word for word, why in zip(words, whys, strict=True) if word not in why] == [], whys
        for folder in (False, True):
            assert "it was taken back" in why_refused(supervisor, announced(supervisor, folder=folder))
        with reconciler(minicluster, spec) as other, ThreadPoolExecutor() as pool:
            told = [*pool.map(push, (supervisor, other))]
        assert any("executors use them" in each for each in told), told
        ends = ("executors use them", "uses newer ones already", "checking again")
        assert all(any(end in each for end in ends) for each in told), told
        assert pushes(supervisor.subject.folder.names(), 1).vain == ()
        minicluster.kill("kdc")
        try:
            assert "pushed no tokens" in push(supervisor)
        finally:
            minicluster.start("kdc")
        seen = look(session, spec)
        assert seen.current
        assert seen.current.alive
        require_pushable_by_hand(supervisor, seen.current.id)
        assert session.hdfs.list(f"{supervisor.stream.folder}/tokens") == ()
