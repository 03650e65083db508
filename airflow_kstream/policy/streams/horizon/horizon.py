"""The moment at which a generation's credentials stop serving it (Algorithm A), and when to act before that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason, Replacement
from airflow_kstream.model.streams.observation import CredentialLook, Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.horizon.launch_tokens import is_pushed, issued_at, known_lives, last_round
from airflow_kstream.policy.streams.horizon.refresh import Refresh, refresh_of
from airflow_kstream.policy.streams.horizon.rotation import RenewalRounds, key_loss
from airflow_kstream.policy.streams.horizon.start_pacing import spread

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


@dataclass(frozen=True)
class Credentials:
    """The credentials of one generation: all that tells until when they serve it."""

    claim: Claim
    look: CredentialLook = field(default_factory=CredentialLook)
    time_left: timedelta | None = None
    """What YARN's lifetime limit leaves its application; None if it has no limit."""
    refresh: Refresh | None = None
    """How pushes of fresh tokens to it stand; None if it got none and is to get none."""

    @property
    def rotated(self) -> KeyVersion | None:
        """Return the key at hand if it is a later one than the generation was submitted with."""
        at_hand, key = self.look.key_at_hand, self.claim.credentials.key
        return at_hand if at_hand and key and at_hand.succeeds(key) else None

    @property
    def makes_tokens(self) -> bool:
        """Return whether the job makes its own tokens. The submitted spec counts, not the one declared now."""
        return isinstance(self.claim.spec, StreamSpec) and self.claim.spec.credentials.renews_itself


def horizon(policy: RestartPolicy, credentials: Credentials, now: datetime) -> Horizon:
    """Return the earliest end of the credentials, with its reason, and the warning that workers can't be replaced.

    The job runs on then: a restart is planned for it only with the policy's `for_new_taskmanagers`, and never forced.
    """
    ends = _earliest_end(policy, credentials, now)
    replacement = replacement_of(policy, credentials, now)
    if replacement is None:
        return ends
    ends = replace(ends, replacement=replacement)
    if replacement.until is None or not policy.for_new_taskmanagers:
        return ends
    since = min(issued_at(credentials.claim, policy) or credentials.claim.claimed_at, replacement.until)
    end = _End(replacement.until, HorizonReason.NO_NEW_WORKERS, since, policy.plan_ratio)
    plan = _planned(end, policy, credentials.claim)[1]
    return ends if ends.plan and ends.plan <= plan else replace(ends, reason=end.reason, plan=plan, push=None, token="")


def replacement_of(policy: RestartPolicy, credentials: Credentials, now: datetime) -> Replacement | None:
    """Return until when a lost worker can be replaced: until the launch's tokens end, or those that a keeper confirms
    in their place, which have no end while the keeper goes on."""
    claim, workers = credentials.claim, credentials.look.workers
    if workers is None:
        return None
    if workers.kept_until is not None:
        ends = workers.silent or workers.kept_until <= now
        return Replacement(workers.worker, workers.kept_until if ends else None, silent=workers.silent)
    issue, lifetimes = issued_at(claim, policy), claim.credentials.lifetimes
    if issue is None or lifetimes is None:
        return Replacement(workers.worker, known=False, silent=workers.silent)
    until = issue + (lifetimes.max_lifetime if workers.renewed else lifetimes.renew_interval)
    return Replacement(workers.worker, until, silent=workers.silent)


def _earliest_end(policy: RestartPolicy, credentials: Credentials, now: datetime) -> Horizon:
    """Return the earliest end of the credentials, with its reason.

    A job without a keytab ends at issue + max-lifetime even if it looks healthy: an established RPC connection is not
    checked again, so only the deadline tells (Spark does not renew for proxy users, nor from a ticket in cluster
    mode). A job with a keytab gets its own tokens. It has no such end until the key at hand, with which its successor
    would start, differs from the key it was submitted with. If the claim does not tell enough, the horizon is
    UNKNOWN, and we act at the earliest end that is known. Tokens that nobody renews end after one renew interval. A
    driver with a keytab may have made the last of its rounds of tokens without telling it, or count on tokens that
    live for longer than those it gets now. Tokens that were pushed count once the driver has confirmed them, and take
    the place of those of the launch. Tokens of other services count as far as the client told their ends: nobody
    pushes those of anything but HDFS and a KMS.
    """
    claim, refresh = credentials.claim, credentials.refresh
    issue = issued_at(claim, policy)
    ends = [
        *_token_ends(policy, credentials, issue),
        *_limits(policy, credentials, issue, now),
        *_rotation(policy, credentials, issue, now),
        *_renewal_ended(credentials, issue),
        *_shorter_tokens(policy, credentials, issue, now),
    ]
    unknown = _unknown(credentials, issue)
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


def _unknown(credentials: Credentials, issue: datetime | None) -> bool:
    claim = credentials.claim
    if isinstance(claim.spec, UnknownSpec):
        return True
    if claim.credentials.lifetimes and issue:
        return False
    return not claim.spec.credentials.renews_itself or credentials.rotated is not None


def _token_ends(policy: RestartPolicy, credentials: Credentials, issue: datetime | None) -> Iterator[_End]:
    claim, pushed = credentials.claim, credentials.refresh.confirmed if credentials.refresh else None
    # The submitted spec counts, not the one declared now.
    dies_with_its_tokens = isinstance(claim.spec, StreamSpec) and not claim.spec.credentials.renews_itself
    if not dies_with_its_tokens or claim.credentials.lifetimes is None or issue is None:
        return
    if pushed and pushed.until:
        yield _End(pushed.until, HorizonReason.NOT_PUSHED, pushed.at, policy.plan_ratio)
        yield from _service_tokens(policy, claim, issue)
        return
    hard = issue + claim.credentials.lifetimes.max_lifetime
    yield _End(hard, HorizonReason.TOKEN_MAX_LIFETIME, issue, policy.plan_ratio)
    yield from (*_pushable_tokens(policy, claim, issue), *_service_tokens(policy, claim, issue))
    if not credentials.look.renewed:
        hard = issue + claim.credentials.lifetimes.renew_interval
        yield _End(hard, HorizonReason.NOT_RENEWED, issue, policy.plan_ratio)


def _limits(policy: RestartPolicy, credentials: Credentials, issue: datetime | None, now: datetime) -> Iterator[_End]:
    since = issue or credentials.claim.claimed_at
    if credentials.time_left is not None:
        yield _End(now + credentials.time_left, HorizonReason.YARN_LIFETIME, since, policy.plan_ratio)
    if policy.max_age is not None:
        yield _End(since + policy.max_age, HorizonReason.POLICY_MAX_AGE, since, policy.plan_ratio)


def _service_tokens(policy: RestartPolicy, claim: Claim, since: datetime) -> Iterator[_End]:
    """Yield the ends of the launch's tokens that nobody replaces in a job without a keytab."""
    for token, life in known_lives(claim.credentials.tokens or ()):
        if not is_pushed(token):
            yield _End(since + life, HorizonReason.SERVICE_TOKEN, since, policy.plan_ratio, str(token))


def _pushable_tokens(policy: RestartPolicy, claim: Claim, since: datetime) -> Iterator[_End]:
    """Yield the ends of the tokens that a push replaces: other nameservices and KMSs have lifetimes of their own."""
    for token, life in known_lives(claim.credentials.tokens or ()):
        if is_pushed(token):
            yield _End(since + life, HorizonReason.TOKEN_MAX_LIFETIME, since, policy.plan_ratio, str(token))


def _rotation(policy: RestartPolicy, credentials: Credentials, issue: datetime | None, now: datetime) -> Iterator[_End]:
    """Yield the end that a rotated key brings. The rotation is assumed to be when the keytab at hand was written. As an
    export may come long after it, and the end then sooner than we can know, the restart is planned as soon as the
    fleet's spread allows. Rounds are counted from the last one that the driver told; without any, from the issue."""
    claim, look, key = credentials.claim, credentials.look, credentials.rotated
    if key is None or isinstance(claim.spec, UnknownSpec) or claim.credentials.lifetimes is None or issue is None:
        return
    rotated = min(max(key.stamped or issue, issue), now)
    interval = claim.credentials.lifetimes.renew_interval
    rounds = RenewalRounds(issue, interval, look.renewal_ratio, policy.adopt_margin)
    if look.rounds and not look.rounds[-1].is_last:
        rounds = RenewalRounds(look.rounds[-1].at, interval, look.renewal_ratio)
    loss = key_loss(rounds, rotated, rotated)
    yield _End(max(loss.dies_from, rotated), HorizonReason.KEYTAB_ROTATED, rotated, policy.jitter_ratio)


def _renewal_ended(credentials: Credentials, issue: datetime | None) -> Iterator[_End]:
    """Yield the end of the tokens that the driver had when it made its last round: one interval after their issue.

    The driver's first round may have got tokens without knowing their end, which nobody renews. The launch tokens would
    live on if it got none, but a log doesn't tell.
    """
    last, lifetimes = last_round(credentials.look.rounds), credentials.claim.credentials.lifetimes
    if last is None or lifetimes is None or issue is None or not credentials.makes_tokens:
        return
    interval = lifetimes.renew_interval
    step = interval * credentials.look.renewal_ratio
    first = last.at - issue < step / 2
    hard = last.tokens_end or last.at + (interval if first else interval - step)
    yield _End(hard, HorizonReason.RENEWAL_ENDED, hard - interval, _LATE_PLAN)


def _shorter_tokens(
    policy: RestartPolicy, credentials: Credentials, issue: datetime | None, now: datetime
) -> Iterator[_End]:
    """Yield the end of the first tokens that don't last until the driver's next round.

    A driver measures the renew interval once (HadoopFSDelegationTokenProvider.tokenRenewalInterval). Whether its newest
    tokens are from before the change is not visible: of the two moments the earlier that is not past counts.
    """
    look, lifetimes = credentials.look, credentials.claim.credentials.lifetimes
    known_round, interval_now = look.rounds[-1].at if look.rounds else issue, look.renew_interval
    if interval_now is None or lifetimes is None or known_round is None or not credentials.makes_tokens:
        return
    step = lifetimes.renew_interval * look.renewal_ratio
    if interval_now >= step:
        return
    newest = RenewalRounds(known_round, lifetimes.renew_interval, look.renewal_ratio).latest(now)
    since = newest if newest + interval_now > now else newest + step
    yield _End(since + interval_now, HorizonReason.SHORTER_TOKENS, since, policy.plan_ratio)


def _planned(end: _End, policy: RestartPolicy, claim: Claim) -> tuple[datetime, datetime]:
    """Return the moment from which a restart is forced, and the one for which it is planned."""
    life = end.hard - end.since
    force = end.hard - min(policy.force_margin, life * _FORCE_SHARE)
    plan = end.since + life * (end.plan_ratio - policy.jitter_ratio * spread(claim.nonce))
    return force, min(plan, force)


def horizon_of(spec: StreamSpec, observation: Observation) -> Horizon | None:
    """Return the horizon of the running generation; None before the first."""
    if observation.claim is None:
        return None
    return horizon(
        spec.restart,
        Credentials(
            observation.claim, observation.credentials, observation.yarn.time_left, refresh_of(spec, observation)
        ),
        observation.now,
    )
