"""A folder of an earlier format is refused in one sentence that names `adopt`, and nothing in it is touched.

Simulated servers: what an earlier program left is laid there as text.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict, KstreamError, RestartAborted, Unavailable
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import Age, DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import ONE_WEEK

# More than an adopt sends.
REQUESTS = 70
SENTENCE = "its folder is of an earlier format (version 2), which is not read; `kstream streams adopt` takes over what"


@pytest.fixture
def old(life: Life) -> Life:
    """A stream that an earlier program submitted for the third time, and stopped and started before."""
    for _ in range(3):
        life.begin()
        life.request_restart()
        life.engine.complete_epoch(SPEC)
    folder = life.run.id.folder
    for path, (text, at) in list(life.hdfs.files.items()):
        if path.startswith(f"{folder}/gen-"):
            life.hdfs.files[path] = (json.dumps(json.loads(text) | {"version": 2}), at)
        elif "/orders." in path or "/declared." in path:
            life.hdfs.delete(path)
    life.hdfs.write(f"{folder}/desired-000004.json", '{"version": 2, "state": "running", "restart_up_to": 2}')
    life.hdfs.write(f"{folder}/ended-000001", '{"version": 2, "ends": []}')
    life.use(life.hdfs, life.engine)
    return life


def living(life: Life) -> list[str]:
    return [app.id for app in life.yarn.apps.values() if app.alive]


def left(life: Life) -> dict[str, str]:
    """Return the files of the stream's folder."""
    folder = life.run.id.folder
    return {path: text for path, (text, _) in life.hdfs.files.items() if path.startswith(f"{folder}/")}


def reconciled(life: Life, mode: Mode = Mode.ENSURE) -> str:
    """Reconcile, and return what a person reads."""
    try:
        return Reconciler(life.run, tell=lambda line: None, patient=False).run(mode).why
    except (Conflict, RestartAborted) as refused:
        return str(refused)


@pytest.mark.parametrize("mode", Mode)
def test_what_runs_is_watched_and_told_of(old: Life, mode: Mode) -> None:
    before, (app,) = left(old), living(old)
    assert SENTENCE in reconciled(old, mode)
    assert SENTENCE in old.watch().why
    assert not old.watch().calls_for_action
    assert (left(old), living(old)) == (before, [app])


@pytest.mark.parametrize("wait", [timedelta(days=6), 2 * ONE_WEEK])
def test_its_horizon_and_a_persons_word_stop_nothing(old: Life, wait: timedelta) -> None:
    before, (app,) = left(old), living(old)
    old.clock.ahead += wait
    assert SENTENCE in reconciled(old)
    with suppress(KstreamError):
        old.request_restart()
    assert SENTENCE in reconciled(old)
    old.set_desired(DesiredState.STOPPED)
    reconciled(old)
    assert (left(old), living(old)) == (before, [app])


def test_what_died_is_followed_by_nothing(old: Life) -> None:
    before, (app,) = left(old), living(old)
    old.yarn.end(app, ApplicationState.FAILED, "an error")
    old.clock.ahead += ONE_WEEK
    assert SENTENCE in reconciled(old)
    assert (left(old), living(old)) == (before, [])


class TestAdopted:
    def test_it_keeps_its_number_and_nothing_else_is_touched(self, old: Life) -> None:
        before, (app,) = left(old), living(old)
        claim = adopt(old.run, app)
        assert (claim.generation, claim.adoption.application, claim.file.age) == (3, app, Age.CURRENT)
        changed = {path for path, text in left(old).items() if before.get(path) != text}
        assert changed == {f"{old.run.id.folder}/{name}" for name in (claim_file(3), claim.fence)}
        assert before.keys() <= left(old).keys()

    def test_it_is_supervised_from_then_on(self, old: Life) -> None:
        (app,) = living(old)
        adopt(old.run, app)
        report = old.reconcile(Mode.WATCH)
        assert (report.phase, report.generation, report.job.application) == (Phase.RUNNING, 3, app)
        assert old.watch().horizon_known
        old.clock.ahead += 0.9 * ONE_WEEK
        assert old.reconcile(Mode.WATCH).generation == 4
        assert living(old) == ["application_1_0004"]

    def test_a_word_of_the_earlier_format_does_not_hold_it(self, old: Life) -> None:
        (app,) = living(old)
        old.hdfs.write(f"{old.run.id.folder}/desired-000005.json", '{"version": 2, "state": "held"}')
        adopt(old.run, app)
        assert old.reconcile(Mode.WATCH).phase is Phase.RUNNING

    def test_another_application_is_not_put_in_the_place_of_what_runs(self, old: Life) -> None:
        before, (app,) = left(old), living(old)
        job = old.yarn.start(frozenset())
        with pytest.raises(Conflict, match=f"the stream already runs {app}"):
            adopt(old.run, job.id)
        assert left(old) == before

    def test_the_crashes_reach_beyond_its_last_request(self, old: Life) -> None:
        sent: list[str] = []
        old.hdfs.at_request = lambda request, path: sent.append(path)
        adopt(old.run, living(old)[0])
        assert 20 < len(sent) < REQUESTS

    @pytest.mark.parametrize("last", range(REQUESTS))
    def test_a_crash_at_any_request_leaves_it_running_and_adoptable(self, old: Life, last: int) -> None:
        (app,) = living(old)
        sent: list[str] = []

        def dies(request: str, path: str) -> None:
            if len(sent) >= last:
                raise Unavailable("the process was killed")
            sent.append(path)

        old.hdfs.at_request = dies
        with suppress(Unavailable):
            adopt(old.run, app)
        old.hdfs.at_request = lambda request, path: None
        old.use(old.hdfs, old.engine)
        with suppress(KstreamError):
            reconciled(old)
        assert living(old) == [app]
        with suppress(Conflict):
            adopt(old.run, app)
        report = old.reconcile(Mode.WATCH)
        assert (report.phase, report.generation, living(old)) == (Phase.RUNNING, 3, [app])
        claim = old.run.folder.claim(old.run.folder.names())
        assert claim
        assert (claim.file.age, claim.adoption.application) == (Age.CURRENT, app)
