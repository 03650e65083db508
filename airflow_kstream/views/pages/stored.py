"""What is stored of a stream, as pages read it: each value of its type, or none.

Any task that names the asset may have written it, and a script that finds a mapping in the place of a text ends its
page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_kstream.model.plain import as_flag, as_iso, as_mapping, as_number, as_text, list_of, mapping_of

# The engine's word where an earlier version wrote none.
BATCH = "batch"


def _pair(value: object) -> list[float] | None:
    return value if isinstance(value, list) and len(value) == 2 and None not in map(as_number, value) else None


_ENDS = mapping_of(
    reason=as_text,
    token=as_text,
    plan=as_iso,
    force=as_iso,
    push=as_iso,
    replacement=mapping_of(worker=as_text, until=as_iso),
)
_PROGRESS = mapping_of(
    path=as_text,
    planned=as_number,
    committed=as_number,
    last_commit=as_iso,
    in_flight=as_iso,
    stall_after=as_number,
    batches=list_of(_pair),
    unit=lambda word: as_text(word) or BATCH,
)
_FACTS = mapping_of(
    generation=as_number,
    claimed=as_iso,
    claimed_by=as_text,
    reason=as_text,
    adopted=as_flag,
    credentials=as_text,
    issued=as_iso,
    renew_interval=as_number,
    max_lifetime=as_number,
    stop_waits=as_number,
    evidence=as_text,
    processes=as_text,
    horizon=_ENDS,
    progress=list_of(_PROGRESS),
)
_LOOK = mapping_of(
    application=as_text,
    step=as_text,
    # Without a conclusion it may run on.
    lives=lambda told: told is not False,
    facts=_FACTS,
    horizon=_ENDS,
    refreshed=mapping_of(confirmed_push_seconds=as_number, trouble=as_text),
    uncounted=list_of(as_text),
    pulse_why=as_text,
    failure=as_text,
    logs_seconds=as_number,
    blocked=mapping_of(by=as_text, since=as_iso, why=as_text),
    freeze=as_text,
)
LIVES = list_of(
    mapping_of(
        generation=as_number,
        began=as_iso,
        by=as_text,
        why=as_text,
        adopted=as_flag,
        ended=as_iso,
        end=as_text,
        planned=as_flag,
    )
)
_REPORT = mapping_of(
    generation=as_number,
    application_url=as_text,
    logs_url=as_text,
    diagnostics=as_text,
    lives=LIVES,
    done=list_of(mapping_of(at=as_iso, what=as_text, why=as_text)),
    submission=mapping_of(
        notes=list_of(as_text),
        binary=as_text,
        parts=list_of(mapping_of(text=as_text, source=as_text, why=as_text)),
    ),
    spec_differences=list_of(as_text),
    spec_doubt=as_text,
    owner_doubt=as_text,
    failed_spec=as_text,
    foretold=list_of(as_text),
    cut=as_flag,
)


def look_in(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a look told, by the long row of a stream."""
    told: Mapping[str, Any] = _LOOK(as_mapping(detail.get("detail")))
    return told


def report_in(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the task of a stream reported last."""
    told: Mapping[str, Any] = _REPORT(report)
    return told
