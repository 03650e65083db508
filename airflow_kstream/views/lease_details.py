"""One open file in words, and the records of recoveries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.table import Table

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.leases.lease import Attribution
from airflow_kstream.model.leases.open_file import Block, FileState
from airflow_kstream.supervise.leases.journal import JournalRecord
from airflow_kstream.supervise.leases.judging import Intent
from airflow_kstream.supervise.leases.recover import RecoveryReport
from airflow_kstream.views.tables import NOT_KNOWN, add, add_details, details, known, table

_FINISHED = {True: "finished", False: "still running", None: "finished or not is unknown"}
_HISTORY = ("when (UTC)", "path", "what", "bytes", "lost", "because", "by")


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
    yield "written by", _writer(finding.attribution)
    yield "length", f"{_readable(state)}; {state.length} bytes are known to the NameNode"
    yield "last block", _block(state.block, now) + (", erasure-coded" if state.erasure_coded else "")
    yield "file id", str(state.file_id)


def _other_file(state: FileState) -> Iterable[tuple[str, str]]:
    yield "path", state.path
    yield "condition", "open, but closed or replaced while it was checked" if state.is_open else "closed"
    yield "length", f"{state.length} bytes"
    yield "closed", f"{state.modified.isoformat()}; its owner is {state.owner}"


def _writer(attribution: Attribution) -> str:
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
