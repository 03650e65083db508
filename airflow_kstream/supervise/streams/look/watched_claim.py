"""What a claim tells a watcher, which has no declaration: the spec to watch, and words and times for people. What its
file lacks about its tokens is learned from the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.declarations import read_policies
from airflow_kstream.model.streams.generation import Claim, Missing, StreamId
from airflow_kstream.model.streams.plan import Settled, Step
from airflow_kstream.model.streams.stall import Heartbeat, Pulse
from airflow_kstream.model.streams.stream import OnChange, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession


def watchable(stream: StreamId, claim: Claim | None, policies: Mapping[str, Any] | None) -> StreamSpec:
    """Return the claim's spec; without a readable one only the name, so that application and desired state are watched.

    It has no brokers where no supervisor kept a copy of the declaration. Only the reconciler, which has the
    declaration, can tell whether the job changed; the policies do not concern the job, so the declared ones hold at
    once.
    """
    submitted = claim.spec if claim else None
    unread = StreamSpec(stream.name, TicketCredentials(), application="", checkpoints=())
    spec = submitted if isinstance(submitted, StreamSpec) else unread
    if claim and not claim.file.copied:
        # Its own job may have written it, and we log in to the brokers that it names: they could pass our ticket on.
        spec = replace(spec, kafka=KafkaPolicy())
    declared = read_policies(policies) if policies is not None else {}
    return replace(spec, on_change=OnChange.REPORT, **declared)


def watches_no_progress(claim: Claim) -> bool:
    """Return whether its declaration says so; what an unreadable one says is not known."""
    return isinstance(claim.spec, StreamSpec) and not claim.spec.checkpoints


def told(step: Step, claim: Claim | None) -> str:
    """Return why the stream stands as it does, with what its claim leaves in doubt."""
    if claim is None:
        return step.why if isinstance(step, Settled) else "no generation of it was ever claimed"
    more = [claim.doubt] if claim.doubt and not claim.foreign else []
    more += [claim.instead_of.words] if claim.instead_of else []
    return "; ".join([step.why, *more])


def commit_age(beat: Heartbeat | None, claim: Claim | None, now: datetime) -> timedelta | None:
    """Return the time since the last commit, or since the claim if there never was one; None if it is not known."""
    if beat is None or claim is None or (beat.commit_age is None and beat.pulse is Pulse.UNKNOWN):
        return None
    return now - claim.claimed_at if beat.commit_age is None else beat.commit_age


def completed(session: ClusterSession, claim: Claim, app: Application | None) -> Claim:
    """Fill in the lifetimes that the cluster grants now and the application's start, where the claim lacks them.

    Facts that can't be learned now stay unknown. A claim of a newer version is returned unchanged.
    """
    if claim.foreign or (claim.submitted_by_us and Missing.LIFETIMES not in claim.file.missing):
        return claim
    started = claim.adoption.started or (app.started if app else None)
    claim = replace(claim, adoption=replace(claim.adoption, started=started))
    if claim.credentials.lifetimes or not (app and app.alive):
        return claim
    with suppress(KstreamError):
        granted = learn_lifetimes(session.hdfs, session.identity)
        claim = replace(claim, credentials=replace(claim.credentials, lifetimes=granted))
    return claim
