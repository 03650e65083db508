"""A real StatsD exporter and a real Prometheus on loopback, with the files that `kstream monitoring` writes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from airflow_kstream.minicluster.ports import free_ports
from tests.live.streams import await_that

_SECONDS = 60.0
# What an administrator waits minutes for, in seconds: 10 minutes without a heartbeat, and how long a rule must hold.
_HURRIED = ((re.compile(r"([<>]) 600\b"), r"\1 10"), (re.compile(r"\bfor: \d+m\b"), "for: 2s"))


@dataclass(frozen=True)
class Monitoring:
    """What is running: the exporter takes StatsD over UDP at `statsd_port`."""

    prometheus: str
    exporter: str
    statsd_port: int

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query. Raises HTTPError: when Prometheus refuses the expression."""
        return list(self._ask("query", query=expression)["result"])

    def value(self, expression: str) -> float | None:
        """Return the value of an expression with one series, None if it has none."""
        series = self.query(expression)
        assert len(series) <= 1, series
        return float(series[0]["value"][1]) if series else None

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts that fire now, each a name and a stream's, or else its cluster's, empty without one."""
        alerts = [alert["labels"] for alert in self._ask("alerts")["alerts"] if alert["state"] == "firing"]
        return {(labels["alertname"], labels.get("stream") or labels.get("cluster", "")) for labels in alerts}

    def _ask(self, what: str, **parameters: str) -> dict[str, Any]:
        answer = requests.get(f"{self.prometheus}/api/v1/{what}", params=parameters, timeout=_SECONDS)
        assert answer.ok, f"{parameters}: {answer.text}"
        return dict(answer.json()["data"])


@contextmanager
def monitoring(files: Path, folder: Path) -> Iterator[Monitoring]:
    """Run both servers with the files, the rules in seconds instead of minutes, and end them."""
    ports = free_ports(("statsd", "exporter", "prometheus"))
    exporter, prometheus = (f"127.0.0.1:{ports[name]}" for name in ("exporter", "prometheus"))
    exports = (
        "statsd_exporter",
        f"--statsd.mapping-config={files / 'statsd_mapping.yml'}",
        f"--statsd.listen-udp=127.0.0.1:{ports['statsd']}",
        "--statsd.listen-tcp=",
        f"--web.listen-address={exporter}",
    )
    watches = (
        "prometheus",
        f"--config.file={_configured(files, folder, exporter)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={prometheus}",
    )
    with (
        _running(exports, folder / "exporter.log", f"http://{exporter}/metrics"),
        _running(watches, folder / "prometheus.log", f"http://{prometheus}/-/ready"),
    ):
        yield Monitoring(f"http://{prometheus}", f"http://{exporter}", ports["statsd"])


def _configured(files: Path, folder: Path, exporter: str) -> Path:
    rules = (files / "alerts.rules.yml").read_text()
    for pattern, hurried in _HURRIED:
        rules, changed = pattern.subn(hurried, rules)
        assert changed, f"the rules have no {pattern.pattern}"
    (folder / "hurried.rules.yml").write_text(rules)
    jobs = [{"job_name": "airflow", "static_configs": [{"targets": [exporter]}]}]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "hurried.rules.yml")],
        "scrape_configs": jobs,
    }
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    return path


@contextmanager
def _running(command: Sequence[str], log: Path, ready: str) -> Iterator[None]:
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        await_that(_answers(ready, server, log), f"{command[0]} is ready", _SECONDS)
        yield
    finally:
        server.kill()
        server.wait()


def _answers(url: str, server: subprocess.Popen[bytes], log: Path) -> Callable[[], bool]:
    def ready() -> bool:
        assert server.poll() is None, log.read_text()
        try:
            return requests.get(url, timeout=_SECONDS).ok
        except requests.ConnectionError:
            return False

    return ready
