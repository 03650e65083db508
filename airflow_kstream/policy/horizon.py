"""When a generation's credentials stop serving it (Algorithm A), and when to act before that."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_kstream.model.generation import Claim
from airflow_kstream.model.horizon import Horizon, HorizonReason
from airflow_kstream.model.stream import RestartPolicy, StreamSpec

# Hadoop renews and expires by whole seconds of several clocks; a submission is cheaper than an argument about one.
_FORCE_SHARE = 0.1


def horizon(spec: StreamSpec, claim: Claim, now: datetime, time_left: timedelta | None) -> Horizon:
    """The earliest end of the claim's generation, with its reason.

    A job without a keytab ends at issue + max-lifetime however healthy it looks: an established RPC connection is
    not checked again, so only the deadline tells (Spark does not renew for proxy users, nor from a ticket in
    cluster mode). A job with a keytab makes its own tokens and has no end of this kind.
    """
    issue = issued_at(claim, spec.restart)
    ends = sorted(_ends(spec, claim, issue, now, time_left), key=lambda end: end[0])
    am_retry = issue + claim.lifetimes.max_lifetime if claim.lifetimes else None
    if not ends:
        return Horizon(HorizonReason.NONE, am_retry_unsafe_from=am_retry)
    hard, reason = ends[0]
    return _planned(Horizon(reason, hard, am_retry_unsafe_from=am_retry), issue, spec.restart, claim)


def issued_at(claim: Claim, policy: RestartPolicy) -> datetime:
    """A lower bound of the issue of the generation's tokens: never later than the truth.

    For a submitted generation the claim itself, written just before spark-submit. For an adopted one the
    ResourceManager's start time less a margin, because the client got its tokens before that.
    """
    if claim.adopted is None:
        return claim.claimed_at
    return (claim.adopted_started or claim.claimed_at) - policy.adopt_margin


def _ends(
    spec: StreamSpec, claim: Claim, issue: datetime, now: datetime, time_left: timedelta | None
) -> Iterator[tuple[datetime, HorizonReason]]:
    # What was submitted counts, not what is declared by now.
    if not claim.spec.credentials.renews_itself and claim.lifetimes:
        yield issue + claim.lifetimes.max_lifetime, HorizonReason.TOKEN_MAX_LIFETIME
    if time_left is not None:
        yield now + time_left, HorizonReason.YARN_LIFETIME
    if spec.restart.max_age is not None:
        yield issue + spec.restart.max_age, HorizonReason.POLICY_MAX_AGE


def _planned(horizon: Horizon, issue: datetime, policy: RestartPolicy, claim: Claim) -> Horizon:
    if horizon.hard is None:
        return horizon
    life = horizon.hard - issue
    force = horizon.hard - min(policy.force_margin, life * _FORCE_SHARE)
    plan = issue + life * (policy.plan_ratio - policy.jitter_ratio * _spread(claim.nonce))
    return replace(horizon, plan=min(plan, force), force=force)


def _spread(seed: str) -> float:
    """A number in [0, 1) that is the same each time this generation is looked at."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") / 2**32
