"""Find the stuck files below a folder and recover their leases: look, judge, ask their holders, act, report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugKicker
from airflow_kstream.clients.hdfs.lease_recovery_native import Kicker, NativeKicker
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.hdfs_health import Gate
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.lease import Consent, HolderLife, LeaseRules, Permission, Search
from airflow_kstream.model.lease_recovery import Recovery, Target
from airflow_kstream.policy.leases.judgement import path_matches, permission
from airflow_kstream.policy.leases.scheduler import Limits
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.executor import RecoveryRun, Tools, Watcher, recover
from airflow_kstream.supervise.leases.flink_valid_length import ValidLengths
from airflow_kstream.supervise.leases.holders import Holders, doubtful_of, foreseen_refusals, kept_from_asking
from airflow_kstream.supervise.leases.journal import Audit
from airflow_kstream.supervise.leases.scan_history import lease_folder
from airflow_kstream.supervise.leases.session import LeaseAccess
from airflow_kstream.supervise.leases.survey import Finding, Survey, Surveyor
from airflow_kstream.supervise.leases.visible_length import MeasuredStates

# A look at a file is no older, when it is asked for, than it takes to measure so many.
_MEASURED_AT_ONCE = 100
# The NameNode tells its time in whole seconds.
_CLOCK_GRAIN = 1.0


class Means(StrEnum):
    """How the NameNode is asked: in batches over one connection, or by Hadoop's own tool, a JVM for each file."""

    NATIVE = "native"
    DEBUG = "hdfs"


@dataclass(frozen=True)
class AllowedPath:
    """A shell pattern of paths that may be recovered from a living holder once its application is finished.

    `application` is the id or the stream whose end counts; None: the one that the file is attributed to.
    """

    pattern: str
    application: str | None = None


@dataclass(frozen=True)
class Consents:
    """Who agreed to the recovery of files whose holder lives: by pattern beforehand, or a person for exact paths."""

    allowed: tuple[AllowedPath, ...] = ()
    approved: frozenset[str] = frozenset()
    approved_by: str | None = None

    def __post_init__(self) -> None:
        if self.approved and not self.approved_by:
            raise InvalidInput("paths are approved and nobody is named; say who approves them (approved_by)")


@dataclass(frozen=True)
class RescueOrder:
    """What to recover and how. With `dry_run` nobody is asked for anything that has an effect."""

    search: Search
    rules: LeaseRules = field(default_factory=LeaseRules)
    consents: Consents = Consents()
    limits: Limits = field(default_factory=Limits)
    means: Means = Means.NATIVE
    dry_run: bool = False


@dataclass(frozen=True)
class Intent:
    """What is to be done about a finding, and why."""

    finding: Finding
    permission: Permission
    would_ask: bool = False

    @property
    def words(self) -> str:
        if self.would_ask:
            return "ask whether its holder lives, and recover it if not"
        return f"{'recover' if self.permission.granted else 'leave alone'}: {self.permission.why}"


@dataclass(frozen=True)
class Rescue:
    """What was found, what was meant to be done, and what came of it. Without `recoveries` in a dry run."""

    survey: Survey
    intents: tuple[Intent, ...]
    run: RecoveryRun | None = None

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        return self.run.recoveries if self.run else ()

    @property
    def failed(self) -> tuple[Recovery, ...]:
        """What still wants to be recovered."""
        return tuple(recovery for recovery in self.recoveries if not recovery.outcome.settled)

    @property
    def unasked(self) -> tuple[Intent, ...]:
        """What may want it too: old enough and quiet, and nobody learned whether its holder lives."""
        return tuple(intent for intent in self.intents if intent.finding.unasked and not intent.permission.granted)

    @property
    def incomplete(self) -> bool:
        """Whether something was meant to be done and was not; of a dry run nothing was."""
        return self.run is not None and bool(self.failed or self.unasked or self.interrupted)

    @property
    def stopped(self) -> str:
        return self.run.stopped if self.run else ""

    @property
    def interrupted(self) -> bool:
        return self.run.interrupted if self.run else False

    def to_json(self) -> dict[str, Any]:
        """Plain data, whole."""
        planned = {intent.finding.path: intent.words for intent in self.intents}
        return {
            **self.survey.to_json(),
            "plan": planned,
            "run_id": self.run.run_id if self.run else None,
            "recoveries": [recovery.to_json() for recovery in self.recoveries],
            "stopped": self.stopped,
            "interrupted": self.interrupted,
        }


def rescue(access: LeaseAccess, order: RescueOrder, watcher: Watcher) -> Rescue:
    """Do it, as far as the rules and the consents allow.

    A file that no earlier run saw is looked at twice, `rules.settle` apart. Raises what the look raises, and Denied
    or Unavailable when the audit can't be written: then nothing was asked of the NameNode.
    """
    surveyor = Surveyor(access, order.search, order.rules, watcher.tell)
    survey = _settled(surveyor, order.rules, watcher)
    if order.dry_run:
        foreseen = _informed(surveyor, survey, foreseen_refusals(access.pool, doubtful_of(survey, order.rules)))
        return Rescue(foreseen, _intents(access, order, foreseen))
    folder = lease_folder(access.cluster.state_dir, access.identity)
    # The kicker first: who can't ask for a recovery must not begin any by asking for holders.
    with (
        closing(_kicker(access, order.means)) as kicker,
        closing(Audit.begin(access.base.hdfs, folder, access.identity)) as audit,
    ):
        if why := _unfit(survey.gate, order.limits):
            watcher.tell(f"nothing is asked for: {why}")
            held_back = _informed(surveyor, survey, kept_from_asking(survey, order.rules, why))
            return Rescue(held_back, _intents(access, order, held_back), RecoveryRun(audit.run_id, (), stopped=why))
        asked = Holders(access.web, order.rules, watcher.tell, audit, watcher.stop).ask(survey)
        informed = _informed(surveyor, survey, {finding.path: finding for finding in asked})
        intents = _intents(access, order, informed)
        wanted = [intent for intent in intents if intent.permission.granted]
        tools = Tools(
            states=MeasuredStates(access, _living(wanted)),
            kicker=kicker,
            gate=access.jmx.gate,
            audit=audit,
            valid_length=ValidLengths(access.base.hdfs).of,
            look_at_once=_MEASURED_AT_ONCE,
        )
        broken_off = watcher.stop.is_set()
        run = recover([_target(intent) for intent in wanted], tools, order.limits, watcher)
    return Rescue(informed, intents, replace(run, interrupted=run.interrupted or broken_off))


def _unfit(gate: Gate, limits: Limits) -> str:
    """Why no recovery should be begun on this cluster now, be it by asking for a holder."""
    caution = limits.caution
    if gate.safe_mode:
        return "the NameNode is in safe mode"
    for name, count, most in (("dead", gate.dead, caution.dead), ("stale", gate.stale, caution.stale)):
        if most is not None and count > most:
            return f"{count} DataNodes are {name}, and {most} are allowed"
    return ""


def _informed(surveyor: Surveyor, survey: Survey, learned: Mapping[str, Finding]) -> Survey:
    """The survey with what was learned of some files, each of them judged anew."""
    return replace(
        survey,
        findings=tuple(
            surveyor.judged(learned[finding.path], survey) if finding.path in learned else finding
            for finding in survey.findings
        ),
    )


def _settled(surveyor: Surveyor, rules: LeaseRules, watcher: Watcher) -> Survey:
    """The survey, after a second look where the first one can't tell a quiet file from a growing one."""
    survey = surveyor.look()
    if not any(_needs_another_look(finding, survey, rules) for finding in survey.findings):
        return survey
    seconds = rules.settle.total_seconds() + _CLOCK_GRAIN
    watcher.tell(f"looking again in {seconds:.0f} s: one look can't tell a quiet file from a growing one")
    watcher.stop.wait(seconds)
    return surveyor.look()


def _needs_another_look(finding: Finding, survey: Survey, rules: LeaseRules) -> bool:
    watched = finding.watched
    old_enough = survey.at - watched.open_since >= rules.min_age
    return old_enough and (watched.looks < rules.looks or watched.steady < rules.settle)


def _intents(access: LeaseAccess, order: RescueOrder, survey: Survey) -> tuple[Intent, ...]:
    consenting = _Consenting(access, order.consents)
    doubtful = {finding.path for finding in doubtful_of(survey, order.rules)} if order.dry_run else set()
    return tuple(_intent(finding, doubtful, consenting) for finding in survey.findings)


def _intent(finding: Finding, doubtful: Collection[str], consenting: _Consenting) -> Intent:
    granted = _CLOSED_BY_ASKING if finding.closed else permission(finding.judgement, consenting.to(finding))
    return Intent(finding, granted, would_ask=finding.path in doubtful)


_CLOSED_BY_ASKING = Permission(True, "it was closed when its holder was asked for")


class _Consenting:
    """Who consents to what; an application is asked after once."""

    def __init__(self, access: LeaseAccess, consents: Consents) -> None:
        self._applications = Attributions(access.base)
        self._consents = consents

    def to(self, finding: Finding) -> Consent:
        path = finding.path
        rule = next((rule for rule in self._consents.allowed if path_matches(path, rule.pattern)), None)
        finished = finding.attribution.finished
        if rule and rule.application:
            finished = self._applications.is_finished(rule.application)
        approved_by = self._consents.approved_by if path in self._consents.approved else None
        return Consent(rule is not None, finished, approved_by)


def _living(intents: Iterable[Intent]) -> frozenset[str]:
    return frozenset(intent.finding.path for intent in intents if intent.finding.life is not HolderLife.DEAD)


def _target(intent: Intent) -> Target:
    finding = intent.finding
    return Target(
        path=finding.path,
        expected=finding.watched.state.fingerprint,
        holder=finding.watched.file.holder,
        reason=intent.permission.why,
        begun=finding.begun or finding.closed,
    )


def _kicker(access: LeaseAccess, means: Means) -> Kicker:
    kickers: dict[Means, Callable[[Cluster, Identity], Kicker]] = {
        Means.NATIVE: NativeKicker,
        Means.DEBUG: DebugKicker,
    }
    return kickers[means](access.cluster, access.identity)
