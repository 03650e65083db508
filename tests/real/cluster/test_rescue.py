"""Stuck files from start to end: found, judged, their holders probed, recovered; files of living holders left alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from getpass import getuser

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.leases.lease import (
    FileCondition,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    Outcome,
    Search,
)
from airflow_kstream.model.leases.requests import AllowedPath, ApprovalRules, RecoverySettings
from airflow_kstream.supervise.leases.executor import Watcher
from airflow_kstream.supervise.leases.findings import Survey
from airflow_kstream.supervise.leases.holders import HolderProbe
from airflow_kstream.supervise.leases.journal import Journal, JournalRecord, read_journal
from airflow_kstream.supervise.leases.own_files import OwnFiles
from airflow_kstream.supervise.leases.recover import Probe, RecoveryReport, recover_stuck_files
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.survey import ScanHistory, Surveyor
from tests.live.recovering import HASTY, lease_session
from tests.live.streams import await_that
from tests.live.writers import (
    Bucket,
    leave_bucket,
    leave_open,
    make_closed,
    pattern,
    spark_stream_killed_in_the_middle,
    writer,
)
from tests.live.writers.hadoop_says import content, is_open, open_files

# Longer than a busy machine delays a writer, and shorter than several checks take.
UNHURRIED = replace(HASTY, leak_after=timedelta(seconds=5))
# Longer than any pause between two checks.
PATIENT = replace(HASTY, leak_after=timedelta(hours=1))
PLACE = f"/user/{getuser()}/long-dead"
APPENDED = f"{PLACE}/appended/log"
STRANGE = "a name\twith\nall [kinds] ü e\u0301"


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> str:
    return f"/user/{getuser()}/rescue/{request.node.name}"


@pytest.fixture
def superuser(minicluster: Minicluster) -> Iterator[LeaseSession]:
    with lease_session(minicluster, "hdfs") as session:
        yield session


@pytest.fixture
def owner(minicluster: Minicluster) -> Iterator[LeaseSession]:
    with lease_session(minicluster, "streamer") as session:
        yield session


def below(folder: str, **more: object) -> RecoverySettings:
    return replace(RecoverySettings(Search(folder), HASTY), **more)  # type: ignore[arg-type]


def rescued(
    session: LeaseSession,
    settings: RecoverySettings,
    probing: Callable[[LeaseSession, Journal, Watcher], Probe] = HolderProbe,
) -> RecoveryReport:
    return recover_stuck_files(session, settings, Watcher(tell=print), probing)


def outcomes(done: RecoveryReport) -> dict[str, Outcome]:
    return {recovery.path: recovery.outcome for recovery in done.recoveries}


def unchanged_for_long(session: LeaseSession, folder: str) -> None:
    """Check until every file below was measured unchanged for as long as a living holder's must be."""
    surveyor = Surveyor(session, Search(folder), HASTY, print)
    await_that(
        lambda: all(finding.history.unchanged_for >= HASTY.leak_after for finding in surveyor.scan().findings),
        f"what is open below {folder} is unchanged for {HASTY.leak_after}",
    )


@pytest.fixture(scope="module")
def long_dead(minicluster: Minicluster) -> Bucket:
    """Files of killed writers, each below `PLACE`: all writers are dead for longer than the NameNode's soft limit.

    That limit (60 s) can't be set. Once the writer that was killed last counts as dead, so do the others, and probing
    its file renews no other lease.
    """
    for name in ("many", "walked", "nameless", "interrupted"):
        leave_open(minicluster, [f"{PLACE}/{name}/{file}" for file in ("one", "two", STRANGE)], 1000)
    leave_open(minicluster, [f"{PLACE}/parted/{part}/file" for part in ("one", "two", "three")], 1000)
    leave_open(minicluster, [f"{PLACE}/together/{number}" for number in range(40)], 1000)
    with writer(minicluster) as flink:
        bucket = leave_bucket(flink, f"{PLACE}/flink", valid_length=1000, flushed=1700)
        flink.kill()
    with writer(minicluster) as appending:
        appending.open(APPENDED)
        appending.write(APPENDED, 300)
        appending.close(APPENDED)
        appending.append(APPENDED)
        appending.write(APPENDED, 200)
        appending.hflush(APPENDED)
        appending.kill()
    spark_stream_killed_in_the_middle(minicluster, f"{PLACE}/checkpoint")
    leave_open(minicluster, [f"{PLACE}/last"], 1000)
    with lease_session(minicluster, "streamer") as session:
        dead = HolderLiveness.DEAD
        await_that(lambda: session.web.ask_holder(f"{PLACE}/last").liveness is dead, "the last one counts as dead")
    return bucket


@pytest.mark.usefixtures("long_dead")
def test_a_dead_holders_files_are_closed_and_a_living_ones_are_not(
    minicluster: Minicluster, superuser: LeaseSession
) -> None:
    """As superuser, it probes one file of the dead holder, and the answer holds for the others."""
    folder = f"{PLACE}/many"
    stuck = [f"{folder}/{name}" for name in ("one", "two", STRANGE)]
    with writer(minicluster) as living:
        living.leave(f"{folder}/living", 2000)
        done = rescued(superuser, below(folder))
        assert done.survey.route == "listOpenFiles"
        assert outcomes(done) == dict.fromkeys(stuck, Outcome.CLOSED)
        assert open_files(minicluster, folder) == {f"{folder}/living": living.holder}
        living.write(f"{folder}/living", 10)
        living.close(f"{folder}/living")
    assert {recovery.bytes_lost for recovery in done.recoveries} == {0}
    assert content(minicluster, stuck[0]) == pattern(1000)
    lives = {intent.finding.path: intent.finding.holder.liveness for intent in done.intents}
    assert lives[f"{folder}/living"] is HolderLiveness.RENEWING
    asked = recorded(superuser, done)
    assert [record.action for record in asked].count("ask") == 2
    assert {record.path for record in asked if record.outcome is Outcome.CLOSED} == set(stuck)


def test_a_dry_run_says_what_would_be_done_and_sends_no_probe(
    minicluster: Minicluster, superuser: LeaseSession, folder: str
) -> None:
    leave_open(minicluster, [f"{folder}/stuck"], 1000)
    planned = rescued(superuser, below(folder, dry_run=True))
    assert [intent.words for intent in planned.intents] == ["probe its holder, and recover it if the holder is dead"]
    assert planned.run is None
    assert is_open(minicluster, f"{folder}/stuck")


def test_a_leaking_writers_file_is_recovered_only_with_approval(
    minicluster: Minicluster, superuser: LeaseSession, folder: str
) -> None:
    """The seed's leak: abandoned unclosed, while another stream of the same client keeps the lease renewed."""
    path = f"{folder}/part-0-6"
    with writer(minicluster) as leaking:
        leaking.leave(f"{folder}/other", 10)
        leaking.leave(path, 1700)
        leaking.abandon(path)
        left_alone = rescued(superuser, below(folder, rules=PATIENT))
        assert outcomes(left_alone) == {}
        finding = next(intent.finding for intent in left_alone.intents if intent.finding.path == path)
        assert finding.judgement.condition is FileCondition.IDLE
        unchanged_for_long(superuser, folder)
        refused = rescued(superuser, below(folder, approvals=ApprovalRules(allowed=(AllowedPath(f"{folder}/*"),))))
        assert outcomes(refused) == {}
        assert "the application that wrote it is unknown" in next(
            intent.decision.why for intent in refused.intents if intent.finding.path == path
        )
        approvals = ApprovalRules(approved=frozenset({path}), approved_by="ada")
        assert outcomes(rescued(superuser, below(folder, approvals=approvals))) == {path: Outcome.CLOSED}
        assert is_open(minicluster, f"{folder}/other")
        leaking.write(f"{folder}/other", 10)
        leaking.close(f"{folder}/other")
    assert content(minicluster, path) == pattern(1700)


def test_a_slow_writer_that_grows_survives_every_approval(
    minicluster: Minicluster, superuser: LeaseSession, folder: str
) -> None:
    path = f"{folder}/slow"
    approvals = ApprovalRules(allowed=(AllowedPath("*"),), approved=frozenset({path}), approved_by="ada")
    with writer(minicluster) as slow:
        slow.leave(path, 100)
        slow.grow(path, seconds=0.2)
        for _ in range(8):
            done = rescued(superuser, below(folder, approvals=approvals, rules=UNHURRIED))
            assert outcomes(done) == {}
        slow.close(path)
    grown = content(minicluster, path)
    assert len(grown) > 100
    assert grown == pattern(len(grown))


def test_a_file_that_grew_between_verdict_and_recovery_is_left_alone(
    minicluster: Minicluster, superuser: LeaseSession, folder: str
) -> None:
    """Its writer seemed to be done and writes again at the very moment of the holder probe."""
    path = f"{folder}/woken"
    approvals = ApprovalRules(approved=frozenset({path}), approved_by="ada")
    with writer(minicluster) as woken:
        woken.leave(path, 100)
        unchanged_for_long(superuser, folder)

        class ProbeAndWrite(HolderProbe):
            def __call__(self, survey: Survey) -> HolderKnowledge:
                knowledge = super().__call__(survey)
                woken.write(path, 100)
                woken.hflush(path)
                return knowledge

        done = rescued(superuser, below(folder, approvals=approvals), ProbeAndWrite)
        assert outcomes(done) == {path: Outcome.CHANGED}
        woken.close(path)
    assert content(minicluster, path) == pattern(200)


def test_what_was_flushed_after_its_holder_was_taken_for_dead_is_left_alone(
    minicluster: Minicluster, superuser: LeaseSession, folder: str
) -> None:
    """The test fakes the NameNode's verdict: a writer frozen for longer than its lease has lost its DataNode, too,
    by the same 60 s, unless dfs.client.socket-timeout is longer than Hadoop's default.
    """
    path = f"{folder}/frozen"
    with writer(minicluster) as frozen:
        frozen.leave(path, 100)
        unchanged_for_long(superuser, folder)

        def dead_and_back(survey: Survey) -> HolderKnowledge:
            frozen.write(path, 100)
            frozen.hflush(path)
            return {finding.path: HolderStatus(HolderLiveness.DEAD) for finding in survey.findings}

        assert outcomes(rescued(superuser, below(folder), lambda *_: dead_and_back)) == {path: Outcome.CHANGED}
        frozen.close(path)
    assert content(minicluster, path) == pattern(200)


@pytest.mark.usefixtures("long_dead")
def test_an_ordinary_user_probes_one_file_of_each_holder(minicluster: Minicluster, owner: LeaseSession) -> None:
    """The walk names no holder, but the NameNode does: nobody waits for a lease that an earlier probe renewed."""
    folder = f"{PLACE}/walked"
    stuck = [f"{folder}/{name}" for name in ("one", "two", STRANGE)]
    told: list[str] = []
    with writer(minicluster) as living:
        living.leave(f"{folder}/living", 2000)
        living.leave(f"{folder}/living-too", 2000)
        done = recover_stuck_files(owner, below(folder), Watcher(tell=told.append))
        assert open_files(minicluster, folder) == dict.fromkeys(
            [f"{folder}/living", f"{folder}/living-too"], living.holder
        )
        living.write(f"{folder}/living", 10)
        living.close(f"{folder}/living")
    assert done.survey.route == "fsck"
    assert outcomes(done) == dict.fromkeys(stuck, Outcome.CLOSED)
    asked = recorded(owner, done)
    assert [record.action for record in asked].count("ask") == 2
    assert not any("waiting" in line for line in told)


@pytest.mark.usefixtures("long_dead")
def test_where_nobody_names_holders_the_run_says_how_long_it_waits(
    minicluster: Minicluster, owner: LeaseSession
) -> None:
    """By HTTP alone: files that name a holder are settled a minute later."""
    folder = f"{PLACE}/nameless"
    told: list[str] = []
    done = recover_stuck_files(replace(owner, rpc=None, lengths=owner.pool), below(folder), Watcher(tell=told.append))
    assert outcomes(done) == dict.fromkeys([f"{folder}/{name}" for name in ("one", "two", STRANGE)], Outcome.CLOSED)
    assert open_files(minicluster, folder) == {}
    assert any("waiting 62 s" in line for line in told)


@pytest.mark.usefixtures("long_dead")
def test_a_holder_is_asked_again_by_another_process_and_not_by_the_same_one(
    minicluster: Minicluster, owner: LeaseSession
) -> None:
    """The first run's probe renewed the lease on the holder's files in other folders, too."""
    for part in ("one", "two"):
        done = rescued(owner, below(f"{PLACE}/parted/{part}"))
        assert outcomes(done) == {f"{PLACE}/parted/{part}/file": Outcome.CLOSED}
    told: list[str] = []
    with lease_session(minicluster, "streamer") as another_process:
        done = recover_stuck_files(another_process, below(f"{PLACE}/parted/three"), Watcher(tell=told.append))
    assert outcomes(done) == {f"{PLACE}/parted/three/file": Outcome.CLOSED}
    assert [line for line in told if "is asked again at" in line]
    assert open_files(minicluster, f"{PLACE}/parted") == {}


@pytest.mark.usefixtures("long_dead")
def test_of_two_runs_at_once_the_second_waits_for_the_first(
    minicluster: Minicluster,
) -> None:
    folder = f"{PLACE}/together"
    told: list[str] = []

    def run(_: int) -> RecoveryReport:
        with lease_session(minicluster, "streamer") as session:
            return recover_stuck_files(session, below(folder), Watcher(tell=told.append))

    with ThreadPoolExecutor(2) as threads:
        runs = list(threads.map(run, range(2)))
    assert open_files(minicluster, folder) == {}
    closed = sorted(path for done in runs for path, outcome in outcomes(done).items() if outcome is Outcome.CLOSED)
    assert closed == sorted(f"{folder}/{number}" for number in range(40))
    assert not any(done.incomplete for done in runs)
    assert [line.partition(" run ")[0] for line in told if line.startswith("waiting")] == ["waiting for the"]


def test_a_flink_part_file_is_compared_with_its_valid_length(
    minicluster: Minicluster, superuser: LeaseSession, long_dead: Bucket
) -> None:
    """All flushed bytes are there, and the companion says how many of them count."""
    (recovery,) = rescued(superuser, below(f"{PLACE}/flink")).recoveries
    assert (recovery.outcome, recovery.valid_length, recovery.change.length_after) == (Outcome.CLOSED, 1000, 1700)
    assert content(minicluster, long_dead.part) == pattern(1700)


@pytest.mark.usefixtures("long_dead")
def test_a_file_that_was_opened_again_for_append_keeps_what_was_flushed_to_it(
    minicluster: Minicluster, superuser: LeaseSession
) -> None:
    (recovery,) = rescued(superuser, below(f"{PLACE}/appended")).recoveries
    assert (recovery.outcome, recovery.change.visible_before, recovery.bytes_lost) == (Outcome.CLOSED, 500, 0)
    assert len(content(minicluster, APPENDED)) == 500


@pytest.mark.usefixtures("long_dead")
def test_the_offsets_that_a_killed_spark_stream_was_writing_are_whole_afterwards(
    minicluster: Minicluster, superuser: LeaseSession
) -> None:
    """The temporary file of its next batch, in its checkpoint."""
    (recovery,) = rescued(superuser, below(f"{PLACE}/checkpoint", search=Search(PLACE, (".*.tmp",)))).recoveries
    assert recovery.outcome is Outcome.CLOSED
    assert recovery.path.startswith(f"{PLACE}/checkpoint/offsets/.")
    *_, offsets = content(minicluster, recovery.path).decode().splitlines()
    assert json.loads(offsets) is not None


def test_a_hundred_open_files_are_found_among_twenty_thousand_closed_ones(
    minicluster: Minicluster, superuser: LeaseSession, owner: LeaseSession, folder: str
) -> None:
    """Both routes find the same files."""
    make_closed(minicluster, [f"{folder}/{number % 20}/closed-{number}" for number in range(20_000)])
    wanted = {f"{folder}/{number % 20}/open-{number}" for number in range(100)}
    leave_open(minicluster, sorted(wanted), 10)
    for session, route in ((superuser, "listOpenFiles"), (owner, "fsck")):
        survey = Surveyor(session, Search(folder), HASTY, print).scan()
        assert survey.route == route
        assert {finding.path for finding in survey.findings} == wanted


def test_what_was_seen_is_remembered_by_the_next_run(
    minicluster: Minicluster, superuser: LeaseSession, folder: str
) -> None:
    path = f"{folder}/remembered"
    leave_open(minicluster, [path], 1000)
    first = Surveyor(superuser, Search(folder), HASTY, print).scan()
    with lease_session(minicluster, "hdfs") as another_process:
        await_that(lambda: another_process.base.hdfs.now() - first.at > timedelta(seconds=2), "some time passes")
        second = Surveyor(another_process, Search(folder), HASTY, print).scan()
    (finding,) = second.findings
    assert finding.history.checks == 2
    assert finding.history.unchanged_for >= timedelta(seconds=2)


def test_a_run_whose_files_an_earlier_one_saw_needs_no_second_look(minicluster: Minicluster, folder: str) -> None:
    """As those of a scheduled DAG: a file that was too young last time has its first look, in the state_dir."""
    path = f"{folder}/seen"
    leave_open(minicluster, [path], 1000)
    settled = replace(HASTY, settle=timedelta(seconds=2))
    young = replace(settled, min_age=timedelta(hours=1))
    told: list[str] = []
    with lease_session(minicluster, "hdfs") as earlier:
        seen = recover_stuck_files(earlier, below(folder, rules=young, dry_run=True), Watcher(tell=told.append))
    assert [intent.finding.judgement.condition for intent in seen.intents] == [FileCondition.YOUNG]
    with lease_session(minicluster, "hdfs") as later:
        await_that(lambda: later.base.hdfs.now() - seen.survey.at > timedelta(seconds=3), "the next run is due")
        (intent,) = recover_stuck_files(
            later, below(folder, rules=settled, dry_run=True), Watcher(tell=told.append)
        ).intents
    assert (intent.would_probe, intent.finding.history.checks, told) == (True, 2, [])


def test_a_run_remembers_its_own_scans_when_another_overwrites_the_history(
    minicluster: Minicluster, superuser: LeaseSession, folder: str
) -> None:
    path = f"{folder}/overwritten"
    leave_open(minicluster, [path], 1000)
    surveyor = Surveyor(superuser, Search(folder), HASTY, print)
    surveyor.scan()
    ScanHistory(superuser.base.hdfs, superuser.folder).save([], superuser.base.hdfs.now())
    (finding,) = surveyor.scan().findings
    assert finding.history.checks == 2


@pytest.mark.usefixtures("long_dead")
def test_an_interrupted_rescue_sends_no_further_requests_and_says_so(
    minicluster: Minicluster, superuser: LeaseSession
) -> None:
    folder = f"{PLACE}/interrupted"
    unchanged_for_long(superuser, folder)
    stop = threading.Event()
    stop.set()
    done = recover_stuck_files(superuser, below(folder), Watcher(tell=print, stop=stop))
    assert (done.interrupted, done.recoveries) == (True, ())
    assert len(open_files(minicluster, folder)) == 3


def recorded(session: LeaseSession, done: RecoveryReport) -> list[JournalRecord]:
    assert done.run
    journal = read_journal(OwnFiles(session.base.hdfs), session.folder)
    return [record for record in journal if record.run == done.run.run_id]
