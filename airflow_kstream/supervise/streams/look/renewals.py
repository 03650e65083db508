"""What shows whether a driver with a keytab goes on making tokens in time: its log, and how long tokens live now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.renewal import TokenRound
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.renewal_readings import (
    Reading,
    after_failure,
    after_reading,
    due,
    last_round,
)
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.token_lifetimes import RecentLifetimes
from airflow_kstream.supervise.streams.folder.engine import Engine

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
