"""Each event, alert and error has an entry of its own in the runbook, which links lead to."""

from __future__ import annotations

import re

import pytest
import yaml

from airflow_kstream.model import errors
from airflow_kstream.model.streams.event import EventKind, anchor, heading, link
from airflow_kstream.monitoring import text_of
from tests.pages import ROOT, Page, slug

RUNBOOK = Page.of(ROOT / "docs" / "runbook.md")
# No task starts a minicluster.
ERRORS = {each.__name__ for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)}
ERRORS -= {"MiniclusterError"}
# What a task of ours says in Airflow's words fails it at once.
AIRFLOWS = {"AirflowFailException"}

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
    assert {name for name in (*EventKind, *ALERTS) if anchor(name) not in RUNBOOK.anchors} == set()


def test_each_error_that_can_end_a_task_has_an_entry_by_its_name() -> None:
    entries = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", RUNBOOK.text, re.MULTILINE | re.DOTALL))
    assert entries.keys() == ERRORS | AIRFLOWS
    parts = ("Means:", "Type first:", "Do:", "Can it wait?")
    assert [(name, part) for name, entry in entries.items() for part in parts if f"**{part}**" not in entry] == []


def test_the_tasks_raise_no_error_of_another_name() -> None:
    folders = ("operators", "sensors", "triggers", "hooks", "notifications", "dags")
    files = [path for folder in folders for path in (ROOT / "airflow_kstream" / folder).rglob("*.py")]
    raised = {name for path in files for name in re.findall(r"raise ([A-Z]\w+)\(", path.read_text())}
    # The one skips a task; the other is a notifier's, which fails none.
    assert raised - {"AirflowSkipException", "NotReturned"} <= ERRORS | AIRFLOWS


def test_without_a_site_there_is_no_link() -> None:
    assert link("", "stalled") == ""
    assert link("https://docs.example.com/", "stalled") == "https://docs.example.com/runbook.html#stalled"
