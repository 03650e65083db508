"""An incident from its begin to its end, as a real Prometheus sees it through a real exporter.

Alerts that take minutes take seconds here, see `servers`; `test_rules` has the minutes. The cluster is simulated, see
`replay`. Grafana is not run: Prometheus evaluates the dashboard's queries.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_kstream.monitoring import NAMES, text_of
from tests.live.streams import await_that
from tests.slow.monitoring.servers import Monitoring, monitoring

pytestmark = pytest.mark.prometheus

SECONDS = 120.0
# As Grafana replaces them.
CHOSEN = {"$cluster": "simulated", "$stream": "orders|clicks"}


class Replay:
    """The triggerer of the incident, and what Prometheus knows of it."""

    def __init__(self, watched: Monitoring, log: Path) -> None:
        self.watched = watched
        statsd = {"STATSD_ON": "True", "STATSD_HOST": "127.0.0.1", "STATSD_PORT": str(watched.statsd_port)}
        environment = {**os.environ, **{f"AIRFLOW__METRICS__{name}": value for name, value in statsd.items()}}
        with log.open("wb") as errors:
            self.triggerer = subprocess.Popen(
                [sys.executable, "-m", "tests.slow.monitoring.replay"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._log = log

    def happens(self, word: str) -> None:
        assert self.triggerer.stdin is not None
        assert self.triggerer.stdout is not None
        self.triggerer.stdin.write(f"{word}\n")
        self.triggerer.stdin.flush()
        # Airflow prints, too.
        while (line := self.triggerer.stdout.readline()) != "done\n":
            assert line, self._log.read_text()

    def await_firing(self, *alerts: tuple[str, str]) -> None:
        """Let minutes pass until these alerts fire and no other one."""
        self.await_alerts(set(alerts), passing="minute")

    def await_alerts(self, alerts: set[tuple[str, str]], passing: str = "") -> None:
        def seen() -> bool:
            if passing:
                self.happens(passing)
            return self.watched.firing() == alerts

        try:
            await_that(seen, f"exactly {sorted(alerts)} fire", SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}; there fire {sorted(self.watched.firing())}") from None

    def await_value(self, expression: str, value: float) -> None:
        """Let minutes pass until the only series of the expression has this value."""

        def seen() -> bool:
            self.happens("minute")
            return self.watched.value(expression) == value

        await_that(seen, f"{expression} is {value}", SECONDS)

    def kill(self) -> None:
        # At its end it closes the pipes and waits.
        with self.triggerer:
            self.triggerer.kill()


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    for name in NAMES:
        (tmp_path / name).write_text(text_of(name))
    with monitoring(tmp_path, tmp_path) as watched:
        replay = Replay(watched, tmp_path / "triggerer.log")
        try:
            yield replay
        finally:
            replay.kill()


def queries() -> list[str]:
    panels = json.loads(text_of("dashboard.json"))["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    for variable, value in CHOSEN.items():
        found = [query.replace(variable, value) for query in found]
    return found


def of_both(*alerts: str) -> set[tuple[str, str]]:
    return {(alert, stream) for alert in alerts for stream in ("orders", "clicks")}


def test_an_incident_fires_its_alerts_and_ends_them(replay: Replay) -> None:
    replay.await_value('kstream_pulse{stream="orders"}', 0)
    replay.await_value('kstream_events{stream="orders"}', 0)
    replay.await_firing()

    replay.happens("clicks_breaks")
    replay.await_firing(("KstreamBreakerOpen", "clicks"))
    replay.happens("clicks_is_repaired")
    replay.await_firing()

    replay.happens("claims_are_refused")
    replay.await_firing(*of_both("KstreamRestartBlocked", "KstreamRestartOverdue"))
    replay.happens("horizon_passes")
    replay.await_firing(*of_both("KstreamRestartBlocked", "KstreamRestartOverdue", "KstreamCredentialsEnded"))
    replay.happens("claims_are_taken")
    replay.await_firing()
    # It is sent twice and counts once.
    replay.await_value('kstream_restarts_total{stream="orders"}', 1)

    replay.happens("cluster_goes")
    replay.await_firing(("KstreamClusterUnreachable", "simulated"))
    replay.happens("cluster_returns")
    replay.await_firing()

    replay.kill()
    replay.await_alerts({("KstreamNobodyWatches", "")})


def test_every_rule_is_evaluated_and_every_query_of_a_panel_finds_something(replay: Replay) -> None:
    replay.happens("clicks_breaks")
    replay.happens("tasks_run")
    replay.await_firing(("KstreamBreakerOpen", "clicks"), ("KstreamNotificationsDropped", "simulated"))
    assert {rule["name"]: rule["health"] for rule in replay.watched.rules() if rule["health"] != "ok"} == {}
    assert len(replay.watched.rules()) == text_of("alerts.rules.yml").count("- alert: ")

    def silent() -> list[str]:
        replay.happens("minute")
        return [query for query in queries() if not replay.watched.query(query)]

    await_that(lambda: not silent(), "each query finds something", SECONDS)
