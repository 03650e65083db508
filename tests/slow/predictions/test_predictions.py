"""The end of each kind of credentials: foretold by a watcher, let happen, and held against each other.

Idle connections are closed at once in these jobs: a server does not check the token of an open one again, so a busy job
outlives its tokens until it connects anew (tests/slow/faults/test_dead_tokens.py).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.tokens import CLIENT_PROTOCOL
from airflow_kstream.clients.rpc.connection import RemoteError, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.clients.rpc.sasl import protections
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.formats.protobuf import encode
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.spark.spark_tokens import NOT_RENEWED_CONF, rounds_in
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.brief_clusters import brief_cluster
from tests.live.streams import BRISK_RESTART, at_pace, await_commits, await_that, rate_stream, reconciler
from tests.tables import Row

pytestmark = pytest.mark.predictions

# A clock's seconds, a driver's and a busy machine's are less than a twentieth of these.
INTERVAL, LIFE = timedelta(minutes=10), timedelta(minutes=20)
SHORTER = timedelta(minutes=1)
# Of the lifetime.
MOST_ERROR = 0.05
MARGIN = timedelta(seconds=10)
APPLICATION_CLI = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
EDGE = "streamer/edge.kstream.test"
# Seconds. Between two batches HDFS may be away: triggers are multiples of these since 1970 (ProcessingTimeExecutor). A
# job notices the end of its tokens with its next batch.
TRIGGER, LONG_TRIGGER, BATCH, REQUEST = 20, 40, 6, 2
# Of jobs that nothing is done to between two batches.
SHORT_TRIGGER = 5
# SafeModeActionProto of ClientNamenodeProtocol.
LEAVE_SAFE_MODE, ENTER_SAFE_MODE = 1, 2


@dataclass
class Doomed:
    """A stream that nobody restarts. `foretold` is when its end was predicted to be, and for what reason."""

    supervisor: Reconciler
    what: str
    application: str = ""
    foretold: tuple[HorizonReason, datetime] | None = None
    began: datetime | None = None
    table: Row = field(default=print, repr=False)

    @property
    def name(self) -> str:
        return self.supervisor.spec.name

    def predict(self, reason: HorizonReason) -> None:
        """Take the word of one who looks for the first time, as a person does, once it names this reason."""

        def named() -> bool:
            verdict = Watch(self.supervisor.session).round([self.name])[self.name]
            if verdict.credentials.horizon is reason and verdict.credentials.remaining is not None:
                self.foretold = reason, self.supervisor.session.hdfs.now() + verdict.credentials.remaining
            return verdict.credentials.horizon is reason

        await_that(named, f"{self.name} is predicted to end because {reason}", 2 * LIFE.total_seconds())

    def app(self) -> Application:
        return self.supervisor.session.yarn.application(self.application)

    def await_end(self, minicluster: Minicluster, life: timedelta) -> HorizonReason:
        """Wait for the end, and return its reason once it came as it was foretold."""
        await_that(lambda: not self.app().alive, f"{self.name} ends", 4 * LIFE.total_seconds())
        app = self.app()
        assert app.finished is not None
        assert self.foretold is not None
        reason, foretold = self.foretold
        error = (app.finished - foretold) / life
        self.table(reason.name, self.what, f"{foretold:%T}", f"{app.finished:%T}", f"{error:.1%} of {life}")
        assert abs(error) <= MOST_ERROR, f"{self.name}: foretold {foretold}, ended {app.finished}"
        return reason

    def rounds(self, minicluster: Minicluster) -> str:
        logs = (minicluster.root / "logs" / "containers" / self.application).glob("container_*_000001/stderr")
        return "".join(log.read_text(errors="replace") for log in logs)

    def next_round(self, minicluster: Minicluster) -> datetime:
        newest = rounds_in(self.rounds(minicluster))[-1]
        return newest.at + newest.delay


@pytest.fixture
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Minicluster]:
    """A minicluster with one NameNode, whose tokens live for minutes: a renew interval and a life."""
    with brief_cluster(tmp_path / "mortal", *request.param) as up:
        yield up


@pytest.fixture
def doomed(mortal: Minicluster, row: Callable[[str], Row]) -> Iterator[Callable[..., Doomed]]:
    with ExitStack() as streams:

        def begin(what: str, spec: StreamSpec, who: str = "streamer") -> Doomed:
            supervisor = streams.enter_context(reconciler(mortal, spec, who))
            supervisor.run()
            await_commits(supervisor.session, spec)
            made = Doomed(supervisor, what, table=row("predictions"))
            made.application = supervisor.plan()[0].current.id  # type: ignore[union-attr]
            return made

        yield begin


def idle(name: str, credentials: KeytabCredentials | TicketCredentials, **conf: str) -> StreamSpec:
    conf = {"spark.hadoop.ipc.client.connection.maxidletime": "100", **conf}
    return rate_stream(name, credentials, conf=conf, restart=replace(BRISK_RESTART, adopt_margin=MARGIN))


def keytab(minicluster: Minicluster, who: str) -> KeytabCredentials:
    return KeytabCredentials(minicluster.principal(who), str(minicluster.keytab(who)))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mortal", [(INTERVAL, LIFE)], indirect=True, ids=["minutes"])
def test_ends_come_when_they_were_foretold(mortal: Minicluster, doomed: Callable[..., Doomed]) -> None:
    def begin(what: str, spec: StreamSpec, who: str = "streamer") -> Doomed:
        return doomed(what, at_pace(spec, SHORT_TRIGGER), who)

    excluded = {NOT_RENEWED_CONF: "hdfs://kstream"}
    launched = begin("ticket", idle("launched", TicketCredentials()))
    unrenewed = begin("ticket, excludeHadoopFileSystems", idle("unrenewed", TicketCredentials(), **excluded))
    limited = begin("keytab, yarn application -updateLifetime", idle("limited", keytab(mortal, "streamer")))
    rotated = begin("keytab, rotated by its KDC", idle("rotated", keytab(mortal, EDGE)), "watcher")
    launched.predict(HorizonReason.TOKEN_MAX_LIFETIME)
    unrenewed.predict(HorizonReason.NOT_RENEWED)
    limits(mortal, limited.application, INTERVAL)
    limited.predict(HorizonReason.YARN_LIFETIME)
    mortal.rotate(EDGE)
    rotated.predict(HorizonReason.KEYTAB_ROTATED)
    assert {
        unrenewed.await_end(mortal, INTERVAL),
        limited.await_end(mortal, INTERVAL),
        rotated.await_end(mortal, INTERVAL),
        launched.await_end(mortal, LIFE),
    } == set(HorizonReason) - {
        HorizonReason.RENEWAL_ENDED,
        HorizonReason.SHORTER_TOKENS,
        # Nothing on the minicluster has tokens of its own that end before HDFS's.
        HorizonReason.SERVICE_TOKEN,
        # Spark's new executors get the driver's own tokens. For Flink: tests/real/flink/test_watching.py.
        HorizonReason.NO_NEW_WORKERS,
        # A stream whose pushes end is restarted before that: tests/real/cluster/test_token_pushes.py.
        HorizonReason.NOT_PUSHED,
        # This one is ours to end, and the others are none.
        HorizonReason.POLICY_MAX_AGE,
        HorizonReason.UNKNOWN,
        HorizonReason.NONE,
    }


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mortal", [(INTERVAL, LIFE)], indirect=True, ids=["minutes"])
def test_a_driver_that_makes_no_more_tokens_ends_when_it_was_foretold(
    mortal: Minicluster, doomed: Callable[..., Doomed]
) -> None:
    """SPARK-37787 for real: a NameNode in safe mode gives no tokens for some seconds."""
    forgetful = doomed("keytab, safe mode in a round", at_pace(idle("forgetful", keytab(mortal, "streamer")), TRIGGER))
    await_that(lambda: gets_no_tokens_in_a_round(mortal, forgetful), "a round brings no tokens", 5400)
    forgetful.predict(HorizonReason.RENEWAL_ENDED)
    assert forgetful.await_end(mortal, INTERVAL) is HorizonReason.RENEWAL_ENDED


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mortal", [(1.5 * INTERVAL, 3 * INTERVAL)], indirect=True, ids=["minutes"])
def test_a_driver_that_counts_on_longer_tokens_ends_when_it_was_foretold(
    mortal: Minicluster, doomed: Callable[..., Doomed]
) -> None:
    outlived = doomed("keytab, renew interval shortened", at_pace(idle("outlived", keytab(mortal, EDGE)), LONG_TRIGGER))
    shorten(mortal)
    newest = rounds_in(outlived.rounds(mortal))[-1].at
    # Until then its newest tokens may be short ones themselves: nobody outside knows that they came before the change.
    await_that(lambda: datetime.now(UTC) > newest + SHORTER, "its newest tokens have outlived a short one")
    outlived.predict(HorizonReason.SHORTER_TOKENS)
    assert outlived.await_end(mortal, 1.5 * INTERVAL) is HorizonReason.SHORTER_TOKENS


def limits(minicluster: Minicluster, application: str, life: timedelta) -> None:
    words = ("application", "-appId", application, "-updateLifetime", str(int(life.total_seconds())))
    minicluster.hadoop_main(APPLICATION_CLI, *words, as_="streamer").check_returncode()


def gets_no_tokens_in_a_round(minicluster: Minicluster, stream: Doomed) -> bool:
    """Let the NameNode give no tokens while the driver makes a round that lies between two batches.

    Return False when a busy machine was too late for it: the next one may do.
    """
    await_that(lambda: between_batches(stream.next_round(minicluster)), "a round lies between two batches", 2400)
    at, before = stream.next_round(minicluster).timestamp(), len(rounds_in(stream.rounds(minicluster)))
    await_that(lambda: time.time() > at - REQUEST, "the round is near", LIFE.total_seconds())
    set_safe_mode(minicluster, ENTER_SAFE_MODE)
    await_that(lambda: time.time() > at + 1, "the round is over")
    set_safe_mode(minicluster, LEAVE_SAFE_MODE)
    await_that(lambda: len(rounds_in(stream.rounds(minicluster))) > before, "its driver tells of the round")
    return rounds_in(stream.rounds(minicluster))[-1].is_last


def set_safe_mode(minicluster: Minicluster, action: int) -> None:
    """Set it by a request: `hdfs dfsadmin` takes seconds, within which a batch may begin."""
    conf = HadoopConf(str(minicluster.conf_dir))
    superuser = Identity(minicluster.principal("hdfs"), str(minicluster.keytab("hdfs")))
    terms = Terms(CLIENT_PROTOCOL, conf.namenode_principal, protections(conf.rpc_protection))
    with closing(ActiveServer(conf.namenode_rpcs(), superuser, terms)) as namenode:
        (answer,) = namenode.call("set the safe mode", "setSafeMode", [encode({1: action})])
    assert not isinstance(answer, RemoteError), answer


def between_batches(moment: datetime) -> bool:
    return BATCH + REQUEST < moment.timestamp() % TRIGGER < TRIGGER - REQUEST - 1


def shorten(minicluster: Minicluster) -> None:
    """Restart the NameNode with another renew interval, between two batches."""
    name = "dfs.namenode.delegation.token.renew-interval"
    setting = re.compile(rf"(<name>{re.escape(name)}</name>\s*<value>)\d+")
    for file in minicluster.root.rglob("hdfs-site.xml"):
        file.write_text(setting.sub(rf"\g<1>{SHORTER // timedelta(milliseconds=1)}", file.read_text()))
    await_that(lambda: BATCH < time.time() % LONG_TRIGGER < BATCH + 2, "a batch is over")
    minicluster.kill("nn1")
    minicluster.start("nn1")
