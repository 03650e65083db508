"""Holders are probed sparingly, and what is known of them decides how files are judged."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.leases import HolderAnswer
from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.leases.lease import (
    Attribution,
    FileCondition,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    Judgement,
)
from airflow_kstream.model.leases.open_file import Block, FileHistory, FileState, OpenFile
from airflow_kstream.supervise.leases.executor import Watcher
from airflow_kstream.supervise.leases.findings import FileFinding, Survey
from airflow_kstream.supervise.leases.holders import HolderProbe, withhold
from airflow_kstream.supervise.leases.journal import Journal
from airflow_kstream.supervise.leases.session import LeaseSession

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEALTH = HdfsHealth("nn1", safe_mode=False, dead=0, stale=0, version="3.4.3")
QUIET, YOUNG = "/data/quiet", "/data/young"


def finding(path: str, age: timedelta) -> FileFinding:
    state = FileState(path, 1, "alice", NOW - age, True, 5, Block(1, 1, 5, False), visible_length=5)
    history = FileHistory(OpenFile(path), state, NOW - age, NOW - age, NOW, checks=2)
    return FileFinding(history, Judgement(FileCondition.UNKNOWN, "not judged"), Attribution())


def survey(*, safe_mode: bool = False, knowledge: HolderKnowledge | None = None) -> Survey:
    findings = (finding(QUIET, timedelta(minutes=30)), finding(YOUNG, timedelta(minutes=1)))
    health = replace(HEALTH, safe_mode=safe_mode)
    return Survey(NOW, "listOpenFiles", health, findings, {}).judged_with(knowledge or {})


def conditions(judged: Survey) -> dict[str, FileCondition]:
    return {finding.path: finding.judgement.condition for finding in judged.findings}


def test_only_an_old_quiet_file_with_an_unknown_holder_is_worth_probing() -> None:
    assert [finding.path for finding in survey().worth_probing] == [QUIET]
    assert survey(knowledge={QUIET: HolderStatus(HolderLiveness.RENEWING)}).worth_probing == ()
    assert survey(knowledge={QUIET: HolderStatus(refusal="Permission denied")}).worth_probing == ()
    assert survey(safe_mode=True).worth_probing == ()


def test_a_dead_holder_decides_only_about_files_that_are_old_enough() -> None:
    dead = HolderStatus(HolderLiveness.DEAD)

    assert conditions(survey(knowledge={QUIET: dead, YOUNG: dead})) == {
        QUIET: FileCondition.HOLDER_DEAD,
        YOUNG: FileCondition.YOUNG,
    }


def test_a_judgement_uses_the_latest_knowledge_alone() -> None:
    dead = survey(knowledge={QUIET: HolderStatus(HolderLiveness.DEAD)})

    assert conditions(dead.judged_with({})) == conditions(survey())


def test_a_holder_that_the_namenode_named_is_kept_with_its_host() -> None:
    named = HolderStatus(HolderLiveness.RENEWING, name="DFSClient_1", host="worker7")
    file = survey(knowledge={QUIET: named}).findings[0].history.file

    assert (file.holder, file.host) == ("DFSClient_1", "worker7")


def test_probes_withheld_in_safe_mode_mark_the_files_that_would_be_probed() -> None:
    scanned = survey(safe_mode=True)
    judged = scanned.judged_with(withhold(scanned, "the NameNode is in safe mode"))

    assert {finding.path: finding.unprobed for finding in judged.findings} == {QUIET: True, YOUNG: False}
    assert judged.findings[0].holder.retryable
    assert "safe mode" in judged.findings[0].judgement.why


@dataclass
class SimulatedNameNode:
    """A NameNode that answers probes, and the journal that must know of each beforehand."""

    answers: Mapping[str, HolderAnswer | Denied | Unavailable]
    renewed: Mapping[str, datetime] = field(default_factory=dict)
    dead_holders: dict[str, datetime] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)
    probed: list[str] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    holders_now: Mapping[str, str | None] = field(default_factory=dict)
    writes: bool = True

    def holders(self, paths: Sequence[str]) -> list[str | None]:
        return [self.holders_now.get(path) for path in paths]

    def asked(self, holders: Mapping[str, str | None], reason: str) -> None:
        self.recorded |= holders.keys()

    def answered(self, answers: Mapping[str, str]) -> None:
        self.shown |= answers

    def flush(self) -> None:
        """What the probes showed is in `shown` at once. Raises Unavailable: where nothing can be written."""
        if not self.writes:
            raise Unavailable("HDFS is away")

    def renewed_by_others(self, within: timedelta) -> Mapping[str, datetime]:
        return self.renewed

    def ask_holders(self, paths: Sequence[str]) -> list[HolderAnswer | KstreamError]:
        assert self.recorded.issuperset(paths), "probed without a record"
        self.probed += paths
        return [self.answers[path] for path in paths]

    def probe(self, scanned: Survey, watcher: Watcher | None = None) -> HolderKnowledge:
        return HolderProbe(cast(LeaseSession, self), cast(Journal, self), watcher or Watcher())(scanned)


def held(holders: Mapping[str, str | None]) -> Survey:
    """Return a survey of quiet files with these holders."""
    quiet = {path: finding(path, timedelta(minutes=30)) for path in holders}
    findings = tuple(
        replace(quiet[path], history=replace(quiet[path].history, file=OpenFile(path, holder=holder)))
        for path, holder in holders.items()
    )
    return Survey(NOW, "listOpenFiles", HEALTH, findings, {}).judged_with({})


DEAD = HolderAnswer(HolderLiveness.DEAD, recovering=True)


def test_one_file_of_each_holder_is_probed_and_the_answer_counts_for_all() -> None:
    namenode = SimulatedNameNode({"/b": DEAD, "/c": HolderAnswer(HolderLiveness.RENEWING, "client-2", "worker7")})
    knowledge = namenode.probe(held({"/a": "client-1", "/b": "client-1", "/c": "client-2"}))

    assert namenode.probed == ["/b", "/c"]
    assert [status.liveness.value for status in knowledge.values()] == ["dead", "dead", "renewing"]
    assert [status.recovering for status in knowledge.values()] == [False, True, False]
    assert namenode.shown == {"/b": "its holder is dead", "/c": "its holder is renewing"}


def test_the_next_file_is_probed_when_the_first_does_not_tell() -> None:
    namenode = SimulatedNameNode({"/b": HolderAnswer(HolderLiveness.UNKNOWN, closed=True), "/a": DEAD})
    knowledge = namenode.probe(held({"/a": "client-1", "/b": "client-1"}))

    assert namenode.probed == ["/b", "/a"]
    assert knowledge["/b"].closed


def test_a_file_that_has_another_holder_by_now_tells_nothing_of_the_one_before() -> None:
    """Somebody has begun to recover it by `hdfs debug recoverLease` since the list was made, and is gone."""
    renews = HolderAnswer(HolderLiveness.RENEWING, "client-1", "worker7")
    namenode = SimulatedNameNode({"/b": DEAD, "/a": renews}, holders_now={"/a": "client-1", "/b": "client-9"})
    knowledge = namenode.probe(held({"/a": "client-1", "/b": "client-1"}))

    assert namenode.probed == ["/a"]
    assert knowledge["/a"].liveness is HolderLiveness.RENEWING
    assert knowledge["/b"].liveness is not HolderLiveness.DEAD


def test_a_lease_that_another_run_has_just_renewed_tells_nothing_for_a_minute() -> None:
    """That run's probe found it dead, or so it says: only the NameNode's own answer counts."""
    renews = HolderAnswer(HolderLiveness.RENEWING, "client-1", "worker7")
    namenode = SimulatedNameNode({"/c": renews, "/b": DEAD}, renewed=dict.fromkeys(("client-1", "client-2"), NOW))
    knowledge = namenode.probe(held({"/a": "client-1", "/b": "client-2", "/c": "client-1"}))

    assert namenode.probed == ["/c", "/b"]
    assert [status.liveness.value for status in knowledge.values()] == ["unknown", "dead", "unknown"]
    assert knowledge["/a"].again == knowledge["/c"].again == NOW + timedelta(seconds=62)


def test_a_holder_that_was_dead_two_minutes_ago_is_asked_again() -> None:
    """It was cut off from the NameNode, say, and renews its lease again."""
    renews = HolderAnswer(HolderLiveness.RENEWING, "client-1", "worker7")
    namenode = SimulatedNameNode({"/a": DEAD, "/b": renews})
    probe = HolderProbe(cast(LeaseSession, namenode), cast(Journal, namenode), Watcher())
    probe(held({"/a": "client-1"}))
    before, after = (replace(held({"/b": "client-1"}), at=NOW + timedelta(seconds=after)) for after in (119, 121))

    assert (probe(before)["/b"].liveness, namenode.probed) == (HolderLiveness.DEAD, ["/a"])
    assert (probe(after)["/b"].liveness, namenode.probed) == (HolderLiveness.RENEWING, ["/a", "/b"])


def test_a_dead_holder_is_asked_again_also_where_its_answer_could_not_be_written() -> None:
    renews = HolderAnswer(HolderLiveness.RENEWING, "client-1", "worker7")
    namenode = SimulatedNameNode({"/a": DEAD, "/b": renews}, writes=False)
    probe = HolderProbe(cast(LeaseSession, namenode), cast(Journal, namenode), Watcher())
    with pytest.raises(Unavailable):
        probe(held({"/a": "client-1"}))
    namenode.writes = True

    later = replace(held({"/b": "client-1"}), at=NOW + timedelta(seconds=121))
    assert (probe(later)["/b"].liveness, namenode.probed) == (HolderLiveness.RENEWING, ["/a", "/b"])


def test_what_this_session_found_a_moment_ago_is_not_asked_again() -> None:
    """The next folder of one command: its own probe renewed the lease."""
    moments = {"client-1": NOW - timedelta(seconds=59), "client-2": NOW - timedelta(seconds=61)}
    namenode = SimulatedNameNode({"/b": DEAD}, dead_holders=moments)
    knowledge = namenode.probe(held({"/a": "client-1", "/b": "client-2"}))

    assert namenode.probed == ["/b"]
    assert [status.liveness.value for status in knowledge.values()] == ["dead", "dead"]
    assert namenode.dead_holders["client-2"] == NOW


def test_files_without_a_known_holder_are_each_probed() -> None:
    namenode = SimulatedNameNode({"/a": DEAD, "/b": DEAD})

    assert {status.liveness for status in namenode.probe(held({"/a": None, "/b": None})).values()} == {DEAD.liveness}
    assert namenode.probed == ["/a", "/b"]


@pytest.mark.parametrize(("error", "retryable"), [(Denied("no right"), False), (Unavailable("away"), True)])
def test_a_probe_that_fails_leaves_the_holder_unknown_and_says_why(error: Denied, retryable: bool) -> None:
    status = SimulatedNameNode({"/a": error}).probe(held({"/a": "client-1"}))["/a"]

    assert (status.liveness, status.retryable) == (HolderLiveness.UNKNOWN, retryable)
    assert status.refusal == error.message


def test_no_probe_is_sent_after_an_interrupt() -> None:
    stop = threading.Event()
    stop.set()
    namenode = SimulatedNameNode({})
    namenode.probe(held({"/a": "client-1", "/b": None}), Watcher(stop=stop))

    assert namenode.probed == []
    assert namenode.shown == {"/b": "not probed: the run was interrupted"}
