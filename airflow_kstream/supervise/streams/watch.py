"""One round over many streams of a cluster: one ResourceManager request for all of them, and a verdict on each."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.application import Application
from airflow_kstream.model.contract import newest_claim, newest_desired
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.heartbeat import Heartbeat
from airflow_kstream.model.horizon import HorizonReason
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.plan import Phase, Settled, Step
from airflow_kstream.model.stream import OnChange, StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.heartbeat import heartbeat, verified
from airflow_kstream.policy.streams.reconcile import Mode, horizon_of, next_step
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.failures import failure_of
from airflow_kstream.supervise.streams.observe import Prefetched, observe
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import StreamFolder

# Seconds. The task that is then woken acts as the stream itself, and may see what the watcher may not.
_REFUSED_TOO_LONG = 300.0
_WATCHED = {Phase.RUNNING, Phase.STARTING, Phase.HELD}


@dataclass(frozen=True)
class Verdict:
    """The verdict of a round on one stream. `step` is None when no conclusion was possible; `why` then tells why.

    `remaining` is the time to the horizon, None if there is none or it is not known: `horizon` tells which.
    `verified` is whether the generation has committed a batch of its own. `blind` is True once the servers have
    refused the watcher for so long that somebody with the stream's own rights has to look. `failure` is the error
    that the generation's driver reported.
    """

    step: Step | None
    why: str
    generation: int = 0
    application: str | None = None
    heartbeat: Heartbeat | None = None
    remaining: timedelta | None = None
    horizon: HorizonReason | None = None
    verified: bool = False
    blind: bool = False
    failure: str = ""

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
        }

    @property
    def horizon_known(self) -> bool:
        return self.horizon is not None and self.horizon is not HorizonReason.UNKNOWN

    @property
    def calls_for_action(self) -> bool:
        if self.step is None:
            return self.blind
        return not (isinstance(self.step, Settled) and self.step.phase in _WATCHED)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


class Watch:
    """A watcher with the rights of `session`'s identity, which only needs to view. Not thread-safe."""

    def __init__(self, session: ClusterSession, engine_of: Callable[[StreamSpec], Engine] = engine_of) -> None:
        self._session = session
        self._engine_of = engine_of
        self._claims: dict[str, Claim] = {}
        self._since: dict[str, datetime] = {}
        self._refused: dict[str, float] = {}

    def round(self, names: Collection[str]) -> Mapping[str, Verdict]:
        """Return a verdict for each stream. If a server is away there is no conclusion, never a dead stream."""
        try:
            listed = self._session.yarn.applications(ALL_STREAMS_TAG)
        except KstreamError as error:
            return {name: self._no_conclusion(name, error) for name in names}
        return {name: self._verdict(name, listed) for name in names}

    def _verdict(self, name: str, listed: tuple[Application, ...]) -> Verdict:
        stream = StreamId(name, self._session.cluster.state_dir)
        try:
            owners = StreamFolder(self._session.hdfs, stream).owners()
            claim = self._newest_claim(stream, frozenset(owners))
            if claim is None and newest_desired(owners) is None:
                return Verdict(None, f"no generation of {name} was ever claimed")
            verdict = self._judge(stream, claim, Prefetched(claim, listed, owners))
        except KstreamError as error:
            return self._no_conclusion(name, error)
        self._refused.pop(name, None)
        return verdict

    def _no_conclusion(self, name: str, error: KstreamError) -> Verdict:
        """Return no conclusion. A server that is away may come back; a refusal lasts, so it becomes `blind` in time."""
        if error.retryable:
            return Verdict(None, str(error))
        since = self._refused.setdefault(name, time.monotonic())
        return Verdict(None, str(error), blind=time.monotonic() - since > _REFUSED_TOO_LONG)

    def _judge(self, stream: StreamId, claim: Claim | None, known: Prefetched) -> Verdict:
        # Only the reconciler, which has the declaration, can tell whether it changed.
        spec = replace(_watchable(stream, claim), on_change=OnChange.REPORT)
        observation = observe(StreamRun(self._session, spec, self._engine_of(spec)), known)
        if observation.claim:
            # Includes the facts that its file lacked, so they are looked up once.
            self._claims[stream.name] = observation.claim
        step = next_step(spec, observation, self._since.setdefault(stream.name, observation.now), Mode.WATCH)
        ends = horizon_of(spec, observation)
        return Verdict(
            step=step,
            why=f"{step.why}; {claim.doubt}" if claim and claim.doubt and not claim.newer else step.why,
            generation=observation.generation,
            application=observation.current.id if observation.current else None,
            heartbeat=heartbeat(spec.heartbeat, observation),
            remaining=ends.remaining(observation.now) if ends else None,
            horizon=ends.reason if ends else None,
            verified=verified(observation),
            failure=failure_of(self._session.hdfs, stream, observation),
        )

    def _newest_claim(self, stream: StreamId, names: frozenset[str]) -> Claim | None:
        claim = self._claims.get(stream.name)
        if claim is None or claim.generation != newest_claim(names):
            claim = StreamFolder(self._session.hdfs, stream).claim(names)
        if claim is not None:
            self._claims[stream.name] = claim
        return claim


def _watchable(stream: StreamId, claim: Claim | None) -> StreamSpec:
    """Return the claim's spec; if unreadable, only its name, so that its application and desired state are watched."""
    if claim is None or isinstance(claim.spec, UnknownSpec):
        return StreamSpec(stream.name, TicketCredentials(), application="", checkpoints=())
    return claim.spec
