"""One round over many streams of a cluster: one ResourceManager request for all of them, and a verdict on each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.names import shown_app_name
from airflow_kstream.model.streams.declarations import DeclarationFolder, PolicyEdit, mark_of, read_policies
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.looks import Looks, ReachedPositions
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Phase, Settled, Step
from airflow_kstream.model.streams.stall import Heartbeat, Pulse, Stall
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import OnStall
from airflow_kstream.policy.streams.ends.after_end import trouble, waits_for_a_person
from airflow_kstream.policy.streams.ends.starvation import starving_environment
from airflow_kstream.policy.streams.ends.unclaimed import lost_claim
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.horizon.launch_tokens import logs_end
from airflow_kstream.policy.streams.horizon.refresh import refreshed
from airflow_kstream.policy.streams.horizon.start_pacing import may_wait
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
from airflow_kstream.policy.streams.restart.freeze import freeze_of, restarts_from
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.memory import SignMemory
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.blocked import blocked_now
from airflow_kstream.supervise.streams.look.observe import Prefetched, observe
from airflow_kstream.supervise.streams.look.renewals import Renewals, YarnClock
from airflow_kstream.supervise.streams.look.verdict import (
    CredentialVerdict,
    PastVerdict,
    PeopleVerdict,
    ProgressVerdict,
    Seen,
    Verdict,
)
from airflow_kstream.supervise.streams.look.watched_claim import commit_age, told, watchable, watches_no_progress

log = logging.getLogger(__name__)

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
        self._memory: dict[str, SignMemory] = {}
        self._clock = YarnClock(session.yarn)
        self._renewals = Renewals(session, at_once=not again) if reads_logs else None
        self._freezes = FreezeStore(session)

    def round(self, names: Collection[str]) -> Mapping[str, Verdict]:
        """Return a verdict for each stream, all at the end."""
        return dict(self.looks([Subject(name) for name in names]))

    def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]:
        """Yield each stream's verdict as soon as it is known; a subject is taken when its look begins.

        If a server is away there is no conclusion, never a dead stream. An error of any kind concerns one stream,
        unless it is the common listing, or the cluster's freeze, that could not be read. NameNodes that fall silent in
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
        return Prefetched(listed=listed, listing=listing, freeze=self._freezes.newest(listing))

    def _verdict(self, subject: Subject, common: Prefetched) -> Verdict:
        edit: PolicyEdit | None = None
        try:
            edit = self._edit(subject)
            verdict = self._seen(subject.name, subject.by(edit), common)
        except Exception as error:
            verdict = _no_conclusion(error)
        return replace(verdict, people=replace(verdict.people, edit=edit))

    def _edit(self, subject: Subject) -> PolicyEdit | None:
        if subject.installation is None:
            return None
        place = DeclarationFolder(subject.installation, self._session.cluster.name)
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
        verdict = self._judge(spec, observation)
        return replace(
            verdict,
            people=replace(verdict.people, unproven=authored.unproven),
            seen=Seen(spec, observation.claim, observation.now, observation.checkpoints, authored.speakers),
        )

    def _judge(self, spec: StreamSpec, observation: Observation) -> Verdict:
        claim, now = observation.claim, observation.now
        self._ends[spec.name] = observation.folder.ends
        if claim:
            # Includes the facts that its file lacked, so they are looked up once.
            self._claims[spec.name] = claim
        looks = self._memory_of(observation).look(observation, overlong(spec.heartbeat, observation))
        step = next_step(spec, observation, looks, Mode.WATCH)
        ends = horizon_of(spec, observation)
        confirmed = looks if self._again else None
        beat = heartbeat(spec.heartbeat, observation, confirmed) if claim and not watches_no_progress(claim) else None
        stall, beat = _stalled(spec, observation, confirmed, beat)
        return Verdict(
            step=step,
            why=told(step, claim),
            generation=observation.generation,
            application=observation.current.id if observation.current else None,
            lives=bool(observation.current and observation.current.alive),
            facts=replace(facts_of(spec, observation, ends), processes=self._engine_of(spec).words.processes),
            credentials=self._credentials(spec, observation, step, ends),
            progress=replace(
                self._progress(spec, observation, beat),
                reached=ReachedPositions(observation.generation, looks.furthest, observation.nonce),
                stall=stall if isinstance(step, Settled) and step.phase is Phase.RUNNING else None,
            ),
            past=PastVerdict(
                ends=tuple(end for end in observation.folder.ends if end.at > now - _DAY),
                failure=observation.driver.failure,
                former_spec=claim is not None and claim.instead_of is not None,
                environment=trouble(spec.failure, observation) or _starved_by(observation, beat),
                waits_for_a_person=waits_for_a_person(observation, step),
                start_may_wait=may_wait(step, observation, ends),
                blocked=blocked(
                    step, observation, blocked_now(self._session, step, observation, now, stalled=bool(stall))
                ),
            ),
            people=_people(spec, observation, ends),
        )

    def _credentials(
        self, spec: StreamSpec, observation: Observation, step: Step, ends: Horizon | None
    ) -> CredentialVerdict:
        claim = observation.claim
        return CredentialVerdict(
            remaining=ends.remaining(observation.now) if ends else None,
            horizon=ends.reason if ends else None,
            token=ends.token if ends else "",
            uncounted=self._uncounted(spec, claim) if claim else (),
            replacement=ends.replacement if ends else None,
            plan_in=_plan_in(step, ends, observation),
            refreshed=refreshed(spec, observation, ends),
            logs_left=self._logs_left(spec, observation),
            may_retry=claim is not None and not claim.submitted_by_us,
        )

    def _progress(self, spec: StreamSpec, observation: Observation, beat: Heartbeat | None) -> ProgressVerdict:
        since = queued_since(observation)
        queued = self._clock.time_since(since) if since else None
        return ProgressVerdict(
            heartbeat=beat,
            verified=verified(observation),
            works=works(spec.failure, observation),
            commit_age=commit_age(beat, observation.claim, observation.now),
            queued=queued,
            queued_too_long=queued is not None and queued > spec.heartbeat.accept_timeout,
        )

    def _logs_left(self, spec: StreamSpec, observation: Observation) -> timedelta | None:
        privileged = self._session.cluster.client.proxy_user_privileges
        ends = logs_end(spec.restart, observation.claim, renewed=observation.credentials.renewed, privileged=privileged)
        return ends - observation.now if ends and observation.any_alive else None

    def _uncounted(self, spec: StreamSpec, claim: Claim) -> tuple[str, ...]:
        found = self._engine_of(spec).uncounted_tokens(self._session.cluster, spec, claim.credentials.tokens or ())
        return tuple(each.service for each in found)

    def _memory_of(self, observation: Observation) -> SignMemory:
        """Return what this watcher remembers of the stream, with what supervisors noted of its generation."""
        stream, number = observation.stream, observation.generation
        memory = self._memory.setdefault(stream.name, SignMemory())
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


def _starved_by(observation: Observation, beat: Heartbeat | None) -> str:
    return starving_environment(observation) if beat is not None and beat.starving else ""


def _people(spec: StreamSpec, observation: Observation, ends: Horizon | None) -> PeopleVerdict:
    freeze, warning = freeze_of(observation, ends)
    return PeopleVerdict(
        word=observation.desired.at,
        freeze=freeze,
        freeze_warning=warning,
        notify=spec.notify,
        app_name=shown_app_name(spec.app_name),
        strangers_files=observation.folder.strangers,
    )


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
