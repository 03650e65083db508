"""The judgement of files, stuck or recoverable, under simulated checks and clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.leases.lease import Approval, FileCondition, HolderLiveness, JudgementContext, LeaseRules
from airflow_kstream.model.leases.open_file import Block, FileHistory, FileState, OpenFile
from airflow_kstream.policy.leases.judgement import decide, judge_file, worth_probing
from tests.simulated.open_files import FILE, RULES, START, STATE, Growth, checks_of, history_of


def at(hours: float = 0, seconds: float = 0) -> datetime:
    return START + timedelta(hours=hours, seconds=seconds)


def unchanged_for(hours: float = 0, seconds: float = 0) -> tuple[FileHistory, datetime]:
    """Return the history of a file that several checks found unchanged."""
    now = at(hours, seconds)
    return history_of((START, STATE), (now, STATE)), now


def condition(
    history: FileHistory, now: datetime, holder: HolderLiveness = HolderLiveness.UNKNOWN, **more: object
) -> FileCondition:
    return judge_file(history, JudgementContext(now, holder, **more), RULES).condition  # type: ignore[arg-type]


def test_a_dead_holders_settled_file_is_recovered_without_approval() -> None:
    history, now = unchanged_for(seconds=11)
    judged = judge_file(history, JudgementContext(now, HolderLiveness.DEAD), RULES)
    assert judged.condition is FileCondition.HOLDER_DEAD
    assert decide(judged, Approval()).granted


def test_a_leaked_file_needs_an_allowed_path_and_a_writer_that_left_it_or_a_person() -> None:
    history, now = unchanged_for(hours=2)
    judged = judge_file(history, JudgementContext(now, HolderLiveness.RENEWING), RULES)
    assert judged.condition is FileCondition.LEAKED
    granted = {
        approval: decide(judged, approval).granted
        for allowed in (True, False)
        for finished in (True, False, None)
        for person in ("ada", None)
        for given_up in (True, False)
        for approval in [Approval(allowed, finished, person, given_up)]
    }
    assert {approval for approval, yes in granted.items() if yes} == {
        approval
        for approval in granted
        if approval.approved_by or (approval.allowed and (approval.application_finished or approval.given_up))
    }


def test_one_check_is_never_enough() -> None:
    history, now = history_of((START, STATE)), at(hours=5)
    assert condition(history, now, HolderLiveness.DEAD) is FileCondition.UNWATCHED
    with pytest.raises(InvalidInput, match="one check can't tell"):
        LeaseRules(checks=1)


def test_watching_begins_again_when_a_file_stops_growing() -> None:
    more = replace(STATE, visible_length=6_000)
    history = history_of((START, STATE), (at(hours=1), more), (at(hours=1, seconds=30), more))
    assert (history.unchanged_for, history.checks) == (timedelta(seconds=30), 2)
    assert condition(history, at(hours=1, seconds=30), HolderLiveness.RENEWING) is FileCondition.IDLE


@pytest.mark.parametrize(
    "another",
    [
        pytest.param((FILE, replace(STATE, file_id=16_999)), id="deleted and created again"),
        pytest.param((replace(FILE, holder="DFSClient_2"), STATE), id="taken over by another client"),
    ],
)
def test_another_file_at_the_same_path_has_a_new_history(another: tuple[OpenFile, FileState]) -> None:
    history, now = unchanged_for(hours=3)
    assert history.extended(*another, now, now) == FileHistory.begin(*another, now)


def test_the_duration_of_a_check_does_not_count_as_time_without_growth() -> None:
    first = FileHistory.begin(FILE, STATE, START)
    long = first.extended(FILE, STATE, began=at(seconds=4), ended=at(seconds=90))
    assert long.unchanged_for == timedelta(seconds=4)
    assert condition(long, at(seconds=90), HolderLiveness.DEAD) is not FileCondition.HOLDER_DEAD


def test_a_file_without_blocks_is_judged_without_datanodes() -> None:
    empty = replace(STATE, block=None, visible_length=None)
    assert (
        condition(history_of((START, empty), (at(hours=1), empty)), at(hours=1), HolderLiveness.DEAD)
        is FileCondition.HOLDER_DEAD
    )


def test_no_holder_is_called_dead_or_alive_right_after_a_failover() -> None:
    history, now = unchanged_for(hours=2)
    judgement = judge_file(
        history, JudgementContext(now, HolderLiveness.RENEWING, active_since=now - timedelta(seconds=30)), RULES
    )
    assert judgement.condition is FileCondition.UNKNOWN
    assert "renews every lease" in judgement.why


def test_a_file_of_silent_datanodes_is_unrecoverable_with_advice() -> None:
    lost = replace(STATE, block=Block(1_073_741_900, 1_076, 0, complete=False, hosts=("worker7",), newest_report=START))
    history = history_of((START, lost), (at(hours=2), lost))
    judgement = judge_file(history, JudgementContext(at(hours=2), HolderLiveness.DEAD), RULES)
    assert judgement.condition is FileCondition.UNRECOVERABLE
    assert "worker7" in judgement.why
    assert "Bring one of them back" in judgement.advice


NOWHERE = Block(1_073_741_900, 1_076, 100_000, complete=False)


@pytest.mark.parametrize(
    ("about", "condition"),
    [
        ({"all_reported": True}, FileCondition.UNRECOVERABLE),
        ({"all_reported": False}, FileCondition.HOLDER_DEAD),
        ({"all_reported": True, "safe_mode": True}, FileCondition.UNKNOWN),
    ],
)
def test_a_block_is_lost_once_every_live_datanode_has_reported_and_none_has_it(
    about: dict[str, Any], condition: FileCondition
) -> None:
    """No time proves it: a DataNode may take hours to report after a NameNode's start."""
    lost = replace(STATE, block=NOWHERE)
    history = history_of((START, lost), (at(hours=2), lost), (at(hours=4), lost))
    assert (
        judge_file(history, JudgementContext(at(hours=5), HolderLiveness.DEAD, **about), RULES).condition is condition
    )


def test_a_lost_block_has_a_way_out_and_is_none_once_its_datanode_is_back() -> None:
    about = JudgementContext(at(hours=5), HolderLiveness.DEAD, all_reported=True)
    lost, back = (
        replace(STATE, block=block)
        for block in (NOWHERE, replace(NOWHERE, hosts=("worker7",), newest_report=at(hours=5)))
    )
    judgement = judge_file(history_of((START, lost), (at(hours=4), lost)), about, RULES)
    assert "HDFS's own recovery of it never ends, and no reader gets any of the file" in judgement.why
    assert "`BLOCK* allocate blk_1073741900` in the NameNodes' logs names it" in judgement.advice
    found = judge_file(history_of((START, lost), (at(hours=2), lost), (at(hours=4), back)), about, RULES)
    assert found.condition is FileCondition.HOLDER_DEAD


def test_a_file_without_a_lease_is_unrecoverable_with_advice() -> None:
    history, now = unchanged_for(hours=2)
    refusal = "AlreadyBeingCreatedException: the file is under construction but no leases found."
    judgement = judge_file(history, JudgementContext(now, refusal=refusal), RULES)
    assert judgement.condition is FileCondition.UNRECOVERABLE
    assert "HDFS-10763" in judgement.why


def known(length: int, visible: int) -> FileState:
    """Return a file of one finished block of 700 bytes and a last one of which the NameNode knows `length` bytes."""
    block = Block(1_073_741_900, 1_076, length, complete=False, hosts=("worker7", "worker8"))
    return replace(STATE, length=700 + length, block=block, visible_length=700 + visible)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (known(length=5_000, visible=0), FileCondition.UNRECOVERABLE),
        # Nothing was acknowledged: its pipeline was never made.
        (known(length=0, visible=0), FileCondition.HOLDER_DEAD),
        # It is being cut short.
        (known(length=5_000, visible=40), FileCondition.HOLDER_DEAD),
        (known(length=5_000, visible=5_000), FileCondition.HOLDER_DEAD),
        (replace(known(length=5_000, visible=0), erasure_coded=True), FileCondition.HOLDER_DEAD),
    ],
)
def test_a_file_whose_last_block_no_datanode_has_is_not_closed_without_it(
    state: FileState, expected: FileCondition
) -> None:
    history = history_of((START, state), (at(hours=2), state))
    judgement = judge_file(history, JudgementContext(at(hours=2), HolderLiveness.DEAD), RULES)
    assert judgement.condition is expected
    unknown = JudgementContext(at(hours=2))
    assert worth_probing(history, unknown, RULES) == (expected is FileCondition.HOLDER_DEAD)


def test_a_holder_is_probed_only_if_its_file_may_be_recovered() -> None:
    """A probe recovers a dead holder's file, so the file must be old enough and unchanged first."""
    history, now = unchanged_for(seconds=11)
    assert worth_probing(history, JudgementContext(now), RULES)
    assert not worth_probing(history, JudgementContext(now, active_since=now), RULES)
    assert not worth_probing(history_of((START, STATE)), JudgementContext(START), RULES)
    young = replace(STATE, modified=START)
    assert not worth_probing(history_of((START, young), (now, young)), JudgementContext(now), RULES)


def test_no_holder_is_called_dead_or_probed_in_safe_mode() -> None:
    """No lease can be renewed in safe mode: after a minute every living holder checks dead."""
    history, now = unchanged_for(hours=2)
    about = JudgementContext(now, HolderLiveness.DEAD, safe_mode=True)
    assert judge_file(history, about, RULES).condition is FileCondition.UNKNOWN
    assert not worth_probing(history, replace(about, holder=HolderLiveness.UNKNOWN), RULES)


def test_a_file_of_this_second_is_not_opened_in_the_future() -> None:
    """A NameNode's answers round its time down, so the next one may seem to be earlier than the first check."""
    history = FileHistory.begin(FILE, replace(STATE, modified=START), START)
    assert history.age(START - timedelta(milliseconds=900)) == timedelta(0)
    context = JudgementContext(START - timedelta(milliseconds=900), HolderLiveness.UNKNOWN)
    judgement = judge_file(history, context, replace(RULES, min_age=timedelta(0)))
    assert judgement.condition is not FileCondition.YOUNG


def test_young_files_and_files_checked_once_are_not_called_idle() -> None:
    """Either may be growing, and neither has a holder that is known to be alive."""
    young = replace(STATE, modified=START)
    judgement = judge_file(history_of((START, young)), JudgementContext(at(seconds=54)), RULES)
    assert (judgement.condition, judgement.sort) == (FileCondition.YOUNG, "younger than min_age, 10m")
    assert judgement.why == "it was opened 54s ago; files younger than min_age, 10m, are left alone"
    assert condition(history_of((START, STATE)), at()) is FileCondition.UNWATCHED


def test_an_idle_file_reports_whether_its_holder_was_probed() -> None:
    history, now = unchanged_for(seconds=30)
    about = JudgementContext(now)
    assert "was not probed" in judge_file(history, about, RULES).why
    renewing = judge_file(history, replace(about, holder=HolderLiveness.RENEWING), RULES)
    assert "renewed its lease within the last minute" in renewing.why
    assert "check again in a minute" in renewing.advice
    assert "its recovery is already running" in judge_file(history, replace(about, recovering=True), RULES).why


def test_a_denied_probe_names_the_missing_right() -> None:
    history, now = unchanged_for(hours=2)
    denied = JudgementContext(now, refusal="AccessControlException: Permission denied: user=ada, access=WRITE")
    assert "the right to write the file" in judge_file(history, denied, RULES).advice
    assert judge_file(history, replace(denied, refusal="no active NameNode found"), RULES).advice == ""


def test_a_refused_probe_is_reported_and_not_taken_for_silence() -> None:
    history, now = unchanged_for(hours=2)
    judgement = judge_file(
        history, JudgementContext(now, refusal="AccessControlException: Permission denied: user=ada"), RULES
    )
    assert judgement.condition is FileCondition.UNKNOWN
    assert "Permission denied: user=ada" in judgement.why


def test_the_checks_are_in_order() -> None:
    """The tests above rely on it: `checks_of` only moves forward."""
    growths = [Growth(timedelta(seconds=1), 1, False, False, True)] * 3
    assert all(one < other for (one, _), (other, _) in pairwise(checks_of(growths)))
