"""Files of kinds that one DataNode can't have, and others beside them: found, judged and recovered in one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.leases import HolderAnswer
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.leases.lease import (
    FileCondition,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    Outcome,
    Recovery,
    Search,
)
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.model.leases.requests import RecoverySettings
from airflow_kstream.supervise.leases.executor import Watcher
from airflow_kstream.supervise.leases.findings import Survey
from airflow_kstream.supervise.leases.recover import RecoveryReport, recover_stuck_files
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.live.last_blocks import commit, remove_only_replica, replicas, restart_datanode
from tests.live.recovering import HASTY, lease_session, scene, the_one
from tests.live.streams import await_that
from tests.live.writers import pattern, writer
from tests.live.writers.hadoop_says import content, visible_length
from tests.slow.clusters.three_datanodes.conftest import KEY

pytestmark = pytest.mark.clusters

POLICY, CELL = "XOR-2-1-1024k", 1024 * 1024
STRIPE = 2 * CELL
FOLDER = f"/user/{getuser()}/kinds"
ZONE, STRIPED = f"{FOLDER}/zone", f"{FOLDER}/striped"
# Elsewhere, so that the run for all others leaves it open.
OF_A_DEAD_NODE = f"/user/{getuser()}/of-a-dead-node"
OF_A_LOST_NODE = f"/user/{getuser()}/of-a-lost-node"
SIZE = 5000


@pytest.fixture(scope="module")
def folders(three: Minicluster) -> None:
    """Folders that are encrypted, striped, or may be captured."""
    with scene(three) as streamer:
        for folder in (FOLDER, ZONE, STRIPED):
            streamer.hdfs.make_folder(folder)
    coding = "org.apache.hadoop.hdfs.tools.ECAdmin"
    for main_class, *words in (
        ("org.apache.hadoop.hdfs.tools.CryptoAdmin", "-createZone", "-keyName", KEY, "-path", ZONE),
        (coding, "-enablePolicy", "-policy", POLICY),
        (coding, "-setPolicy", "-policy", POLICY, "-path", STRIPED),
        ("org.apache.hadoop.hdfs.tools.DFSAdmin", "-allowSnapshot", FOLDER),
    ):
        done = three.hadoop_main(main_class, *words)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def left(three: Minicluster, folders: None) -> None:
    """The files of one killed writer. Byte i of each is known, so that what is left can be compared."""
    with writer(three) as client:
        client.leave(f"{FOLDER}/gone", SIZE)
        commit(three, f"{FOLDER}/gone", client.holder, SIZE)
        remove_only_replica(three, f"{FOLDER}/gone")
        client.leave(f"{FOLDER}/restarted", SIZE)
        restart_datanode(three, f"{FOLDER}/restarted")
        for name in ("cut-replica", "broken-checksums", "reopened", "of-a-dead-node"):
            client.leave(f"{FOLDER}/{name}" if name != "of-a-dead-node" else OF_A_DEAD_NODE, SIZE, replicas=3)
        client.close(f"{FOLDER}/reopened")
        client.append(f"{FOLDER}/reopened")
        client.leave(f"{FOLDER}/committed", SIZE)
        commit(three, f"{FOLDER}/committed", client.holder, SIZE)
        client.leave(f"{ZONE}/secret", SIZE)
        for name, stripes in (("two-and-a-half", 2.5), ("half", 0.5)):
            client.open(f"{STRIPED}/{name}")
            client.write(f"{STRIPED}/{name}", int(stripes * STRIPE))
        client.leave(f"{FOLDER}/in-a-snapshot", SIZE)
        made = three.hdfs("dfs", "-createSnapshot", FOLDER, "then", as_="streamer")
        assert made.returncode == 0, made.stderr
        client.write(f"{FOLDER}/in-a-snapshot", SIZE)
        client.hflush(f"{FOLDER}/in-a-snapshot")
        client.kill()


@pytest.fixture
def streamer(three: Minicluster) -> Iterator[LeaseSession]:
    with lease_session(three, "streamer") as session:
        yield session


@pytest.mark.usefixtures("left")
def test_a_holder_is_named_where_the_namenode_offers_no_other_datanode(
    three: Minicluster, streamer: LeaseSession
) -> None:
    """The refusal of the next block names it; its writer notices nothing, and the audit log does not either."""
    path = f"/user/{getuser()}/held"
    assert streamer.rpc
    with writer(three) as living:
        living.leave(path, SIZE)
        before = audited(three)
        assert streamer.rpc.holders([path, FOLDER, f"{FOLDER}/missing"]) == [living.holder, None, None]
        assert audited(three) == before
        living.write(path, SIZE)
        living.close(path)
    assert content(three, path) == pattern(2 * SIZE)


def audited(minicluster: Minicluster) -> int:
    logs = minicluster.event_logs()
    return logs[f"{minicluster.active_namenode()}-audit"].read_text().count("\n")


@pytest.mark.usefixtures("left")
def test_the_length_of_a_striped_file_grows_with_each_of_its_blocks(three: Minicluster, streamer: LeaseSession) -> None:
    """WebHDFS, as any reader, looks at the first block of a stripe alone, and takes a writer for idle meanwhile."""
    path = f"{STRIPED}/growing"
    with writer(three) as living:
        living.open(path)
        living.write(path, CELL + 100_000)
        await_that(lambda: measured(streamer, path) > CELL, "the second block is being written")
        first, by_a_reader = measured(streamer, path), visible_length(three, path)
        living.write(path, 500_000)
        await_that(lambda: measured(streamer, path) > first, "it grows")
        assert visible_length(three, path) == by_a_reader
        (answer,) = streamer.ask_holders([path])
        assert isinstance(answer, HolderAnswer), answer
        assert (answer.liveness, answer.holder) == (HolderLiveness.RENEWING, living.holder)
        living.close(path)
    assert content(three, path) == pattern(CELL + 600_000)


def measured(session: LeaseSession, path: str) -> int:
    (length,) = session.lengths.visible_lengths([path])
    assert isinstance(length, int), length
    return length


def test_a_probe_without_truncation_creates_no_file(streamer: LeaseSession) -> None:
    assert streamer.rpc
    missing = f"{STRIPED}/missing"
    assert isinstance(streamer.rpc.refusal_to_open(missing), NotFound)
    (state,) = streamer.rpc.states([missing])
    assert isinstance(state, NotFound)


@dataclass(frozen=True)
class Run:
    """What a run found, and what it did, by path."""

    report: RecoveryReport
    recoveries: Mapping[str, Recovery]

    def closed(self, name: str) -> Recovery:
        recovery = self.recoveries[f"{FOLDER}/{name}"]
        assert recovery.outcome is Outcome.CLOSED, recovery.why
        return recovery


@pytest.fixture(scope="module")
def run(three: Minicluster, left: None) -> Run:
    """One run as their owner, which knows that the writer was killed: a probe would find out in a minute."""
    spoil(three)
    settings = RecoverySettings(Search(FOLDER), HASTY, limits=RecoveryLimits(deadline=timedelta(seconds=10)))
    with lease_session(three, "streamer") as session:
        report = recover_stuck_files(session, settings, Watcher(tell=print), lambda *_: all_dead)
    return Run(report, {recovery.path: recovery for recovery in report.recoveries})


def all_dead(survey: Survey) -> HolderKnowledge:
    return {finding.path: HolderStatus(HolderLiveness.DEAD) for finding in survey.worth_probing}


def spoil(minicluster: Minicluster) -> None:
    """Damage one replica of three each: the end of its data is missing, or its checksums are nonsense."""
    data, _ = next(iter(replicas(minicluster, f"{FOLDER}/cut-replica").values()))
    os.truncate(data, 10)
    _, checksums = next(iter(replicas(minicluster, f"{FOLDER}/broken-checksums").values()))
    checksums.write_bytes(b"?")


@pytest.mark.parametrize("name", ["cut-replica", "broken-checksums"])
def test_one_damaged_replica_of_three_keeps_no_file_open_and_costs_no_byte(
    three: Minicluster, run: Run, name: str
) -> None:
    assert run.closed(name).bytes_lost == 0
    assert content(three, f"{FOLDER}/{name}") == pattern(SIZE)


def test_a_file_that_was_reopened_and_not_written_is_closed_as_it_was(three: Minicluster, run: Run) -> None:
    assert run.closed("reopened").change.length_after == SIZE
    assert content(three, f"{FOLDER}/reopened") == pattern(SIZE)


def test_a_block_whose_datanode_was_started_again_is_as_long_as_the_namenode_knows(
    three: Minicluster, run: Run
) -> None:
    """No reader gets it until it is recovered, so its DataNode tells no length: -1."""
    recovery = run.closed("restarted")
    assert (recovery.change.visible_before, recovery.change.length_after, recovery.bytes_lost) == (SIZE, SIZE, 0)
    assert content(three, recovery.path) == pattern(SIZE)


def test_a_block_that_is_committed_and_finished_nowhere_is_finished_by_the_recovery(
    three: Minicluster, run: Run
) -> None:
    assert run.closed("committed").bytes_lost == 0
    assert content(three, f"{FOLDER}/committed") == pattern(SIZE)


def test_a_block_that_no_datanode_has_any_longer_is_not_deleted(run: Run, streamer: LeaseSession) -> None:
    (intent,) = [intent for intent in run.report.intents if intent.finding.path == f"{FOLDER}/gone"]
    assert intent.finding.judgement.condition is FileCondition.UNRECOVERABLE
    assert f"the NameNode knows of {SIZE} bytes in it" in intent.words
    assert intent.finding.path not in run.recoveries
    (state,) = streamer.states.states([intent.finding.path])
    assert isinstance(state, FileState)
    assert (state.is_open, state.length) == (True, SIZE)


def test_a_file_in_an_encryption_zone_needs_no_key_to_be_recovered(three: Minicluster, run: Run) -> None:
    assert run.closed("zone/secret").bytes_lost == 0
    assert content(three, f"{ZONE}/secret") == pattern(SIZE)


def test_a_snapshot_that_captured_an_open_file_keeps_its_length_of_then(three: Minicluster, run: Run) -> None:
    held = f"{FOLDER}/.snapshot/then/in-a-snapshot"
    assert held not in {finding.path for finding in run.report.survey.findings}
    assert run.closed("in-a-snapshot").change.length_after == 2 * SIZE
    assert content(three, f"{FOLDER}/in-a-snapshot") == pattern(2 * SIZE)
    assert content(three, held) == pattern(SIZE)


def test_a_striped_file_is_closed_at_its_last_whole_stripe(three: Minicluster, run: Run) -> None:
    recovery = run.closed("striped/two-and-a-half")
    assert recovery.change.length_after
    assert recovery.change.length_after % STRIPE == 0
    assert recovery.change.visible_before
    assert recovery.bytes_lost == recovery.change.visible_before - recovery.change.length_after > 0
    assert content(three, recovery.path) == pattern(recovery.change.length_after)


def test_a_striped_file_without_a_whole_stripe_is_given_up_with_the_reason(run: Run) -> None:
    recovery = run.recoveries[f"{STRIPED}/half"]
    assert recovery.outcome is Outcome.GAVE_UP
    assert "HDFS-17358" in recovery.why


@pytest.mark.usefixtures("run")
def test_a_dead_datanode_of_three_keeps_no_file_open(three: Minicluster) -> None:
    with scene(three) as owner:
        targets, dying = owner.targets([OF_A_DEAD_NODE]), next(iter(replicas(three, OF_A_DEAD_NODE)))
        three.kill(dying)
        try:
            # Until then the NameNode sends writers of the journal there.
            await_that(lambda: owner.jmx.health().dead == 1, "the NameNode counts it as dead")
            recovery = the_one(owner.recover(targets))
        finally:
            three.start(dying)
    assert (recovery.outcome, recovery.change.length_after) == (Outcome.CLOSED, SIZE)
    assert content(three, OF_A_DEAD_NODE) == pattern(SIZE)


@pytest.mark.usefixtures("run")
def test_a_block_without_any_datanode_is_lost_once_all_others_have_reported(three: Minicluster) -> None:
    """A NameNode that was started since its only DataNode died knows no place of it at all."""
    with writer(three) as client:
        client.leave(OF_A_LOST_NODE, SIZE)
        client.kill()
    dying = next(iter(replicas(three, OF_A_LOST_NODE)))
    three.kill(dying)
    for namenode in ("nn1", "nn2"):
        three.kill(namenode)
        three.start(namenode)
    three.failover()
    three.hdfs("dfsadmin", "-safemode", "leave")
    with lease_session(three, "streamer") as session:
        try:
            assert condition_of(session, OF_A_LOST_NODE) is not FileCondition.UNRECOVERABLE
            active = session.jmx.health().active
            await_that(lambda: session.jmx.all_reported(active), "all live DataNodes have reported", seconds=240)
            assert condition_of(session, OF_A_LOST_NODE) is FileCondition.UNRECOVERABLE
        finally:
            three.start(dying)
        await_that(lambda: bool(placed(session, OF_A_LOST_NODE)), "its DataNode is back")
        assert condition_of(session, OF_A_LOST_NODE) is not FileCondition.UNRECOVERABLE


def condition_of(session: LeaseSession, path: str) -> FileCondition:
    """Return how a dry run judges the file at its second look."""
    settings = RecoverySettings(
        Search(path), HASTY, limits=RecoveryLimits(deadline=timedelta(seconds=10)), dry_run=True
    )
    for _ in range(2):
        report = recover_stuck_files(session, settings, Watcher(tell=print), lambda *_: all_dead)
    (finding,) = [finding for finding in report.survey.findings if finding.path == path]
    return finding.judgement.condition


def placed(session: LeaseSession, path: str) -> tuple[str, ...]:
    (state,) = session.states.states([path])
    return state.block.hosts if isinstance(state, FileState) and state.block else ()
