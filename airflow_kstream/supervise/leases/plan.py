"""The plan for stuck files: what is done about each, by which rule, and who approved it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.leases.lease import Approval, Decision
from airflow_kstream.policy.leases.judgement import decide, path_matches
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.findings import FileFinding
from airflow_kstream.supervise.leases.session import LeaseSession

_CLOSED_BY_PROBE = Decision(True, "it was closed when its holder was probed")


@dataclass(frozen=True)
class AllowedPath:
    """A shell pattern of paths that may be recovered from a living holder once its application is finished.

    `application` is the id or the stream whose end counts; None means the one that the file is attributed to.
    """

    pattern: str
    application: str | None = None


@dataclass(frozen=True)
class ApprovalRules:
    """Approvals for files with a living holder: patterns agreed beforehand, and a person's decision for exact paths."""

    allowed: tuple[AllowedPath, ...] = ()
    approved: frozenset[str] = frozenset()
    approved_by: str | None = None

    def __post_init__(self) -> None:
        if self.approved and not self.approved_by:
            raise InvalidInput("paths are approved and nobody is named; say who approves them (approved_by)")


@dataclass(frozen=True, slots=True)
class Intent:
    """The planned action for a finding, and its reason."""

    finding: FileFinding
    decision: Decision
    would_probe: bool = False

    @property
    def words(self) -> str:
        if self.would_probe:
            return "probe its holder, and recover it if the holder is dead"
        return f"{'recover' if self.decision.granted else 'leave alone'}: {self.decision.why}"


class Approvals:
    """The approvals for findings, and what they decide; each application is looked up once."""

    def __init__(self, session: LeaseSession, approvals: ApprovalRules) -> None:
        self._applications = Attributions(session.base)
        self._rules = approvals

    def intent(self, finding: FileFinding, *, would_probe: bool = False) -> Intent:
        """Decide what is done about a file."""
        closed = finding.holder.closed
        decision = _CLOSED_BY_PROBE if closed else decide(finding.judgement, self._of(finding))
        return Intent(finding, decision, would_probe)

    def _of(self, finding: FileFinding) -> Approval:
        path = finding.path
        rule = next((rule for rule in self._rules.allowed if path_matches(path, rule.pattern)), None)
        finished = finding.attribution.finished
        if rule and rule.application:
            finished = self._applications.is_finished(rule.application)
        approved_by = self._rules.approved_by if path in self._rules.approved else None
        return Approval(rule is not None, finished, approved_by)
