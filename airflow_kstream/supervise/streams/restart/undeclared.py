"""Keeping streams whose files are gone, until a person has stopped them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.streams.declarations import DeclarationFolder
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.plan import Phase, Settled, Step, Stop
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.secrets import Secrets
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import claimed_spec
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler

log = logging.getLogger(__name__)

_STATES: Mapping[Phase, str] = {Phase.RUNNING: "still runs", Phase.KILLED: "was killed"}


@dataclass(frozen=True)
class UndeclaredReport:
    """The outcome of a look. `known` are all names of this place, those of before and the declared ones; `running` are
    the undeclared ones that nobody has stopped; `troubles` are sentences about what went wrong with streams."""

    known: frozenset[str]
    running: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True)
class UndeclaredStreams:
    """The streams that files of this `place` declared once and declare no longer.

    Their names are read from a file of the state_dir that only a supervisor can write. `session` has the rights of the
    connection's watcher; what is due is done in a session as the stream's own identity.
    """

    session: ClusterSession
    place: DeclarationFolder
    engine_of: Callable[[StreamSpec], Engine]
    secrets: Secrets
    moved: Mapping[str, str] = field(default_factory=dict)
    """The former DAGs of declared streams whose present one is not on: they are looked after, too."""

    def look_after(self, declared: Collection[str]) -> UndeclaredReport:
        """Look at them once, and take the steps that are due. `declared` are the streams that have a file now.

        A stream that was stopped, was never started, or is done, is forgotten; the report has the last among its
        troubles, once.
        """
        known = self.session.declarations.streams(self.place)
        every = known | set(declared)
        # At once: a look that fails forgets nobody.
        self._keep(known, every)
        vanished = sorted((known - set(declared)) | self.moved.keys())
        running, troubles = self._look(vanished) if vanished else ([], [])
        self._keep(every, {*running, *declared})
        return UndeclaredReport(every, tuple(running), tuple(troubles))

    def _keep(self, before: Collection[str], names: Collection[str]) -> None:
        if set(names) != set(before):
            self.session.declarations.keep_streams(self.place, names)

    def _look(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        running, troubles = [], []
        verdicts = Watch(self.session).round(names)
        for name, verdict in verdicts.items():
            phase = verdict.step.phase if isinstance(verdict.step, Settled) else None
            if phase is Phase.ENDED:
                way_out = "; unpause its DAG" if name in self.moved else ""
                troubles.append(f"{self._subject(name)}, and {verdict.why}{way_out}")
            elif phase is not Phase.STOPPED and not _never_was(verdict):
                running.append(name)
                self._log_running(name, verdict)
        due = [name for name in running if verdicts[name].calls_for_action]
        troubles += filter(None, map(self._act, due))
        troubles += self._look_as_itself([name for name in running if verdicts[name].step is None])
        return running, troubles

    def _look_as_itself(self, unseen: Sequence[str]) -> list[str]:
        """Look, with each stream's own rights, at those that the watcher can't see; return why that failed.

        Servers that are away are not a stream's trouble, and the first that finds them away looks for all: their
        waiting tasks tell of it.
        """
        troubles = []
        for name in unseen:
            try:
                troubles.append(self._step(name, "nobody sees it"))
            except Unavailable as error:
                log.warning("%s is not seen with its own rights either: %s", name, error)
                break
        return [why for why in troubles if why]

    def _act(self, name: str) -> str:
        """Take the due step; return why that failed, empty if it did not."""
        failed = "what is due can't be done"
        try:
            return self._step(name, failed)
        except Unavailable as error:
            return f"{self._subject(name)}, and {failed}: {error}"

    def _step(self, name: str, failed: str) -> str:
        """Return as `_reconciled`, or why it failed: whatever one stream does, the others are looked after.

        Raises Unavailable.
        """
        try:
            return self._reconciled(name)
        except Unavailable:
            raise
        except Exception as error:
            ours = isinstance(error, KstreamError)
            if not ours:
                log.exception("%s", self._subject(name))
            return f"{self._subject(name)}, and {failed}: {error if ours else repr(error)}"

    def _reconciled(self, name: str) -> str:
        """Look and take the step that is due; return how the stream ended, empty if it did not."""
        cluster = self.session.cluster
        known = claimed_spec(self.session, StreamId(name, cluster.state_dir))
        if not known.submittable:
            log.error("%s is watched, and nothing of it is submitted: %s", name, known.doubt)
        with open_session(cluster, known.identity(cluster)) as session:
            run = StreamRun(session, known.spec, self.engine_of(known.spec), self.secrets, declared=known.submittable)
            report = Reconciler(run, tell=log.info, patient=False).run(Mode.WATCH)
        log.info("%s generation %s: %s", name, report.generation, report.why)
        return f"{self._subject(name)}, and {report.why}" if report.ended else ""

    def _subject(self, name: str) -> str:
        """Return a stream with why it is looked after here."""
        if name in self.moved:
            return f"{name} lost its DAG {self.moved[name]} to one with another prefix"
        return f"{name} is declared no longer"

    def _log_running(self, name: str, verdict: Verdict) -> None:
        remaining = verdict.credentials.remaining
        left = "" if remaining is None else f", horizon in {format_duration(remaining)}"
        left += f", {verdict.people.freeze}" if verdict.people.freeze else ""
        advice = "unpause its DAG" if name in self.moved else "put its file back"
        state = f"{_state(verdict.step)}: {verdict.why}{left}"
        log.error("%s and %s; %s, or stop it with `kstream streams stop`", self._subject(name), state, advice)


def _never_was(verdict: Verdict) -> bool:
    """Return whether nothing of it was ever claimed or submitted: its file came and went while its DAG was paused."""
    return verdict.step is not None and verdict.generation == 0


def _state(step: Step | None) -> str:
    """Return in words what the watcher saw of it; a stream that it could not see may run or not."""
    if step is None:
        return "is not seen"
    if isinstance(step, Settled):
        return _STATES.get(step.phase, f"is {step.phase}")
    return "still runs" if isinstance(step, Stop) else "is between two generations"
