"""Jobs without a keytab that outlive the tokens of their submission, each as one application."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.token_mint import cancel_by_identifier
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.contract import pushes
from airflow_kstream.model.credentials_file import HadoopCredentials
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.plan import Push
from airflow_kstream.model.stream import ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.desired import set_desired
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.token_pushes import cancel_pushed, push_tokens
from tests.cluster.streams import await_commits, await_that, look, rate_stream, reconciler

UNAWARE = str(Path(__file__).with_name("jobs") / "plain_rate.py")


@contextmanager
def refreshed(minicluster: Minicluster, spec: StreamSpec, who: str) -> Iterator[Reconciler]:
    """The stream, past its first commit, whose driver has shown that it takes tokens; stopped at the end."""
    with reconciler(minicluster, spec, who) as supervisor:
        supervisor.run()
        await_commits(supervisor.session, spec)
        supervisor.run(Mode.WATCH)
        await_that(lambda: pushes(look(supervisor.session, spec).files, 1).answers, "its driver answers the test")
        try:
            yield supervisor
        finally:
            set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
            supervisor.run()


def launch_identifiers(minicluster: Minicluster, application: str) -> set[bytes]:
    """Return the identifiers of the HDFS tokens that its first containers were launched with."""
    files = minicluster.root.glob(f"data/containers/usercache/*/appcache/{application}/*/container_tokens")
    contents = [SecretBytes(file.read_bytes()) for file in files]
    return {
        content.reveal()[token.identifier_place]
        for content in contents
        for token in HadoopCredentials.read(content).tokens
        if token.is_of_namenode
    }


def push(supervisor: Reconciler) -> None:
    seen = look(supervisor.session, supervisor.spec)
    assert seen.current
    push_tokens(supervisor.subject, seen, Push(1, seen.current.id, "the test wants it"), supervisor._story)
    last = supervisor._story.done[-1]
    assert "executors use them" in last.what, last


@pytest.mark.parametrize(
    ("spec", "who"),
    [
        (rate_stream("pushed", TicketCredentials(refresh=True), application=UNAWARE), "streamer"),
        (rate_stream("pushed-for", ProxyUserCredentials(getuser(), refresh=True)), "gateway"),
    ],
    ids=["ticket, a job that knows nothing of it", "proxy user, the two lines"],
)
def test_a_job_outlives_its_launch_tokens(minicluster: Minicluster, spec: StreamSpec, who: str) -> None:
    """Push, cancel what it was launched with, fail over: new connections need what was pushed, and it commits on."""
    with refreshed(minicluster, spec, who) as supervisor:
        session, conf = supervisor.session, HadoopConf(str(supervisor.session.cluster.hadoop_conf_dir))
        before = look(session, spec)
        assert before.current
        launched = launch_identifiers(minicluster, before.current.id)
        assert launched
        push(supervisor)
        for identifier in launched:
            cancel_by_identifier(conf, session.cluster.default_fs, session.identity, identifier)
        minicluster.failover()
        position = look(session, spec).checkpoints[0].position.commit
        await_that(
            lambda: look(session, spec).checkpoints[0].position.commit > position + 3, "it commits on", seconds=120
        )
        after = look(session, spec)
        assert after.current
        assert after.current.id == before.current.id
        assert session.hdfs.list(f"{supervisor.stream.folder}/tokens") == ()
    assert cancel_pushed(supervisor.subject, look_names(supervisor), 1) == 1


def look_names(supervisor: Reconciler) -> frozenset[str]:
    return supervisor.subject.folder.names()
