"""Open files and their recoveries: tables and words for people, and bounded data for XCom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.table import Table

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Conflict, KstreamError, Unavailable
from airflow_kstream.model.leases.lease import OUTCOME_MEANS, Attribution, FileCondition, LeaseRules, Outcome, Recovery
from airflow_kstream.model.leases.open_file import Block, FileState
from airflow_kstream.model.printable import printable
from airflow_kstream.supervise.leases.findings import FileFinding
from airflow_kstream.supervise.leases.journal import JournalRecord
from airflow_kstream.supervise.leases.judging import Intent
from airflow_kstream.supervise.leases.recover import RecoveryReport
from airflow_kstream.views.tables import NOT_KNOWN, add, add_details, details, known, table

if TYPE_CHECKING:
    from airflow_kstream.supervise.leases.recover import RecoveryReport

_FINISHED = {True: "finished", False: "still running", None: "finished or not is unknown"}
_HISTORY = ("when (UTC)", "path", "what", "bytes", "lost", "because", "by")

# Outcomes that the same call may settle later without any change.
_TRANSIENT = {Outcome.GAVE_UP, Outcome.UNCONFIRMED, Outcome.NOT_TRIED, Outcome.CHANGED}
_HINTS = {
    FileCondition.UNWATCHED: "not watched long enough: list them again to see which of them grow",
    FileCondition.IDLE: "idle: their holders may be dead; only recover probes them (try --dry-run first)",
    FileCondition.YOUNG: f"younger than {format_duration(LeaseRules().min_age)}, which recover skips unless its "
    "--min-age says otherwise, for instance 0s; their holders may be dead",
}


def findings_table(findings: Sequence[FileFinding], now: datetime, rows: int | None = None) -> Table:
    """Return a row for each open file, the stuck ones first. An unknown writer is shown by its client's name."""
    listed = table("path", "condition", "open for", "unchanged for", "bytes", "written by")
    listed.caption = _left_off(len(findings), rows)
    for finding in sorted(findings, key=lambda finding: (not finding.stuck, finding.path))[:rows]:
        history = finding.history
        add(
            listed,
            finding.path,
            finding.judgement.condition,
            format_duration(history.age(now)),
            format_duration(history.unchanged_for),
            str(_length(finding)),
            _writer(finding) or finding.history.file.holder or "",
        )
    return listed


def skipped(report: RecoveryReport) -> str:
    """Return how to recover files that were left alone for their age alone; empty if there are none."""
    young = [intent for intent in report.intents if intent.finding.judgement.condition is FileCondition.YOUNG]
    if not young:
        return ""
    judgement = young[0].finding.judgement
    return f"{len(young)} {judgement.sort}. {judgement.advice}"


def hints(findings: Sequence[FileFinding]) -> list[str]:
    """Return what to do next about files that a listing alone can't judge."""
    conditions = Counter(finding.judgement.condition for finding in findings)
    return [f"{conditions[condition]} {words}" for condition, words in _HINTS.items() if conditions[condition]]


def intents_table(intents: Sequence[Intent], rows: int | None = None) -> Table:
    """Return the plan for each file, and what a person can do about those that are left alone."""
    listed = table("path", "condition", "what is done", "advice")
    listed.caption = _left_off(len(intents), rows)
    for intent in sorted(intents, key=_urgent_first)[:rows]:
        judgement = intent.finding.judgement
        advice = "" if intent.decision.granted or intent.would_probe else judgement.advice
        add(listed, intent.finding.path, judgement.condition, intent.words, advice)
    return listed


def recoveries_table(recoveries: Sequence[Recovery], rows: int | None = None) -> Table:
    """Return the outcome for each file, the ones that were not recovered first."""
    listed = table("path", "outcome", "bytes", "lost", "after", "note")
    listed.caption = _left_off(len(recoveries), rows)
    for recovery in _failed_first(recoveries)[:rows]:
        why = "" if recovery.outcome.settled else recovery.why
        add(
            listed,
            recovery.path,
            recovery.outcome,
            _bytes(recovery),
            known(recovery.bytes_lost),
            f"{recovery.seconds:.1f} s" if recovery.asked else "",
            why or _granted(recovery),
        )
    return listed


def _bytes(recovery: Recovery) -> str:
    change = recovery.change
    before = change.length_before if change.visible_before is None else change.visible_before
    after = change.length_after
    return known(before) if after in (before, None) else f"{known(before)} → {after}"


def left_alone(report: RecoveryReport) -> tuple[Intent, ...]:
    """Return the stuck files that nobody allowed to recover, or that can't be recovered."""
    return tuple(intent for intent in report.intents if intent.finding.stuck and not intent.decision.granted)


def left_open(report: RecoveryReport) -> tuple[Intent, ...]:
    """Return every file that is left open: stuck, young, growing, or held by a living client."""
    return tuple(intent for intent in report.intents if not (intent.decision.granted or intent.would_probe))


def summary(report: RecoveryReport) -> str:
    """Return one sentence: what was found, what was done, and why the rest was left open."""
    stuck, unprobed = len(left_alone(report)), report.unprobed
    lost = sum(recovery.bytes_lost or 0 for recovery in report.recoveries)
    early = f"it stopped early: {report.stopped}" if report.stopped else ""
    parts = (
        f"{len(report.intents)} open files",
        ", ".join(_outcomes(report) if report.run else _plans(report)) or _nothing_recovered(report),
        _why_unprobed(unprobed) if unprobed else "",
        f"{stuck} stuck and left alone" if stuck else "",
        _why_left_open(report),
        f"{lost} bytes lost that a reader could see" if report.recoveries else "",
        f"{len(report.survey.unreadable)} unreadable" if report.survey.unreadable else "",
        early,
    )
    return "; ".join(part for part in parts if part)


def _outcomes(report: RecoveryReport) -> list[str]:
    counts = Counter(recovery.outcome for recovery in report.recoveries)
    return [f"{count} {outcome}" for outcome, count in counts.items()]


def _plans(report: RecoveryReport) -> list[str]:
    probed = sum(intent.would_probe for intent in report.intents)
    sure = sum(intent.decision.granted for intent in report.intents)
    plans = ((sure, "to be recovered"), (probed, "to be probed, and recovered if their holders are dead"))
    return [f"{count} {words}" for count, words in plans if count]


def _nothing_recovered(report: RecoveryReport) -> str:
    return "nothing was recovered" if report.unprobed else "nothing to recover"


def _why_unprobed(unprobed: Sequence[Intent]) -> str:
    first = unprobed[0].finding
    which = "" if len(unprobed) == 1 else "the first: "
    return f"{len(unprobed)} {first.judgement.sort} ({which}{first.holder.refusal})"


def _why_left_open(report: RecoveryReport) -> str:
    named = {intent.finding.path for intent in (*left_alone(report), *report.unprobed)}
    sorts = Counter(intent.finding.judgement.sort for intent in left_open(report) if intent.finding.path not in named)
    return ", ".join(f"{count} {sort}" for sort, count in sorts.items())


def failure(report: RecoveryReport, path: str) -> KstreamError:
    """Return the error for the files that were not recovered: Unavailable if retrying may help, else Conflict."""
    counts = Counter(recovery.outcome for recovery in report.failed)
    parts = [f"{count} {outcome} ({OUTCOME_MEANS[outcome]})" for outcome, count in counts.items()]
    if report.unprobed:
        parts.append(_why_unprobed(report.unprobed))
    if report.stopped:
        parts.append(f"it stopped early: {report.stopped}")
    if report.interrupted:
        parts.append("it was interrupted")
    retryable = _TRANSIENT & counts.keys() or any(intent.finding.holder.retryable for intent in report.unprobed)
    kind = Unavailable if report.interrupted or retryable else Conflict
    message = f"{len(report.failed) + len(report.unprobed)} files were not recovered: {'; '.join(parts)}"
    return kind(message, tried=f"recover the leases below {printable(path)}")


def bounded(report: RecoveryReport, rows: int) -> dict[str, Any]:
    """Return `RecoveryReport.to_json` with counts and at most `rows` of each list, failed and stuck ones first."""
    survey = report.survey
    findings = sorted(survey.findings, key=lambda finding: not (finding.stuck or finding.unprobed))
    words = {intent.finding.path: intent.words for intent in report.intents}
    return {
        **report.to_print(),
        "summary": summary(report),
        "counts": _counts(report),
        "findings": [finding.to_json(survey.at) for finding in findings[:rows]],
        "plan": {finding.path: words[finding.path] for finding in findings[:rows] if finding.path in words},
        "unreadable": dict(list(survey.unreadable.items())[:rows]),
        "recoveries": [recovery.to_json() for recovery in _failed_first(report.recoveries)[:rows]],
    }


def _counts(report: RecoveryReport) -> dict[str, Any]:
    return {
        "open": len(report.intents),
        "unreadable": len(report.survey.unreadable),
        "conditions": dict(Counter(intent.finding.judgement.condition.value for intent in report.intents)),
        "left_alone": len(left_alone(report)),
        "unprobed": len(report.unprobed),
        "outcomes": dict(Counter(recovery.outcome.value for recovery in report.recoveries)),
        "failed": len(report.failed),
        "bytes_lost": sum(recovery.bytes_lost or 0 for recovery in report.recoveries),
    }


def _failed_first(recoveries: Sequence[Recovery]) -> list[Recovery]:
    return sorted(recoveries, key=lambda recovery: recovery.outcome.settled)


def _urgent_first(intent: Intent) -> tuple[bool, bool, str]:
    finding = intent.finding
    return not finding.unprobed, not finding.stuck, finding.path


def _writer(finding: FileFinding) -> str:
    host = finding.history.file.host
    return finding.attribution.stream or finding.attribution.application or (f"a client on {host}" if host else "")


def _left_off(count: int, rows: int | None) -> str | None:
    return f"and {count - rows} more" if rows is not None and count > rows else None


def _length(finding: FileFinding) -> int:
    """Return the length that a reader gets, if that is known."""
    state = finding.history.state
    return state.length if state.visible_length is None else state.visible_length


def _granted(recovery: Recovery) -> str:
    if recovery.valid_length is None:
        return ""
    return f"Flink's companion file declares {recovery.valid_length} bytes valid"


@dataclass(frozen=True)
class Explanation:
    """All that is known of one path; `state` is the file's if the scan found no open file there."""

    path: str
    report: RecoveryReport
    state: FileState | None = None

    @property
    def is_open(self) -> bool:
        return bool(self.report.intents) or bool(self.state and self.state.is_open)

    def to_json(self) -> dict[str, Any]:
        """Return plain data: the report, and under `file` the state of a file that is closed."""
        file = self.state.to_json() if self.state and not self.is_open else None
        return {"path": self.path, "open": self.is_open, "file": file, **self.report.to_json()}

    def table(self) -> Table:
        rows = details()
        for intent in self.report.intents:
            if rows.row_count:
                rows.add_row()
            add_details(rows, _open_file(intent, self.report.survey.at))
        if self.state is not None:
            add_details(rows, _other_file(self.state))
        return rows


def history_table(records: Sequence[JournalRecord]) -> Table:
    """Return a row for each record; a recovery that went well needs no reason beside its outcome. Bytes are those that
    a reader sees afterwards."""
    rows = table(*_HISTORY)
    for record in records:
        why = f": {record.why}" if record.why and not (record.outcome and record.outcome.settled) else ""
        add(
            rows,
            f"{record.at:%Y-%m-%d %H:%M:%S}",
            record.path,
            f"{record.outcome or 'probed'}{why}",
            *(known(record.recovery.get(name)) for name in ("length_after", "bytes_lost")),
            record.reason,
            f"{record.owner}: {record.by.who}, as {record.by.principal}",
        )
    return rows


def _open_file(intent: Intent, now: datetime) -> Iterable[tuple[str, str]]:
    finding = intent.finding
    history, state = finding.history, finding.history.state
    yield "path", finding.path
    yield "condition", f"{finding.judgement.condition}: {finding.judgement.why}"
    yield "advice", finding.judgement.advice
    yield "recover would", intent.words
    yield "opened", f"{_moment(history.open_since, now)}, by {state.owner}"
    yield "unchanged", f"for {format_duration(history.unchanged_for)}, in {history.checks} checks"
    yield "holder", history.file.holder or NOT_KNOWN
    yield "host", history.file.host or NOT_KNOWN
    yield "written by", _written_by(finding.attribution)
    yield "length", f"{_readable(state)}; {state.length} bytes are known to the NameNode"
    yield "last block", _block(state.block, now) + (", erasure-coded" if state.erasure_coded else "")
    yield "file id", str(state.file_id)


def _other_file(state: FileState) -> Iterable[tuple[str, str]]:
    yield "path", state.path
    yield "condition", "open, but closed or replaced while it was checked" if state.is_open else "closed"
    yield "length", f"{state.length} bytes"
    yield "closed", f"{state.modified.isoformat()}; its owner is {state.owner}"


def _written_by(attribution: Attribution) -> str:
    names = [f"stream {attribution.stream}"] if attribution.stream else []
    if attribution.application:
        names.append(f"{attribution.application} ({_FINISHED[attribution.finished]})")
    how = f": {attribution.how}" if attribution.how else ""
    return f"{', '.join(names) or NOT_KNOWN}{how}"


def _readable(state: FileState) -> str:
    if state.visible_length is not None and state.erasure_coded:
        return f"its DataNodes have {state.visible_length} bytes, of which readers and a recovery get whole stripes"
    if state.visible_length is not None:
        return f"a reader gets {state.visible_length} bytes"
    return "a reader gets as much" if state.measured else "a reader's length is unknown: no DataNode answered"


def _block(block: Block | None, now: datetime) -> str:
    if block is None:
        return "none: nothing has been written yet"
    heard = f", last reported {_moment(block.newest_report, now)}" if block.newest_report else ""
    state = "complete" if block.complete else "being written"
    return (
        f"{block.id}, generation stamp {block.generation_stamp}, {block.length} bytes, {state}; "
        f"on {', '.join(block.hosts) or 'no DataNode'}{heard}"
    )


def _moment(when: datetime, now: datetime) -> str:
    return f"{format_duration(now - when)} ago ({when.isoformat(timespec='seconds')})"
