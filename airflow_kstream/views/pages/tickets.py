"""The tickets' page: whose tickets are kept fresh and until when, and which keytabs work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_kstream.model.finding import Severity
from airflow_kstream.views.pages.kept import shown

_SEVERITIES = {Severity.ERROR.value: 0, Severity.WARNING.value: 1, Severity.NOTE.value: 2}


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
