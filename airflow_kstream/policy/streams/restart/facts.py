"""Facts about a stream for pages, from an observation."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.names import shown_app_name
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import EVIDENCE_FOLDER
from airflow_kstream.model.streams.generation import Claim, ClaimFacts, GenerationFacts, Progress, TokenFacts
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import (
    DeclarationReport,
    DoneAction,
    JobReport,
    Phase,
    Report,
    Settled,
)
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.horizon.launch_tokens import issued_at
from airflow_kstream.policy.streams.pulse.heartbeat import heartbeat, stall_threshold
from airflow_kstream.policy.streams.restart.former_spec import SpecChange, failed_spec_words
from airflow_kstream.policy.streams.restart.freeze import freeze_of, is_well

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
    known = Progress(
        path=point.path,
        planned=at.offset,
        committed=at.commit,
        last_commit=point.last_commit,
        in_flight=point.offsets.get(at.offset) if at.offset > at.commit else None,
        stall_after=stall_threshold(policy, point),
        batches=tuple((number, round(seconds, _DIGITS)) for number, seconds in zip(both, taken, strict=True)),
    )
    return replace(known, unit=point.clock.unit) if point.clock else known


def report(
    spec: StreamSpec, observation: Observation, step: Settled, active_rm: str, done: tuple[DoneAction, ...] = ()
) -> Report:
    """Return an observation and its verdict as plain values for people, XCom and the UI."""
    app: Application | None = observation.current
    ended = step.phase in {Phase.STOPPED, Phase.ENDED}
    change = SpecChange(spec, observation)
    return Report(
        stream=spec.name,
        phase=step.phase,
        why=step.why,
        generation=observation.generation,
        job=JobReport(
            application=app.id if app else None,
            application_url=f"{active_rm}/cluster/app/{app.id}" if app else "",
            logs_url=app.logs_url or _attempt_page(active_rm, app) if app else "",
            succeeded=_succeeded(step, observation),
            diagnostics=app.diagnostics if app and ended else "",
        ),
        horizon=horizon_of(spec, observation),
        heartbeat=heartbeat(spec.heartbeat, observation),
        declaration=DeclarationReport(
            spec_differences=change.difference.fields,
            spec_doubt=change.difference.doubt,
            failed_spec=failed_spec_words(spec.name, change.failed),
        ),
        freeze="; ".join(filter(None, freeze_of(observation, horizon_of(spec, observation)))),
        done=done,
        app_name=shown_app_name(spec.app_name),
    )


def _succeeded(step: Settled, observation: Observation) -> bool:
    match step.phase:
        case Phase.ENDED:
            return bool(observation.current and observation.current.succeeded)
        case Phase.HELD:
            return is_well(observation)
        case _:
            return True


def _attempt_page(active_rm: str, app: Application) -> str:
    """Return the page that links the logs of the only attempt: it has an address before the attempt has a container."""
    return f"{active_rm}/cluster/appattempt/{app.id.replace('application', 'appattempt')}_000001"
