"""Two whole Airflows keep one stream: each has a home, a database, a DAG processor, a scheduler and a triggerer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.live.airflow import CONNECTION, LiveAirflow, live_airflow
from tests.live.airflow_api import TaskRef
from tests.live.faults.kept import Clock, Kept, brisk_stream, claims, kept
from tests.live.faults.proxies import Moment, Proxies
from tests.live.faults.table import Tell
from tests.live.streams import await_that

pytestmark = pytest.mark.faults


@dataclass(frozen=True)
class Home:
    """One of the Airflows, and its task that keeps the stream."""

    airflow: LiveAirflow
    task: TaskRef

    def declare(self, declaration: dict[str, object]) -> None:
        self.airflow.write_declaration("streams", f"{CONNECTION}/{declaration['name']}", declaration)

    @property
    def refuses(self) -> bool:
        return str(self.airflow.api.call("GET", f"/dags/{self.task.dag_id}")["dag_display_name"]).startswith("refused-")

    @property
    def log(self) -> str:
        """Return what its task has written, try by try."""
        tries = range(1, self.airflow.api.task_instance(self.task).try_number + 1)
        return "\n".join(self.airflow.api.task_log(self.task, number) for number in tries)


@dataclass(frozen=True)
class Scheduled:
    """The stream, and both homes that keep it."""

    stream: Kept
    homes: tuple[Home, Home]

    def ask_for_restart(self) -> int:
        """Ask for it while both homes wait for nothing else; return the generation that is to be replaced."""
        before = self.stream.await_commits()
        self.await_deferred()
        assert self.stream.ask_for_restart() == before
        return before

    def restart(self, before: int) -> None:
        """Wait until both homes' tasks have stopped it and ask for the claim, neither of which has had an answer."""
        gates, wanted = self.stream.proxies, partial(claims, before)
        with gates.gate(Moment.ASKED, wanted) as first, gates.gate(Moment.ASKED, wanted) as second:
            first.await_request()
            second.await_request()
        assert self.stream.await_commits(before + 1) == before + 1

    def await_deferred(self) -> None:
        for home in self.homes:
            home.airflow.await_state(home.task, "deferred")

    @property
    def alive(self) -> list[int]:
        """Return the generations whose applications live."""
        return [number for number, app in self.stream.look().applications if app.alive]


@pytest.fixture(scope="module")
def airflows(
    faulty: Minicluster, proxies: Proxies, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LiveAirflow, LiveAirflow]]:
    root = tmp_path_factory.mktemp("homes")
    with (
        live_airflow(faulty, root / "first", **proxies.addresses) as first,
        live_airflow(faulty, root / "second", **proxies.addresses) as second,
    ):
        yield first, second


@pytest.fixture(scope="module")
def scheduled(
    faulty: Minicluster,
    proxies: Proxies,
    airflows: tuple[LiveAirflow, LiveAirflow],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scheduled]:
    spec = brisk_stream("scheduled")
    with kept(faulty, proxies, tmp_path_factory.mktemp("scheduled"), spec) as stream:
        first, second = (Home(airflow, airflow.declare(spec)) for airflow in airflows)
        yield Scheduled(stream, (first, second))
        set_desired(stream.subject, DesiredState.STOPPED, "the tests are over")
        stream.reconciler.run()


def test_two_homes_that_restart_a_stream_at_the_same_moment_submit_once(scheduled: Scheduled, tell: Tell) -> None:
    stream = scheduled.stream
    before = scheduled.ask_for_restart()
    clock = Clock()
    scheduled.restart(before)
    recovery = clock.seconds
    scheduled.await_deferred()
    assert scheduled.alive == [before + 1]
    assert sum(f"claimed generation {before + 1}" in home.log for home in scheduled.homes) == 1
    seen = "one submitted; the other one lost the claim and watches what it submitted"
    stream.conclude(tell, "two Airflow homes claim at the same moment", seen, recovery)


def test_a_restart_happens_although_triggerers_and_schedulers_were_killed(scheduled: Scheduled, tell: Tell) -> None:
    """They are killed at the moment of the request, in both homes; the tasks were deferred."""
    stream = scheduled.stream
    before = scheduled.ask_for_restart()
    for home in scheduled.homes:
        for component in ("triggerer", "scheduler"):
            assert home.airflow.components.kill(component)
    clock = Clock()
    assert stream.await_commits(before + 1) == before + 1
    recovery = clock.seconds
    scheduled.await_deferred()
    assert scheduled.alive == [before + 1]
    seen = "they started again, and the deferred tasks restarted the stream"
    stream.conclude(tell, "triggerers and schedulers SIGKILLed", seen, recovery)


def test_a_stream_whose_declaration_is_broken_restarts_from_its_claim(scheduled: Scheduled, tell: Tell) -> None:
    stream = scheduled.stream
    for home in scheduled.homes:
        home.declare({**stream.spec.to_mapping(), "checkpoint": "/misspelt"})
    await_that(lambda: all(home.refuses for home in scheduled.homes), "both homes refuse it")
    before = scheduled.ask_for_restart()
    clock = Clock()
    scheduled.restart(before)
    recovery = clock.seconds
    scheduled.await_deferred()
    for home in scheduled.homes:
        assert "The declaration is refused; scheduled is kept as it was last submitted" in home.log
        home.declare(stream.spec.to_mapping())
    seen = "refused in both homes, loudly; restarted from the claim"
    stream.conclude(tell, "declaration broken while it runs", seen, recovery)
