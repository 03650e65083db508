"""What is known of holders changes how files are judged, and only that."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.lease import (
    Attribution,
    FileCondition,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    Judgement,
)
from airflow_kstream.model.open_file import Block, FileHistory, FileState, OpenFile
from airflow_kstream.supervise.leases.holders import withhold
from airflow_kstream.supervise.leases.survey import Finding, Survey

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEALTH = HdfsHealth("nn1", safe_mode=False, dead=0, stale=0, version="3.4.3")
QUIET, YOUNG = "/data/quiet", "/data/young"


def finding(path: str, age: timedelta) -> Finding:
    state = FileState(path, 1, "alice", NOW - age, True, 5, Block(1, 1, 5, False), visible_length=5)
    history = FileHistory(OpenFile(path), state, NOW - age, NOW - age, NOW, checks=2)
    return Finding(history, Judgement(FileCondition.UNKNOWN, "not judged"), Attribution())


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
    found = survey(knowledge={QUIET: named}).findings[0]

    assert (found.history.file.holder, found.history.file.host) == ("DFSClient_1", "worker7")


def test_probes_withheld_in_safe_mode_mark_the_files_that_would_be_probed() -> None:
    scanned = survey(safe_mode=True)
    judged = scanned.judged_with(withhold(scanned, "the NameNode is in safe mode"))

    assert {finding.path: finding.unprobed for finding in judged.findings} == {QUIET: True, YOUNG: False}
    assert judged.findings[0].holder.retryable
    assert "safe mode" in judged.findings[0].judgement.why
