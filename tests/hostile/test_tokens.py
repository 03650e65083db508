"""A job that asks for more than its user's tokens, and tokens that are pushed to make a stream die.

Mallory wrote the driver, which answers whatever helps most, and may write where somebody opened a stream's folder.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import pytest

from airflow_kstream.clients.spark_rpc import DriverRpc
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.jobs.kstream_driver import StateFolder
from airflow_kstream.jobs.kstream_tokens import Fresh, Receiver, Refused
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.contract import applied_marker, refused_marker
from airflow_kstream.model.streams.plan import Push
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.run import ActionLog
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.restart.token_pushes import _tell_answer, push_tokens
from airflow_kstream.supervise.tokens.push import push_to_driver
from tests.simulated.hadoop_files import HadoopFiles, spark_session
from tests.simulated.life import Life
from tests.simulated.lying_driver import LyingDriver
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.silent import SilentYarn
from tests.simulated.token_cases import HDFS

GATEWAY = Identity("gateway@EXAMPLE.COM", "/gateway.keytab")
# Both ways end before a server makes anything: the first thing that making a token would need is not there.
WOULD_BE_MADE = "hadoop_conf_dir"


def pusher() -> ClusterSession:
    """A principal that may impersonate everybody, even HDFS's superuser."""
    clock = SimClock()
    return replace(session_of(SimHdfs(clock, whoami="gateway"), SimYarn(clock, whoami="gateway")), identity=GATEWAY)


def running(session: ClusterSession, user: str) -> Application:
    return cast(SimYarn, session.yarn).start(frozenset({"kstream", "kstream-stream-orders"}), user=user)


def push(session: ClusterSession, app: Application, driver: LyingDriver) -> None:
    push_to_driver(session, app, cast(DriverRpc, driver), HDFS.service, shorten=True)


@pytest.mark.parametrize(
    ("owner", "real_user"),
    [("hdfs", GATEWAY.principal), ("alice", GATEWAY.principal), (GATEWAY.principal, "")],
    ids=["HDFS's superuser", "another user", "the pusher itself"],
)
def test_no_driver_gets_a_token_of_anybody_whom_it_names(owner: str, real_user: str) -> None:
    session, driver = pusher(), LyingDriver(owner, real_user)
    with pytest.raises(Denied, match="YARN runs it as mallory, and the token would be "):
        push(session, running(session, "mallory"), driver)
    assert driver.sent == []


@pytest.mark.parametrize(("owner", "real_user"), [("mallory", GATEWAY.principal), (GATEWAY.principal, "")])
def test_an_honest_job_gets_its_own(owner: str, real_user: str) -> None:
    session = pusher()
    user = "gateway" if owner == GATEWAY.principal else owner
    with pytest.raises(InvalidInput, match=WOULD_BE_MADE):
        push(session, running(session, user), LyingDriver(owner, real_user))


class TestAStreamsPush:
    """Its generation's application, as some server tells it, runs as somebody else."""

    def pushed(self, life: Life, runs_as: str) -> str:
        """Push to generation 1, whose application YARN runs as this user; return what was told of it."""
        seen = observe(life.run)
        seen = replace(
            seen, applications=tuple((number, replace(app, user=runs_as)) for number, app in seen.applications)
        )
        assert seen.current
        told: list[str] = []
        push_tokens(life.run, seen, Push(1, seen.current.id, "due"), ActionLog(life.run.session, told.append))
        return told[-1]

    def test_nothing_is_made_for_another_users_application(self, life: Life) -> None:
        life.begin()
        told = self.pushed(life, "mallory")
        assert "YARN runs it as mallory, and the token would be streamer's" in told
        (note,) = (name for name in life.run.folder.names() if name.startswith("unpushed-"))
        assert "YARN runs it as mallory" in json.loads(life.run.folder.text(note))["why"]

    def test_its_own_gets_some(self, life: Life) -> None:
        life.begin()
        assert WOULD_BE_MADE in self.pushed(life, "streamer")

    @pytest.mark.parametrize("runs_as", ["", "yarn-streamer"])
    def test_while_no_resourcemanager_tells_it_is_pushed_all_the_same(self, life: Life, runs_as: str) -> None:
        """Its application is the claim's owner's, or none would be seen. YARN's name for us may not be HDFS's."""
        life.begin()
        away = SilentYarn(life.clock, life.yarn.apps)
        life.run = replace(life.run, session=replace(life.run.session, yarn=cast(ResourceManager, away)))
        assert WOULD_BE_MADE in self.pushed(life, runs_as)


class TestAPushThatWouldKillAStream:
    """A file with the true identifier of a younger token, and a wrong password."""

    FOLDER = "/kstream/orders-0badcafe"

    def driver(self, hdfs: HadoopFiles) -> tuple[Receiver, NameNodeThatKnows]:
        context, tokens = spark_session(hdfs, {}).sparkContext, NameNodeThatKnows(b"good")
        context._jvm.org.apache.hadoop.security = None
        receiving = Receiver(context, StateFolder(context, self.FOLDER), 3)
        receiving._tokens = tokens  # type: ignore[assignment]
        return receiving, tokens

    @pytest.fixture
    def hdfs(self) -> HadoopFiles:
        """A folder that somebody opened: what the stream's user wrote can be moved, whose owner it keeps."""
        hdfs = HadoopFiles(acts="streamer")
        hdfs.make("/kstream", "airflow", 0o1777)
        hdfs.make(self.FOLDER, "streamer", 0o777)
        hdfs.make(f"{self.FOLDER}/tokens", "streamer", 0o777)
        return hdfs

    def announce(self, hdfs: HadoopFiles, number: int, content: bytes) -> None:
        hdfs.write(f"{self.FOLDER}/push-000003-{number}-9999999999")
        hdfs.write(f"{self.FOLDER}/tokens/000003-{number}", content)

    def test_it_replaces_no_good_token_and_the_next_good_one_is_used(self, hdfs: HadoopFiles) -> None:
        receiving, tokens = self.driver(hdfs)
        self.announce(hdfs, 1, b"wrong password")
        receiving.look()
        assert tokens.used == []
        assert b"the NameNode does not take it" in hdfs.entries[f"{self.FOLDER}/refused-000003-1"].content
        self.announce(hdfs, 2, b"good")
        receiving.look()
        assert tokens.used == [b"good"]


class NameNodeThatKnows:
    """What Spark does with tokens, of which the NameNode takes only these."""

    def __init__(self, good: bytes) -> None:
        self._good = good
        self.used: list[bytes] = []

    def tried(self, content: bytes) -> Fresh:
        if content != self._good:
            raise Refused("the NameNode does not take it")
        return Fresh([], content, known=False)

    def use(self, fresh: Fresh) -> None:
        self.used.append(fresh.content)

    def executors(self) -> list[str]:
        return []


@pytest.mark.parametrize("told", [{"executors": 5}, {"executors": None}, {}, 7], ids=str)
def test_no_answer_of_a_driver_keeps_a_push_from_being_told(life: Life, told: object) -> None:
    life.begin()
    push = TokenPush(1, 1000)
    life.run.folder.put(applied_marker(push), json.dumps(told))
    life.run.folder.put(refused_marker(push), json.dumps({"why": ["both", "at once"]}))
    lines: list[str] = []
    _tell_answer(life.run, push, Push(1, "application_1_0001", "due"), ActionLog(life.run.session, lines.append))
    assert any("takes them" in line for line in lines)
