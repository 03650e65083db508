"""Recovery of the stuck files below a folder: scan, learn about their holders, judge, plan, execute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.clients.hdfs.namenode import namenode_rpc
from airflow_kstream.model.leases.lease import HolderKnowledge, Recovery
from airflow_kstream.model.leases.requests import Backend, RecoverySettings
from airflow_kstream.policy.leases.concurrency import why_unfit
from airflow_kstream.supervise.leases.executor import (
    LeaseRecoverer,
    RecoveryResources,
    RecoveryRun,
    Watcher,
    execute_recoveries,
)
from airflow_kstream.supervise.leases.findings import Survey
from airflow_kstream.supervise.leases.holders import HolderProbe, foresee, withhold
from airflow_kstream.supervise.leases.journal import Journal
from airflow_kstream.supervise.leases.judging import Approvals, Intent, Judging, next_look
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.survey import Surveyor
from airflow_kstream.supervise.leases.visible_length import MeasuredStates, ValidLengths

# When a file is requested, its state is no older than it takes to measure this many files.
_MEASURED_AT_ONCE = 250
_LOOK_AT_OTHERS_EVERY, _SURE_AFTER_LOOKS = 1.0, 2

Probe = Callable[[Survey], HolderKnowledge]


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
        recoveries = [recovery.to_json() for recovery in self.recoveries]
        return {**self.to_print(), **self.survey.to_json(), "recoveries": recoveries}

    def to_print(self) -> dict[str, Any]:
        """Return the same with functions in the place of rows, as `Survey.to_print` does."""
        return {
            **self.survey.to_print(),
            "plan": {intent.finding.path: intent.words for intent in self.intents},
            "run_id": self.run.run_id if self.run else None,
            "recoveries": [recovery.to_json for recovery in self.recoveries],
            "stopped": self.stopped,
            "interrupted": self.interrupted,
        }


def recover_stuck_files(
    session: LeaseSession, settings: RecoverySettings, watcher: Watcher,
    probing: Callable[[LeaseSession, Journal, Watcher], Probe] = HolderProbe,
) -> RecoveryReport:  # fmt: skip
    """Recover the stuck files, as far as the rules and the approvals allow.

    Files are looked at twice, `rules.settle` apart, unless an earlier run has seen them; each is judged as soon as that
    has passed, while others are recovered. The probe gets files before anything is known of their holders.

    Raises Denied or Unavailable: when the journal can't be written; then no request was sent to the NameNode. Raises
    also what `Surveyor.scan` raises.
    """
    surveyor = Surveyor(session, settings.search, settings.rules, watcher.tell)
    survey = surveyor.scan()
    if settings.dry_run:
        survey = _looked_twice(surveyor, survey, watcher)
        return _planned(session, settings, survey, foresee(session.pool, survey))
    # The recoverer first: a run that can't request recoveries must not begin any by probing holders.
    with (
        _recoverer(session, settings.backend) as recoverer,
        closing(Journal.begin(session.base.hdfs, session.folder, session.identity, watcher.tell)) as journal,
    ):
        if unfit := why_unfit(survey.health):
            watcher.tell(f"no recovery is started: {unfit}")
            survey = _looked_twice(surveyor, survey, watcher)
            planned = _planned(session, settings, survey, withhold(survey, unfit))
            return replace(planned, run=RecoveryRun(journal.run_id, (), stopped=unfit))
        _take_turn(survey, settings.search.path, journal, watcher)
        judging = Judging(surveyor, survey, probing(session, journal, watcher), Approvals(session, settings.approvals))
        # Its files are the judge's from here on; as they were at first, ten thousand of them are many megabytes.
        del survey
        _tell_of_wait(judging, watcher)
        run = execute_recoveries(
            (), _resources(session, judging, recoverer, journal), settings.limits, watcher, judging
        )
        # Also if no file is left to recover: probes may have been skipped.
        interrupted = run.interrupted or watcher.stop.is_set()
        left = run.stopped or ("the run was interrupted" if interrupted else "")
        return RecoveryReport(*judging.result(left), replace(run, interrupted=interrupted))


def _looked_twice(surveyor: Surveyor, survey: Survey, watcher: Watcher) -> Survey:
    """Return the survey, after a second look if the first can't tell an idle file from a growing one."""
    last = max((next_look(finding, survey) for finding in survey.findings if finding.undecided), default=survey.at)
    seconds = (last - surveyor.now()).total_seconds()
    if seconds <= 0:
        return survey
    _tell_of_second_look(seconds, watcher)
    watcher.stop.wait(seconds)
    return surveyor.look_again(survey)


def _tell_of_wait(judging: Judging, watcher: Watcher) -> None:
    due = judging.due()
    if due:
        _tell_of_second_look(due.total_seconds(), watcher)


def _tell_of_second_look(seconds: float, watcher: Watcher) -> None:
    watcher.tell(f"checking again in {seconds:.0f} s: a single check can't tell an idle file from a growing one")


def _take_turn(survey: Survey, path: str, journal: Journal, watcher: Watcher) -> None:
    """Wait for runs of the same HDFS user that began earlier at the same files.

    Two runs at once would each see the other's holders as alive, whose leases its probes renewed. A record gets its
    time when it is closed, so one that is still being written may seem to be earlier than it is, at one look.
    """
    if not any(finding.undecided for finding in survey.findings):
        return
    journal.begun(path)
    looks = Counter[str]()
    while (before := journal.runs_before()) and not watcher.stop.is_set():
        looks.update(run.run for run in before)
        for run in before:
            if looks[run.run] == _SURE_AFTER_LOOKS:
                watcher.tell(f"waiting for the run {run.run} of {run.who}, which is at work below {run.path}")
        watcher.stop.wait(_LOOK_AT_OTHERS_EVERY)


def _planned(
    session: LeaseSession, settings: RecoverySettings, survey: Survey, knowledge: HolderKnowledge
) -> RecoveryReport:
    """Judge the files by what is known of their holders, and say what would be done about each."""
    judged = survey.judged_with(knowledge)
    approvals = Approvals(session, settings.approvals)
    intents = (
        approvals.intent(finding, would_probe=settings.dry_run and finding.worth_probing) for finding in judged.findings
    )
    return RecoveryReport(judged, tuple(intents))


def _resources(
    session: LeaseSession, judging: Judging, recoverer: LeaseRecoverer, journal: Journal
) -> RecoveryResources:
    return RecoveryResources(
        states=MeasuredStates(session, judging.living),
        recoverer=recoverer,
        health=session.jmx.health,
        journal=journal,
        valid_length=ValidLengths(session.base.hdfs).of,
        reads_at_once=_MEASURED_AT_ONCE,
    )


@contextmanager
def _recoverer(session: LeaseSession, backend: Backend) -> Iterator[LeaseRecoverer]:
    if backend is Backend.DEBUG:
        with closing(DebugRecoverer(session.cluster, session.identity)) as recoverer:
            yield recoverer
    elif session.rpc:
        yield session.rpc
    else:
        # It names what the connection lacks.
        with closing(namenode_rpc(session.cluster, session.identity)) as rpc:
            yield rpc
