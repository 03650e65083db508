"""One round over many streams of a cluster: one ResourceManager request for all of them, and a verdict on each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.contract import newest_claim
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.generation_end import PastEnd
from airflow_kstream.model.heartbeat import Heartbeat, Pulse
from airflow_kstream.model.horizon import HorizonReason
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.persisted_spec import read_policies
from airflow_kstream.model.plain import plain
from airflow_kstream.model.plan import Phase, Settled, Step
from airflow_kstream.model.stream import OnChange, StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.freeze import freeze_of
from airflow_kstream.policy.streams.heartbeat import heartbeat, verified, waiting_in_queue
from airflow_kstream.policy.streams.reconcile import Mode, horizon_of, next_step
from airflow_kstream.policy.streams.unclaimed import lost_claim
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.brake import Brake
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.memory import Memory
from airflow_kstream.supervise.streams.observe import Prefetched, observe
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import StreamFolder

log = logging.getLogger(__name__)

_WATCHED = {*Phase} - {Phase.ENDED}
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Subject:
    """A stream to look at. `policies` are the declared ones, as plain data; without them the claim's hold."""

    name: str
    policies: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Verdict:
    """The verdict of a round on one stream. `step` is None when no conclusion was possible; `why` then tells why.

    `remaining` is the time to the horizon, None if there is none or it is not known: `horizon` tells which.
    `verified` is whether the generation has committed a batch of its own. `failure` is the error that the generation's
    driver reported. `shared` tells, without a conclusion, whether the cause may be the cluster's. `plan_in` is the time
    until the restart window begins, `commit_age` the time since the last commit, or since the claim if there never was
    one. `queued` is how long YARN has not started its application, `queued_too_long` whether that is an event. `word`
    is the time of a person's last word on it. `ends` are those of the last day that nobody planned, oldest first.
    `freeze` is the cluster's freeze in words, `freeze_warning` what falls into it; each is empty if there is none.
    """

    step: Step | None
    why: str
    generation: int = 0
    application: str | None = None
    heartbeat: Heartbeat | None = None
    remaining: timedelta | None = None
    horizon: HorizonReason | None = None
    verified: bool = False
    failure: str = ""
    shared: bool = False
    plan_in: timedelta | None = None
    commit_age: timedelta | None = None
    queued: timedelta | None = None
    queued_too_long: bool = False
    word: datetime | None = None
    ends: tuple[PastEnd, ...] = ()
    freeze: str = ""
    freeze_warning: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain data, durations in seconds."""
        return {
            "step": type(self.step).__name__.lower() if self.step else "unknown",
            "why": self.why,
            "generation": self.generation,
            "application": self.application,
            "pulse": self.heartbeat.pulse.value if self.heartbeat else None,
            "commit_age_seconds": _seconds(self.heartbeat.commit_age if self.heartbeat else None),
            "horizon_seconds": _seconds(self.remaining),
            "horizon": self.horizon.name.lower() if self.horizon else None,
            "verified": self.verified,
            "failure": self.failure,
            "followed_at": plain(self.step.until) if isinstance(self.step, Settled) else None,
            "breaker_open": self.breaker_open,
            "ends": plain(self.ends),
            "freeze": self.freeze,
            "freeze_warning": self.freeze_warning,
        }

    @property
    def breaker_open(self) -> bool:
        return isinstance(self.step, Settled) and self.step.breaker

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
    """A watcher with the rights of `session`'s identity, which only needs to view. Not thread-safe."""

    def __init__(self, session: ClusterSession, engine_of: Callable[[StreamSpec], Engine] = engine_of) -> None:
        self._session = session
        self._engine_of = engine_of
        self._claims: dict[str, Claim] = {}
        self._ends: dict[str, tuple[PastEnd, ...]] = {}
        self._memory: dict[str, Memory] = {}
        self._brake = Brake(session.hdfs, session.cluster.state_dir)

    def round(self, names: Collection[str]) -> Mapping[str, Verdict]:
        """Return a verdict for each stream, all at the end."""
        return dict(self.looks([Subject(name) for name in names]))

    def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]:
        """Yield each stream's verdict as soon as it is known; a subject is taken when its look begins.

        If a server is away there is no conclusion, never a dead stream. An error of any kind concerns one stream,
        unless it is the common listing, or the cluster's brake, that could not be read.
        """
        try:
            listed = self._session.yarn.applications(ALL_STREAMS_TAG)
            freeze = self._brake.newest()
        except Exception as error:
            failed = replace(_no_conclusion(error), shared=True)
            yield from ((subject.name, failed) for subject in subjects)
            return
        for subject in subjects:
            yield subject.name, self._verdict(subject, Prefetched(listed=listed, freeze=freeze))

    def _verdict(self, subject: Subject, common: Prefetched) -> Verdict:
        stream = StreamId(subject.name, self._session.cluster.state_dir)
        try:
            owners = StreamFolder(self._session.hdfs, stream).owners()
            claim = self._newest_claim(stream, frozenset(owners))
            spec = _watchable(stream, claim, subject.policies)
            known = replace(common, claim=claim, ends=self._ends.get(stream.name, ()), owners=owners)
            observation = observe(StreamRun(self._session, spec, self._engine_of(spec)), known)
            if (lost := lost_claim(observation)) and observation.current:
                return Verdict(None, f"{observation.current.id} runs, and {lost}")
            return self._judge(spec, observation)
        except Exception as error:
            return _no_conclusion(error)

    def _judge(self, spec: StreamSpec, observation: Observation) -> Verdict:
        claim, now = observation.claim, observation.now
        self._ends[spec.name] = observation.ends
        if claim:
            # Includes the facts that its file lacked, so they are looked up once.
            self._claims[spec.name] = claim
        looks = self._memory.setdefault(spec.name, Memory()).look(observation)
        step = next_step(spec, observation, looks, Mode.WATCH)
        ends = horizon_of(spec, observation)
        beat = heartbeat(spec.heartbeat, observation) if claim else None
        queued = waiting_in_queue(observation)
        freeze, warning = freeze_of(observation, ends)
        return Verdict(
            step=step,
            why=_why(step, claim),
            generation=observation.generation,
            application=observation.current.id if observation.current else None,
            heartbeat=beat,
            remaining=ends.remaining(now) if ends else None,
            horizon=ends.reason if ends else None,
            verified=verified(observation),
            failure=observation.failure,
            plan_in=ends.plan - now if ends and ends.plan and _lives(step) else None,
            commit_age=_commit_age(beat, claim, now),
            queued=queued,
            queued_too_long=queued is not None and queued > spec.heartbeat.accept_timeout,
            word=observation.desired.at,
            ends=tuple(end for end in observation.ends if end.at > now - _DAY),
            freeze=freeze,
            freeze_warning=warning,
        )

    def _newest_claim(self, stream: StreamId, names: frozenset[str]) -> Claim | None:
        claim = self._claims.get(stream.name)
        if claim is None or claim.generation != newest_claim(names):
            claim = StreamFolder(self._session.hdfs, stream).claim(names)
        if claim is not None:
            self._claims[stream.name] = claim
        return claim


def _lives(step: Step) -> bool:
    """Return whether a restart may come: a held or stopped stream has none to expect."""
    return not isinstance(step, Settled) or step.phase in {Phase.RUNNING, Phase.STARTING}


def _why(step: Step, claim: Claim | None) -> str:
    if claim is None:
        return step.why if isinstance(step, Settled) else "no generation of it was ever claimed"
    return f"{step.why}; {claim.doubt}" if claim.doubt and not claim.newer else step.why


def _no_conclusion(error: Exception) -> Verdict:
    """Return no conclusion. A server that does not answer one stream may answer no other either; a refusal is its own.

    A defect of ours in one look must not cost the other streams theirs.
    """
    if isinstance(error, KstreamError):
        return Verdict(None, str(error), shared=error.retryable)
    log.error("A look at a stream failed", exc_info=error)
    return Verdict(None, f"this look failed: {error!r}")


def _commit_age(beat: Heartbeat | None, claim: Claim | None, now: datetime) -> timedelta | None:
    if beat is None or claim is None or (beat.commit_age is None and beat.pulse is Pulse.UNKNOWN):
        return None
    return now - claim.claimed_at if beat.commit_age is None else beat.commit_age


def _watchable(stream: StreamId, claim: Claim | None, policies: Mapping[str, Any] | None) -> StreamSpec:
    """Return the claim's spec; without a readable one only the name, so that application and desired state are watched.

    Only the reconciler, which has the declaration, can tell whether the job changed; the policies do not concern the
    job, so the declared ones hold at once.
    """
    submitted = claim.spec if claim else None
    unread = StreamSpec(stream.name, TicketCredentials(), application="", checkpoints=())
    spec = submitted if isinstance(submitted, StreamSpec) else unread
    declared = read_policies(policies) if policies is not None else {}
    return replace(spec, on_change=OnChange.REPORT, **declared)
