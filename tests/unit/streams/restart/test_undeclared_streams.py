"""A stream that nothing but its own claim describes: shown, watched, stopped by who may say so, and never started."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict, Denied, RestartAborted
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase, Report, Stop
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.model.streams.stream import ProxyUserCredentials
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.streams.orders.desired import KnownSpec, claimed_spec, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.engine import FakeEngine
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, ONE_WEEK
from tests.unit.streams.orders.conftest import CommandLine, at_first

__all__ = ["at_first"]

WAY_OUT = "run `kstream streams reconcile` with the declaration"


@pytest.fixture
def tenant(life: Life) -> Life:
    """A stream that its own user `etl` submitted, who is not a supervisor: nobody kept a copy of its declaration."""
    life.hdfs.whoami = life.yarn.whoami = "etl"
    life.use(life.hdfs)
    life.begin()
    life.hdfs.whoami = life.yarn.whoami = "streamer"
    look_again(life)
    return life


def look_again(life: Life) -> None:
    """Begin a session as the connection's principal, which knows nothing of earlier looks."""
    life.use(life.hdfs, life.engine)
    life.run = replace(life.run, declared=False)


def keep_copy(life: Life) -> None:
    """Let a supervisor have kept what the claim names."""
    kept = f"{CLUSTER.state_dir}/declared.streamer/{life.run.id}/{copy_name(fingerprint(SPEC), 'etl')}"
    life.hdfs.write(kept, written_copy(SPEC, "etl"))
    look_again(life)


@pytest.fixture
def kstream(tenant: Life, at_first: CommandLine) -> CommandLine:
    """A command line of the connection's principal."""
    return at_first


def known(life: Life) -> KnownSpec:
    return claimed_spec(life.run.session, life.run.id)


def looked_after(life: Life, mode: Mode = Mode.WATCH, stall: Stall | None = None) -> Report:
    """Let the connection's principal look after it, as the task of a refused declaration does."""
    heartbeat = HeartbeatPolicy(on_stall=OnStall.RESTART) if stall else SPEC.heartbeat
    run = replace(life.run, spec=replace(known(life).spec, heartbeat=heartbeat), declared=known(life).submittable)
    return Reconciler(run, tell=lambda line: None).run(mode, stall=stall)


class HungEngine(FakeEngine):
    """An engine whose second batch is planned and is not committed."""

    planned: datetime

    def _point(self, path: str) -> Checkpoint:
        point = super()._point(path)
        return replace(point, offsets={**point.offsets, 1: self.planned})


def written(life: Life) -> set[str]:
    return {path for path in life.hdfs.files if path.startswith(CLUSTER.state_dir)}


def test_its_claim_is_shown_and_names_its_author_and_the_way_out(tenant: Life) -> None:
    found = known(tenant)
    assert not found.submittable
    assert "generation 1 was claimed by etl, and no supervisor of /kstream (hdfs, streamer) kept" in found.doubt
    assert WAY_OUT in found.doubt


def test_it_is_looked_after_as_the_connections_principal_whatever_its_claim_names() -> None:
    claimed = KnownSpec(replace(SPEC, credentials=ProxyUserCredentials("hdfs")))
    assert claimed.identity(CLUSTER) == CLUSTER.watcher
    assert replace(claimed, submittable=True).identity(CLUSTER).do_as == "hdfs"


def test_one_that_runs_is_watched_and_nothing_is_written(tenant: Life) -> None:
    before = written(tenant)
    assert looked_after(tenant).phase is Phase.RUNNING
    assert written(tenant) == before


def test_it_is_not_stopped_at_its_horizon(tenant: Life) -> None:
    tenant.clock.ahead += 0.8 * ONE_WEEK
    assert isinstance(tenant.watch().step, Stop)
    with pytest.raises(RestartAborted, match="no supervisor kept a copy of its declaration: run `kstream streams"):
        looked_after(tenant)
    assert [app.alive for app in tenant.yarn.apps.values()] == [True]


def test_it_is_not_examined_or_stopped_for_a_batch_that_hangs(tenant: Life) -> None:
    with tenant.hdfs.as_user("etl"):
        tenant.engine.complete_epoch(SPEC)
    hung = HungEngine(tenant.hdfs, tenant.yarn)
    hung.planned = tenant.hdfs.now()
    tenant.run = replace(tenant.run, engine=hung)
    tenant.clock.ahead += timedelta(hours=12)
    before, claim = written(tenant), tenant.run.folder.claim_of(1)
    stall = Stall(1, claim.nonce, SPEC.checkpoints[0], 1, timedelta(minutes=10), timedelta(hours=12))
    with pytest.raises(RestartAborted, match=r"what hangs.*nothing is done, because no supervisor kept a copy"):
        looked_after(tenant, stall=stall)
    assert ([app.alive for app in tenant.yarn.apps.values()], written(tenant)) == ([True], before)


@pytest.mark.parametrize("mode", Mode)
def test_one_that_died_is_not_started(tenant: Life, mode: Mode) -> None:
    tenant.yarn.end(next(iter(tenant.yarn.apps)), ApplicationState.FAILED)
    before = written(tenant)
    with pytest.raises(Conflict, match="nothing is done, because no supervisor kept a copy of its declaration"):
        looked_after(tenant, mode)
    assert (len(tenant.yarn.apps), written(tenant)) == (1, before)


def test_a_restart_that_a_person_requested_does_not_stop_it(tenant: Life) -> None:
    tenant.request_restart()
    with pytest.raises(RestartAborted, match="requested a restart"):
        looked_after(tenant)
    assert [app.alive for app in tenant.yarn.apps.values()] == [True]


def test_a_second_application_with_its_tags_is_not_killed(tenant: Life) -> None:
    tenant.yarn.start(frozenset(tenant.run.id.tags(1)), "etl")
    with pytest.raises(RestartAborted):
        looked_after(tenant)
    assert [app.alive for app in tenant.yarn.apps.values()] == [True, True]


def test_a_person_who_may_say_so_stops_it_without_a_marker_in_its_folder(tenant: Life) -> None:
    set_desired(tenant.run, DesiredState.STOPPED, "it is not needed")
    before = written(tenant)
    assert looked_after(tenant).phase is Phase.STOPPED
    assert [app.alive for app in tenant.yarn.apps.values()] == [False]
    assert written(tenant) == before


def test_once_a_supervisor_kept_its_declaration_it_may_be_submitted(tenant: Life) -> None:
    keep_copy(tenant)
    assert known(tenant).submittable


def test_by_name_it_is_stopped_held_and_started_again(kstream: CommandLine) -> None:
    assert kstream.run("hold", "--reason", "Kafka is moved")[0] == 0
    assert kstream.life.watch().step.phase is Phase.HELD  # type: ignore[union-attr]
    code, lines = kstream.run("stop")
    assert (code, kstream.generations) == (0, [False]), lines
    assert kstream.run("start") == (0, ["orders: running"])
    assert kstream.life.watch().calls_for_action


def test_a_restart_by_name_is_an_order_for_who_has_the_declaration(kstream: CommandLine) -> None:
    code, lines = kstream.run("restart")
    assert (code, kstream.generations) == (0, [True])
    assert lines[0].startswith("generation 1 of orders is to be replaced")


@pytest.mark.parametrize("command", ["start", "restart"])
def test_now_is_refused_with_the_way_out(kstream: CommandLine, command: str) -> None:
    code, lines = kstream.run(command, "--now")
    assert (code, kstream.generations) == (1, [True])
    assert f"no supervisor kept a copy of its declaration: {WAY_OUT}" in lines[-1]


def test_now_is_refused_before_anything_of_a_restart_is_written(kstream: CommandLine) -> None:
    before = written(kstream.life)
    kstream.run("restart", "--now")
    assert written(kstream.life) == before


def test_who_is_neither_supervisor_nor_the_streams_user_gives_no_order(tenant: Life) -> None:
    with tenant.hdfs.as_user("mallory"):
        look_again(tenant)
        with pytest.raises(Denied, match="orders of mallory don't count here, but those of hdfs, streamer and etl"):
            set_desired(tenant.run, DesiredState.STOPPED, "hihi")
    assert not [path for path in tenant.hdfs.files if "/orders." in path]


def test_status_shows_what_strangers_wrote_and_what_is_not_proven(kstream: CommandLine) -> None:
    folder = kstream.life.run.id.folder
    kstream.life.hdfs.modes[folder] = "1777"
    with kstream.life.hdfs.as_user("mallory"):
        kstream.life.hdfs.write(f"{folder}/gen-000009", "{}")
    _, lines = kstream.run("status")
    assert any("it is not proven that it runs as etl" in line for line in lines)
    keep_copy(kstream.life)
    _, lines = kstream.run("status")
    assert any("strangers wrote in its folder: gen-000009 of mallory" in line for line in lines)
    assert not any("not proven" in line for line in lines)
