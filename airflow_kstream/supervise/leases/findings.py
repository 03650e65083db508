"""What a scan found: open files, each with its history, its writer and its judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.leases.lease import (
    Attribution,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    Judgement,
    JudgementContext,
    LeaseRules,
)
from airflow_kstream.model.leases.open_file import FileHistory
from airflow_kstream.model.leases.requests import OpenFileCondition, Until
from airflow_kstream.policy.leases.judgement import judge_file, undecided, worth_probing

# A sensor's report names so many stuck files at most.
_PATHS = 20


@dataclass(frozen=True, slots=True)
class FileFinding:
    """An open file, its writer, what is known of its holder, and its judgement.

    `worth_probing` is True if a probe of its holder is all that is missing to judge it, `undecided` if that or another
    look may show that it can be recovered.
    """

    history: FileHistory
    judgement: Judgement
    attribution: Attribution
    holder: HolderStatus = field(default_factory=HolderStatus)
    worth_probing: bool = False
    undecided: bool = False

    @property
    def path(self) -> str:
        return self.history.file.path

    @property
    def stuck(self) -> bool:
        return self.judgement.condition.stuck

    @property
    def unprobed(self) -> bool:
        """Tell whether it seems to need recovery, while its holder could not be probed."""
        return bool(self.holder.refusal) and self.holder.liveness is HolderLiveness.UNKNOWN and not self.stuck

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data: times in ISO 8601 UTC, durations in seconds, lengths in bytes."""
        history, block = self.history, self.history.state.block
        return {
            "path": self.path,
            "condition": self.judgement.condition.value,
            "why": self.judgement.why,
            "advice": self.judgement.advice,
            "holder": history.file.holder,
            "host": history.file.host,
            "owner": history.state.owner,
            "file_id": history.state.file_id,
            "open_since": history.open_since.isoformat(),
            "open_seconds": history.age(now).total_seconds(),
            "unchanged_seconds": history.unchanged_for.total_seconds(),
            "checks": history.checks,
            "length": history.state.length,
            "visible_length": history.state.visible_length,
            "block": block.id if block else None,
            "generation_stamp": block.generation_stamp if block else None,
            "datanodes": list(block.hosts) if block else [],
            "stream": self.attribution.stream,
            "application": self.attribution.application,
            "application_finished": self.attribution.finished,
            "attributed_by": self.attribution.how,
        }


@dataclass(frozen=True)
class Survey:
    """The result of one scan. `unreadable` are open files that the principal may not inspect, with the reason.

    As scanned, nothing is known of the holders; `judged_with` adds that.
    """

    at: datetime
    route: str
    health: HdfsHealth
    findings: tuple[FileFinding, ...]
    unreadable: Mapping[str, str]
    rules: LeaseRules = field(default_factory=LeaseRules)

    @property
    def worth_probing(self) -> tuple[FileFinding, ...]:
        return tuple(finding for finding in self.findings if finding.worth_probing)

    def judged_with(self, knowledge: HolderKnowledge) -> Survey:
        """Return the survey with every file judged by this knowledge, and by no earlier one."""
        return replace(self, findings=tuple(self._judged(finding, knowledge) for finding in self.findings))

    def part(self, findings: Sequence[FileFinding]) -> Survey:
        """Return the survey of these files alone."""
        return replace(self, findings=tuple(findings), unreadable={})

    def in_service(self) -> Survey:
        """Return the survey as it would be if the NameNode were not in safe mode."""
        return replace(self, health=replace(self.health, safe_mode=False)).judged_with({})

    def _judged(self, finding: FileFinding, knowledge: HolderKnowledge) -> FileFinding:
        holder = knowledge.get(finding.path, HolderStatus())
        file = finding.history.file
        named = replace(file, holder=holder.name or file.holder, host=holder.host or file.host)
        return judged_finding(
            replace(finding.history, file=named), finding.attribution, holder, self.at, self.health, self.rules
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data, complete."""
        return {**self.to_print(), "findings": [finding.to_json(self.at) for finding in self.findings]}

    def to_print(self) -> dict[str, Any]:
        """Return the same with functions in the place of rows: ten thousand rows would be many megabytes at once."""
        return {
            "at": self.at.isoformat(),
            "route": self.route,
            "findings": [partial(finding.to_json, self.at) for finding in self.findings],
            "unreadable": dict(self.unreadable),
        }


def judged_finding(
    history: FileHistory, attribution: Attribution, holder: HolderStatus, now: datetime, health: HdfsHealth,
    rules: LeaseRules,
) -> FileFinding:  # fmt: skip
    """Judge the file, and tell whether a probe of its holder or another look would decide it."""
    context = JudgementContext(
        now,
        holder=holder.liveness,
        active_since=health.active_since,
        safe_mode=health.safe_mode,
        refusal=holder.refusal,
        recovering=holder.recovering,
        all_reported=health.all_reported,
    )
    judgement = judge_file(history, context, rules)
    worth, open_question = worth_probing(history, context, rules), undecided(history, context, rules)
    return FileFinding(history, judgement, attribution, holder, worth, open_question)


def stuck_files(awaited: OpenFileCondition, survey: Survey) -> tuple[FileFinding, ...]:
    """Return the files measured unchanged for `quiet`, or past recovery. No holder was probed."""
    return tuple(
        finding for finding in survey.findings if finding.stuck or finding.history.unchanged_for >= awaited.quiet
    )


def is_met(awaited: OpenFileCondition, survey: Survey) -> bool:
    """Tell whether the condition is met. An open file that the principal may not inspect still counts as open."""
    if awaited.until is Until.NONE:
        return not survey.findings and not survey.unreadable
    return len(stuck_files(awaited, survey)) >= awaited.at_least


def condition_report(awaited: OpenFileCondition, survey: Survey) -> dict[str, Any]:
    """Return plain data of bounded size: the counts, and the first stuck files."""
    stuck = stuck_files(awaited, survey)
    return {
        "path": awaited.path,
        "at": survey.at.isoformat(),
        "open": len(survey.findings) + len(survey.unreadable),
        "stuck": len(stuck),
        "stuck_paths": [finding.path for finding in stuck[:_PATHS]],
    }
