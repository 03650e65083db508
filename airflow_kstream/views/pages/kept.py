"""What tasks keep of a cluster's files, tickets and keytabs for its pages: the keys of the rows, and their content.

What other programs and people wrote in it (diagnostics, log lines, reasons, names) is cut and made printable.

The tickets' page is all that a task keeps of them: whose are kept fresh and until when, and which keytabs work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from airflow_kstream.model.finding import Severity
from airflow_kstream.model.printable import printable_words
from airflow_kstream.model.secrets import without_secrets

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
