"""Sessions and rounds that triggers share: real threads and connections in a loop of their own, simulated clusters."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from airflow_kstream.policy.streams.pulse.blindness import Sight
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Subject
from airflow_kstream.triggers import shared as sharing
from airflow_kstream.triggers.awaiting import SETTLING_SECONDS, ClusterPollingTrigger, Poll
from airflow_kstream.triggers.lanes import Lanes
from airflow_kstream.triggers.poller import LATE, ClusterPoller
from airflow_kstream.triggers.shared import Sessions, cluster_sessions, own_sessions, shared
from tests.simulated.virtual_time import HastyLoop, VirtualLoop, run

CONNECTION = "made_up"


@pytest.fixture(autouse=True)
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    made = Connection(monkeypatch)
    made.edit(resourcemanagers="http://rm1.test")
    return made


class Connection:
    """A connection that an administrator edits while triggers wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._environment = monkeypatch

    def edit(self, *, resourcemanagers: str) -> None:
        extra = {
            "resourcemanagers": resourcemanagers,
            "namenodes": "http://nn.test",
            "default_fs": "hdfs://made-up",
            "principal": "watcher@MADE.UP",
            "keytab_path": "/nonexistent",
            "state_dir": "/state",
        }
        self._environment.setenv(
            f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps({"conn_type": "kstream", "extra": extra})
        )

    def delete(self) -> None:
        self._environment.delenv(f"AIRFLOW_CONN_{CONNECTION.upper()}")


class Clusters:
    """Simulated clusters, with a session for each; a session's answer is its ResourceManager's address."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.closed = 0
        self.rounds: list[tuple[float, tuple[str, ...]]] = []

    @contextmanager
    def open(self, cluster: Cluster) -> Iterator[Session]:
        self.opened.append(cluster.resourcemanagers[0])
        yield Session(self, cluster.resourcemanagers[0])
        self.closed += 1


class Session:
    def __init__(self, clusters: Clusters, where: str) -> None:
        self.where = where
        self._clusters = clusters

    def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]:
        names = [subject.name for subject in subjects]
        self._clusters.rounds.append((time.monotonic(), tuple(names)))
        yield from ((name, Verdict(None, self.where)) for name in names)


def test_an_edited_connection_is_seen_by_those_who_wait(connection: Connection) -> None:
    clusters = Clusters()

    async def wait() -> list[str]:
        poller = ClusterPoller(CONNECTION, clusters.open)
        before = await verdict_of(poller, "orders", 0.01)
        connection.edit(resourcemanagers="http://rm2.test")
        after = await verdict_of(poller, "orders", 0.01)
        poller.close()
        return [before.why, after.why]

    assert asyncio.run(wait()) == ["http://rm1.test", "http://rm2.test"]


def test_a_connection_that_can_not_be_read_for_a_moment_ends_no_wait(connection: Connection) -> None:
    clusters = Clusters()

    async def wait() -> str:
        sessions = Sessions(CONNECTION, clusters.open)
        await sessions.ask(lambda session: session.where)
        connection.delete()
        try:
            return await sessions.ask(lambda session: session.where)
        finally:
            sessions.close()

    assert asyncio.run(wait()) == "http://rm1.test"
    assert clusters.opened == ["http://rm1.test"]


def test_a_deleted_connection_ends_no_wait_and_counts_again_when_it_is_made_again(connection: Connection) -> None:
    """Even after a failure, for which the sessions are opened again: with the connection's last fields."""
    clusters = Clusters()

    def fail(session: Session) -> None:
        raise Unavailable("away")

    async def wait() -> list[str]:
        sessions = Sessions(CONNECTION, clusters.open)
        before = await sessions.ask(lambda session: session.where)
        connection.delete()
        with pytest.raises(Unavailable, match="away"):
            await sessions.ask(fail)
        meanwhile = await sessions.ask(lambda session: session.where)
        connection.edit(resourcemanagers="http://rm2.test")
        after = await sessions.ask(lambda session: session.where)
        sessions.close()
        return [before, meanwhile, after]

    assert asyncio.run(wait()) == ["http://rm1.test", "http://rm1.test", "http://rm2.test"]


def test_a_deleted_connection_is_logged_once_and_again_after_it_was_there(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait() -> None:
        sessions = Sessions(CONNECTION, Clusters().open)
        for _ in range(2):
            connection.edit(resourcemanagers="http://rm1.test")
            await sessions.ask(lambda session: session.where)
            connection.delete()
            for _ in range(3):
                await sessions.ask(lambda session: session.where)
        sessions.close()

    asyncio.run(wait())
    assert caplog.text.count("is taken to be as before") == 2


def test_a_wait_that_begins_without_its_connection_goes_on_until_it_is_there(connection: Connection) -> None:
    """As on a triggerer that was restarted after the deletion."""
    connection.delete()

    async def wait() -> list[str]:
        poller = ClusterPoller(CONNECTION, Clusters().open)
        before = await verdict_of(poller, "orders", 0.01)
        connection.edit(resourcemanagers="http://rm1.test")
        after = await verdict_of(poller, "orders", 0.01)
        poller.close()
        return [before.why, after.why]

    before, after = asyncio.run(wait())
    assert f"read connection {CONNECTION}: it can't be read: " in before
    assert after == "http://rm1.test"


def test_a_polling_trigger_waits_for_a_connection_that_was_never_readable(connection: Connection) -> None:
    connection.delete()

    class Asking(ClusterPollingTrigger):
        @asynccontextmanager
        async def open_poll(self) -> AsyncIterator[Poll]:
            async with own_sessions(self.cluster_conn_id, Clusters().open) as sessions:

                async def poll() -> dict[str, str]:
                    return {"where": await sessions.ask(lambda session: session.where)}

                yield poll

    async def wait() -> list[TriggerEvent]:
        events = asyncio.create_task(all_of(Asking(CONNECTION, {}, every_seconds=1.0)))
        await asyncio.sleep(2 * SETTLING_SECONDS)
        assert not events.done()
        connection.edit(resourcemanagers="http://rm1.test")
        return await events

    assert [event.payload for event in run(wait(), HastyLoop())] == [{"report": {"where": "http://rm1.test"}}]


async def all_of(trigger: ClusterPollingTrigger) -> list[TriggerEvent]:
    return [event async for event in trigger.run()]


@pytest.mark.parametrize(("error", "opened"), [(Unavailable("away"), 2), (Denied("no"), 2), (NotFound("none"), 1)])
def test_sessions_are_opened_again_after_a_failure_and_not_after_an_answer(error: Exception, opened: int) -> None:
    clusters = Clusters()

    def fail(session: Session) -> None:
        raise error

    async def wait() -> str:
        sessions = Sessions(CONNECTION, clusters.open)
        with pytest.raises(type(error)):
            await sessions.ask(fail)
        try:
            return await sessions.ask(lambda session: session.where)
        finally:
            sessions.close()

    assert asyncio.run(wait()) == "http://rm1.test"
    assert len(clusters.opened) == opened


def test_a_patient_stream_is_polled_at_its_own_pace_beside_an_impatient_one() -> None:
    """At most once in half of its time, also after the impatient stream has gone."""
    clusters = Clusters()

    def polled(name: str) -> int:
        return sum(name in names for _, names in clusters.rounds)

    async def wait() -> float:
        clock = asyncio.get_running_loop().time
        began = clock()
        poller = ClusterPoller(CONNECTION, clusters.open)
        impatient = asyncio.create_task(poll(poller, "impatient", 0.02))
        patient = asyncio.create_task(poll(poller, "patient", 0.8))
        await until(lambda: polled("impatient") >= 20 and polled("patient") >= 1)
        assert polled("impatient") > polled("patient")
        impatient.cancel()
        before = polled("patient")
        await until(lambda: polled("patient") > before + 1)
        patient.cancel()
        poller.close()
        return clock() - began

    assert asyncio.run(wait()) / 0.4 + 1 >= polled("patient")


def test_streams_of_one_pace_come_to_share_their_rounds() -> None:
    clusters = Clusters()

    async def wait() -> None:
        poller = ClusterPoller(CONNECTION, clusters.open)
        tasks = []
        for number in range(5):
            tasks.append(asyncio.create_task(poll(poller, f"stream-{number}", 0.3)))
            await asyncio.sleep(0.05)
        await until(lambda: any(len(names) == 5 for _, names in clusters.rounds))
        for task in tasks:
            task.cancel()
        poller.close()

    asyncio.run(wait())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for the condition, for as long as the slowest machine needs."""
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110  the poller's rounds set no event
            await asyncio.sleep(0.01)


def test_one_thing_is_shared_and_its_last_user_closes_it() -> None:
    async def use() -> None:
        async with shared(cluster_sessions, CONNECTION) as one:
            async with shared(cluster_sessions, CONNECTION) as other:
                assert one is other
            async with shared(ClusterPoller, CONNECTION):
                assert len(sharing._in_use) == 2
            assert len(sharing._in_use) == 1
        assert sharing._in_use == {}

    asyncio.run(use())
    left = [thread for thread in threading.enumerate() if thread.name.startswith(f"kstream-{CONNECTION}")]
    for thread in left:
        thread.join(60)
        assert not thread.is_alive()


def test_a_cluster_with_silent_servers_keeps_no_other_waiting() -> None:
    answered = threading.Event()

    class Silent(Session):
        def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]:
            answered.wait(120)
            yield from super().looks(subjects)

    @contextmanager
    def silent(cluster: Cluster) -> Iterator[Session]:
        yield Silent(Clusters(), "silent")

    async def wait() -> str:
        pollers = [ClusterPoller(CONNECTION, silent) for _ in range(40)]
        stuck = [asyncio.create_task(verdict_of(poller, "orders", 0.0)) for poller in pollers]
        await asyncio.sleep(0.2)
        healthy = ClusterPoller(CONNECTION, Clusters().open)
        verdict = await asyncio.wait_for(verdict_of(healthy, "orders", 0.0), 60)
        assert not any(task.done() for task in stuck)
        answered.set()
        await asyncio.gather(*stuck)
        for poller in (*pollers, healthy):
            poller.close()
        return verdict.why

    assert asyncio.run(wait()) == "http://rm1.test"


def test_a_slow_answer_about_one_stream_delays_no_other() -> None:
    """Neither in this round nor in the next ones; and what is late is not a conclusion."""
    loop = HastyLoop()
    answered, looks = threading.Event(), list[str]()

    class Slow(Session):
        def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]:
            for subject in subjects:
                if subject.name == "slow":
                    looks.append(subject.name)
                    answered.wait(120)
                yield subject.name, Verdict(None, self.where)

    @contextmanager
    def slow(cluster: Cluster) -> Iterator[Session]:
        yield Slow(Clusters(), "rm")

    async def wait() -> list[str]:
        poller = ClusterPoller(CONNECTION, slow)
        stuck = asyncio.create_task(verdict_of(poller, "slow", 0.05))
        for _ in range(3):
            async with asyncio.timeout(10 * LATE):
                others = [verdict_of(poller, f"stream-{number}", 0.05) for number in range(5)]
                assert {verdict.why for verdict in await asyncio.gather(*others)} == {"rm"}
        loop.ahead += LATE
        late = await asyncio.wait_for(stuck, LATE)
        # The look that goes on is not begun once more, in none of the rounds that pass meanwhile.
        again = asyncio.create_task(verdict_of(poller, "slow", 0.05))
        for number in range(3):
            await verdict_of(poller, f"another-{number}", 0.05)
        assert looks == ["slow"]
        answered.set()
        verdicts = [late.why, (await again).why]
        poller.close()
        return verdicts

    late, after = run(wait(), loop)
    assert late.startswith("no look at slow has ended for ")
    assert after == "rm"


def test_a_question_is_answered_by_a_look_that_begins_after_it() -> None:
    """A look that is under way may have seen the stream before what the question is about."""
    began, answered = threading.Event(), threading.Event()
    looks: list[str] = []

    class Counting(Session):
        def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]:
            for subject in subjects:
                looks.append(f"look {len(looks) + 1}")
                verdict = Verdict(None, looks[-1])
                began.set()
                answered.wait(60)
                yield subject.name, verdict

    @contextmanager
    def counting(cluster: Cluster) -> Iterator[Session]:
        yield Counting(Clusters(), "rm")

    async def wait() -> list[str]:
        poller = ClusterPoller(CONNECTION, counting)
        first = asyncio.create_task(verdict_of(poller, "orders", 0.0))
        await until(began.is_set)
        second = asyncio.create_task(verdict_of(poller, "orders", 0.0))
        await until(lambda: len(poller._waiting) == 2)
        answered.set()
        verdicts = [(await first).why, (await second).why]
        poller.close()
        return verdicts

    assert asyncio.run(wait()) == ["look 1", "look 2"]


def test_a_defect_of_ours_in_one_round_leaves_no_task_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    ready, defects = Lanes.ready, [RuntimeError("a defect of ours")]

    def fails_once(lanes: Lanes) -> bool:
        if defects:
            raise defects.pop()
        return ready(lanes)

    # Nothing that anybody gives to a poller makes its own round fail.
    monkeypatch.setattr(Lanes, "ready", fails_once)

    async def wait() -> str:
        poller = ClusterPoller(CONNECTION, Clusters().open)
        async with asyncio.timeout(60):
            verdict = await verdict_of(poller, "orders", 0.0)
        poller.close()
        return verdict.why

    assert asyncio.run(wait()) == "http://rm1.test"
    assert defects == []


def test_a_round_that_fails_leaves_none_of_its_streams_without_an_answer() -> None:
    @contextmanager
    def away(cluster: Cluster) -> Iterator[Session]:
        if cluster:
            raise Unavailable("no ticket")
        yield Session(Clusters(), "")

    async def wait() -> list[str]:
        poller = ClusterPoller(CONNECTION, away)
        async with asyncio.timeout(20):
            verdicts = await asyncio.gather(*(verdict_of(poller, f"stream-{number}", 0.0) for number in range(5)))
        poller.close()
        return [verdict.why for verdict in verdicts]

    assert asyncio.run(wait()) == ["no ticket. Retrying may help."] * 5


def test_a_look_that_never_ends_is_no_conclusion_two_minutes_after_its_turn() -> None:
    class Hanging(VirtualLoop):
        """A loop whose threads never come back."""

        def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
            return self.create_future()

    async def wait() -> Verdict:
        poller = ClusterPoller(CONNECTION, Clusters().open)
        verdict = await verdict_of(poller, "orders", 15.0)
        poller.close()
        return verdict

    loop = Hanging()
    verdict = run(wait(), loop)
    assert (verdict.step, verdict.shared) == (None, True)
    assert "no look at orders has ended" in verdict.why
    assert loop.time() == 15 + 120


async def poll(poller: ClusterPoller, stream: str, every: float) -> None:
    while True:
        await verdict_of(poller, stream, every)


async def verdict_of(poller: ClusterPoller, stream: str, every: float) -> Verdict:
    sight = Sight(looked=asyncio.get_running_loop().time(), patience=300.0)
    return (await poller.next_verdict(Subject(stream), every, sight)).verdict
