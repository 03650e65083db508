"""How long an application waits in its queue. The ResourceManager is simulated: two clocks that differ are wanted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.supervise.streams.look.watch import Subject, Watch
from tests.simulated.life import SPEC, Life

MINUTE = timedelta(minutes=1)


def wait_in_queue(life: Life, skew: timedelta = timedelta()) -> None:
    """Let YARN accept the stream's application and start it never, on a ResourceManager whose clock is ahead so far."""
    life.begin()
    ((name, app),) = life.yarn.apps.items()
    assert app.started
    life.yarn.apps[name] = replace(app, state=ApplicationState.ACCEPTED, started=app.started + skew)


def silent(request: str, about: str) -> None:
    if request == "time_since":
        raise Unavailable("its answer has no Date")


@pytest.mark.parametrize("skew", [-20 * MINUTE, timedelta(), 20 * MINUTE])
def test_a_wait_in_the_queue_is_measured_by_the_resourcemanagers_clock_alone(life: Life, skew: timedelta) -> None:
    """The NameNode's differs, or changes with a failover."""
    wait_in_queue(life, skew)
    life.yarn.skew = skew
    life.clock.ahead += 7 * MINUTE
    verdict = life.watch()
    assert verdict.progress.queued
    assert 7 * MINUTE <= verdict.progress.queued < 8 * MINUTE
    assert not verdict.progress.queued_too_long
    life.clock.ahead += 4 * MINUTE
    assert life.watch().progress.queued_too_long


def test_a_clock_that_can_not_be_read_ends_no_wait(life: Life) -> None:
    """The event would end, and begin again a round later."""
    wait_in_queue(life)
    life.clock.ahead += 7 * MINUTE
    assert life.watch().progress.queued
    life.yarn.at_request = silent
    life.clock.ahead += 7 * MINUTE
    verdict = life.watch()
    assert verdict.progress.queued
    assert 14 * MINUTE <= verdict.progress.queued < 15 * MINUTE
    assert verdict.progress.queued_too_long


def test_a_wait_is_unknown_until_the_clock_was_read_once(life: Life) -> None:
    wait_in_queue(life)
    life.yarn.at_request = silent
    verdict = life.watch()
    assert (verdict.progress.queued, verdict.progress.queued_too_long, verdict.step is None) == (None, False, False)


def test_a_round_reads_the_clock_once_however_many_streams_wait(life: Life) -> None:
    wait_in_queue(life)
    asked: list[str] = []
    life.yarn.at_request = lambda request, about: asked.append(request)
    watch = Watch(life.run.session, lambda spec: life.engine)
    assert all(verdict.progress.queued is not None for _, verdict in watch.looks([Subject(SPEC.name)] * 5))
    assert asked.count("time_since") == 1
    dict(watch.looks([Subject(SPEC.name)]))
    assert asked.count("time_since") == 2


def test_a_round_in_which_nothing_waits_asks_for_no_clock(life: Life) -> None:
    life.begin()
    asked: list[str] = []
    life.yarn.at_request = lambda request, about: asked.append(request)
    assert life.watch().progress.queued is None
    assert asked
    assert "time_since" not in asked
