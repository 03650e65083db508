"""What tasks keep of a cluster's files, tickets and keytabs for its pages: the keys of the rows, and their content.

What other programs and people wrote in it (diagnostics, log lines, reasons, names) is cut and made printable.

The tickets' page is all that a task keeps of them: whose are kept fresh and until when, and which keytabs work. The
files' page is what is open for write on each cluster, what was concluded of it, and what was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from math import isfinite
from typing import Any

from airflow_kstream.model.finding import Severity
from airflow_kstream.model.leases.lease import FileCondition, Outcome
from airflow_kstream.model.plain import as_flag, as_iso, as_mapping, as_number, as_text, list_of, mapping_of
from airflow_kstream.model.printable import printable_words
from airflow_kstream.model.secrets import without_secrets

_STUCK = {condition.value for condition in FileCondition if condition.stuck}
# Their holders lived: of what a writer has and did not flush, HDFS knows nothing.
_WRITTEN_BY_SOMEBODY = {FileCondition.LEAKED.value}
_SETTLED = {outcome.value for outcome in Outcome if outcome.settled}
_SEVERITIES = {Severity.ERROR.value: 0, Severity.WARNING.value: 1, Severity.NOTE.value: 2}

FILES, TICKET, KEYTAB = "files ", "ticket ", "keytab "
# Open files of the last run, and runs before it.
_ROWS, _RUNS = 30, 20
# Airflow's keys have at most 512 characters, and a path may have thousands.
_LONGEST = 400


def _at(value: object) -> str:
    return as_iso(value) or ""


def _counts(of: object) -> dict[str, float]:
    return {name: number for name, each in as_mapping(of).items() if (number := as_number(each)) is not None}


# What pages show of a row, each value of its type: any task that names the asset may have written it.
_TICKET = mapping_of(
    **dict.fromkeys(("principal", "state", "outcome", "error", "dag"), as_text),
    **dict.fromkeys(("expiry", "renew_until", "failing_since", "at"), _at),
    failures=lambda number: as_number(number) or 0,
    alert=as_flag,
)
_KEYTAB = mapping_of(
    **dict.fromkeys(("principal", "keytab", "login", "severity", "dag"), as_text),
    **dict.fromkeys(("kvno", "kdc_kvno"), as_number),
    at=_at,
    findings=list_of(mapping_of(**dict.fromkeys(("kind", "severity", "words", "remedy"), as_text))),
    streams=list_of(mapping_of(stream=as_text, dies_from=_at)),
)
_FILES = list_of(
    mapping_of(
        **dict.fromkeys(("path", "condition", "why", "advice", "owner", "host", "holder"), as_text),
        **dict.fromkeys(("stream", "application", "open_since"), as_text),
        **dict.fromkeys(("unchanged_seconds", "length", "visible_length", "checks"), as_number),
    )
)
_RECOVERIES = list_of(
    mapping_of(
        **dict.fromkeys(("path", "outcome", "why"), as_text),
        **dict.fromkeys(("length_before", "visible_before", "length_after", "bytes_lost", "seconds"), as_number),
    )
)
_RUN = mapping_of(
    **dict.fromkeys(("at", "run", "by", "path", "summary"), as_text),
    dry_run=as_flag,
    counts=_counts,
)


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
    """Return plain data whose texts show no secret and no control character. Markup stays: pages show text as text.

    A number that no browser knows, such as NaN, is left out.
    """
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, Mapping):
        return {_shown(str(key)): shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


# The rows of a fleet say the same words hundreds of times.
@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return printable_words(without_secrets(text))


def tickets_of(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the renewals of a cluster's tickets: alerts and failures first, then what expires next."""
    rows = [read for row in kept if (read := _TICKET(row))["principal"] and read["at"]]
    return [shown(row) for row in sorted(rows, key=_ticket_place)]


def keytabs_of(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the checks of a cluster's keytabs, the worst first."""
    rows = [read for row in kept if (read := _KEYTAB(row))["principal"] and read["at"]]
    return [shown(row) for row in sorted(rows, key=_keytab_place)]


def _ticket_place(row: Mapping[str, Any]) -> tuple[bool, bool, str, str]:
    return not row["alert"], not row["failures"], row["expiry"], row["principal"]


def _keytab_place(row: Mapping[str, Any]) -> tuple[int, str]:
    return _SEVERITIES.get(row["severity"], len(_SEVERITIES)), row["principal"]


def files_page(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each path that a run looked at, with its open files, the stuck ones first.

    A run over a single file, as a person starts it, is shown with the folder that it lies in. A row that can't be read
    is left out, and so is what can't be read of one.
    """
    rows = [read for row in kept if (read := _read(row))]
    paths = {row["path"] for row in rows}
    return [
        shown(_path(row, [each for each in rows if _lies_in(each, row)]))
        for row in rows
        if not any(_below(row["path"], path) for path in paths)
    ]


def _read(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the page shows of a row, None if it can't be read."""
    read = {name: as_text(row.get(name)) for name in ("path", "at", "run", "dag", "by")}
    report = row.get("report")
    if not isinstance(report, Mapping) or not read["path"] or not read["at"]:
        return None
    plan, counts = as_mapping(report.get("plan")), as_mapping(report.get("counts"))
    files = [_file(each, plan) for each in _FILES(report.get("findings")) if each["path"]]
    written = {file["path"] for file in files if file["condition"] in _WRITTEN_BY_SOMEBODY}
    return {
        **read,
        "dry_run": as_flag(row.get("dry_run")),
        "counts": _counts(counts),
        "unknown": _counts(counts.get("conditions")).get(FileCondition.UNKNOWN.value, 0),
        "unreadable": [as_text(why) for why in as_mapping(report.get("unreadable")).values()],
        "stopped": as_text(report.get("stopped")),
        "files": files,
        "recoveries": [_recovery(each, written) for each in _RECOVERIES(report.get("recoveries"))],
        "runs": list_of(_RUN)(row.get("runs")),
    }


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def _lies_in(each: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return each is not row and _below(each["path"], row["path"])


def _path(row: Mapping[str, Any], within: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = [row, *(each for each in within if each["at"] > row["at"])]
    done = [recovery for each in found for recovery in each["recoveries"]]
    files = {file["path"]: file for each in found for file in each["files"]}
    settled = {each["path"] for each in done if each["outcome"] in _SETTLED}
    left = [file for path, file in files.items() if path not in settled]
    return {
        **{name: row[name] for name in ("path", "at", "run", "dag", "by", "dry_run", "counts", "stopped")},
        "closed": len(settled & files.keys()),
        "unjudged": _unjudged(row, left),
        "files": sorted(left, key=_place),
        "recoveries": done,
        "runs": sorted((run for each in (row, *within) for run in each["runs"]), key=lambda run: str(run["at"])),
    }


def _unjudged(row: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many open files nobody can call stuck or not, and the most frequent reason."""
    unreadable, unknown = row["unreadable"], [file for file in files if _is_unknown(file)]
    whys = Counter([*(file["advice"] or file["why"] for file in unknown), *unreadable])
    # Of many, the report has not all: rows of unknown files that were not kept, and unreadable ones.
    hidden = row["unknown"] - sum(map(_is_unknown, row["files"]))
    number = len(unknown) + max(0, hidden) + max(len(unreadable), row["counts"].get("unreadable", 0))
    return {"count": number, "why": whys.most_common(1)[0][0] if whys else ""}


def _is_unknown(file: Mapping[str, Any]) -> bool:
    return bool(file["condition"] == FileCondition.UNKNOWN.value)


def _place(file: Mapping[str, Any]) -> tuple[bool, str]:
    return not file["stuck"], file["path"]


def _file(file: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    return {**file, "stuck": file["condition"] in _STUCK, "planned": as_text(plan.get(file["path"]))}


def _recovery(recovery: Mapping[str, Any], written: Set[str]) -> dict[str, Any]:
    return {**recovery, "kept": _kept(recovery, written=recovery["path"] in written)}


def _kept(recovery: Mapping[str, Any], *, written: bool) -> str:
    """Say in words that readers lost nothing; empty if they did, or if that is not known."""
    if recovery["bytes_lost"] != 0:
        return ""
    unflushed = "; what its writer had not flushed is lost" if written else ""
    return f"readers see as much as before{unflushed}"
