"""One round over many streams of a cluster: one ResourceManager request for all of them, and a verdict on each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.plain import plain
from airflow_kstream.model.streams.blocked import Blocked
from airflow_kstream.model.streams.declarations import Place
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.generation_facts import GenerationFacts
from airflow_kstream.model.streams.heartbeat import Heartbeat, Pulse
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.looks import NOWHERE, Looks, Reached
from airflow_kstream.model.streams.notify import NotifyPolicy
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.persisted_spec import read_policies
from airflow_kstream.model.streams.plan import Phase, Settled, Step
from airflow_kstream.model.streams.policy_edit import PolicyEdit, mark_of
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import OnStall
from airflow_kstream.model.streams.token_push import Refreshed
from airflow_kstream.policy.streams.ends.after_end import waits_for_a_person
from airflow_kstream.policy.streams.ends.environment import trouble
from airflow_kstream.policy.streams.ends.unclaimed import lost_claim
from airflow_kstream.policy.streams.horizon.lost_logs import logs_end
from airflow_kstream.policy.streams.horizon.refresh import refreshed
from airflow_kstream.policy.streams.horizon.turns import may_wait
from airflow_kstream.policy.streams.horizon.uncounted_tokens import uncounted_tokens
from airflow_kstream.policy.streams.pulse.heartbeat import (
    heartbeat,
    overlong,
    overlong_batches,
    queued_since,
    verified,
    works,
)
from airflow_kstream.policy.streams.pulse.stalls import restarted_in_vain, why_left_alone
from airflow_kstream.policy.streams.restart.blocked import blocked
from airflow_kstream.policy.streams.restart.facts import facts_of
from airflow_kstream.policy.streams.restart.freeze import freeze_of
from airflow_kstream.policy.streams.restart.held import restarts_from
from airflow_kstream.policy.streams.restart.reconcile import Mode, horizon_of, next_step
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.brake import Brake
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.memory import Memory
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.blocked import blocked_now
from airflow_kstream.supervise.streams.look.observe import Prefetched, observe
from airflow_kstream.supervise.streams.look.renewals import Renewals
from airflow_kstream.supervise.streams.look.watched_claim import commit_age, told, watchable, watches_no_progress
from airflow_kstream.supervise.streams.look.yarn_clock import YarnClock
from airflow_kstream.supervise.streams.spark.engines import engine_of

log = logging.getLogger(__name__)

_WATCHED = {*Phase} - {Phase.ENDED}
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Subject:
    """A stream to look at. `policies` are the declared ones, as plain data; without them the claim's hold.

    They are of a declaration that was read at `declared`, if that is known. Edits of it that are kept for this
    `installation` replace them; None if no folder declares the stream. `edit` is the last one that was read before.
    """

    name: str
    policies: Mapping[str, Any] | None = None
    installation: str | None = None
    declared: datetime | None = None
    edit: PolicyEdit | None = None

    def by(self, edit: PolicyEdit | None) -> Mapping[str, Any] | None:
        """Return the policies that hold once this edit is known, as plain data; None for the claim's."""
        return edit.policies if edit and edit.replaces(self._mark, self.declared) else self.policies

    def knowing(self, edit: PolicyEdit | None) -> Subject:
        return self if edit == self.edit else replace(self, edit=edit)

    @cached_property
    def _mark(self) -> str | None:
        """Compute it once: each look asks."""
        return None if self.policies is None else mark_of(read_policies(self.policies))


@dataclass(frozen=True)
class Verdict:
    """The verdict of a round on one stream. `step` is None when no conclusion was possible; `why` then tells why.

    `lives` is whether its application does. `heartbeat` is None for a stream that declares no checkpoint or was never
    claimed. `remaining` is the time to the horizon, None if there is none or it is not known: `horizon` tells which.
    `verified` is whether the generation has committed a batch of its own; `works` is true as well after it ran for
    long, as one whose source brings nothing. `failure` is the error that the generation's driver reported. `shared`
    tells, without a conclusion, whether the cause may be the cluster's. `plan_in` is the time until the restart window
    begins, `commit_age` the time since the last commit, or since the claim if there never was one. `queued` is how long
    YARN has not started its application, by the ResourceManager's clock, `queued_too_long` whether that is an event.
    `word` is the time of a person's last word on it.
    `ends` are those of the last day that nobody planned, oldest first.
    `former_spec` is whether it runs in place of its declared spec, which failed.
    `environment` is what ended it without its own fault, a server's name or an error, until it works again.
    `waits_for_a_person` is for how long it has been dead because a person killed it, None if it is not.
    `reached` are the furthest positions that this watcher saw the generation reach: only it sees them for days.
    `freeze` is the cluster's freeze in words, `freeze_warning` what falls into it; each is empty if there is none.
    `start_may_wait` is how long a start that is due, now or after the freeze, may wait; None if none is due.
    `blocked` is what keeps it from its start or restart. `notify` is the notifier of its events.
    `uncounted` are the services whose tokens may end before the horizon. `token` is the other service's token that is
    the horizon, empty if it is none.
    `logs_left` is the time until its end would leave no aggregated logs, None if that is not known or never comes.
    `may_retry` is whether YARN may start its ApplicationMaster again, as that of an adopted job; not once the tokens of
    its launch ended, which its logs need, too.
    `stall` is the batch that hangs, if its task is to examine it: only one who looks again knows of any.
    `refreshed` is how its tokens stand if fresh ones are pushed to it, else None.
    `facts` are what pages draw of it, None without a conclusion.
    `foretold` is what the doctor expects for it, each with its date; a watcher doesn't ask, and knows none.
    `edit` is the last edit of the declaration's policies, whether it holds or not; None if none is kept. Without a
    conclusion it may not have been read.
    `strangers_files` is what others wrote into its folder, with their names: it counts for nothing. `unproven` is the
    owner of its folder where nobody could prove yet that the stream runs as that user, else empty.
    """

    step: Step | None
    why: str
    generation: int = 0
    application: str | None = None
    lives: bool = False
    heartbeat: Heartbeat | None = None
    remaining: timedelta | None = None
    horizon: HorizonReason | None = None
    verified: bool = False
    works: bool = False
    failure: str = ""
    shared: bool = False
    plan_in: timedelta | None = None
    commit_age: timedelta | None = None
    queued: timedelta | None = None
    queued_too_long: bool = False
    word: datetime | None = None
    ends: tuple[PastEnd, ...] = ()
    former_spec: bool = False
    environment: str = ""
    waits_for_a_person: timedelta | None = None
    reached: Reached = NOWHERE
    freeze: str = ""
    freeze_warning: str = ""
    start_may_wait: timedelta | None = None
    blocked: Blocked | None = None
    notify: NotifyPolicy | None = None
    uncounted: tuple[str, ...] = ()
    token: str = ""
    logs_left: timedelta | None = None
    may_retry: bool = False
    stall: Stall | None = None
    refreshed: Refreshed | None = None
    facts: GenerationFacts | None = None
    foretold: tuple[str, ...] = ()
    strangers_files: Mapping[str, str] = field(default_factory=dict)
    unproven: str = ""
    edit: PolicyEdit | None = None

    @property
    def unread(self) -> bool:
        """Return whether nothing could be read of the stream: its generation 0 is none."""
        return self.step is None and not self.generation

    def to_json(self) -> dict[str, Any]:
        """Return plain data, durations in seconds."""
        return {
            "step": type(self.step).__name__.lower() if self.step else "unknown",
            "why": self.why,
            "generation": None if self.unread else self.generation,
            "application": self.application,
            "pulse": self.heartbeat.pulse.value if self.heartbeat else None,
            "commit_age_seconds": _seconds(self.heartbeat.commit_age if self.heartbeat else None),
            "horizon_seconds": _seconds(self.remaining),
            "horizon": self.horizon.name.lower() if self.horizon else None,
            "horizon_token": self.token,
            "uncounted": list(self.uncounted),
            "logs_seconds": _seconds(self.logs_left),
            "may_retry": self.may_retry,
            "refreshed": self.refreshed.to_json() if self.refreshed else None,
            "verified": self.verified,
            "failure": self.failure,
            "followed_at": plain(self.step.until) if isinstance(self.step, Settled) else None,
            "breaker_open": self.breaker_open,
            "blocked": plain(self.blocked),
            "ends": plain(self.ends),
            "former_spec": self.former_spec,
            "environment": self.environment,
            "waits_for_a_person_seconds": _seconds(self.waits_for_a_person),
            "freeze": self.freeze,
            "freeze_warning": self.freeze_warning,
            "foretold": list(self.foretold),
            "strangers_files": dict(self.strangers_files),
            "unproven": self.unproven,
        }

    @property
    def breaker_open(self) -> bool:
        return isinstance(self.step, Settled) and self.step.breaker

    @property
    def reminders(self) -> int:
        """Return how often somebody has to have been told by now that the stream waits for a person: at once, daily."""
        return 0 if self.waits_for_a_person is None else 1 + self.waits_for_a_person // _DAY

    @property
    def horizon_known(self) -> bool:
        return self.horizon is not None and self.horizon is not HorizonReason.UNKNOWN

    @property
    def calls_for_action(self) -> bool:
        """Return whether the stream's task has to act; without a conclusion, time decides and not the verdict."""
        if self.step is None:
            return False
        return not (isinstance(self.step, Settled) and self.step.phase in _WATCHED)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


class Watch:
    """A watcher with the rights of `session`'s identity, which only needs to view. Not thread-safe.

    `again` is whether it looks again: then it calls a stall only what it found so twice. `reads_logs` is False for a
    look at so many streams that the logs of their drivers are not read.
    """

    def __init__(
        self,
        session: ClusterSession,
        engine_of: Callable[[StreamSpec], Engine] = engine_of,
        *,
        again: bool = False,
        reads_logs: bool = True,
    ) -> None:
        self._session = session
        self._again = again
        self._engine_of = engine_of
        self._claims: dict[str, Claim] = {}
        self._ends: dict[str, tuple[PastEnd, ...]] = {}
        self._memory: dict[str, Memory] = {}
        self._clock = YarnClock(session.yarn)
        self._renewals = Renewals(session, at_once=not again) if reads_logs else None
        self._brake = Brake(session)

    def round(self, names: Collection[str]) -> Mapping[str, Verdict]:
        """Return a verdict for each stream, all at the end."""
        return dict(self.looks([Subject(name) for name in names]))

    def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]:
        """Yield each stream's verdict as soon as it is known; a subject is taken when its look begins.

        If a server is away there is no conclusion, never a dead stream. An error of any kind concerns one stream,
        unless it is the common listing, or the cluster's brake, that could not be read. NameNodes that fall silent in
        the middle of a round are not asked once for each stream that is left.
        """
        self._clock.begin_round()
        left = iter(subjects)
        try:
            listed = self._session.yarn.applications(ALL_STREAMS_TAG)
            common = self._common(listed)
            for subject in left:
                verdict = self._verdict(subject, common)
                yield subject.name, verdict
                if verdict.shared:
                    common = self._common(listed)
        except Exception as error:
            failed = replace(_no_conclusion(error), shared=True)
            yield from ((subject.name, failed) for subject in left)

    def _common(self, listed: tuple[Application, ...]) -> Prefetched:
        """Look at what concerns all streams: one listing of the state_dir serves a round."""
        listing = self._session.state.look()
        return Prefetched(listed=listed, listing=listing, freeze=self._brake.newest(listing))

    def _verdict(self, subject: Subject, common: Prefetched) -> Verdict:
        edit: PolicyEdit | None = None
        try:
            edit = self._edit(subject)
            verdict = self._seen(subject.name, subject.by(edit), common)
        except Exception as error:
            verdict = _no_conclusion(error)
        return replace(verdict, edit=edit)

    def _edit(self, subject: Subject) -> PolicyEdit | None:
        if subject.installation is None:
            return None
        place = Place(subject.installation, self._session.cluster.name)
        kept = self._session.declarations.followed(place)
        return subject.edit if kept is None else kept.streams.get(subject.name)

    def _seen(self, name: str, policies: Mapping[str, Any] | None, common: Prefetched) -> Verdict:
        stream = StreamId(name, self._session.cluster.state_dir)
        authored = StreamFolder(self._session, stream).authored()
        claim = self._newest_claim(stream, frozenset(authored.counted))
        spec = watchable(stream, claim, policies)
        known = replace(common, claim=claim, ends=self._ends.get(stream.name, ()), authored=authored)
        engine = self._engine_of(spec)
        observation = observe(StreamRun(self._session, spec, engine, declared=False), known)
        if self._renewals:
            observation = self._renewals.known(observation, engine)
        if (lost := lost_claim(observation)) and observation.current:
            return Verdict(None, f"{observation.current.id} runs, and {lost}")
        return replace(self._judge(spec, observation), unproven=authored.unproven)

    def _judge(self, spec: StreamSpec, observation: Observation) -> Verdict:
        claim, now = observation.claim, observation.now
        self._ends[spec.name] = observation.ends
        if claim:
            # Includes the facts that its file lacked, so they are looked up once.
            self._claims[spec.name] = claim
        looks = self._memory_of(observation).look(observation, overlong(spec.heartbeat, observation))
        step = next_step(spec, observation, looks, Mode.WATCH)
        ends = horizon_of(spec, observation)
        confirmed = looks if self._again else None
        beat = heartbeat(spec.heartbeat, observation, confirmed) if claim and not watches_no_progress(claim) else None
        stall, beat = _stalled(spec, observation, confirmed, beat)
        since = queued_since(observation)
        queued = self._clock.time_since(since) if since else None
        freeze, warning = freeze_of(observation, ends)
        return Verdict(
            step=step,
            why=told(step, claim),
            generation=observation.generation,
            application=observation.current.id if observation.current else None,
            lives=bool(observation.current and observation.current.alive),
            heartbeat=beat,
            remaining=ends.remaining(now) if ends else None,
            horizon=ends.reason if ends else None,
            verified=verified(observation),
            works=works(spec.failure, observation),
            notify=spec.notify,
            failure=observation.failure,
            plan_in=_plan_in(step, ends, observation),
            commit_age=commit_age(beat, claim, now),
            queued=queued,
            queued_too_long=queued is not None and queued > spec.heartbeat.accept_timeout,
            word=observation.desired.at,
            ends=tuple(end for end in observation.ends if end.at > now - _DAY),
            former_spec=claim is not None and claim.instead_of is not None,
            environment=trouble(spec.failure, observation),
            waits_for_a_person=waits_for_a_person(observation, step),
            reached=Reached(observation.generation, looks.furthest, observation.nonce),
            freeze=freeze,
            freeze_warning=warning,
            blocked=blocked(step, observation, blocked_now(self._session, step, observation, now, stalled=bool(stall))),
            start_may_wait=may_wait(step, observation, ends),
            uncounted=self._uncounted(spec, claim) if claim else (),
            token=ends.token if ends else "",
            logs_left=self._logs_left(spec, observation),
            may_retry=claim is not None and not claim.submitted_by_us,
            refreshed=refreshed(spec, observation, ends),
            facts=facts_of(spec, observation, ends),
            strangers_files=observation.strangers_files,
            stall=stall if isinstance(step, Settled) and step.phase is Phase.RUNNING else None,
        )

    def _logs_left(self, spec: StreamSpec, observation: Observation) -> timedelta | None:
        privileged = self._session.cluster.proxy_user_privileges
        ends = logs_end(spec.restart, observation.claim, renewed=observation.renewed, privileged=privileged)
        return ends - observation.now if ends and observation.any_alive else None

    def _uncounted(self, spec: StreamSpec, claim: Claim) -> tuple[str, ...]:
        cluster, tokens = self._session.cluster, claim.tokens or ()
        return tuple(each.service for each in uncounted_tokens(spec, cluster.spark_conf, cluster.default_fs, tokens))

    def _memory_of(self, observation: Observation) -> Memory:
        """Return what this watcher remembers of the stream, with what supervisors noted of its generation."""
        stream, number = observation.stream, observation.generation
        memory = self._memory.setdefault(stream.name, Memory())
        if memory.generation != number:
            # A note that can't be read is the supervisors' trouble: the stream is watched without it.
            with suppress(InvalidInput):
                memory.recall(number, StreamFolder(self._session, stream).reached(number, observation.files))
        return memory

    def _newest_claim(self, stream: StreamId, names: frozenset[str]) -> Claim | None:
        claim = StreamFolder(self._session, stream).claim(names, self._claims.get(stream.name))
        if claim is not None:
            self._claims[stream.name] = claim
        return claim


def _stalled(
    spec: StreamSpec, observation: Observation, looks: Looks | None, beat: Heartbeat | None
) -> tuple[Stall | None, Heartbeat | None]:
    """Return the batch that its task is to examine, and the heartbeat with what the stream's rules have against it."""
    if looks is None or beat is None or spec.heartbeat.on_stall is not OnStall.RESTART:
        return None, beat
    if beat.pulse is Pulse.START_STALLED and (vain := restarted_in_vain(observation)):
        return None, replace(beat, why=f"{beat.why}; {vain}")
    if beat.pulse is not Pulse.STALLED:
        return None, beat
    stalls = overlong_batches(spec.heartbeat, observation, looks)
    alone = [(stall, why_left_alone(spec, observation, stall)) for stall in stalls]
    free = next((stall for stall, why in alone if not why), None)
    if free or not alone:
        return free, beat
    return None, replace(beat, why=f"{beat.why}; it is not restarted: {alone[0][1]}")


def _plan_in(step: Step, ends: Horizon | None, observation: Observation) -> timedelta | None:
    if ends is None or ends.plan is None or not _lives(step):
        return None
    return restarts_from(ends.plan, observation.desired.at) - observation.now


def _lives(step: Step) -> bool:
    """Return whether a restart may come: a held or stopped stream has none to expect."""
    return not isinstance(step, Settled) or step.phase in {Phase.RUNNING, Phase.STARTING}


def _no_conclusion(error: Exception) -> Verdict:
    """Return no conclusion. A server that does not answer one stream may answer no other either; a refusal is its own.

    A defect of ours in one look must not cost the other streams theirs.
    """
    if isinstance(error, KstreamError):
        return Verdict(None, str(error), shared=error.retryable)
    log.error("A look at a stream failed", exc_info=error)
    return Verdict(None, f"this look failed: {error!r}")
