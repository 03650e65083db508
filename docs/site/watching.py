"""The pages of events, alerts and metrics, from the tables and rules that the package sends and ships."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from airflow_kstream.metrics import METRICS
from airflow_kstream.model.streams.event import WORDS, anchor
from airflow_kstream.monitoring import text_of
from airflow_kstream.policy.events.signs import OF_A_STREAM
from docs.site.markdown import cell, page, table, word


def events() -> str:
    """Return the page of events."""
    rows = (
        (word(kind.value), begins, ends, "a stream" if kind in OF_A_STREAM else "a cluster", _link(kind.value))
        for kind, (begins, ends) in WORDS.items()
    )
    return page(
        "Events",
        "Notifiers tell each once when it begins and once when it ends. Their templates have the word as `event.kind`.",
        table(("kind", "it begins", "it ends", "of", "what to do"), rows),
    )


def alerts() -> str:
    """Return the page of the alert rules."""
    rows = (_row(rule) for rule in rules())
    return page(
        "Alerts for Prometheus",
        "`kstream monitoring FOLDER` writes these rules with their tests, the exporter's mapping and a dashboard.",
        table(("alert", "severity", "it says", "after", "what to do"), rows),
    )


def metrics() -> str:
    """Return the page of metrics."""
    return page(
        "Metrics",
        "Each is sent with the tags `cluster` and `stream` (or `principal`, `path`), and once more with their values "
        "in its name: `kstream.<connection>.<stream>.<name>`, for servers that know no tags.",
        table(("metric", "meaning"), ((word(f"kstream.{name}"), cell(text)) for name, text in METRICS.items())),
    )


def _row(rule: Mapping[str, Any]) -> tuple[str, ...]:
    alert, summary = rule["alert"], _plain(rule["annotations"]["summary"])
    return word(alert), rule["labels"]["severity"], summary, rule.get("for", ""), _link(alert)


def rules() -> Iterator[dict[str, Any]]:
    """Yield the alert rules."""
    for group in yaml.safe_load(text_of("alerts.rules.yml"))["groups"]:
        yield from group["rules"]


def _link(name: str) -> str:
    return f"[runbook](../runbook.md#{anchor(name)})"


def _plain(summary: str) -> str:
    """Return what an alert says, with words in place of templates: CLUSTER for a label, N for its value."""
    labels = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda match: match[1].upper(), summary)
    return re.sub(r"\{\{ \$value( \|[^}]*)? \}\}", lambda match: "a time" if match[1] else "N", labels)
