"""Recovery of the stuck files below a folder: look, judge, probe their holders, act, report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.clients.hdfs.lease_recovery_native import LeaseRecoverer, NativeRecoverer
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.lease import Approval, Decision, HolderLiveness, LeaseRules, Search
from airflow_kstream.model.lease_recovery import Recovery, Target
from airflow_kstream.policy.leases.judgement import decide, path_matches
from airflow_kstream.policy.leases.limits import RecoveryLimits
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.executor import RecoveryRun, Tools, Watcher, execute_recoveries
from airflow_kstream.supervise.leases.flink_valid_length import ValidLengths
from airflow_kstream.supervise.leases.holders import HolderProbe, expected_refusals, unprobed, withheld
from airflow_kstream.supervise.leases.journal import Journal
from airflow_kstream.supervise.leases.scan_history import lease_folder
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.survey import Finding, Survey, Surveyor
from airflow_kstream.supervise.leases.visible_length import MeasuredStates

# At its request, the look at a file is no older than it takes to measure this many files.
_MEASURED_AT_ONCE = 100
# In seconds. The NameNode reports its time in whole seconds.
_CLOCK_GRAIN = 1.0


class Backend(StrEnum):
    """The way to the NameNode: batches over one connection, or Hadoop's own tool, which starts a JVM for each file."""

    NATIVE = "native"
    DEBUG = "hdfs-debug"


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


@dataclass(frozen=True)
class RecoverySettings:
    """The files to recover and the way to do it. With `dry_run` no request that has an effect is sent."""

    search: Search
    rules: LeaseRules = field(default_factory=LeaseRules)
    approvals: ApprovalRules = ApprovalRules()
    limits: RecoveryLimits = field(default_factory=RecoveryLimits)
    backend: Backend = Backend.NATIVE
    dry_run: bool = False


@dataclass(frozen=True)
class Intent:
    """The planned action for a finding, and its reason."""

    finding: Finding
    decision: Decision
    would_ask: bool = False

    @property
    def words(self) -> str:
        if self.would_ask:
            return "ask whether its holder lives, and recover it if not"
        return f"{'recover' if self.decision.granted else 'leave alone'}: {self.decision.why}"


@dataclass(frozen=True)
class RecoveryReport:
    """The findings, the planned actions, and their results. A dry run has no `recoveries`."""

    survey: Survey
    intents: tuple[Intent, ...]
    run: RecoveryRun | None = None

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        return self.run.recoveries if self.run else ()

    @property
    def failed(self) -> tuple[Recovery, ...]:
        """Return the recoveries whose files still need to be recovered."""
        return tuple(recovery for recovery in self.recoveries if not recovery.outcome.settled)

    @property
    def unasked(self) -> tuple[Intent, ...]:
        """Return the files that may need it, too: old enough and quiet, but their holder's liveness is unknown."""
        return tuple(intent for intent in self.intents if intent.finding.unasked and not intent.decision.granted)

    @property
    def incomplete(self) -> bool:
        """Tell whether a planned action was not done; a dry run plans none."""
        return self.run is not None and bool(self.failed or self.unasked or self.interrupted)

    @property
    def stopped(self) -> str:
        return self.run.stopped if self.run else ""

    @property
    def interrupted(self) -> bool:
        return self.run.interrupted if self.run else False

    def to_json(self) -> dict[str, Any]:
        """Return plain data, complete."""
        planned = {intent.finding.path: intent.words for intent in self.intents}
        return {
            **self.survey.to_json(),
            "plan": planned,
            "run_id": self.run.run_id if self.run else None,
            "recoveries": [recovery.to_json() for recovery in self.recoveries],
            "stopped": self.stopped,
            "interrupted": self.interrupted,
        }


def recover_stuck_files(session: LeaseSession, settings: RecoverySettings, watcher: Watcher) -> RecoveryReport:
    """Recover the stuck files, as far as the rules and the approvals allow.

    A file that no earlier run saw is checked twice, `rules.settle` apart.

    Raises Denied or Unavailable: when the journal can't be written; then no request was sent to the NameNode. Raises
    also what `Surveyor.look` raises.
    """
    surveyor = Surveyor(session, settings.search, settings.rules, watcher.tell)
    survey = _settled(surveyor, settings.rules, watcher)
    if settings.dry_run:
        foreseen = _informed(surveyor, survey, expected_refusals(session.pool, unprobed(survey, settings.rules)))
        return RecoveryReport(foreseen, _intents(session, settings, foreseen))
    folder = lease_folder(session.cluster.state_dir, session.identity)
    # The recoverer first: a run that can't request recoveries must not begin any by probing holders.
    with (
        closing(_recoverer(session, settings.backend)) as recoverer,
        closing(Journal.begin(session.base.hdfs, folder, session.identity)) as journal,
    ):
        if why := _unfit(survey.health, settings.limits):
            watcher.tell(f"no recovery is started: {why}")
            held_back = _informed(surveyor, survey, withheld(survey, settings.rules, why))
            return RecoveryReport(
                held_back, _intents(session, settings, held_back), RecoveryRun(journal.run_id, (), stopped=why)
            )
        asked = HolderProbe(session.web, settings.rules, watcher.tell, journal, watcher.stop).ask(survey)
        informed = _informed(surveyor, survey, {finding.path: finding for finding in asked})
        intents = _intents(session, settings, informed)
        wanted = [intent for intent in intents if intent.decision.granted]
        tools = Tools(
            states=MeasuredStates(session, _living(wanted)),
            recoverer=recoverer,
            health=session.jmx.health,
            journal=journal,
            valid_length=ValidLengths(session.base.hdfs).of,
            reads_at_once=_MEASURED_AT_ONCE,
        )
        broken_off = watcher.stop.is_set()
        run = execute_recoveries([_target(intent) for intent in wanted], tools, settings.limits, watcher)
    return RecoveryReport(informed, intents, replace(run, interrupted=run.interrupted or broken_off))


def _unfit(health: HdfsHealth, limits: RecoveryLimits) -> str:
    """Return why no recovery should begin on this cluster now, including by a probe; empty if it may."""
    safety = limits.safety
    if health.safe_mode:
        return "the NameNode is in safe mode"
    for name, count, most in (("dead", health.dead, safety.dead), ("stale", health.stale, safety.stale)):
        if most is not None and count > most:
            return f"{count} DataNodes are {name}, and {most} are allowed"
    return ""


def _informed(surveyor: Surveyor, survey: Survey, learned: Mapping[str, Finding]) -> Survey:
    """Return the survey with what was learned of some files; each of these is judged again."""
    return replace(
        survey,
        findings=tuple(
            surveyor.judged(learned[finding.path], survey) if finding.path in learned else finding
            for finding in survey.findings
        ),
    )


def _settled(surveyor: Surveyor, rules: LeaseRules, watcher: Watcher) -> Survey:
    """Return the survey, after a second look if the first can't tell a quiet file from a growing one."""
    survey = surveyor.look()
    if not any(_needs_another_look(finding, survey, rules) for finding in survey.findings):
        return survey
    seconds = rules.settle.total_seconds() + _CLOCK_GRAIN
    watcher.tell(f"looking again in {seconds:.0f} s: one look can't tell a quiet file from a growing one")
    watcher.stop.wait(seconds)
    return surveyor.look()


def _needs_another_look(finding: Finding, survey: Survey, rules: LeaseRules) -> bool:
    history = finding.history
    old_enough = survey.at - history.open_since >= rules.min_age
    return old_enough and (history.looks < rules.looks or history.unchanged_for < rules.settle)


def _intents(session: LeaseSession, settings: RecoverySettings, survey: Survey) -> tuple[Intent, ...]:
    consenting = _Consenting(session, settings.approvals)
    doubtful = {finding.path for finding in unprobed(survey, settings.rules)} if settings.dry_run else set()
    return tuple(_intent(finding, doubtful, consenting) for finding in survey.findings)


def _intent(finding: Finding, doubtful: Collection[str], consenting: _Consenting) -> Intent:
    granted = _CLOSED_BY_ASKING if finding.closed else decide(finding.judgement, consenting.to(finding))
    return Intent(finding, granted, would_ask=finding.path in doubtful)


_CLOSED_BY_ASKING = Decision(True, "it was closed when its holder was probed")


class _Consenting:
    """The approvals for findings; each application is looked up once."""

    def __init__(self, session: LeaseSession, approvals: ApprovalRules) -> None:
        self._applications = Attributions(session.base)
        self._consents = approvals

    def to(self, finding: Finding) -> Approval:
        path = finding.path
        rule = next((rule for rule in self._consents.allowed if path_matches(path, rule.pattern)), None)
        finished = finding.attribution.finished
        if rule and rule.application:
            finished = self._applications.is_finished(rule.application)
        approved_by = self._consents.approved_by if path in self._consents.approved else None
        return Approval(rule is not None, finished, approved_by)


def _living(intents: Iterable[Intent]) -> frozenset[str]:
    return frozenset(intent.finding.path for intent in intents if intent.finding.liveness is not HolderLiveness.DEAD)


def _target(intent: Intent) -> Target:
    finding = intent.finding
    return Target(
        path=finding.path,
        expected=finding.history.state.fingerprint,
        holder=finding.history.file.holder,
        reason=intent.decision.why,
        accepted=finding.accepted or finding.closed,
    )


def _recoverer(session: LeaseSession, backend: Backend) -> LeaseRecoverer:
    kickers: dict[Backend, Callable[[Cluster, Identity], LeaseRecoverer]] = {
        Backend.NATIVE: NativeRecoverer,
        Backend.DEBUG: DebugRecoverer,
    }
    return kickers[backend](session.cluster, session.identity)
