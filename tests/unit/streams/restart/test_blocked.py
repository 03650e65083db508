"""`kstream streams status` shows what keeps a stream from its start or restart, in the words of its task's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.queue import Queue, Queues
from airflow_kstream.model.errors import Denied, KstreamError, RestartAborted
from airflow_kstream.model.streams.contract import blocked_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Obstacle, Stop
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.views.streams import streams_table
from airflow_kstream.views.tables import lines
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER

FIRST = "application_1_0001"
EPOCHS = f"{SPEC.checkpoints[0]}/epochs.json"


def due(life: Life) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.reconcile()
    life.request_restart()


def drained(life: Life) -> None:
    life.yarn.scheduler = Queues((Queue("root.default", "DRAINING"),), complete=True)


def aborted(life: Life) -> str:
    with pytest.raises(RestartAborted) as error:
        life.reconcile()
    return error.value.message


def shown(life: Life) -> str:
    return " ".join(" ".join(lines(streams_table({SPEC.name: life.watch()}))).split())


def test_a_failed_preflight_is_shown_since_its_first_try(life: Life) -> None:
    due(life)
    drained(life)
    words = aborted(life)
    since = life.watch().past.blocked
    life.clock.ahead += timedelta(minutes=15)
    aborted(life)
    verdict = life.watch()
    assert verdict.past.blocked == since
    assert since
    assert (since.by, since.why) == (Obstacle.PREFLIGHT, words)
    assert "queue root.default is DRAINING" in words
    assert f"BLOCKED since {since.since:%Y-%m-%d}" in shown(life)
    assert verdict.to_json()["blocked"]["by"] == "preflight"
    json.dumps(verdict.to_json())


def test_it_is_over_with_the_restart(life: Life) -> None:
    due(life)
    drained(life)
    aborted(life)
    before = life.watch().past.blocked
    life.clock.ahead += timedelta(hours=2)
    aborted(life)
    after = life.watch().past.blocked
    assert before
    assert after
    assert before.since != after.since
    life.yarn.scheduler = Queues((Queue("root.default", "RUNNING"),), complete=True)
    assert life.reconcile().generation == 2
    assert life.watch().past.blocked is None


def test_a_failed_preflight_that_nobody_repeats_is_no_obstacle(life: Life) -> None:
    """Its task is gone: somebody has to hear of that, and an old note must not explain it away."""
    due(life)
    drained(life)
    aborted(life)
    life.clock.ahead += timedelta(minutes=50)
    assert life.watch().past.blocked
    life.clock.ahead += timedelta(minutes=20)
    verdict = life.watch()
    assert (verdict.past.blocked, verdict.calls_for_action) == (None, True)


def test_a_restart_that_is_forced_and_can_still_not_be_done_is_shown_too(life: Life) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.clock.ahead += timedelta(days=7) - timedelta(minutes=30)
    life.engine.obstacle = "this host has no fake-run"
    words = aborted(life)
    verdict = life.watch()
    assert isinstance(verdict.step, Stop)
    assert not verdict.step.preflight
    assert verdict.past.blocked
    assert verdict.past.blocked.why == words
    life.set_desired(DesiredState.STOPPED)
    assert life.watch().past.blocked is None, "nothing keeps it from that"


@pytest.mark.parametrize("text", ["{", "[]", '{"since": "yesterday", "why": ""}', '{"version": 9}'])
def test_a_note_that_cannot_be_read_hides_nothing_else(life: Life, text: str) -> None:
    due(life)
    life.hdfs.write(f"{life.run.id.folder}/{blocked_marker(1)}", text)
    verdict = life.watch()
    assert (verdict.past.blocked, verdict.calls_for_action) == (None, True)


def test_a_note_that_cannot_be_written_is_no_other_error(life: Life) -> None:
    refused: list[str] = []

    def refuse(request: str, path: str) -> None:
        if request == "write":
            refused.append(path)
            raise Denied("quota")

    due(life)
    drained(life)
    life.hdfs.at_request = refuse
    assert "DRAINING" in aborted(life)
    assert any(blocked_marker(1) in path for path in refused)


def lost_positions(life: Life) -> None:
    due(life)
    life.hdfs.delete(EPOCHS)


def dead_with_lost_positions(life: Life) -> None:
    due(life)
    life.reconcile()
    life.hdfs.delete(EPOCHS)
    life.yarn.end("application_1_0002", ApplicationState.FAILED)


def frozen(life: Life) -> None:
    due(life)
    life.hdfs.write(f"{CLUSTER.state_dir}/other/gen-000001", "")
    FreezeStore(life.run.session).freeze(timedelta(days=1), "a new NameNode")


def killed(life: Life) -> None:
    life.begin()
    life.yarn.end(FIRST, ApplicationState.KILLED, f"Application {FIRST} was killed by user ada at 10.0.0.1")


def failing(life: Life) -> None:
    life.begin()
    for _ in range(40):
        for app in [app.id for app in life.yarn.apps.values() if app.alive]:
            life.yarn.end(app, ApplicationState.FAILED, "User class threw exception: java.lang.Error: 7")
        life.begin()
        if life.watch().breaker_open:
            return
        life.clock.ahead += timedelta(minutes=20)


@pytest.mark.parametrize(
    ("trouble", "by", "says", "dated"),
    [
        (lost_positions, Obstacle.REFUSED, "restore the checkpoint", True),
        (dead_with_lost_positions, Obstacle.REFUSED, "restore the checkpoint", False),
        (frozen, Obstacle.FREEZE, "`kstream streams unfreeze`", False),
        (killed, Obstacle.KILLED, "`kstream streams start orders`", True),
        (failing, Obstacle.BREAKER, "`kstream streams start orders`", True),
    ],
)
def test_what_stands_in_the_way_is_shown_with_its_way_out(
    life: Life, trouble: Callable[[Life], None], by: Obstacle, says: str, dated: bool
) -> None:
    trouble(life)
    # Its task's log has the words; what somebody sees from elsewhere is the question.
    with suppress(KstreamError):
        life.reconcile(Mode.ENSURE)
    verdict = life.watch()
    for _ in range(20):
        # A watcher of its own proves a death for itself.
        life.clock.ahead += timedelta(seconds=20)
        verdict = life.watch()
    assert verdict.past.blocked
    assert (verdict.past.blocked.by, bool(verdict.past.blocked.since)) == (by, dated)
    assert says in verdict.past.blocked.why
    assert "BLOCKED" in shown(life)


def test_a_stream_that_is_well_is_not_blocked(life: Life) -> None:
    life.begin()
    assert life.watch().past.blocked is None
    assert "BLOCKED" not in shown(life)
