"""The rules that tell which open files are stuck, and which of those may be recovered.

Age alone never makes a file stuck, and a growing file is never recovered.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.leases.lease import (
    Approval,
    Decision,
    FileCondition,
    HolderLiveness,
    Judgement,
    JudgementContext,
    LeaseRules,
)
from airflow_kstream.model.leases.open_file import FileHistory

# FSNamesystem's messages for a file under construction whose lease it lost; the second is that of Hadoop 2.x.
LOST_LEASES = ("no leases found", "pendingCreates is non-null")
_GIVEN_UP = (
    "its path is allowed and its job gave it up: it has not grown since before the job's last restart inside, and each "
    "checkpoint from which that could start is younger"
)
_NO_RIGHT = ("AccessControlException", "AuthorizationException")
_RECOVERING = ("its recovery is already running", "Check again in a minute.", "that are already being recovered")
_IDLE = {
    HolderLiveness.RENEWING: (
        "the NameNode reports that the holder renewed its lease within the last minute",
        "If its writer died just now, check again in a minute.",
        "whose holder renewed its lease within the last minute",
    ),
    HolderLiveness.UNKNOWN: (
        "its holder was not probed",
        "Only recover probes holders: kstream leases recover, with --dry-run first.",
        "idle, holder not probed",
    ),
}


def judge_file(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement:
    """Return the file's condition. The first rule that applies decides; growth comes before the holder."""
    return next(judgement for rule in _RULES if (judgement := rule(history, about, rules)))


def worth_probing(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> bool:
    """Return True if the NameNode may be asked whether the file's holder is alive.

    The probe is a recovery that respects a living writer; for a dead holder's file it starts the recovery itself.
    """
    return (
        judge_file(history, about, rules).condition is FileCondition.IDLE
        and about.holder is HolderLiveness.UNKNOWN
        and _settled(history, rules)
        and history.age(about.now) >= rules.min_age
    )


def next_check(history: FileHistory, rules: LeaseRules) -> datetime:
    """Return from when on another check can settle that the file does not grow: `settle` after the first such one.

    It is in the past if earlier runs have settled that.
    """
    return history.steady_since + rules.settle


def undecided(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> bool:
    """Return True if another check, or a probe of its holder, may show that the file can be recovered."""
    return worth_probing(history, about, rules) or (
        history.age(about.now) >= rules.min_age and not _settled(history, rules)
    )


def decide(judgement: Judgement, approval: Approval) -> Decision:
    """Decide whether the file's lease may be recovered by force."""
    if judgement.condition is FileCondition.HOLDER_DEAD:
        return Decision(True, "its holder is dead")
    if judgement.condition is not FileCondition.LEAKED:
        return Decision(False, f"it is {judgement.condition}: {judgement.why}")
    if approval.approved_by:
        return Decision(True, f"its holder is alive, and {approval.approved_by} approved it")
    if approval.allowed and approval.application_finished:
        return Decision(True, "its path is allowed and its application is finished")
    if approval.allowed and approval.given_up:
        return Decision(True, _GIVEN_UP)
    return Decision(False, f"its holder is alive, {_missing(approval)}")


def _missing(approval: Approval) -> str:
    if not approval.allowed:
        return "nobody approved it, and its path is not on the allow-list"
    if approval.application_finished is None:
        return "nobody approved it, and the application that wrote it is unknown"
    return "and its application still runs"


def _settled(history: FileHistory, rules: LeaseRules) -> bool:
    return history.checks >= rules.checks and history.unchanged_for >= rules.settle


def _closed(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    return None if history.state.is_open else Judgement(FileCondition.CLOSED, "it is closed")


def _growing(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if history.last_growth is None or _settled(history, rules):
        return None
    return Judgement(FileCondition.GROWING, f"it changed {format_duration(about.now - history.last_growth)} ago")


def _lost_lease(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if not any(words in about.refusal for words in LOST_LEASES):
        return None
    return Judgement(
        FileCondition.UNRECOVERABLE,
        "the NameNode keeps the file open without a lease (HDFS-10763): it will always refuse recovery",
        "Fail over or restart the NameNode, which rebuilds the leases from its image; or copy the file and delete it.",
    )


def _no_replica(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    block = history.state.block
    if block is None or block.complete or not block.hosts or block.newest_report is None:
        return None
    silent = about.now - block.newest_report
    if silent < rules.silent_after:
        return None
    return Judgement(
        FileCondition.UNRECOVERABLE,
        f"the DataNodes of its last block ({', '.join(block.hosts)}) have not reported for {format_duration(silent)}",
        "Bring one of them back; without them that block is lost, and the file can only be deleted.",
    )


def _no_location(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    """Find a last block that no live DataNode has: only their reports since the NameNode's start prove it, no time."""
    block = history.state.block
    if block is None or block.complete or block.hosts or about.safe_mode or not about.all_reported:
        return None
    return Judgement(
        FileCondition.UNRECOVERABLE,
        "the NameNode knows no DataNode of its last block, and all live ones have reported all their blocks since it "
        "started: HDFS's own recovery of it never ends, and no reader gets any of the file",
        f"Find the node that had blk_{block.id} and bring it back: it is among the dead or decommissioned ones (hdfs "
        f"dfsadmin -report), and `BLOCK* allocate blk_{block.id}` in the NameNodes' logs names it. Without it that "
        "block is lost, and the file can only be deleted.",
    )


def _young(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    age = history.age(about.now)
    if age >= rules.min_age:
        return None
    least = format_duration(rules.min_age)
    return Judgement(
        FileCondition.YOUNG,
        f"it was opened {format_duration(age)} ago; files younger than min_age, {least}, are left alone",
        "Age is caution, no proof: if its writer is known to be dead, recover it with min_age 0s. A growing file is "
        "left alone at any age, and so is a living holder's that nobody approved.",
        f"younger than min_age, {least}",
    )


def _unsettled(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if _settled(history, rules):
        return None
    if not history.checks:
        return Judgement(
            FileCondition.UNKNOWN,
            "no DataNode of its last block reports its length, so growth can't be ruled out",
            "Check the DataNodes: hdfs dfsadmin -report, and the WebHDFS port of the hosts of its last block.",
            "of unknown length",
        )
    if history.checks == 1:
        return Judgement(FileCondition.UNWATCHED, "it was checked only once, which can't show whether it grows")
    unchanged = f"unchanged for {format_duration(history.unchanged_for)} over {history.checks} checks"
    return Judgement(FileCondition.UNWATCHED, f"{unchanged}; {format_duration(rules.settle)} are required")


def _lost_block(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    """Find a last block that no DataNode has. One that is being cut short keeps a part of it, so that differs.

    The recovery of a striped block deletes none (BlockRecoveryWorker.RecoveryTaskStriped).
    """
    state, block = history.state, history.state.block
    if block is None or block.complete or state.erasure_coded:
        return None
    if not block.length or state.visible_length != state.length - block.length:
        return None
    return Judgement(
        FileCondition.UNRECOVERABLE,
        f"none of the DataNodes of its last block ({', '.join(block.hosts)}) has a replica of it, while the NameNode "
        f"knows of {block.length} bytes in it: any recovery deletes that block and closes the file without them",
        "Bring back the disk that had it before the lease's hard limit, at which HDFS recovers the file itself; if it "
        "is gone for good: hdfs debug recoverLease.",
    )


def _safe_mode(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if not about.safe_mode:
        return None
    why = "the NameNode is in safe mode, where no lease can be renewed: live holders look dead"
    return Judgement(
        FileCondition.UNKNOWN,
        why,
        f"Check again {format_duration(rules.blackout)} after it has left safe mode.",
        "undecided in safe mode",
    )


def _refused(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if not about.refusal or about.holder is not HolderLiveness.UNKNOWN:
        return None
    denied = any(words in about.refusal for words in _NO_RIGHT)
    return Judgement(
        FileCondition.UNKNOWN,
        f"could not determine whether its holder is alive: {about.refusal}",
        "Probing and recovering need the right to write the file: run as its owner or a superuser." if denied else "",
        "whose holder could not be probed",
    )


def _blackout(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if about.active_since is None or about.now - about.active_since >= rules.blackout:
        return None
    ago = format_duration(about.now - about.active_since)
    return Judgement(
        FileCondition.UNKNOWN,
        f"the NameNode became active only {ago} ago: a failover renews every lease, so dead holders look alive, and "
        "holders that could not renew in safe mode look dead",
        f"Check again once it has been active for {format_duration(rules.blackout)}.",
        "undecided so soon after a failover",
    )


def _dead(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if about.holder is not HolderLiveness.DEAD:
        return None
    return Judgement(
        FileCondition.HOLDER_DEAD,
        "its holder stopped renewing its lease, and the file has not changed for "
        f"{format_duration(history.unchanged_for)}",
        "Recover its lease: kstream leases recover.",
    )


def _leaked(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if about.holder is not HolderLiveness.RENEWING or history.unchanged_for < rules.leak_after:
        return None
    return Judgement(
        FileCondition.LEAKED,
        f"its holder renews the lease, but the file has not changed for {format_duration(history.unchanged_for)}",
        "If you know that its writer is done with it, approve its recovery; data that was not flushed is lost.",
    )


def _idle(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    why, advice, brief = _RECOVERING if about.recovering else _IDLE[about.holder]
    return Judgement(
        FileCondition.IDLE, f"unchanged for {format_duration(history.unchanged_for)}; {why}", advice, brief
    )


_Rule = Callable[[FileHistory, JudgementContext, LeaseRules], Judgement | None]
_RULES: tuple[_Rule, ...] = (
    _closed,
    _growing,
    _lost_lease,
    _no_replica,
    _no_location,
    _young,
    _unsettled,
    _lost_block,
    _safe_mode,
    _blackout,
    _refused,
    _dead,
    _leaked,
    _idle,
)
