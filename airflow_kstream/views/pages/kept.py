"""What tasks keep of a cluster's files, tickets and keytabs for its pages: the keys of the rows, and their content.

What other programs and people wrote in it (diagnostics, log lines, reasons, names) is cut and made printable.

The tickets' page is all that a task keeps of them: whose are kept fresh and until when, and which keytabs work. The
files' page is what is open for write on each cluster, what was concluded of it, and what was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from airflow_kstream.model.finding import Severity
from airflow_kstream.model.leases.lease import FileCondition, Outcome
from airflow_kstream.model.printable import printable_words
from airflow_kstream.model.secrets import without_secrets

_STUCK = {condition.value for condition in FileCondition if condition.stuck}
# Their holders lived: of what a writer has and did not flush, HDFS knows nothing.
_WRITTEN_BY_SOMEBODY = {FileCondition.LEAKED.value}
_SETTLED = {outcome.value for outcome in Outcome if outcome.settled}
_SHOWN = ("path", "condition", "why", "advice", "owner", "host", "holder", "stream", "application", "unchanged_seconds")
_LENGTHS = ("open_since", "length", "visible_length", "checks")
_DONE = ("path", "outcome", "why", "length_before", "visible_before", "length_after", "bytes_lost", "seconds")

_SEVERITIES = {Severity.ERROR.value: 0, Severity.WARNING.value: 1, Severity.NOTE.value: 2}

FILES, TICKET, KEYTAB = "files ", "ticket ", "keytab "
# Open files of the last run, and runs before it.
_ROWS, _RUNS = 30, 20
# Airflow's keys have at most 512 characters, and a path may have thousands.
_LONGEST = 400


def key_of(kind: str, name: str) -> str:
    """Return the key of a row: two long names that begin alike have two."""
    key = f"{kind}{name}"
    return key if len(key) <= _LONGEST else f"{key[:_LONGEST]} {sha256(name.encode()).hexdigest()[:16]}"


def files_after(before: object, report: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a path after a run over it. `report` is the bounded one, `run` names the run and who asked."""
    told = {**run, "summary": report.get("summary") or "", "counts": report.get("counts") or {}}
    past = before.get("runs") if isinstance(before, Mapping) else None
    runs = [*(past if isinstance(past, list) else ()), told][-_RUNS:]
    return {**run, "report": {**report, "findings": (report.get("findings") or [])[:_ROWS]}, "runs": runs}


def at(found: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return what was found, with the time of it."""
    return {**found, "at": now.isoformat()}


def shown(value: Any) -> Any:
    """Return plain data whose texts show no secret and no control character. Markup stays: pages show text as text."""
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, Mapping):
        return {_shown(str(key)): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list | tuple) else value


# The rows of a fleet say the same words hundreds of times.
@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return printable_words(without_secrets(text))


def tickets_of(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the renewals of a cluster's tickets: alerts and failures first, then what expires next."""
    rows = [dict(row) for row in kept if row.get("principal")]
    return [shown(row) for row in sorted(rows, key=_ticket_place)]


def keytabs_of(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the checks of a cluster's keytabs, the worst first."""
    rows = [dict(row) for row in kept if row.get("principal")]
    return [shown(row) for row in sorted(rows, key=_keytab_place)]


def _ticket_place(row: Mapping[str, Any]) -> tuple[bool, bool, str, str]:
    return not row.get("alert"), not row.get("failures"), str(row.get("expiry") or ""), str(row["principal"])


def _keytab_place(row: Mapping[str, Any]) -> tuple[int, str]:
    return _SEVERITIES.get(str(row.get("severity")), len(_SEVERITIES)), str(row["principal"])


def files_page(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each path that a run looked at, with its open files, the stuck ones first.

    A run over a single file, as a person starts it, is shown with the folder that it lies in. A row that can't be read
    is left out.
    """
    rows = [row for row in kept if isinstance(row.get("report"), Mapping) and row.get("path") and row.get("at")]
    paths = {str(row["path"]) for row in rows}
    return [
        shown(_path(row, [each for each in rows if _lies_in(each, row)]))
        for row in rows
        if not any(_below(str(row["path"]), path) for path in paths)
    ]


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def _lies_in(each: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return each is not row and _below(str(each["path"]), str(row["path"]))


def _path(row: Mapping[str, Any], within: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    report, newer = row["report"], [each for each in within if str(each["at"]) > str(row["at"])]
    done = [*_recoveries(row), *(each for other in newer for each in _recoveries(other))]
    files = {**_files(row), **{path: file for other in newer for path, file in _files(other).items()}}
    settled = {str(each["path"]) for each in done if each["outcome"] in _SETTLED}
    left = [file for path, file in files.items() if path not in settled]
    return {
        **{name: row.get(name) for name in ("path", "at", "run", "dag")},
        "by": row.get("by") or "",
        "dry_run": bool(row.get("dry_run")),
        "counts": report.get("counts") or {},
        "closed": len(settled & files.keys()),
        "unjudged": _unjudged(report, left),
        "stopped": report.get("stopped") or "",
        "files": sorted(left, key=_place),
        "recoveries": done,
        "runs": sorted((run for each in (row, *within) for run in _runs(each)), key=lambda run: str(run.get("at"))),
    }


def _unjudged(report: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many open files nobody can call stuck or not, and the most frequent reason."""
    unreadable = report.get("unreadable") or {}
    unknown = [file for file in files if file["condition"] == FileCondition.UNKNOWN.value]
    whys = Counter([*(str(file["advice"] or file["why"]) for file in unknown), *map(str, unreadable.values())])
    counts = report.get("counts") or {}
    # Of many, the report has not all: rows of unknown files that were not kept, and unreadable ones.
    hidden = (counts.get("conditions") or {}).get(FileCondition.UNKNOWN.value, 0) - _unknown_rows(report)
    number = len(unknown) + max(0, hidden) + max(len(unreadable), counts.get("unreadable") or 0)
    return {"count": number, "why": whys.most_common(1)[0][0] if whys else ""}


def _unknown_rows(report: Mapping[str, Any]) -> int:
    return sum(each.get("condition") == FileCondition.UNKNOWN.value for each in _mappings(report.get("findings")))


def _place(file: Mapping[str, Any]) -> tuple[bool, str]:
    return not file["stuck"], str(file["path"])


def _files(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    planned = row["report"].get("plan") or {}
    return {str(each.get("path")): _file(each, planned) for each in _mappings(row["report"].get("findings"))}


def _file(finding: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    stuck = finding.get("condition") in _STUCK
    plan = planned.get(str(finding.get("path")), "")
    return {**_chosen(finding, (*_SHOWN, *_LENGTHS)), "stuck": stuck, "planned": plan}


def _recoveries(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    written = {path for path, file in _files(row).items() if file["condition"] in _WRITTEN_BY_SOMEBODY}
    done = (_chosen(each, _DONE) for each in _mappings(row["report"].get("recoveries")))
    return [{**each, "kept": _kept(each, written=each["path"] in written)} for each in done]


def _kept(recovery: Mapping[str, Any], *, written: bool) -> str:
    """Say in words that readers lost nothing; empty if they did, or if that is not known."""
    if recovery["bytes_lost"] != 0:
        return ""
    unflushed = "; what its writer had not flushed is lost" if written else ""
    return f"readers see as much as before{unflushed}"


def _runs(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(_mappings(row.get("runs")))


def _mappings(of: object) -> Iterator[Mapping[str, Any]]:
    return (each for each in (of if isinstance(of, list) else ()) if isinstance(each, Mapping))


def _chosen(of: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: of.get(name) for name in names}
