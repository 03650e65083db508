"""Keeping a generation's tokens alive by pushing fresh ones, and when that is not enough.

A ResourceManager renews what was submitted and nothing else. What was pushed lives for one renew interval after the
last push, where the launch tokens live for their max-lifetime without us: a push that comes early shortens the life of
a job whose supervisor is away. So the launch tokens are used until the moment at which a restart would be planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.contract import pushed_to, started_marker
from airflow_kstream.model.streams.generation import Claim, DesiredState
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.observation import Observation, application_of
from airflow_kstream.model.streams.plan import Push, Revoke
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import RefreshPolicy
from airflow_kstream.model.streams.token_push import Pushes, RefreshStatus, TokenPush
from airflow_kstream.policy.streams.pulse.heartbeat import verified

# Pushing more often would buy minutes of tolerance with a task a minute.
_SHORTEST_SHARE = 0.05
# After tries in vain, the pauses between them grow to this at most.
_LONGEST_PAUSE = timedelta(hours=1)
_LOGS_TAKE = timedelta(minutes=15)


@dataclass(frozen=True)
class Refresh:
    """The pushes to a generation so far, and those that may come.

    `interval` is the pause between two pushes, None where pushing can't meet `tolerate_absence`. `answers` is whether
    its driver has shown that it takes tokens.
    """

    confirmed: TokenPush | None
    answers: bool
    interval: timedelta | None

    @property
    def works(self) -> bool:
        return self.answers and self.interval is not None


def refresh_of(spec: StreamSpec, observation: Observation) -> Refresh | None:
    """Return how pushes stand for the running generation; None for one that got none and is to get none.

    What a person pushed by hand counts as well (`kstream tokens push`), and nothing is pushed after it.
    """
    claim = observation.claim
    if claim is None:
        return None
    known = observation.pushes
    if not is_refreshed(claim):
        return Refresh(known.confirmed, answers=False, interval=None) if known.confirmed else None
    return Refresh(known.confirmed, known.answers, push_interval(spec.refresh, claim))


def is_refreshed(claim: Claim) -> bool:
    """Return whether this generation was submitted to be refreshed: an edit concerns the next one."""
    submitted = claim.spec
    return (
        claim.submitted_by_us
        and isinstance(submitted, StreamSpec)
        and submitted.credentials.refresh
        and submitted.takes_tokens
    )


def push_interval(policy: RefreshPolicy, claim: Claim) -> timedelta | None:
    """Return the pause between two pushes; None if no pause would meet `tolerate_absence`."""
    if claim.credentials.lifetimes is None:
        return None
    renewed_for = claim.credentials.lifetimes.renew_interval
    interval = min(renewed_for * policy.push_ratio, renewed_for - policy.tolerate_absence)
    return interval if interval >= renewed_for * _SHORTEST_SHARE else None


def due_push(spec: StreamSpec, observation: Observation, ends: Horizon | None) -> Push | None:
    """Return the push that is due now, if any: the test of a driver that has shown that it works, or fresh tokens."""
    claim, app = observation.claim, observation.current
    if claim is None or app is None or not is_refreshed(claim) or claim.generation != observation.generation:
        return None
    if app.state is not ApplicationState.RUNNING or observation.desired.state is not DesiredState.RUNNING:
        return None
    known = observation.pushes
    if known.last is None:
        return _test(observation, app.id) if _begun(observation) else None
    if ends is None or ends.push is None or observation.now < max(ends.push, _after_tries(spec.refresh, known)):
        return None
    return Push(claim.generation, app.id, f"its tokens are to be replaced before {_moment(ends.hard)}")


def pushes_first(spec: StreamSpec, observation: Observation, ends: Horizon) -> bool:
    """Return whether fresh tokens are tried, or an answer to them is waited for, before a restart that is due.

    Nobody was there to push while that was due. A push costs a healthy job nothing, and an answer comes before the
    restart has to.
    """
    vain = observation.pushes.vain
    if ends.push is None or ends.plan is None or ends.force is None:
        return False
    first = vain[0].at if vain else observation.now
    answered_by = first + spec.refresh.confirm_within
    return ends.plan <= first and observation.now < answered_by <= ends.force


def due_revocation(observation: Observation) -> Revoke | None:
    """Return the generation whose pushed tokens are to be cancelled now, if any.

    Not before its logs have had time to be aggregated: a NodeManager may write them with these tokens.
    """
    living = {number for number, app in observation.applications if app.alive}
    for number in pushed_to(observation.files):
        if number not in living and _over(observation, number):
            return Revoke(number, f"generation {number} is over, and nothing needs what was pushed to it")
    return None


def _over(observation: Observation, generation: int) -> bool:
    """Return whether the generation ended long enough ago; one that YARN has forgotten did."""
    app = application_of(observation.applications, generation)
    if app is None:
        return generation < observation.generation
    return app.finished is None or observation.now - app.finished >= _LOGS_TAKE


def refreshed(spec: StreamSpec, observation: Observation, ends: Horizon | None) -> RefreshStatus | None:
    """Return how the tokens of the running generation stand, for people; None if nobody refreshes them."""
    claim = observation.claim
    refresh = refresh_of(spec, observation)
    if refresh is None or claim is None or not observation.any_alive or not is_refreshed(claim):
        return None
    known = observation.pushes
    now, lifetimes = observation.now, claim.credentials.lifetimes
    last = known.pushed[-1] if known.pushed else None
    kept = lifetimes.renew_interval - refresh.interval if lifetimes and refresh.interval else None
    return RefreshStatus(
        last=now - last.at if last else None,
        confirmed=now - refresh.confirmed.at if refresh.confirmed else None,
        due=ends.push - now if ends and ends.push else None,
        tolerance=kept,
        restart_tolerance=lifetimes.max_lifetime * (1 - spec.restart.plan_ratio) if lifetimes else None,
        trouble=_trouble(spec.refresh, known, refresh, now),
    )


def _trouble(policy: RefreshPolicy, known: Pushes, refresh: Refresh, now: datetime) -> str:
    if refresh.interval is None:
        wanted = format_duration(policy.tolerate_absence)
        return f"pushed tokens would not outlive an absence of {wanted}, so it is restarted as planned"
    vain = known.vain
    if not vain or now < vain[0].at + policy.confirm_within:
        return ""
    if vain[-1].id in known.refused:
        return "it refused the tokens that were pushed last"
    if vain[-1] in known.failed:
        return "no fresh tokens could be made, or it had not taken them when the next were due"
    what = "whether it takes fresh tokens" if not known.answers else "to the tokens that were pushed"
    return f"it has not answered {what} since {vain[0].at:%Y-%m-%d %H:%M:%S} UTC"


def _begun(observation: Observation) -> bool:
    return started_marker(observation.generation) in observation.files or verified(observation)


def _test(observation: Observation, application: str) -> Push:
    why = "whether it takes fresh tokens shows long before it needs any"
    return Push(observation.generation, application, why, tokens=False)


def _after_tries(policy: RefreshPolicy, known: Pushes) -> datetime:
    """Return the earliest moment of the next try: at once after a push that was applied."""
    vain, last = len(known.vain), known.last
    if not vain or last is None:
        return datetime.min.replace(tzinfo=UTC)
    pause: timedelta = policy.confirm_within * 2 ** (vain - 1)
    return last.at + min(pause, max(_LONGEST_PAUSE, policy.confirm_within))


def _moment(when: datetime | None) -> str:
    return when.strftime("%Y-%m-%d %H:%M UTC") if when else "they end"


def refresh_words(spec: StreamSpec, clear: tuple[str, ...], served: str, leader: str) -> Iterator[str]:
    """Yield what `refresh` does to this stream; nothing if it is off. `clear` are the ways on which its tokens can be
    read by the network, `served` the jobs that take fresh ones, and `leader` the process that does."""
    if not spec.credentials.refresh:
        return
    if not spec.takes_tokens:
        yield (
            f"its tokens are not refreshed, because only {served} are served yet: it is restarted before they end, "
            f"as without refresh; `kstream tokens push` gives its {leader} fresh ones by hand"
        )
        return
    policy = spec.refresh
    yield (
        "its tokens are refreshed: once a restart would be planned, fresh ones are pushed each "
        f"{policy.push_ratio:.0%} of their renew interval (a day by Hadoop's defaults), and its {leader} confirms them"
    )
    wanted = (
        f"; an absence of {format_duration(policy.tolerate_absence)} is to be tolerated, so they come earlier if needed"
        if policy.tolerate_absence
        else ""
    )
    yield (
        f"nobody need be there to push for {1 - policy.push_ratio:.0%} of a renew interval then, where planned "
        f"restarts leave {1 - spec.restart.plan_ratio:.0%} of a max-lifetime{wanted}"
    )
    for way in clear:
        yield f"pushed tokens cross the network in clear: {way}"
