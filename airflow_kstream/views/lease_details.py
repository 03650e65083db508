"""One open file in words, and the records of what was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.lease import Attribution
from airflow_kstream.model.open_file import Block, FileState
from airflow_kstream.model.printable import printable
from airflow_kstream.supervise.leases.journal import JournalRecord
from airflow_kstream.supervise.leases.recover import Intent, RecoveryReport

_NOT_KNOWN = "not known"
_FINISHED = {True: "finished", False: "still running", None: "whether it is finished is not known"}


def explanation(done: RecoveryReport, state: FileState | None) -> Table:
    """All that is known of the files that were found; of `state` where none is open."""
    table = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))
    for intent in done.intents:
        if table.row_count:
            table.add_row()
        _add(table, _open_file(intent, done.survey.at))
    if state is not None:
        _add(table, _other_file(state))
    return table


def closed_json(state: FileState) -> dict[str, Any]:
    """A file that is not open, as plain data: its length in bytes, its time in ISO 8601 UTC."""
    return {
        "length": state.length,
        "closed_at": state.modified.isoformat(),
        "owner": state.owner,
        "file_id": state.file_id,
        "erasure_coded": state.erasure_coded,
    }


_HEADINGS = ("when (UTC)", "path", "what", "because", "by")


def history_table(records: Sequence[JournalRecord]) -> Table:
    """Of a recovery that went well what came of it is enough; of any other also why."""
    table = Table(*(Column(heading, overflow="fold") for heading in _HEADINGS))
    for record in records:
        why = f": {record.why}" if record.why and not (record.outcome and record.outcome.settled) else ""
        cells = (
            f"{record.at:%Y-%m-%d %H:%M:%S}",
            record.path,
            f"{record.outcome or 'asked'}{why}",
            record.reason,
            f"{record.who}, as {record.principal}",
        )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def history_json(records: Sequence[JournalRecord]) -> list[dict[str, Any]]:
    return [asdict(record) | {"at": record.at.isoformat()} for record in records]


def _open_file(intent: Intent, now: datetime) -> Iterable[tuple[str, str]]:
    finding = intent.finding
    history, state = finding.history, finding.history.state
    yield "path", finding.path
    yield "condition", f"{finding.judgement.condition}: {finding.judgement.why}"
    yield "advice", finding.judgement.advice
    yield "recover would", intent.words
    yield "opened", f"{_moment(history.open_since, now)}, by {state.owner}"
    yield "unchanged", f"for {format_duration(history.unchanged_for)}, at {history.looks} looks"
    yield "holder", history.file.holder or _NOT_KNOWN
    yield "host", history.file.host or _NOT_KNOWN
    yield "written by", _writer(finding.attribution)
    yield "length", f"{_readable(state)}; {state.length} bytes are known to the NameNode"
    yield "last block", _block(state.block, now) + (", erasure-coded" if state.erasure_coded else "")
    yield "file id", str(state.file_id)


def _other_file(state: FileState) -> Iterable[tuple[str, str]]:
    yield "path", state.path
    yield "condition", "open, but closed or replaced while it was looked at" if state.is_open else "closed"
    yield "length", f"{state.length} bytes"
    yield "closed", f"{state.modified.isoformat()}; its owner is {state.owner}"


def _add(table: Table, rows: Iterable[tuple[str, str]]) -> None:
    for label, words in rows:
        if words:
            table.add_row(Text(label, style="bold"), Text(printable(words)))


def _writer(attribution: Attribution) -> str:
    names = [f"stream {attribution.stream}"] if attribution.stream else []
    if attribution.application:
        names.append(f"{attribution.application} ({_FINISHED[attribution.finished]})")
    how = f": {attribution.how}" if attribution.how else ""
    return f"{', '.join(names) or _NOT_KNOWN}{how}"


def _readable(state: FileState) -> str:
    if state.visible_length is not None:
        return f"a reader gets {state.visible_length} bytes"
    return "a reader gets as much" if state.measured else "what a reader gets is not known: no DataNode says"


def _block(block: Block | None, now: datetime) -> str:
    if block is None:
        return "none: nothing was written yet"
    heard = f", last heard of {_moment(block.newest_report, now)}" if block.newest_report else ""
    state = "complete" if block.complete else "being written"
    return (
        f"{block.id}, generation stamp {block.generation_stamp}, {block.length} bytes, {state}; "
        f"on {', '.join(block.hosts) or 'no DataNode'}{heard}"
    )


def _moment(when: datetime, now: datetime) -> str:
    return f"{format_duration(now - when)} ago ({when.isoformat(timespec='seconds')})"
