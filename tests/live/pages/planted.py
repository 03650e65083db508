"""Rows that somebody wrote who wishes no good: markup, control characters, a password, and what no browser knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.live.pages.fleets import blocked, found_files, found_tickets
from tests.live.pages.stored import NOW, Stored, keys_of

PASSWORD = "hunter2"
EVIL = f'<img src=x onerror="window.planted=1">\x1b[31m\x00 hdfs://etl:{PASSWORD}@nn:8020 password={PASSWORD}'
# The text that a person, a job, a server or a file's name brings; all else is ours.
_FREE = {
    *("about", "advice", "binary", "by", "claimed_by", "credentials", "diagnostics", "end", "error", "failure"),
    *("freeze", "holder", "host", "keytab", "notes", "outcome", "owner", "path", "principal", "pulse_why", "reason"),
    *("remedy", "source", "spec_differences", "spec_doubt", "stopped", "summary", "text", "token", "trouble"),
    *("verdict", "why", "words"),
}


def planted(value: Any, key: str = "") -> Any:
    """Return stored data with something planted in each free text."""
    if isinstance(value, str):
        return f"{value} {EVIL}" if key in _FREE else value
    if isinstance(value, Mapping):
        return {name: planted(item, name) for name, item in value.items()}
    return [planted(item, key) for item in value] if isinstance(value, list) else value


def planted_stream(cluster: str, name: str) -> Stored:
    """Return a stream with planted rows, whose application's address is a script."""
    it = replace(blocked(), cluster=cluster, name=name, task="")
    it = replace(it, state=replace(it.state, by=replace(it.state.by, dag=it.dag)))
    told = {"diagnostics": "it died", "application_url": "javascript:window.planted=1", "spec_doubt": "who knows"}
    more = {"failure": "an exception", "freeze": "frozen by eve", "blocked": {"by": "preflight", "why": "no ticket"}}
    it = replace(it, report={**it.report, **told}, more={**it.more, **more})
    # After what triggers mask before they store: another program may have written the rows.
    rows = planted(keys_of(it))
    rows["verdict"] |= {"batches": [float("nan"), 10**400, "2.0"], "map_index": float("inf")}
    rows["detail"] |= {"seen": NOW.replace(tzinfo=None).isoformat()}
    return replace(it, others=rows)


def planted_clusters() -> dict[str, dict[str, Any]]:
    """Return rows of tasks over files, tickets and keytabs, by the DAGs that wrote them."""
    return {"leases-east": planted(found_files()), "tickets-east": planted(found_tickets())}
