"""The files' page: what is open for write on each cluster, what was concluded of it, and what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_kstream.model.lease import FileCondition
from airflow_kstream.views.pages.foreign import shown

_STUCK = {condition.value for condition in FileCondition if condition.stuck}
_SHOWN = ("path", "condition", "why", "advice", "owner", "host", "holder", "stream", "application", "unchanged_seconds")
_LENGTHS = ("open_since", "length", "visible_length", "checks")
_DONE = ("path", "outcome", "why", "length_before", "visible_before", "length_after", "bytes_lost", "seconds")


def files_page(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each path that a run looked at, with its open files, the stuck ones first. A row that can't be read is
    left out."""
    return [shown(_path(row)) for row in kept if isinstance(row.get("report"), Mapping) and row.get("path")]


def _path(row: Mapping[str, Any]) -> dict[str, Any]:
    report = row["report"]
    planned = report.get("plan") or {}
    files = [_file(finding, planned) for finding in report.get("findings") or [] if isinstance(finding, Mapping)]
    return {
        "path": row["path"],
        "at": row.get("at"),
        "run": row.get("run"),
        "dag": row.get("dag"),
        "by": row.get("by") or "",
        "dry_run": bool(row.get("dry_run")),
        "counts": report.get("counts") or {},
        "stopped": report.get("stopped") or "",
        "unreadable": report.get("unreadable") or {},
        "files": sorted(files, key=lambda file: (not file["stuck"], file["path"] or "")),
        "recoveries": [_chosen(each, _DONE) for each in report.get("recoveries") or [] if isinstance(each, Mapping)],
        "runs": row.get("runs") or [],
    }


def _file(finding: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    stuck = finding.get("condition") in _STUCK
    plan = planned.get(str(finding.get("path")), "")
    return {**_chosen(finding, (*_SHOWN, *_LENGTHS)), "stuck": stuck, "planned": plan}


def _chosen(of: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: of.get(name) for name in names}
