"""Which open files are stuck, and which of those may be recovered. Never by age alone; a growing file never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.hdfs_path import is_below
from airflow_kstream.model.lease import (
    Approval,
    Decision,
    FileCondition,
    HolderLiveness,
    Judgement,
    JudgementContext,
    LeaseRules,
    Search,
)
from airflow_kstream.model.open_file import FileHistory, OpenFile

# FSNamesystem's words for a file under construction whose lease it lost; of the 2.x line the second.
LOST_LEASES = ("no leases found", "pendingCreates is non-null")
_NO_RIGHT = ("AccessControlException", "AuthorizationException")


def judge_file(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement:
    """How the file stands. The first rule that has something to say decides, and growth is asked before the holder."""
    return next(said for rule in _RULES if (said := rule(history, about, rules)))


def worth_probing(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> bool:
    """Whether the NameNode may be asked if its holder lives.

    The question is the writer-respecting recovery: of a dead holder's file it starts the recovery itself.
    """
    return (
        judge_file(history, about, rules).condition is FileCondition.IDLE
        and about.holder is HolderLiveness.UNKNOWN
        and not history.state.erasure_coded
        and _settled(history, rules)
        and about.now - history.open_since >= rules.min_age
    )


def decide(judgement: Judgement, approval: Approval) -> Decision:
    """Whether its lease may be recovered by force, and why."""
    if judgement.condition is FileCondition.HOLDER_DEAD:
        return Decision(True, "its holder is dead")
    if judgement.condition is not FileCondition.LEAKED:
        return Decision(False, f"it is {judgement.condition}: {judgement.why}")
    if approval.approved_by:
        return Decision(True, f"its holder lives, and {approval.approved_by} approved it")
    if approval.allowed and approval.application_finished:
        return Decision(True, "its path is allowed and its application is finished")
    return Decision(False, f"its holder lives, and {_missing(approval)}")


def matches(file: OpenFile, search: Search) -> bool:
    """Whether a row of a listing is meant, by what a row tells; owner and age only its state does."""
    return (
        is_below(search.path, file.path)
        and (not search.patterns or any(path_matches(file.path, pattern) for pattern in search.patterns))
        and search.holder in (None, file.holder)
        and search.host in (None, file.host)
    )


def path_matches(path: str, pattern: str) -> bool:
    """A pattern without a slash is meant for the name, one with a slash for the whole path, folder by folder.

    A star ends at the next slash; `**` as a folder stands for any number of folders.
    """
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    return _folders_match(path.split("/"), pattern.split("/"))


def _folders_match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not names
    first, *rest = patterns
    if first == "**":
        return any(_folders_match(names[count:], rest) for count in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], first) and _folders_match(names[1:], rest)


def _missing(approval: Approval) -> str:
    if not approval.allowed:
        return "nobody approved it and its path is not on the allow-list"
    if approval.application_finished is None:
        return "nobody approved it and which application wrote it is not known"
    return "its application still runs"


def _settled(history: FileHistory, rules: LeaseRules) -> bool:
    return history.looks >= rules.looks and history.unchanged_for >= rules.settle


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
        "the NameNode has the file open and no lease for it (HDFS-10763): it refuses recovery for ever",
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
        "Bring one of them back; without it the bytes of that block are gone, and only deleting the file is left.",
    )


def _young(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    age = about.now - history.open_since
    if age >= rules.min_age:
        return None
    least = format_duration(rules.min_age)
    return Judgement(
        FileCondition.YOUNG,
        f"it was opened {format_duration(age)} ago; what is younger than min_age, {least}, is left alone",
        brief=f"younger than min_age, {least}",
    )


def _unsettled(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if _settled(history, rules):
        return None
    if not history.looks:
        return Judgement(
            FileCondition.UNKNOWN,
            "no DataNode of its last block says how long it is, so nobody can tell whether it grows",
            "See whether they serve: hdfs dfsadmin -report, and the WebHDFS port of the hosts of its last block.",
            "of unknown length",
        )
    if history.looks == 1:
        return Judgement(FileCondition.UNWATCHED, "it was looked at once, which does not tell whether it grows")
    seen = f"seen unchanged at {history.looks} looks for {format_duration(history.unchanged_for)}"
    return Judgement(FileCondition.UNWATCHED, f"{seen}; {format_duration(rules.settle)} are needed")


def _safe_mode(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if not about.safe_mode:
        return None
    why = "the NameNode is in safe mode, in which nobody can renew a lease: the living look dead"
    return Judgement(
        FileCondition.UNKNOWN,
        why,
        f"Look again {format_duration(rules.blackout)} after it has left safe mode.",
        "undecided in safe mode",
    )


def _refused(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if not about.refusal or about.holder is not HolderLiveness.UNKNOWN:
        return None
    denied = any(words in about.refusal for words in _NO_RIGHT)
    return Judgement(
        FileCondition.UNKNOWN,
        f"whether its holder lives could not be learned: {about.refusal}",
        "Who asks, and who recovers, needs the right to write the file: its owner, or a superuser." if denied else "",
        "whose holder could not be asked for",
    )


def _blackout(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if about.active_since is None or about.now - about.active_since >= rules.blackout:
        return None
    ago = format_duration(about.now - about.active_since)
    return Judgement(
        FileCondition.UNKNOWN,
        f"the NameNode serves since {ago} only: a failover renewed every lease, so the dead look alive, and "
        "whom safe mode kept from renewing looks dead",
        f"Look again {format_duration(rules.blackout)} after that.",
        "undecided so soon after a failover",
    )


def _dead(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if about.holder is not HolderLiveness.DEAD:
        return None
    return Judgement(
        FileCondition.HOLDER_DEAD,
        f"its holder has stopped renewing its lease, and it is unchanged for {format_duration(history.unchanged_for)}",
        "Recover its lease: kstream leases recover.",
    )


def _leaked(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if about.holder is not HolderLiveness.RENEWING or history.unchanged_for < rules.leak_after:
        return None
    return Judgement(
        FileCondition.LEAKED,
        f"its holder renews the lease, and the file is unchanged for {format_duration(history.unchanged_for)}",
        "If its writer is known to be done with it, approve its recovery; what the writer did not flush is lost.",
    )


def _erasure_coded(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    if not history.state.erasure_coded or history.unchanged_for < rules.leak_after:
        return None
    return Judgement(
        FileCondition.UNKNOWN,
        "it is erasure-coded: the NameNode can't be asked whether its holder lives",
        "Find out whether its writer lives; then hdfs debug recoverLease, one file at a time.",
        "erasure-coded",
    )


def _idle(history: FileHistory, about: JudgementContext, rules: LeaseRules) -> Judgement | None:
    why, advice, brief = _RECOVERING if about.recovering else _QUIET[about.holder]
    return Judgement(
        FileCondition.IDLE, f"unchanged for {format_duration(history.unchanged_for)}; {why}", advice, brief
    )


_RECOVERING = ("its recovery runs already", "Look again in a minute.", "that are being recovered already")
_QUIET = {
    HolderLiveness.RENEWING: (
        "asked for its holder, the NameNode says that he renewed the lease within the last minute",
        "If its writer died just now, look again when a minute has passed.",
        "whose holder renewed the lease within the last minute",
    ),
    HolderLiveness.UNKNOWN: (
        "whether its holder lives was not asked",
        "Only recover asks: kstream leases recover, with --dry-run first.",
        "quiet and not asked about",
    ),
}


_Rule = Callable[[FileHistory, JudgementContext, LeaseRules], Judgement | None]
_RULES: tuple[_Rule, ...] = (
    _closed,
    _growing,
    _lost_lease,
    _no_replica,
    _young,
    _unsettled,
    _safe_mode,
    _blackout,
    _refused,
    _dead,
    _leaked,
    _erasure_coded,
    _idle,
)
