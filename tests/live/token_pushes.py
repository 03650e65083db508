"""Jobs whose tokens are pushed to them, and what a test asks of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, KMS_TOKEN
from airflow_kstream.model.streams.contract import push_file, pushes, refused_marker, tokens_file
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Push
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.run import ActionLog
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.restart.token_pushes import push_tokens
from airflow_kstream.supervise.tokens.push import push_by_hand
from tests.live.streams import await_commits, await_that, look, reconciler, require_not_ended

# What was laid there by hand is not refused for its age.
LONG_HENCE = datetime(2100, 1, 1, tzinfo=UTC)


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


def launch_identifiers(minicluster: Minicluster, application: str) -> set[tuple[str, bytes]]:
    """Return kind and identifier of the HDFS and KMS tokens that its first containers were launched with."""
    files = minicluster.root.glob(f"data/containers/usercache/*/appcache/{application}/*/container_tokens")
    contents = [SecretBytes(file.read_bytes()) for file in files]
    return {
        (token.kind, content.reveal()[token.identifier_place])
        for content in contents
        for token in HadoopCredentials.read(content).tokens
        if token.kind in {HDFS_TOKEN, KMS_TOKEN}
    }


def push(supervisor: Reconciler) -> str:
    """Push fresh tokens, and return what was told of it."""
    seen = look(supervisor.session, supervisor.spec)
    assert seen.current
    told: list[str] = []
    story = ActionLog(supervisor.session, told.append)
    push_tokens(supervisor.subject, seen, Push(1, seen.current.id, "the test wants it"), story)
    return told[-1]


def committed(session: ClusterSession, spec: StreamSpec) -> list[int]:
    """Return the last committed batch of each query, while it lives."""
    seen = look(session, spec)
    require_not_ended(spec, seen, 1)
    return [checkpoint.position.commit for checkpoint in seen.checkpoints]


def require_pushable_by_hand(supervisor: Reconciler, application: str, *others: str) -> None:
    """Push over Spark's RPC, which the driver's receiver knows nothing of; what is pushed by hand is recorded, too.

    The job has to be one that is PUSHABLE_BY_HAND.
    """
    session, client = supervisor.session, find_spark_submit()
    pushed = push_by_hand(session, application, client, shorten=False)
    assert (pushed.stream, pushed.others) == (supervisor.spec.name, others)
    assert pushed.old.sequence_number < pushed.new.sequence_number
    confirmed = pushes(supervisor.subject.folder.names(), 1).confirmed
    assert confirmed is not None
    assert confirmed.until == pushed.end.replace(microsecond=0)


def lay(supervisor: Reconciler, content: bytes) -> TokenPush:
    """Announce a file of these bytes, as somebody might who can write in the stream's folder."""
    made = TokenPush(1, time.time_ns() // 1_000_000, LONG_HENCE)
    supervisor.subject.folder.put_tokens(tokens_file(made), SecretBytes(content))
    supervisor.subject.folder.put(push_file(made), "{}")
    return made


def why_refused(supervisor: Reconciler, made: TokenPush) -> str:
    folder, name = supervisor.subject.folder, refused_marker(made)
    await_that(lambda: name in folder.names(), "its driver refuses it")
    return str(json.loads(folder.text(name))["why"])
