"""The moment at which a generation's credentials stop serving it (Algorithm A), and when to act before that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO
from airflow_kstream.model.streams.generation import Claim, Missing
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.persisted_spec import UnknownSpec
from airflow_kstream.model.streams.renewal import TokenRound
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.policy.streams.horizon.launch_tokens import is_pushed, known_lives
from airflow_kstream.policy.streams.horizon.refresh import Refresh
from airflow_kstream.policy.streams.horizon.renewal_readings import last_round
from airflow_kstream.policy.streams.horizon.rotation import RenewalRounds, key_loss
from airflow_kstream.policy.streams.horizon.spread import spread

# Hadoop renews and expires by whole seconds of several clocks; a submission is cheaper than a dispute over one.
_FORCE_SHARE = 0.1
# When its driver would have made its next round, most of the tokens' life is past.
_LATE_PLAN = 0.9
# Where fresh tokens come before it, a planned restart waits for half of the time that they leave.
_AFTER_PUSHES = 0.5
_OF_TOKENS = {HorizonReason.TOKEN_MAX_LIFETIME, HorizonReason.NOT_RENEWED, HorizonReason.NOT_PUSHED}


@dataclass(frozen=True)
class _End:
    """An end of the credentials, the moment since when it holds, and the share of that time at which we plan to act."""

    hard: datetime
    reason: HorizonReason
    since: datetime
    plan_ratio: float
    token: str = ""


def horizon(
    policy: RestartPolicy,
    claim: Claim,
    now: datetime,
    time_left: timedelta | None,
    key_at_hand: KeyVersion | None = None,
    renewal_ratio: float = USUAL_RENEWAL_RATIO,
    *,
    renewed: bool = True,
    rounds: tuple[TokenRound, ...] = (),
    renew_interval: timedelta | None = None,
    refresh: Refresh | None = None,
) -> Horizon:
    """Return the earliest end of the claim's generation, with its reason.

    A job without a keytab ends at issue + max-lifetime even if it looks healthy: an established RPC connection is not
    checked again, so only the deadline tells (Spark does not renew for proxy users, nor from a ticket in cluster
    mode). A job with a keytab gets its own tokens. It has no such end until `key_at_hand`, the key that its successor
    would start with, differs from the key it was submitted with. If the claim does not tell enough, the horizon is
    UNKNOWN, and we act at the earliest end that is known. Tokens that nobody renews (`renewed` is False) end after one
    renew interval. A driver with a keytab may have made the last of its `rounds` of tokens without a word of it, or
    count on tokens that live for longer than those it gets now (`renew_interval`). Tokens that were pushed count
    once the driver has confirmed them (`refresh`), and take the place of those of the launch. Tokens of other
    services count as far as the client told their ends: nobody pushes those of anything but HDFS and a KMS.
    """
    issue = issued_at(claim, policy)
    ends = [
        *_token_ends(policy, claim, issue, refresh, renewed=renewed),
        *_limits(policy, claim, issue, now, time_left),
        *_rotation(policy, claim, issue, now, key_at_hand, renewal_ratio, rounds),
        *_renewal_ended(claim, issue, rounds, renewal_ratio),
        *_shorter_tokens(policy, claim, rounds[-1].at if rounds else issue, now, renew_interval, renewal_ratio),
    ]
    unknown = _unknown(claim, issue, key_at_hand)
    if not ends:
        return Horizon(HorizonReason.UNKNOWN if unknown else HorizonReason.NONE)
    end = min(ends, key=lambda end: end.hard)
    force, plan = _planned(end, policy, claim)
    if unknown:
        return Horizon(HorizonReason.UNKNOWN, plan=plan, force=force)
    if end.reason is HorizonReason.KEYTAB_ROTATED:
        # A successor that can't log in with the keytab at hand would die as well: preflight has to pass.
        return Horizon(end.reason, end.hard, plan)
    if end.reason in _OF_TOKENS and refresh and refresh.works:
        return _pushed_before(end, claim, refresh, policy)
    return Horizon(end.reason, end.hard, plan, force, token=end.token)


def _pushed_before(end: _End, claim: Claim, refresh: Refresh, policy: RestartPolicy) -> Horizon:
    """Return the horizon of a generation to which fresh tokens are pushed before it is restarted for want of them.

    Those of the launch are used for as long as without pushes.
    """
    force, plan = _planned(end, policy, claim)
    push = plan
    if refresh.confirmed and refresh.interval:
        push = refresh.confirmed.at + refresh.interval * (1 - policy.jitter_ratio * spread(claim.nonce))
    return Horizon(end.reason, end.hard, max(plan, push + (force - push) * _AFTER_PUSHES), force, push, end.token)


def issued_at(claim: Claim, policy: RestartPolicy) -> datetime | None:
    """Return a lower bound of when the generation's tokens were issued: never later than the truth, None if unknown.

    For a submitted generation it is the time of the claim, written just before spark-submit. For an adopted one, or if
    the claim does not tell enough, it is the ResourceManager's start time less a margin, because the client got its
    tokens before that.
    """
    if claim.submitted_by_us and Missing.LIFETIMES not in claim.missing:
        return claim.claimed_at
    return min(claim.started, claim.claimed_at) - policy.adopt_margin if claim.started else None


def _unknown(claim: Claim, issue: datetime | None, key_at_hand: KeyVersion | None) -> bool:
    if isinstance(claim.spec, UnknownSpec):
        return True
    if claim.lifetimes and issue:
        return False
    return not claim.spec.credentials.renews_itself or _rotated(claim, key_at_hand)


def _token_ends(
    policy: RestartPolicy, claim: Claim, issue: datetime | None, refresh: Refresh | None, *, renewed: bool
) -> Iterator[_End]:
    # The submitted spec counts, not the one declared now.
    dies_with_its_tokens = isinstance(claim.spec, StreamSpec) and not claim.spec.credentials.renews_itself
    if not dies_with_its_tokens or claim.lifetimes is None or issue is None:
        return
    if refresh and refresh.confirmed and refresh.confirmed.until:
        pushed = refresh.confirmed
        yield _End(refresh.confirmed.until, HorizonReason.NOT_PUSHED, pushed.at, policy.plan_ratio)
        yield from _service_tokens(policy, claim, issue)
        return
    yield _End(issue + claim.lifetimes.max_lifetime, HorizonReason.TOKEN_MAX_LIFETIME, issue, policy.plan_ratio)
    yield from (*_pushable_tokens(policy, claim, issue), *_service_tokens(policy, claim, issue))
    if not renewed:
        yield _End(issue + claim.lifetimes.renew_interval, HorizonReason.NOT_RENEWED, issue, policy.plan_ratio)


def _limits(
    policy: RestartPolicy, claim: Claim, issue: datetime | None, now: datetime, time_left: timedelta | None
) -> Iterator[_End]:
    since = issue or claim.claimed_at
    if time_left is not None:
        yield _End(now + time_left, HorizonReason.YARN_LIFETIME, since, policy.plan_ratio)
    if policy.max_age is not None:
        yield _End(since + policy.max_age, HorizonReason.POLICY_MAX_AGE, since, policy.plan_ratio)


def _service_tokens(policy: RestartPolicy, claim: Claim, since: datetime) -> Iterator[_End]:
    """Yield the ends of the launch's tokens that nobody replaces in a job without a keytab."""
    for token, life in known_lives(claim.tokens or ()):
        if not is_pushed(token):
            yield _End(since + life, HorizonReason.SERVICE_TOKEN, since, policy.plan_ratio, str(token))


def _pushable_tokens(policy: RestartPolicy, claim: Claim, since: datetime) -> Iterator[_End]:
    """Yield the ends of the tokens that a push replaces: other nameservices and KMSs have lifetimes of their own."""
    for token, life in known_lives(claim.tokens or ()):
        if is_pushed(token):
            yield _End(since + life, HorizonReason.TOKEN_MAX_LIFETIME, since, policy.plan_ratio, str(token))


def _rotated(claim: Claim, key_at_hand: KeyVersion | None) -> bool:
    return claim.key is not None and key_at_hand is not None and key_at_hand.succeeds(claim.key)


def _rotation(
    policy: RestartPolicy,
    claim: Claim,
    issue: datetime | None,
    now: datetime,
    key_at_hand: KeyVersion | None,
    ratio: float,
    told: tuple[TokenRound, ...],
) -> Iterator[_End]:
    """Yield the end that a rotated key brings. The rotation is assumed to be when the keytab at hand was written. As an
    export may come long after it, and the end then sooner than we can know, the restart is planned as soon as the
    fleet's spread allows. Rounds are counted from the last one that the driver told; without any, from the issue."""
    if key_at_hand is None or not _rotated(claim, key_at_hand):
        return
    if isinstance(claim.spec, UnknownSpec) or claim.lifetimes is None or issue is None:
        return
    rotated = min(max(key_at_hand.stamped or issue, issue), now)
    interval = claim.lifetimes.renew_interval
    rounds = RenewalRounds(issue, interval, ratio, policy.adopt_margin)
    if told and not told[-1].is_last:
        rounds = RenewalRounds(told[-1].at, interval, ratio)
    loss = key_loss(rounds, rotated, rotated)
    yield _End(max(loss.dies_from, rotated), HorizonReason.KEYTAB_ROTATED, rotated, policy.jitter_ratio)


def _renewal_ended(
    claim: Claim, issue: datetime | None, rounds: tuple[TokenRound, ...], ratio: float
) -> Iterator[_End]:
    """Yield the end of the tokens that the driver had when it made its last round: one interval after their issue.

    The driver's first round may have got tokens without knowing their end, which nobody renews. The launch tokens would
    live on if it got none, but a log doesn't tell.
    """
    last = last_round(rounds)
    if last is None or claim.lifetimes is None or issue is None or not _makes_tokens(claim):
        return
    interval = claim.lifetimes.renew_interval
    step = interval * ratio
    first = last.at - issue < step / 2
    hard = last.tokens_end or last.at + (interval if first else interval - step)
    yield _End(hard, HorizonReason.RENEWAL_ENDED, hard - interval, _LATE_PLAN)


def _shorter_tokens(
    policy: RestartPolicy,
    claim: Claim,
    known_round: datetime | None,
    now: datetime,
    interval_now: timedelta | None,
    ratio: float,
) -> Iterator[_End]:
    """Yield the end of the first tokens that don't last until the driver's next round.

    A driver measures the renew interval once (HadoopFSDelegationTokenProvider.tokenRenewalInterval). Whether its newest
    tokens are from before the change is not visible: of the two moments the earlier that is not past counts.
    """
    if interval_now is None or claim.lifetimes is None or known_round is None or not _makes_tokens(claim):
        return
    step = claim.lifetimes.renew_interval * ratio
    if interval_now >= step:
        return
    newest = RenewalRounds(known_round, claim.lifetimes.renew_interval, ratio).latest(now)
    since = newest if newest + interval_now > now else newest + step
    yield _End(since + interval_now, HorizonReason.SHORTER_TOKENS, since, policy.plan_ratio)


def _makes_tokens(claim: Claim) -> bool:
    return isinstance(claim.spec, StreamSpec) and claim.spec.credentials.renews_itself


def _planned(end: _End, policy: RestartPolicy, claim: Claim) -> tuple[datetime, datetime]:
    """Return the moment from which a restart is forced, and the one for which it is planned."""
    life = end.hard - end.since
    force = end.hard - min(policy.force_margin, life * _FORCE_SHARE)
    plan = end.since + life * (end.plan_ratio - policy.jitter_ratio * spread(claim.nonce))
    return force, min(plan, force)
