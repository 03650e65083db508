"""Faults around a push of fresh tokens, on a cluster whose tokens end two minutes after the last renewal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.contract import pushes, stopped_marker
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import RefreshPolicy
from airflow_kstream.model.streams.token_push import Pushes, TokenPush
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.horizon.refresh import refreshed
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.live.faults.cluster import faulty_cluster
from tests.live.faults.kept import Clock, Kept, brisk_stream, kept
from tests.live.faults.proxies import Moment, Proxies, Request
from tests.live.faults.table import Tell
from tests.live.streams import BRISK_RESTART, UNAWARE, await_that

pytestmark = pytest.mark.faults

INTERVAL, LIFE = timedelta(minutes=2), timedelta(minutes=6)
JOBS = Path(__file__).with_name("jobs")
# A restart, or the first push, is due after two and a half minutes of six.
EARLY = replace(BRISK_RESTART, plan_ratio=0.4)
REFRESH = RefreshPolicy(confirm_within=timedelta(seconds=20))

Opening = Callable[[StreamSpec], AbstractContextManager[Kept]]


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    root = tmp_path_factory.mktemp("pushes")
    with faulty_cluster(root, "PUSHES.TEST", token_life=LIFE, renew_interval=INTERVAL) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def proxies(mortal: Minicluster) -> Iterator[Proxies]:
    opened = Proxies(mortal)
    yield opened
    opened.close()


@pytest.fixture
def opened(mortal: Minicluster, proxies: Proxies, tmp_path: Path) -> Opening:
    """How to open a stream, which runs past its first commit and is stopped at the end."""

    @contextmanager
    def opening(spec: StreamSpec) -> Iterator[Kept]:
        with kept(mortal, proxies, tmp_path, spec) as stream:
            stream.recover()
            try:
                yield stream
            finally:
                set_desired(stream.subject, DesiredState.STOPPED, "the test is over")
                stream.reconciler.run()

    return opening


def pushed_stream(name: str, application: str = UNAWARE, **more: object) -> StreamSpec:
    spec = brisk_stream(name, application=application, restart=EARLY, refresh=REFRESH, **more)
    return replace(spec, credentials=TicketCredentials(refresh=True))


def announces(request: Request) -> bool:
    """Tell whether this makes a push of tokens visible to the driver; the test of the channel brings none."""
    return request.operation == "RENAME" and "/push-" in request.target and not request.target.endswith("-0")


def pushed_so_far(stream: Kept) -> Pushes:
    return pushes(stream.files(), stream.look().generation)


def keep_until(stream: Kept, condition: Callable[[], bool], what: str) -> None:
    """Let supervisors look, one after the other, until the condition holds."""

    def held() -> bool:
        stream.supervisors.begin().succeed()
        return condition()

    await_that(held, what)


def push_is_due(stream: Kept) -> bool:
    seen = stream.look()
    ends = horizon_of(stream.spec, seen)
    return bool(ends and ends.push and seen.now > ends.push)


@contextmanager
def right_after_a_push(stream: Kept) -> Iterator[TokenPush]:
    """Hold a supervisor at the moment at which what it pushes lies there; the driver looks each five seconds."""
    keep_until(stream, lambda: pushed_so_far(stream).answers, "its driver has shown that it takes tokens")
    await_that(lambda: push_is_due(stream), "a push is due")
    with stream.proxies.gate(Moment.ANSWERED, announces) as gate:
        supervisor = stream.supervisors.begin()
        gate.await_request()
        yield pushed_so_far(stream).pushed[-1]
    supervisor.end()


def test_a_push_that_lies_there_while_hdfs_is_away_is_taken_when_it_is_back(opened: Opening, tell: Tell) -> None:
    with opened(pushed_stream("hdfs-away")) as stream:
        app = stream.application(1).id
        with right_after_a_push(stream) as push:
            for namenode in ("nn1", "nn2"):
                stream.minicluster.pause(namenode)
            Clock().pass_until(20)
            for namenode in ("nn1", "nn2"):
                stream.minicluster.resume(namenode)
            clock = Clock()
        await_that(lambda: push.id in pushed_so_far(stream).applied, "its driver takes what lay there")
        require_alive(stream, app)
        stream.conclude(
            tell, "HDFS away while a push lies there", "its driver took it when HDFS was back", clock.seconds
        )


def test_a_push_is_taken_although_the_namenodes_fail_over_before(opened: Opening, tell: Tell) -> None:
    with opened(pushed_stream("fails-over")) as stream:
        app = stream.application(1).id
        with right_after_a_push(stream) as push:
            active = stream.minicluster.failover()
            clock = Clock()
        await_that(lambda: push.id in pushed_so_far(stream).applied, "its driver takes it")
        require_alive(stream, app)
        seen = f"{active} took over; its driver took the tokens, and committed on with them"
        stream.conclude(tell, "NameNode failover between push and apply", seen, clock.seconds)


def test_a_supervisor_that_was_away_for_longer_than_a_renew_interval_restarts_it(opened: Opening, tell: Tell) -> None:
    with opened(pushed_stream("left-alone")) as stream:
        keep_until(stream, lambda: pushed_so_far(stream).confirmed is not None, "its driver uses pushed tokens")
        confirmed = pushed_so_far(stream).confirmed
        assert confirmed
        await_that(lambda: stream.look().now > (confirmed.until or confirmed.at), "what was pushed has ended")
        stream.minicluster.failover()
        clock = Clock()
        stream.keep(2)
        seen = "its pushed tokens ended unreplaced; the next supervisor submitted generation 2"
        stream.conclude(tell, "supervisor away past a renew interval", seen, clock.seconds)


@pytest.mark.parametrize(
    ("job", "trouble", "fault"),
    [
        ("older_helper.py", "has not answered whether it takes fresh tokens", "a driver's helper of an older version"),
        ("refusing.py", "refused the tokens that were pushed last", "a push that its driver refuses"),
    ],
    ids=["older helper", "refuses"],
)
def test_a_driver_that_takes_no_tokens_is_named_and_restarted_in_time(
    opened: Opening, tell: Tell, job: str, trouble: str, fault: str
) -> None:
    spec = pushed_stream(job.partition(".")[0].replace("_", "-"), str(JOBS / job), deploy=Deploy(files=(UNAWARE,)))
    with opened(spec) as stream:
        ends = horizon_of(spec, stream.look())
        assert ends
        assert ends.hard

        def told() -> bool:
            seen = stream.look()
            stands = refreshed(spec, seen, horizon_of(spec, seen))
            return stands is not None and trouble in stands.trouble

        keep_until(stream, told, "somebody hears that it takes no tokens")
        clock = Clock()
        stream.keep(2)
        assert stopped_marker(1) not in stream.files()  # it has no helper that would write one
        ended = stream.application(1).finished
        assert ended
        assert ended < ends.hard
        words = f"an event, and restarted {(ends.hard - ended).total_seconds():.0f} s before its tokens' end"
        stream.conclude(tell, fault, words, clock.seconds)


def require_alive(stream: Kept, application: str) -> None:
    stream.await_a_further_commit()
    seen = stream.look().current
    assert seen
    assert seen.id == application
    assert not stream.session.hdfs.list(f"{stream.reconciler.stream.folder}/tokens")
