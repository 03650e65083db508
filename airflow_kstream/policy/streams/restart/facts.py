"""Facts about a stream for pages, from an observation."""

from __future__ import annotations

from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import EVIDENCE_FOLDER
from airflow_kstream.model.streams.generation import Claim, ClaimFacts, GenerationFacts, Progress, TokenFacts
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy
from airflow_kstream.policy.streams.horizon.horizon import issued_at
from airflow_kstream.policy.streams.pulse.heartbeat import stall_threshold

# Enough to see a trend in, and few enough for a row that is stored of each stream.
_BATCHES = 60
_DIGITS = 3


def facts_of(spec: StreamSpec, observation: Observation, ends: Horizon | None) -> GenerationFacts:
    """Return what pages show of the newest generation, beyond the verdict on it."""
    claim = observation.claim
    lifetimes = claim.credentials.lifetimes if claim else None
    return GenerationFacts(
        generation=observation.generation,
        claim=ClaimFacts(
            claimed=claim.claimed_at if claim else None,
            claimed_by=claim.claimed_by if claim else "",
            reason=claim.reason if claim else "",
            adopted=bool(claim and claim.adoption.application),
        ),
        tokens=TokenFacts(
            credentials=_credentials(claim),
            issued=issued_at(claim, spec.restart) if claim else None,
            renew_interval=lifetimes.renew_interval if lifetimes else None,
            max_lifetime=lifetimes.max_lifetime if lifetimes else None,
        ),
        horizon=ends,
        desired=observation.desired,
        evidence=f"{observation.stream.folder}/{EVIDENCE_FOLDER}",
        stop_waits=spec.stop.marker_grace + spec.stop.quiescent_wait,
        progress=tuple(_progress(spec.heartbeat, point) for point in observation.checkpoints),
    )


def _credentials(claim: Claim | None) -> str:
    return claim.spec.credentials.mode if claim and isinstance(claim.spec, StreamSpec) else ""


def _progress(policy: HeartbeatPolicy, point: Checkpoint) -> Progress:
    # What comes by the clock is planned when it is complete: nothing tells how long it took.
    both = [] if point.clock else sorted(point.offsets.keys() & point.commits.keys())[-_BATCHES:]
    taken = ((point.commits[number] - point.offsets[number]).total_seconds() for number in both)
    at = point.position
    return Progress(
        path=point.path,
        planned=at.offset,
        committed=at.commit,
        last_commit=point.last_commit,
        in_flight=point.offsets.get(at.offset) if at.offset > at.commit else None,
        stall_after=stall_threshold(policy, point),
        batches=tuple((number, round(seconds, _DIGITS)) for number, seconds in zip(both, taken, strict=True)),
    )
