"""The judging of a survey's files while others are recovered: a second look, their holders, and a decision: what is
done about each, by which rule, and who approved it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_kstream.model.leases.lease import (
    Approval,
    Decision,
    FileCondition,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    Target,
    path_matches,
)
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.model.leases.requests import ApprovalRules
from airflow_kstream.policy.leases.concurrency import why_unfit
from airflow_kstream.policy.leases.judgement import decide, next_check
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.findings import FileFinding, Survey
from airflow_kstream.supervise.leases.holders import BELIEVED_FOR, withhold
from airflow_kstream.supervise.leases.session import LeaseSession

if TYPE_CHECKING:
    from airflow_kstream.supervise.leases.survey import Surveyor


_CLOSED_BY_PROBE = Decision(True, "it was closed when its holder was probed")


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
        leaked = rule is not None and not finished and finding.judgement.condition is FileCondition.LEAKED
        given_up = leaked and self._applications.has_given_up(finding.history)
        return Approval(rule is not None, finished, approved_by, given_up)


_LEFT = "it was not looked at again: "
# Holders whose probes are due within so long are probed together: each round of probes is recorded before and after.
_TOGETHER = timedelta(seconds=2)


class Judging:
    """The files of a survey whose end is open, judged some at a time, each as soon as a second look can settle it.

    One file of each holder, its scout, goes first, and the holder is probed; then nothing comes between the look at the
    others and their requests. Where nobody names the holders, all such files are judged at once. A holder that has to
    be asked again keeps its files waiting until then, and no others. A failover renews every lease: what is known of
    holders by then still counts, and those that are unknown are judged by the NameNode's health of now. `living` are
    the paths of files whose holder is not known to be dead.
    """

    def __init__(
        self, surveyor: Surveyor, survey: Survey, probe: Callable[[Survey], HolderKnowledge], approvals: Approvals
    ) -> None:
        self._surveyor = surveyor
        self._survey = survey.part(())
        self._probe = probe
        self._approvals = approvals
        undecided = [finding for finding in survey.findings if finding.undecided]
        undecided.sort(key=lambda finding: next_look(finding, survey))
        self._nameless = [finding for finding in undecided if not _holder(finding)]
        self._scouts = _first_of_each_holder(undecided)
        scouts = {finding.path for finding in self._scouts}
        self._named = [finding for finding in undecided if _holder(finding) and finding.path not in scouts]
        self._scouted: set[str] = set()
        self._known: dict[str, datetime] = {}
        self._put_off: dict[str, datetime] = {}
        self._intents = {finding.path: approvals.intent(finding) for finding in survey.findings}
        self._unreadable = dict(survey.unreadable)
        self.living: set[str] = set()

    def due(self) -> timedelta | None:
        """Return the time until some files can be judged; None if none is left."""
        next_ones = self._nameless or self._next_scouts() or self._named[:1]
        if not next_ones:
            return None
        return max(timedelta(0), self._due(next_ones[-1]) - self._surveyor.now())

    def judged(self, most: int) -> list[tuple[Target, FileState | None]]:
        """Judge files that are due, and return those that may be recovered.

        Raises KstreamError: when a server does not answer; then the same files are the next ones again.
        """
        if self.due() != timedelta(0):
            return []
        files = self._nameless or self._next_scouts()[:most] or self._next_named(most)
        targets = self._judge(files)
        self._scouted |= {_holder(finding) for finding in files}
        waiting = {finding.path for finding in files if self._waits(finding.path)}
        done = {finding.path for finding in files} - waiting
        self._nameless, self._scouts, self._named = (
            [finding for finding in left if finding.path not in done]
            for left in (self._nameless, self._scouts, self._named)
        )
        if waiting:
            self._scouts.sort(key=self._due)
            self._named.sort(key=self._due)
        return targets

    def result(self, left: str) -> tuple[Survey, tuple[Intent, ...]]:
        """Return the survey as judged, and what was decided; `left` is why some files were not judged, if any."""
        status = HolderStatus(refusal=f"{_LEFT}{left}", retryable=True)
        rest = self._survey.part([*self._nameless, *self._scouts, *self._named])
        self._decide(rest.judged_with({finding.path: status for finding in rest.findings}))
        intents = tuple(self._intents.values())
        findings = tuple(intent.finding for intent in intents)
        return replace(self._survey, findings=findings, unreadable=self._unreadable), intents

    def _due(self, finding: FileFinding) -> datetime:
        look = next_look(finding, self._survey)
        return max(look, self._put_off.get(_holder(finding), look))

    def _waits(self, path: str) -> bool:
        intent = self._intents.get(path)
        return intent is not None and intent.finding.holder.again is not None

    def _next_scouts(self) -> list[FileFinding]:
        """Return the scouts that go together; none while a file whose holder was asked about is due before them."""
        if not self._scouts:
            return []
        first = self._due(self._scouts[0])
        if self._named and _holder(self._named[0]) in self._scouted and self._due(self._named[0]) < first:
            return []
        return [scout for scout in self._scouts if self._due(scout) <= first + _TOGETHER]

    def _next_named(self, most: int) -> list[FileFinding]:
        now = self._surveyor.now()
        due = [finding for finding in self._named[:most] if self._due(finding) <= now]
        return [finding for finding in due if _holder(finding) in self._known] or due

    def _judge(self, findings: Sequence[FileFinding]) -> list[tuple[Target, FileState | None]]:
        now = self._surveyor.now()
        self._known = {holder: at for holder, at in self._known.items() if now - at <= BELIEVED_FOR}
        asks = not all(_holder(finding) in self._known for finding in findings)
        survey = replace(self._survey, health=self._surveyor.health()) if asks else self._survey
        look = self._surveyor.look_again(survey.part(findings))
        unfit = why_unfit(look.health) if asks else ""
        judged = look.judged_with(withhold(look, unfit) if unfit else self._probe(look))
        self._learn(findings, judged)
        granted = [intent for intent in self._decide(judged) if intent.decision.granted]
        return [(_target(intent), None if asks else intent.finding.history.state) for intent in granted]

    def _decide(self, judged: Survey) -> list[Intent]:
        intents = {finding.path: self._approvals.intent(finding) for finding in judged.findings}
        self._intents |= intents
        return list(intents.values())

    def _learn(self, findings: Sequence[FileFinding], judged: Survey) -> None:
        self._survey = replace(self._survey, at=judged.at)
        self._unreadable |= judged.unreadable
        for path in {finding.path for finding in findings} - {finding.path for finding in judged.findings}:
            # It is no longer open, or can't be read.
            del self._intents[path]
        for finding in judged.findings:
            if finding.holder.again:
                self._put_off[_holder(finding)] = finding.holder.again
            if finding.holder.liveness is not HolderLiveness.UNKNOWN:
                self._known.setdefault(_holder(finding), judged.at)
            if finding.holder.liveness is not HolderLiveness.DEAD:
                self.living.add(finding.path)


def next_look(finding: FileFinding, survey: Survey) -> datetime:
    """Return from when on a second look can settle whether the file grows, by the NameNode's clock."""
    return next_check(finding.history, survey.rules)


def _first_of_each_holder(findings: Iterable[FileFinding]) -> list[FileFinding]:
    firsts: dict[str, FileFinding] = {}
    for finding in findings:
        if holder := _holder(finding):
            firsts.setdefault(holder, finding)
    return list(firsts.values())


def _holder(finding: FileFinding) -> str:
    return finding.history.file.holder or ""


def _target(intent: Intent) -> Target:
    finding = intent.finding
    return Target(
        path=finding.path,
        expected=finding.history.state.fingerprint,
        holder=finding.history.file.holder,
        reason=intent.decision.why,
        accepted=finding.holder.recovering or finding.holder.closed,
    )
