"""Each event and each alert has an entry of its own in the runbook, which links lead to."""

from __future__ import annotations

import pytest
import yaml

from airflow_kstream.model.runbook import anchor, heading, link
from airflow_kstream.model.streams.event import EventKind
from airflow_kstream.monitoring import text_of
from tests.pages import ROOT, Page, slug

ALERTS = [rule["alert"] for group in yaml.safe_load(text_of("alerts.rules.yml"))["groups"] for rule in group["rules"]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("restart_overdue", "Restart overdue"),
        ("KstreamRestartOverdue", "Restart overdue"),
        ("KstreamWaitsForAPerson", "Waits for a person"),
        ("blind", "Blind"),
    ],
)
def test_an_alert_and_its_event_have_one_heading(name: str, words: str) -> None:
    assert heading(name) == words
    assert anchor(name) == slug(words)


def test_each_event_and_each_alert_has_an_entry() -> None:
    anchors = Page.of(ROOT / "docs" / "runbook.md").anchors
    assert {name for name in (*EventKind, *ALERTS) if anchor(name) not in anchors} == set()


def test_without_a_site_there_is_no_link() -> None:
    assert link("", "stalled") == ""
    assert link("https://docs.example.com/", "stalled") == "https://docs.example.com/runbook.html#stalled"
