"""What is judged when: second looks no earlier than they can settle something, and one probe for each holder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.leases.lease import (
    Attribution,
    FileCondition,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    JudgementContext,
    LeaseRules,
)
from airflow_kstream.model.leases.open_file import Block, FileHistory, FileState, OpenFile
from airflow_kstream.model.leases.requests import ApprovalRules
from airflow_kstream.policy.leases.judgement import next_check, undecided
from airflow_kstream.supervise.leases.findings import Survey, judged_finding
from airflow_kstream.supervise.leases.judging import Approvals, Judging
from airflow_kstream.supervise.leases.recover import RecoveryReport
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.survey import Surveyor

NOW, SECOND = datetime(2026, 1, 1, 12, tzinfo=UTC), timedelta(seconds=1)
RULES = LeaseRules(min_age=timedelta(0))
HEALTH = HdfsHealth("nn1", safe_mode=False, dead=0, stale=0, version="3.4.3", active_since=NOW - timedelta(hours=1))


def state(path: str, length: int = 5) -> FileState:
    written = NOW - timedelta(hours=1)
    return FileState(path, 1, "alice", written, True, length, Block(1, 1, length, False), visible_length=length)


@dataclass
class SimulatedScene:
    """A surveyor and a probe. `holders` are those of the open files, by path; `alive` of them renew their leases.

    `grown` and `closed` are files of which the second look finds that, `seen` are times of first looks after NOW, and
    `again` are holders that can't be told from living ones before these times.
    """

    holders: Mapping[str, str | None]
    alive: frozenset[str] = frozenset()
    grown: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    seen: Mapping[str, datetime] = field(default_factory=dict)
    time: datetime = NOW
    again: Mapping[str, datetime] = field(default_factory=dict)
    health_now: HdfsHealth = HEALTH
    away: bool = False
    looks: list[list[str]] = field(default_factory=list)
    probed: list[str] = field(default_factory=list)
    judging: Judging = field(init=False)

    def __post_init__(self) -> None:
        histories = [
            FileHistory.begin(OpenFile(path, holder=holder), state(path), self.seen.get(path, NOW))
            for path, holder in self.holders.items()
        ]
        approvals = Approvals(cast(LeaseSession, self), ApprovalRules())
        self.judging = Judging(cast(Surveyor, self), self._survey(histories, HEALTH), self._probe, approvals)

    @property
    def base(self) -> None:
        """Have no session: nothing here asks YARN."""

    def now(self) -> datetime:
        return self.time

    def health(self) -> HdfsHealth:
        return self.health_now

    def look_again(self, survey: Survey) -> Survey:
        if self.away:
            raise Unavailable("no active NameNode found")
        self.looks.append([finding.path for finding in survey.findings])
        histories = [
            finding.history.extended(
                finding.history.file,
                state(finding.path, 9 if finding.path in self.grown else 5),
                self.time,
                self.time,
            )
            for finding in survey.findings
            if finding.path not in self.closed
        ]
        return self._survey(histories, survey.health)

    def judged(self, most: int = 1000) -> dict[str, bool]:
        """Judge, and return the files that may be recovered: whether each is requested without another reading."""
        return {target.path: bool(seen) for target, seen in self.judging.judged(most)}

    def report(self, left: str = "") -> RecoveryReport:
        return RecoveryReport(*self.judging.result(left))

    def _survey(self, histories: Sequence[FileHistory], health: HdfsHealth) -> Survey:
        findings = (judged_finding(row, Attribution(), HolderStatus(), self.time, health, RULES) for row in histories)
        return Survey(self.time, "fsck", health, tuple(findings), {}, RULES)

    def _probe(self, survey: Survey) -> HolderKnowledge:
        late = {holder for holder, at in self.again.items() if at > self.time}
        known = {holder for holder in self.holders.values() if holder and holder in self.probed and holder not in late}
        asked = {finding.history.file.holder for finding in survey.worth_probing}
        self.probed += sorted(holder or "" for holder in asked - known)
        return {
            finding.path: HolderStatus(again=self.again[holder])
            if (holder := self.holders[finding.path] or "") in late
            else HolderStatus(self._liveness(finding.path))
            for finding in survey.findings
        }

    def _liveness(self, path: str) -> HolderLiveness:
        holder = self.holders[path] or ""
        if holder not in self.probed:
            return HolderLiveness.UNKNOWN
        return HolderLiveness.RENEWING if holder in self.alive else HolderLiveness.DEAD


def conditions(report: RecoveryReport) -> dict[str, FileCondition]:
    return {intent.finding.path: intent.finding.judgement.condition for intent in report.intents}


def test_a_file_is_due_once_a_second_look_can_settle_it() -> None:
    scene = SimulatedScene({"/a": "client-1"})
    assert scene.judging.due() == RULES.settle
    scene.time = NOW + RULES.settle - SECOND
    assert (scene.judged(), scene.looks) == ({}, [])
    scene.time = NOW + RULES.settle
    assert scene.judging.due() == timedelta(0)
    assert scene.judged() == {"/a": False}
    assert scene.judging.due() is None


def test_one_file_of_each_holder_goes_first() -> None:
    """Then nothing comes between the look at the others and their requests."""
    scene = SimulatedScene({"/a": "client-1", "/b": "client-1", "/c": "client-2", "/d": "client-2"})
    scene.time += RULES.settle
    assert scene.judged() == {"/a": False, "/c": False}
    assert scene.judged() == {"/b": True, "/d": True}
    assert scene.looks == [["/a", "/c"], ["/b", "/d"]]
    assert scene.probed == ["client-1", "client-2"]


def test_what_is_known_of_a_holder_counts_for_two_minutes() -> None:
    """Then a probe comes between the look at its next files and their requests, on a cluster that is fit for it."""
    seen = {"/b": NOW + 119 * SECOND, "/c": NOW + 121 * SECOND, "/d": NOW + 121 * SECOND}
    scene = SimulatedScene({"/a": "client-1", "/b": "client-1", "/c": "client-1", "/d": "client-1"}, seen=seen)
    scene.time += RULES.settle
    assert scene.judged() == {"/a": False}
    scene.time += 119 * SECOND
    assert scene.judged() == {"/b": True}
    scene.time += 2 * SECOND
    assert scene.judged(1) == {"/c": False}
    assert scene.judged(1) == {"/d": True}


def test_holders_whose_files_are_due_within_moments_are_probed_together() -> None:
    """Each round of probes costs two records, and a record of HDFS takes up to half a second."""
    scene = SimulatedScene(
        {"/a": "client-1", "/b": "client-2", "/c": "client-3", "/d": "client-1"},
        seen={"/b": NOW + SECOND, "/c": NOW + 10 * SECOND},
    )
    scene.time += RULES.settle
    assert (scene.judging.due(), scene.judged()) == (SECOND, {})
    scene.time += SECOND
    assert scene.judged() == {"/a": False, "/b": False}
    assert scene.judged() == {"/d": True}
    assert scene.judging.due() == 9 * SECOND
    scene.time += 9 * SECOND
    assert scene.judged() == {"/c": False}
    assert scene.judging.due() is None


def test_the_files_of_a_holder_that_is_asked_again_wait_and_no_others() -> None:
    later = NOW + RULES.settle + 50 * SECOND
    scene = SimulatedScene(
        {"/a": "client-1", "/b": "client-1", "/c": "client-2", "/d": "client-2", "/e": "client-3"},
        seen={"/e": NOW + 20 * SECOND},
        again={"client-1": later},
    )
    scene.time += RULES.settle
    assert scene.judged() == {"/c": False}
    assert scene.judged() == {"/d": True}
    assert scene.judging.due() == 20 * SECOND
    scene.time += 20 * SECOND
    assert scene.judged() == {"/e": False}
    assert scene.judging.due() == 30 * SECOND
    scene.time = later
    assert (scene.judged(), scene.judged()) == ({"/a": False}, {"/b": True})
    assert scene.judging.due() is None
    assert scene.looks == [["/a", "/c"], ["/d"], ["/e"], ["/a"], ["/b"]]


def test_a_holder_that_could_not_be_asked_again_is_named_with_the_reason() -> None:
    scene = SimulatedScene({"/a": "client-1"}, again={"client-1": NOW + 60 * SECOND})
    scene.time += RULES.settle
    assert scene.judged() == {}
    (intent,) = scene.report("the run was interrupted").unprobed
    assert intent.finding.holder.refusal == "it was not looked at again: the run was interrupted"


def test_a_living_holder_is_probed_once_and_keeps_its_files() -> None:
    scene = SimulatedScene({"/a": "client-1", "/b": "client-1"}, alive=frozenset({"client-1"}))
    scene.time += RULES.settle
    assert (scene.judged(), scene.judged()) == ({}, {})
    assert scene.probed == ["client-1"]
    assert set(conditions(scene.report()).values()) == {FileCondition.IDLE}


def test_a_file_that_grew_between_the_looks_is_left_alone() -> None:
    """A writer without a lease may still write, for example if it is cut off from the NameNode alone."""
    scene = SimulatedScene({"/a": "client-1", "/b": "client-1", "/c": "client-1"}, grown=frozenset({"/a", "/b"}))
    scene.time += RULES.settle
    assert scene.judged() == {}
    assert scene.probed == []
    assert scene.judged() == {"/c": False}
    assert conditions(scene.report())["/b"] is FileCondition.GROWING


def test_no_more_files_are_looked_at_than_there_is_room_for() -> None:
    scene = SimulatedScene({f"/{number}": "client-1" for number in range(10)})
    scene.time += RULES.settle
    scene.judged(4)
    assert len(scene.judged(4)) == 4
    assert len(scene.judged(4)) == 4
    assert len(scene.judged(4)) == 1


def test_where_nobody_names_holders_all_files_are_judged_at_once() -> None:
    """Each is probed, and who waits for a renewed lease waits once for all of them."""
    scene = SimulatedScene({"/a": None, "/b": None, "/c": "client-1"})
    scene.time += RULES.settle
    assert scene.judged(1) == {"/a": False, "/b": False}
    assert scene.judged(1) == {"/c": False}


def test_after_a_failover_only_holders_known_to_be_dead_count_as_dead() -> None:
    """A failover renews every lease: who was dead before is dead, and of the others nobody knows."""
    scene = SimulatedScene({"/a": "client-1", "/b": "client-1", "/c": "client-2", "/d": "client-2"})
    scene.time += RULES.settle
    assert scene.judged(1) == {"/a": False}
    scene.health_now = replace(HEALTH, active="nn2", active_since=scene.time)
    assert scene.judged() == {}
    assert scene.judged() == {"/b": True}
    assert scene.judged() == {}
    assert conditions(scene.report())["/c"] is FileCondition.UNKNOWN


@pytest.mark.parametrize("trait", [{"dead": 20}, {"safe_mode": True}])
def test_no_holder_is_probed_once_the_cluster_is_unfit(trait: dict[str, object]) -> None:
    scene = SimulatedScene({"/a": "client-1"})
    scene.health_now = replace(HEALTH, **trait)  # type: ignore[arg-type]
    scene.time += RULES.settle
    assert (scene.judged(), scene.probed) == ({}, [])
    assert scene.report().unprobed


def test_a_look_that_fails_is_taken_again() -> None:
    scene = SimulatedScene({"/a": "client-1"}, away=True)
    scene.time += RULES.settle
    with pytest.raises(Unavailable):
        scene.judged()
    scene.away = False
    assert scene.judged() == {"/a": False}


def test_a_file_that_was_closed_between_the_looks_is_no_longer_there() -> None:
    scene = SimulatedScene({"/a": "client-1", "/b": "client-1"}, closed=frozenset({"/b"}))
    scene.time += RULES.settle
    assert (scene.judged(), scene.judged()) == ({"/a": False}, {})
    assert conditions(scene.report()).keys() == {"/a"}


def test_files_that_the_run_did_not_get_to_are_named_with_the_reason() -> None:
    scene = SimulatedScene({"/a": "client-1"})
    (intent,) = scene.report("the run was interrupted").unprobed
    assert intent.finding.holder.refusal == "it was not looked at again: the run was interrupted"


_ROW = FileHistory.begin(OpenFile("/a"), state("/a"), NOW)


@pytest.mark.parametrize(
    ("history", "age", "is_open"),
    [
        (_ROW, timedelta(hours=1), True),
        (_ROW, timedelta(minutes=1), False),
        (replace(_ROW, checks=2, steady_since=NOW - RULES.settle), timedelta(hours=1), True),
        (replace(_ROW, checks=2, steady_since=NOW - RULES.settle / 2), timedelta(hours=1), True),
    ],
)
def test_a_file_is_undecided_if_a_look_or_a_probe_can_change_what_is_done(
    history: FileHistory, age: timedelta, is_open: bool
) -> None:
    opened = replace(history, state=replace(history.state, modified=NOW - age), first_seen=NOW - age)
    assert undecided(opened, JudgementContext(NOW), LeaseRules()) is is_open


def test_a_file_that_earlier_runs_saw_unchanged_is_due_at_once() -> None:
    settled = replace(_ROW, checks=2, steady_since=NOW - timedelta(minutes=5))
    assert next_check(settled, RULES) < NOW
    assert next_check(_ROW, RULES) == NOW + RULES.settle
