"""What was told outlives every process: a ledger is stored, read again, and may be an older or a newer version's."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest

from airflow_kstream.model.streams.event import WORDS, Event, EventKind, LastingEvent, Ledger, Trouble
from airflow_kstream.policy.events.bundles import compare, joined

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
STALLED = Trouble(EventKind.STALLED, "no commit for an hour")
EVERYTHING = frozenset(EventKind)


def test_a_ledger_is_read_as_it_was_written() -> None:
    ledger, _ = compare(Ledger(), [STALLED, Trouble(EventKind.TICKET, "x", "etl@A")], EVERYTHING, NOW, "prod")

    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger


def test_a_ledger_stays_small() -> None:
    ledger, _ = compare(Ledger(), [Trouble(kind, "why " * 5000) for kind in EventKind], EVERYTHING, NOW, "prod")

    assert len(json.dumps(ledger.to_json())) < 300 * len(EventKind)


def test_what_is_foretold_is_in_the_message_and_not_kept() -> None:
    """A ledger cuts long causes, and a page has what is foretold from elsewhere."""
    lost = Trouble(EventKind.NOT_REPLACEABLE, "since 00:38 UTC", foretold="its logs are lost")
    ledger, (event,) = compare(Ledger(), [lost], EVERYTHING, NOW, "prod", "orders")
    assert event.words.endswith("can't be replaced: since 00:38 UTC; foretold: its logs are lost")
    assert event.to_json()["why"] == "since 00:38 UTC; foretold: its logs are lost"
    assert [each.why for each in ledger.lasting.values()] == ["since 00:38 UTC"]


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "told",
        {},
        {"lasting": "stalled"},
        {"lasting": [{"kind": "of a later version", "since": NOW.isoformat()}], "changes": 1},
        {"lasting": [{"kind": "stalled", "since": "yesterday"}]},
        {"lasting": [{"kind": "stalled", "since": "2026-03-01T12:00:00"}]},
        {"lasting": [7], "changes": "many"},
    ],
)
def test_what_can_not_be_read_was_not_told(stored: Any) -> None:
    assert not Ledger.from_json(stored).lasting


def test_what_can_be_read_beside_it_is_kept() -> None:
    since = {"since": NOW.isoformat()}
    read = Ledger.from_json({"lasting": [{"kind": "new", **since}, {"kind": "stalled", **since}], "changes": 2})

    assert read == Ledger({(EventKind.STALLED, ""): LastingEvent(EventKind.STALLED, NOW, "")}, 2)


def test_a_lost_ledger_gives_way_to_the_other_one() -> None:
    begun, _ = compare(Ledger(), [STALLED], EVERYTHING, NOW, "prod")
    over, _ = compare(begun, [], EVERYTHING, NOW, "prod")

    assert joined(begun, Ledger()) == joined(Ledger(), begun) == begun
    assert joined(begun, over) == joined(over, begun) == over


def told_of(*kinds: EventKind, now: datetime = NOW, before: Ledger | None = None) -> Ledger:
    return compare(before or Ledger(), [Trouble(kind, "x") for kind in kinds], EVERYTHING, now, "prod")[0]


def test_what_was_told_alone_and_what_others_told_before_both_last() -> None:
    """Also if more was told alone than before: nobody has told yet that the other one is over."""
    stored = told_of(EventKind.BLIND)
    alone = told_of(EventKind.STALLED, EventKind.QUEUED, now=NOW + HOUR, before=Ledger(alone=True))
    both = joined(stored, alone)

    assert both.kinds == {EventKind.BLIND, EventKind.STALLED, EventKind.QUEUED}
    assert not both.alone
    assert both.changes > max(stored.changes, alone.changes), "it is newer than both"
    assert Ledger.from_json(json.loads(json.dumps(alone.to_json()))) == alone


def test_of_an_event_that_was_told_twice_the_first_begin_counts() -> None:
    alone = told_of(EventKind.STALLED, now=NOW + HOUR, before=Ledger(alone=True))
    (event,) = joined(told_of(EventKind.STALLED), alone).lasting.values()

    assert event.since == NOW


def test_what_was_told_alone_to_be_over_does_not_last_by_what_others_told() -> None:
    alone = told_of(EventKind.STALLED, now=NOW + HOUR, before=Ledger(alone=True))
    over = told_of(now=NOW + 2 * HOUR, before=alone)

    assert not joined(told_of(EventKind.STALLED), over).lasting
    assert not joined(replace(over, alone=False), told_of(EventKind.STALLED, before=Ledger(alone=True))).lasting


def test_what_was_under_way_when_a_task_deferred_is_no_longer_of_what_was_joined() -> None:
    carried = replace(told_of(EventKind.STALLED), under_way=2)

    assert Ledger.from_json(json.loads(json.dumps(carried.to_json()))) == carried
    assert joined(Ledger(), carried).under_way == 0


def test_an_event_lasts_though_its_words_change() -> None:
    ledger, begun = compare(Ledger(), [STALLED], EVERYTHING, NOW, "prod", "orders")
    ledger, more = compare(ledger, [Trouble(EventKind.STALLED, "no commit for two hours")], EVERYTHING, NOW, "prod")

    assert [event.why for event in begun] == ["no commit for an hour"]
    assert more == ()


def test_troubles_of_one_kind_about_two_things_are_two_events() -> None:
    both = [Trouble(EventKind.TICKET, "the KDC is away", principal) for principal in ("a@A", "b@A")]
    ledger, begun = compare(Ledger(), both, EVERYTHING, NOW, "prod")
    _, ended = compare(ledger, both[:1], EVERYTHING, NOW + timedelta(hours=1), "prod")

    assert [event.about for event in begun] == ["a@A", "b@A"]
    assert [(event.about, event.ended) for event in ended] == [("b@A", True)]


def test_an_event_says_what_people_call_its_stream_and_what_they_type() -> None:
    seen = [Trouble(EventKind.STALLED, "no commit for an hour")]
    told, [begin] = compare(Ledger(), seen, {EventKind.STALLED}, NOW, "prod", "orders_v2", "Orders <v2>")
    _, [end] = compare(told, [], {EventKind.STALLED}, NOW, "prod", "orders_v2", "Orders <v2>")

    assert begin.words.startswith("prod/Orders <v2> (orders_v2): it runs and makes no progress")
    assert end.words.startswith("prod/Orders <v2> (orders_v2): it is stalled no longer")
    assert (begin.to_json()["stream"], begin.to_json()["app_name"]) == ("orders_v2", "Orders <v2>")
    assert begin.to_json()["html"].startswith("prod/Orders &lt;v2&gt; (orders_v2): ")
    assert Event(EventKind.STALLED, "prod", "orders", NOW, "", app_name="\x1b[2J").words.startswith("prod/\\x1b[2J (")


def test_events_are_sentences() -> None:
    begin = Event(EventKind.STALLED, "prod", "orders", NOW, "no commit for an hour")
    end = Event(EventKind.TICKET, "prod", "", NOW, "the KDC is away", "etl@A", until=NOW + timedelta(minutes=90))

    assert begin.words == "prod/orders: it runs and makes no progress: no commit for an hour"
    assert end.words == "prod: the ticket is renewed (etl@A), after 1h 30m"
    assert end.to_json()["lasted"] == 5400
    assert set(WORDS) == set(EventKind)


FOREIGN = "hold\x1b[2J on:\r\n\tsee <https://evil|the runbook> <!channel> <img src=x onerror='go()'> \u202eA&B \x07"


@pytest.mark.parametrize("about", ["", "/data/\nprod: all is well\x00"])
def test_foreign_text_in_an_event_is_one_line_without_control_characters(about: str) -> None:
    told = Event(EventKind.FROZEN, "prod", "orders", NOW, FOREIGN, about).to_json()

    assert told["words"].isprintable()
    assert told["why"].isprintable()
    assert told["about"].isprintable()
    assert told["why"].startswith("hold\\x1b[2J on: see <https://evil|the runbook>")


def test_a_secret_in_a_cause_neither_leaves_nor_is_noted() -> None:
    why = "connection to jdbc:postgresql://u:s3cret@db/x?password=hunter2 is refused"
    told = Event(EventKind.FROZEN, "prod", "orders", NOW, why).to_json()
    noted = Ledger({(EventKind.FROZEN, ""): LastingEvent(EventKind.FROZEN, NOW, why)}, 1).to_json()
    for text in (json.dumps(told), json.dumps(noted)):
        assert "postgresql" in text
        assert "s3cret" not in text
        assert "hunter2" not in text


def test_an_event_is_offered_as_html_and_as_slack_s_mrkdwn() -> None:
    told = Event(EventKind.FROZEN, "prod", "orders", NOW, FOREIGN).to_json()

    for form in ("html", "mrkdwn"):
        assert not {"<", ">"} & set(told[form])
        assert "&lt;!channel&gt;" in told[form]
        assert "&lt;https://evil|the runbook&gt;" in told[form]
        assert "A&amp;B" in told[form]
        assert unescape(told[form]) == told["words"]
    assert "'" not in told["html"]
    assert "onerror='go()'" in told["mrkdwn"]


def test_the_last_events_that_ended_are_kept_for_people() -> None:
    ledger, hour = Ledger(), timedelta(hours=1)
    for number in range(20):
        ledger, _ = compare(ledger, [STALLED], EVERYTHING, NOW + 2 * number * hour, "prod")
        ledger, _ = compare(ledger, [], EVERYTHING, NOW + (2 * number + 1) * hour, "prod")
    assert [event.until for event in ledger.past] == [NOW + (2 * number + 1) * hour for number in range(5, 20)]
    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger
    assert joined(Ledger(changes=1000), ledger).past == ledger.past
    assert len(json.dumps(ledger.to_json())) < 3500


def test_a_past_event_that_can_not_be_read_hides_no_other() -> None:
    since = {"since": NOW.isoformat(), "until": NOW.isoformat()}
    past = [7, {"kind": "stalled", **since}, {"kind": "stalled", "since": NOW.isoformat()}]
    assert len(Ledger.from_json({"lasting": [], "past": past}).past) == 1
