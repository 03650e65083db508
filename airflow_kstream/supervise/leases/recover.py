"""Recovery of the stuck files below a folder: scan, learn about their holders, judge, plan, execute."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.clients.hdfs.lease_recovery_native import LeaseRecoverer, NativeRecoverer
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.lease import Approval, Decision, HolderKnowledge, HolderLiveness, LeaseRules, Search
from airflow_kstream.model.lease_recovery import Recovery, Target
from airflow_kstream.policy.leases.circuit_breaker import why_unfit
from airflow_kstream.policy.leases.judgement import decide, path_matches
from airflow_kstream.policy.leases.limits import RecoveryLimits
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.executor import RecoveryRun, Tools, Watcher, execute_recoveries
from airflow_kstream.supervise.leases.flink_valid_length import ValidLengths
from airflow_kstream.supervise.leases.holders import foresee, withhold
from airflow_kstream.supervise.leases.holders import probe as probe_holders
from airflow_kstream.supervise.leases.journal import Journal
from airflow_kstream.supervise.leases.scan_history import lease_folder
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.survey import Finding, Survey, Surveyor
from airflow_kstream.supervise.leases.visible_length import MeasuredStates

# When a file is requested, its state is no older than it takes to measure this many files.
_MEASURED_AT_ONCE = 250
# In seconds, like the next one. The NameNode reports its time in whole seconds.
_CLOCK_GRAIN = 1.0
_LOOK_AT_OTHERS_EVERY = 1.0
_CLOSED_BY_PROBE = Decision(True, "it was closed when its holder was probed")

Probe = Callable[[LeaseSession, Survey, Journal, Watcher], HolderKnowledge]


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
    would_probe: bool = False

    @property
    def words(self) -> str:
        if self.would_probe:
            return "probe its holder, and recover it if the holder is dead"
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
    def granted(self) -> tuple[Intent, ...]:
        """Return the files that may be recovered."""
        return tuple(intent for intent in self.intents if intent.decision.granted)

    @property
    def unprobed(self) -> tuple[Intent, ...]:
        """Return the files that may need it, too: old enough and quiet, but their holder's liveness is unknown."""
        return tuple(intent for intent in self.intents if intent.finding.unprobed and not intent.decision.granted)

    @property
    def incomplete(self) -> bool:
        """Tell whether a planned action was not done; a dry run plans none."""
        return self.run is not None and bool(self.failed or self.unprobed or self.interrupted)

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


def recover_stuck_files(
    session: LeaseSession, settings: RecoverySettings, watcher: Watcher, probe: Probe = probe_holders
) -> RecoveryReport:
    """Recover the stuck files, as far as the rules and the approvals allow.

    A file that no earlier run saw is checked twice, `rules.settle` apart. `probe` gets the survey before anything is
    known of the holders.

    Raises Denied or Unavailable: when the journal can't be written; then no request was sent to the NameNode. Raises
    also what `Surveyor.scan` raises.
    """
    surveyor = Surveyor(session, settings.search, settings.rules, watcher.tell)
    survey = _scanned(session, surveyor, watcher)
    if settings.dry_run:
        return _planned(session, settings, survey, foresee(session.pool, survey))
    folder = lease_folder(session.cluster.state_dir, session.identity)
    # The recoverer first: a run that can't request recoveries must not begin any by probing holders.
    with (
        closing(_recoverer(session, settings.backend)) as recoverer,
        closing(Journal.begin(session.base.hdfs, folder, session.identity)) as journal,
    ):
        if unfit := why_unfit(survey.health):
            watcher.tell(f"no recovery is started: {unfit}")
            planned = _planned(session, settings, survey, withhold(survey, unfit))
            return replace(planned, run=RecoveryRun(journal.run_id, (), stopped=unfit))
        survey = _after_others(surveyor, survey, journal, watcher)
        planned = _planned(session, settings, survey, probe(session, survey, journal, watcher))
        return replace(planned, run=_executed(planned, settings, _tools(session, planned, recoverer, journal), watcher))


def _scanned(session: LeaseSession, surveyor: Surveyor, watcher: Watcher) -> Survey:
    """Return the survey, after a second look if the first can't tell an idle file from a growing one."""
    survey = surveyor.scan()
    if not any(_needs_another_scan(finding, survey) for finding in survey.findings):
        return survey
    passed = session.base.hdfs.now() - survey.at
    seconds = max(0.0, (survey.rules.settle - passed).total_seconds() + _CLOCK_GRAIN)
    watcher.tell(f"checking again in {seconds:.0f} s: a single check can't tell an idle file from a growing one")
    watcher.stop.wait(seconds)
    return surveyor.look_again(survey)


def _after_others(surveyor: Surveyor, survey: Survey, journal: Journal, watcher: Watcher) -> Survey:
    """Take this run's turn: wait for runs of the same principal that began earlier at the same files, and look again.

    Two runs at once would each see the other's holders as alive, whose leases its probes renewed.
    """
    if not survey.worth_probing:
        return survey
    journal.begun(surveyor.path)
    told: set[str] = set()
    while (before := journal.runs_before()) and not watcher.stop.is_set():
        for run in before:
            if run.run not in told:
                watcher.tell(f"waiting for the run {run.run} of {run.who}, which is at work below {run.path}")
        told |= {run.run for run in before}
        watcher.stop.wait(_LOOK_AT_OTHERS_EVERY)
    return surveyor.look_again(survey) if told else survey


def _needs_another_scan(finding: Finding, survey: Survey) -> bool:
    history, rules = finding.history, survey.rules
    old_enough = history.age(survey.at) >= rules.min_age
    return old_enough and (history.checks < rules.checks or history.unchanged_for < rules.settle)


def _planned(
    session: LeaseSession, settings: RecoverySettings, survey: Survey, knowledge: HolderKnowledge
) -> RecoveryReport:
    """Judge the files by what is known of their holders, and decide what is done about each."""
    judged = survey.judged_with(knowledge)
    approvals = _Approvals(session, settings.approvals)
    intents = (
        Intent(finding, _decision(finding, approvals), would_probe=settings.dry_run and finding.worth_probing)
        for finding in judged.findings
    )
    return RecoveryReport(judged, tuple(intents))


def _decision(finding: Finding, approvals: _Approvals) -> Decision:
    return _CLOSED_BY_PROBE if finding.holder.closed else decide(finding.judgement, approvals.of(finding))


class _Approvals:
    """The approvals for findings; each application is looked up once."""

    def __init__(self, session: LeaseSession, approvals: ApprovalRules) -> None:
        self._applications = Attributions(session.base)
        self._rules = approvals

    def of(self, finding: Finding) -> Approval:
        path = finding.path
        rule = next((rule for rule in self._rules.allowed if path_matches(path, rule.pattern)), None)
        finished = finding.attribution.finished
        if rule and rule.application:
            finished = self._applications.is_finished(rule.application)
        approved_by = self._rules.approved_by if path in self._rules.approved else None
        return Approval(rule is not None, finished, approved_by)


def _executed(planned: RecoveryReport, settings: RecoverySettings, tools: Tools, watcher: Watcher) -> RecoveryRun:
    # Also if no file is left to recover: probes may have been skipped.
    interrupted = watcher.stop.is_set()
    run = execute_recoveries([_target(intent) for intent in planned.granted], tools, settings.limits, watcher)
    return replace(run, interrupted=run.interrupted or interrupted)


def _tools(session: LeaseSession, planned: RecoveryReport, recoverer: LeaseRecoverer, journal: Journal) -> Tools:
    living = (intent.finding for intent in planned.granted if intent.finding.holder.liveness is not HolderLiveness.DEAD)
    return Tools(
        states=MeasuredStates(session, frozenset(finding.path for finding in living)),
        recoverer=recoverer,
        health=session.jmx.health,
        journal=journal,
        valid_length=ValidLengths(session.base.hdfs).of,
        reads_at_once=_MEASURED_AT_ONCE,
    )


def _target(intent: Intent) -> Target:
    finding = intent.finding
    return Target(
        path=finding.path,
        expected=finding.history.state.fingerprint,
        holder=finding.history.file.holder,
        reason=intent.decision.why,
        accepted=finding.holder.recovering or finding.holder.closed,
    )


def _recoverer(session: LeaseSession, backend: Backend) -> LeaseRecoverer:
    recoverers: dict[Backend, Callable[[Cluster, Identity], LeaseRecoverer]] = {
        Backend.NATIVE: NativeRecoverer,
        Backend.DEBUG: DebugRecoverer,
    }
    return recoverers[backend](session.cluster, session.identity)
