"""One cause of many streams is one message, a storm a handful, and a lone event leaves at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from airflow_kstream.model.streams.event import Event, EventKind
from airflow_kstream.policy.events.bundles import FIRST, LONGEST, MOST, Bundles, words

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOTIFIER = "slack"


def begin(stream: str, kind: EventKind = EventKind.STALLED, cluster: str = "prod") -> Event:
    return Event(kind, cluster, stream, NOW, "no commit for an hour")


def end(stream: str) -> Event:
    return replace(begin(stream), until=NOW + timedelta(hours=1))


def sent(added: Sequence[tuple[float, Event]], until: float) -> list[tuple[float, int]]:
    """Return when each message leaves, and how many events it tells, if these are added at these seconds."""
    bundles, messages, pending, now = Bundles(), [], list(added), 0.0
    while now <= until:
        while pending and pending[0][0] <= now:
            bundles = bundles.add(NOTIFIER, pending.pop(0)[1], now)
        bundles, due = bundles.take(now)
        messages += [(now, len(events)) for events in due.values()]
        now += 1
    return messages


def test_a_lone_event_leaves_after_a_moment() -> None:
    assert sent([(100, begin("orders"))], 2000) == [(100 + FIRST, 1)]


def test_a_thousand_streams_with_one_cause_are_one_message() -> None:
    assert sent([(0, begin(f"stream-{number}")) for number in range(1000)], 2000) == [(FIRST, 1000)]


def test_a_storm_of_an_hour_is_a_handful_of_messages() -> None:
    storm = [(3.0 * number, begin(f"stream-{number}")) for number in range(1200)]
    messages = sent(storm, 3 * 3600)

    assert sum(count for _, count in messages) == 1200
    assert len(messages) <= 10
    assert max(later - earlier for (earlier, _), (later, _) in pairwise(messages)) <= LONGEST + 5


def test_events_far_apart_each_leave_at_once() -> None:
    daily = [(86400.0 * day, begin(f"stream-{day}")) for day in range(3)]

    assert [at % 86400 for at, _ in sent(daily, 3 * 86400)] == [FIRST] * 3


def test_kinds_clusters_notifiers_begins_and_ends_are_messages_of_their_own() -> None:
    bundles = Bundles().add("slack", begin("a"), 0).add("mail", begin("b"), 0)
    for event in (begin("c", EventKind.BLIND), begin("d", cluster="test"), end("e")):
        bundles = bundles.add("slack", event, 0)

    assert len(bundles.take(FIRST)[1]) == 5


def test_what_is_over_before_its_message_left_has_none() -> None:
    bundles = Bundles().add(NOTIFIER, begin("orders"), 0).add(NOTIFIER, begin("clicks"), 0)
    bundles = bundles.add(NOTIFIER, end("orders"), 5)

    assert [[event.stream for event in events] for events in bundles.take(3600)[1].values()] == [["clicks"]]
    assert bundles.add(NOTIFIER, end("clicks"), 5).next_due is None


def test_an_end_whose_begin_has_left_leaves_too() -> None:
    bundles, _ = Bundles().add(NOTIFIER, begin("orders"), 0).take(FIRST)
    _, told = bundles.add(NOTIFIER, end("orders"), 100).take(200)

    assert [event.ended for events in told.values() for event in events] == [True]


def test_what_waits_is_bounded() -> None:
    bundles = Bundles()
    for number in range(MOST):
        assert not bundles.full
        bundles = bundles.add(NOTIFIER, begin(f"s{number}", EventKind.BLIND if number % 2 else EventKind.STALLED), 0)

    assert bundles.full


def test_a_message_of_many_is_one_line_whatever_they_are_called() -> None:
    strange = replace(begin("s1"), about="/data/\n\x1b[2J<!channel>")

    assert words((begin("s0"), strange)).endswith(" And so for 1 more: /data/ \\x1b[2J<!channel>")


def test_a_message_of_many_names_some() -> None:
    one, many = (begin("s0"),), tuple(begin(f"s{number}") for number in range(1000))

    assert words(one) == one[0].words
    assert words(many).startswith(
        "prod/s0: it runs and makes no progress: no commit for an hour. And so for 999 more: "
    )
    assert words(many).endswith("prod/s19, prod/s20, 979 more")
