"""For how long the tokens of a launch live, where that is known: nobody makes a job without a keytab another.

The ResourceManager renews what it has a TokenRenewer for, until the token's max date (DelegationTokenRenewer): those of
every HDFS, and of a KMS. Nobody can renew HBase's. Hive's has a renewer's name in it, but none in the ResourceManager:
it ends after one renew interval, which only the metastore knows. Kafka's has no date at all.

A generation leaves no aggregated logs once they ended: a NodeManager aggregates with the tokens of the application's
first container (AppLogAggregatorImpl), and nobody replaces those, neither YARN nor Spark with a keytab. It then says
"Skip log upload" and deletes the files. Only a ResourceManager with proxy-user privileges hands it others (YARN-2704).

A driver with a keytab makes new tokens in rounds, at a share of the renew interval after the round before, and its log
names the time of the next one. Until that was read, rounds are counted from the start of the application. Who begins to
watch a fleet reads its logs over six minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, KMS_TOKEN
from airflow_kstream.model.streams.generation import Claim, Missing
from airflow_kstream.model.streams.horizon import LastRound, LaunchToken, TokenRound
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy, StopPolicy
from airflow_kstream.policy.streams.horizon.start_pacing import spread

# A round takes seconds; with a renew interval of minutes, a share of that.
_SETTLES, _SETTLES_SHARE = timedelta(minutes=6), 0.05
# How many times `_SETTLES` after a round its log is read, as long as it does not show it.
_TIMES = (1, 2, 4)

HBASE, HIVE, KAFKA = "HBASE_AUTH_TOKEN", "HIVE_DELEGATION_TOKEN", "KAFKA_DELEGATION_TOKEN"
_RENEWED = {HDFS_TOKEN, KMS_TOKEN}
_PORT = 8020


def is_pushed(token: LaunchToken) -> bool:
    """Return whether a push brings another token in its place. One without a renewer is of a server far away."""
    return token.kind in _RENEWED and bool(token.renewer)


def known_life(token: LaunchToken) -> timedelta | None:
    """Return for how long its servers take the token, None if that is not known. Both times are its issuer's."""
    if token.kind != HBASE and not is_pushed(token):
        return None
    if token.issued is None or token.ends is None or token.ends <= token.issued:
        return None
    return token.ends - token.issued


def known_lives(tokens: tuple[LaunchToken, ...]) -> Iterator[tuple[LaunchToken, timedelta]]:
    """Yield the tokens whose lives are known, with these."""
    for token in tokens:
        if life := known_life(token):
            yield token, life


def issuers(tokens: tuple[LaunchToken, ...]) -> tuple[str, ...]:
    """Return the filesystems and the KMSs of the tokens that a push replaces."""
    return tuple(_issuer(token) for token in tokens if is_pushed(token))


def _issuer(token: LaunchToken) -> str:
    return f"hdfs://{token.service.removeprefix('ha-hdfs:')}" if token.is_hdfs else token.service


def counted_kinds(tokens: tuple[LaunchToken, ...]) -> frozenset[str]:
    """Return the kinds of tokens whose ends are all known."""
    unknown = unknown_kinds(tokens)
    return frozenset(token.kind for token in tokens) - unknown


def unknown_kinds(tokens: tuple[LaunchToken, ...]) -> frozenset[str]:
    """Return the kinds of which a token's end is not known."""
    return frozenset(token.kind for token in tokens if known_life(token) is None)


def counts_filesystem(authority: str, tokens: tuple[LaunchToken, ...]) -> bool:
    """Return whether the end of this HDFS's token is known; False if its token names it by an address."""
    host, _, port = authority.partition(":")
    services = {f"ha-hdfs:{authority}", f"{host}:{port or _PORT}"}
    return any(token.is_hdfs and token.service in services and known_life(token) for token in tokens)


@dataclass(frozen=True)
class Reading:
    """The next reading of the log of one `driver`, named by its claim and container: at `at`, after `tries` others that
    did not show the round that was due at `round_at`.

    `step` is the time between two rounds, `settles` the unit of waits.
    """

    driver: str
    at: datetime
    round_at: datetime
    step: timedelta
    settles: timedelta
    tries: int = 0


def due(observation: Observation, before: Reading | None, *, at_once: bool) -> Reading | None:
    """Return the next reading of the stream's log; None if the stream makes no tokens, or its rounds can't be timed."""
    claim, app, now = observation.claim, observation.current, observation.now
    if claim is None or claim.credentials.lifetimes is None or not isinstance(claim.spec, StreamSpec):
        return None
    if app is None or app.state is not ApplicationState.RUNNING or app.started is None:
        return None
    if claim.generation != observation.generation or not claim.spec.credentials.renews_itself:
        return None
    driver = f"{claim.nonce} {app.logs_url}"
    if before is not None and before.driver == driver:
        return before
    interval = claim.credentials.lifetimes.renew_interval
    settles = min(_SETTLES, interval * _SETTLES_SHARE)
    later = settles * (0.0 if at_once else spread(claim.nonce))
    first = app.started + settles
    at = now if at_once else max(now + later, first)
    return Reading(driver, at, app.started, interval * observation.credentials.renewal_ratio, settles)


def after_reading(reading: Reading, rounds: tuple[TokenRound, ...], now: datetime) -> Reading:
    """Return the reading that follows one that showed these rounds."""
    newest = rounds[-1] if rounds else None
    if newest is not None and not newest.is_last and newest.at + newest.delay > now:
        return _of_round(reading, newest.at + newest.delay)
    return after_failure(reading, now)


def after_failure(reading: Reading, now: datetime) -> Reading:
    """Return the reading that follows one that showed nothing new: again for the same round, or for the next one."""
    again = reading.tries + 1
    if again < len(_TIMES):
        return replace(reading, at=now + reading.settles * (_TIMES[again] - _TIMES[again - 1]), tries=again)
    passed = max(0, (now - reading.round_at) // reading.step)
    return _of_round(reading, reading.round_at + (passed + 1) * reading.step)


def last_round(rounds: tuple[TokenRound, ...]) -> LastRound | None:
    """Return the round after which none will come, None if another one is scheduled, or no round is known."""
    if not rounds or not rounds[-1].is_last:
        return None
    before = rounds[-2] if len(rounds) > 1 else None
    return LastRound(rounds[-1].at, before.tokens_end if before else None)


def _of_round(reading: Reading, round_at: datetime) -> Reading:
    return replace(reading, at=round_at + reading.settles * _TIMES[0], round_at=round_at, tries=0)


def issued_at(claim: Claim, policy: RestartPolicy) -> datetime | None:
    """Return a lower bound of when the generation's tokens were issued: never later than the truth, None if unknown.

    For a submitted generation it is the time of the claim, written just before spark-submit. For an adopted one, or if
    the claim does not tell enough, it is the ResourceManager's start time less a margin, because the client got its
    tokens before that.
    """
    if claim.submitted_by_us and Missing.LIFETIMES not in claim.file.missing:
        return claim.claimed_at
    started = claim.adoption.started
    return min(started, claim.claimed_at) - policy.adopt_margin if started else None


def logs_end(policy: RestartPolicy, claim: Claim | None, *, renewed: bool, privileged: bool) -> datetime | None:
    """Return from when an end of the claim's generation leaves no aggregated logs, by the tokens of its launch.

    None if that never comes, or is not known. `renewed` is whether the ResourceManager renews those tokens,
    `privileged` whether it makes others. Nodes that a job with a keytab reached later aggregate for longer.
    """
    issue = issued_at(claim, policy) if claim else None
    lifetimes = claim.credentials.lifetimes if claim else None
    if claim is None or lifetimes is None or issue is None or privileged:
        return None
    return issue + (lifetimes.max_lifetime if renewed else lifetimes.renew_interval)


def must_be_fetched(policy: StopPolicy, ends: datetime | None, now: datetime) -> bool:
    """Return whether the logs of a generation that is stopped now could be lost before it has ended."""
    return ends is not None and now + _longest_stop(policy) >= ends


def _longest_stop(policy: StopPolicy) -> timedelta:
    return policy.marker_grace + policy.quiescent_wait + policy.signal_grace + policy.kill_wait
