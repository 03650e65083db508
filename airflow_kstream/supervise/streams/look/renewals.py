"""What shows how long a generation's tokens go on serving it, and the ResourceManager's clock for that.

With a keytab, the driver's log tells whether it goes on making tokens in time. Without one, a file in the stream's
folder has the tokens of the submission, which only its client told. If that is missing, of an earlier version or
broken, it tells nothing: the horizon then counts HDFS's token alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.contract import launched_file
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import LaunchToken, TokenRound
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.launch_tokens import Reading, after_failure, after_reading, due, last_round
from airflow_kstream.supervise.clusters.tokens import RecentLifetimes
from airflow_kstream.supervise.streams.folder.formats import read_tokens, written_tokens
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession
    from airflow_kstream.supervise.streams.folder.engine import Engine


log = logging.getLogger(__name__)

# Bytes and seconds. A driver that logs four kilobytes a second has its newest round in it for ten minutes, and a look
# waits for the answer.
_SIZE, _SECONDS = 2 << 20, 5.0


@dataclass
class Renewals:
    """The words of one cluster's drivers on their tokens, as far as the session's identity may read their logs.

    A log is read a few times after each round, until it shows the next one, and not again after a driver's last. One
    that can't be read, or whose level hides the rounds, tells nothing: its driver counts as one that makes tokens in
    time. `at_once` is True for a caller that looks once; others spread their first readings.
    """

    session: ClusterSession
    at_once: bool = False
    read: Callable[[LoggedContainer], str] | None = None
    lifetimes: RecentLifetimes = field(init=False)
    _rounds: dict[str, tuple[TokenRound, ...]] = field(default_factory=dict)
    _readings: dict[str, Reading] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lifetimes = RecentLifetimes(self.session)

    def known(self, observation: Observation, engine: Engine) -> Observation:
        """Return the observation with both facts, if its newest generation makes its own tokens."""
        claim = observation.claim
        if claim is None or not isinstance(claim.spec, StreamSpec) or not claim.spec.credentials.renews_itself:
            return observation
        if observation.current is None or not observation.current.alive:
            return observation
        interval = self.lifetimes.renew_interval()
        return replace(
            observation,
            credentials=replace(
                observation.credentials, rounds=self._newest(observation, engine), renew_interval=interval
            ),
        )

    def _newest(self, observation: Observation, engine: Engine) -> tuple[TokenRound, ...]:
        name = observation.stream.name
        before = self._readings.get(name)
        reading = due(observation, before, at_once=self.at_once)
        if reading is None:
            self._forget(name)
            return ()
        if before is None or reading.driver != before.driver:
            self._rounds.pop(name, None)
        self._readings[name] = reading
        if reading.at <= observation.now and last_round(self._rounds.get(name, ())) is None:
            self._read(reading, observation, engine)
        return self._rounds.get(name, ())

    def _read(self, reading: Reading, observation: Observation, engine: Engine) -> None:
        name, now = observation.stream.name, observation.now
        self._readings[name] = after_failure(reading, now)
        with suppress(KstreamError):
            rounds = engine.token_rounds(self._log(observation.current, engine.words.logs[-1]))
            self._readings[name] = after_reading(reading, rounds, now)
            # A log that writes faster than it is read may no longer have them.
            self._rounds[name] = rounds[-2:] or self._rounds.get(name, ())

    def _log(self, app: Application | None, name: str) -> str:
        container = LoggedContainer.of_link(app.logs_url) if app else None
        if container is None:
            return ""
        return self.read(container) if self.read else self._end_of_log(container, name)

    def _end_of_log(self, container: LoggedContainer, name: str) -> str:
        logs = ContainerLogs(self.session.cluster, self.session.identity)
        tails = logs.live_tails(container, (name,), _SIZE, _SECONDS)
        return tails[name].text if name in tails else ""

    def _forget(self, name: str) -> None:
        self._rounds.pop(name, None)
        self._readings.pop(name, None)


class YarnClock:
    """The ResourceManager's clock: read at most once in a round, and carried on by ours while it can't be read."""

    def __init__(self, yarn: ResourceManager) -> None:
        self._yarn = yarn
        self._asked = False
        self._read: tuple[datetime, float] | None = None

    def begin_round(self) -> None:
        self._asked = False

    def time_since(self, moment: datetime) -> timedelta | None:
        """Return the time since a moment that the ResourceManager reported; None while its clock was never read."""
        if not self._asked:
            self._ask(moment)
        if self._read is None:
            return None
        then, ours = self._read
        return max(then + timedelta(seconds=time.monotonic() - ours) - moment, timedelta())

    def _ask(self, moment: datetime) -> None:
        self._asked = True
        with suppress(KstreamError):
            self._read = moment + self._yarn.time_since(moment), time.monotonic()


def keep_tokens(folder: StreamFolder, claim: Claim, tokens: tuple[LaunchToken, ...]) -> None:
    """Write down what a claim's client told. The submission is done by then, so nothing fails for the lack of it."""
    if not tokens or not _lives_on_them(claim):
        return
    try:
        folder.put_once(launched_file(claim.generation), written_tokens(tokens, claim.nonce))
    except KstreamError as error:
        log.warning("The tokens of generation %d are not written down: %s", claim.generation, error)


def with_tokens(folder: StreamFolder, claim: Claim, names: frozenset[str]) -> Claim:
    """Return the claim with the tokens of its launch, read once. Raises Unavailable: when HDFS is away."""
    name = launched_file(claim.generation)
    if claim.credentials.tokens is not None or claim.foreign or name not in names or not _lives_on_them(claim):
        return claim
    try:
        tokens = read_tokens(folder.text(name), claim.nonce)
    except (InvalidInput, Denied):
        tokens = ()
    return replace(claim, credentials=replace(claim.credentials, tokens=tokens))


def _lives_on_them(claim: Claim) -> bool:
    """Return False for a job that replaces its launch's tokens with its own."""
    return isinstance(claim.spec, StreamSpec) and not claim.spec.credentials.renews_itself
