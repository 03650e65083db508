"""What tasks keep of a cluster's files, tickets and keytabs for its pages: the keys of the rows, and their content.

What other programs and people wrote in it (diagnostics, log lines, reasons, names) is cut and made printable.

The tickets' page is all that a task keeps of them: whose are kept fresh and until when, and which keytabs work. The
files' page is what is open for write on each cluster, what was concluded of it, and what was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
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
_SHOWN = ("path", "condition", "why", "advice", "owner", "host", "holder", "stream", "application", "open_since")
_LENGTHS = ("unchanged_seconds", "length", "visible_length", "checks")
_DONE = ("length_before", "visible_before", "length_after", "bytes_lost", "seconds")

_SEVERITIES = {Severity.ERROR.value: 0, Severity.WARNING.value: 1, Severity.NOTE.value: 2}

FILES, TICKET, KEYTAB = "files ", "ticket ", "keytab "
# Open files of the last run, and runs before it.
_ROWS, _RUNS = 30, 20
# Airflow's keys have at most 512 characters, and a path may have thousands.
_LONGEST = 400
_LARGEST = 2**63


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
    rows = [read for row in kept if (read := _ticket(row))["principal"] and read["at"]]
    return [shown(row) for row in sorted(rows, key=_ticket_place)]


def keytabs_of(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the checks of a cluster's keytabs, the worst first."""
    rows = [read for row in kept if (read := _keytab(row))["principal"] and read["at"]]
    return [shown(row) for row in sorted(rows, key=_keytab_place)]


def _ticket(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a row, each value of its type.

    Any task that names the asset may have written it.
    """
    return {
        **_texts(row, ("principal", "state", "outcome", "error", "dag")),
        **_moments(row, ("expiry", "renew_until", "failing_since", "at")),
        "failures": _numbers(row, ("failures",))["failures"] or 0,
        "alert": row.get("alert") is True,
    }


def _keytab(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a row, as `_ticket` does."""
    return {
        **_texts(row, ("principal", "keytab", "login", "severity", "dag")),
        **_moments(row, ("at",)),
        **_numbers(row, ("kvno", "kdc_kvno")),
        "findings": [_texts(each, ("kind", "severity", "words", "remedy")) for each in _mappings(row.get("findings"))],
        "streams": [
            {**_texts(each, ("stream",)), **_moments(each, ("dies_from",))} for each in _mappings(row.get("streams"))
        ],
    }


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
    """Return what the page shows of a row, each value of its type: any task that names the asset may have written it.

    None if it can't be read.
    """
    read = _texts(row, ("path", "at", "run", "dag", "by"))
    report = row.get("report")
    if not isinstance(report, Mapping) or not read["path"] or not read["at"]:
        return None
    plan, counts = _mapping(report.get("plan")), _mapping(report.get("counts"))
    files = [file for each in _mappings(report.get("findings")) if (file := _file(each, plan))["path"]]
    written = {file["path"] for file in files if file["condition"] in _WRITTEN_BY_SOMEBODY}
    return {
        **read,
        "dry_run": row.get("dry_run") is True,
        "counts": _counts(counts),
        "unknown": _counts(_mapping(counts.get("conditions"))).get(FileCondition.UNKNOWN.value, 0),
        "unreadable": [str(why) for why in _mapping(report.get("unreadable")).values()],
        "stopped": _text(report.get("stopped")),
        "files": files,
        "recoveries": [_recovery(each, written) for each in _mappings(report.get("recoveries"))],
        "runs": [_run(each) for each in _mappings(row.get("runs"))],
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


def _file(finding: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    file = {**_texts(finding, _SHOWN), **_numbers(finding, _LENGTHS)}
    return {**file, "stuck": file["condition"] in _STUCK, "planned": _text(plan.get(_text(finding.get("path"))))}


def _recovery(told: Mapping[str, Any], written: Set[str]) -> dict[str, Any]:
    recovery = {**_texts(told, ("path", "outcome", "why")), **_numbers(told, _DONE)}
    return {**recovery, "kept": _kept(recovery, written=recovery["path"] in written)}


def _kept(recovery: Mapping[str, Any], *, written: bool) -> str:
    """Say in words that readers lost nothing; empty if they did, or if that is not known."""
    if recovery["bytes_lost"] != 0:
        return ""
    unflushed = "; what its writer had not flushed is lost" if written else ""
    return f"readers see as much as before{unflushed}"


def _run(told: Mapping[str, Any]) -> dict[str, Any]:
    read = _texts(told, ("at", "run", "by", "path", "summary"))
    return {**read, "dry_run": told.get("dry_run") is True, "counts": _counts(_mapping(told.get("counts")))}


def _mappings(of: object) -> Iterator[Mapping[str, Any]]:
    return (each for each in (of if isinstance(of, list) else ()) if isinstance(each, Mapping))


def _mapping(of: object) -> Mapping[str, Any]:
    return of if isinstance(of, Mapping) else {}


def _texts(of: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    return {name: _text(of.get(name)) for name in names}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _moments(of: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Return the texts that are moments in ISO 8601; a browser can count with no other."""
    return {name: text if _is_moment(text) else "" for name, text in _texts(of, names).items()}


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _numbers(of: Mapping[str, Any], names: Sequence[str]) -> dict[str, float | None]:
    return {name: of.get(name) if _is_number(of.get(name)) else None for name in names}


def _counts(of: Mapping[str, Any]) -> dict[str, Any]:
    return {name: number for name, number in of.items() if _is_number(number)}


def _is_number(value: object) -> bool:
    # No NaN, which Airflow's store takes and a browser does not, nor a number that no length or duration has.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
