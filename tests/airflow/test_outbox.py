"""Events leave through any notifier of Airflow; one that raises or hangs costs a line and a metric, and no time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_kstream import settings
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.event import Event, EventKind
from airflow_kstream.notifications import outbox as outboxes
from airflow_kstream.notifications.notifier import configured, notify_now, require_usable
from airflow_kstream.notifications.outbox import AT_ONCE, DEADLINE, Outbox, context_of
from airflow_kstream.policy.events.bundles import MOST
from tests.airflow import notifiers
from tests.airflow.notifiers import HERE
from tests.simulated.metrics import Metrics
from tests.simulated.virtual_time import HastyLoop, VirtualLoop, at_once, run

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RECORDING = NotifyPolicy(f"{HERE}.Recording", {"name": "slack"})


def begin(stream: str, kind: EventKind = EventKind.STALLED) -> Event:
    return Event(kind, "prod", stream, NOW, "no commit for an hour")


@pytest.fixture
def counts(metrics: Metrics) -> Iterator[dict[str, int]]:
    """Airflow's counters. What the notifiers of earlier tests told is forgotten."""
    notifiers.forget()
    yield metrics.counts
    notifiers.released.set()


@pytest.fixture
def virtually(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Event]]:
    """Return a function that puts events into an outbox and waits for all, in virtual time.

    A thread takes no virtual time, so a notifier runs at once, unless it is to take so many seconds. The first
    `refused` threads can't be started.
    """
    takes, lacking = 0.0, 0

    def start(work: Callable[[], None]) -> asyncio.Future[None]:
        nonlocal lacking
        lacking -= 1
        if lacking >= 0:
            raise RuntimeError("can't start new thread")
        return at_once(work, takes)

    # In virtual time a day passes before a real thread has begun.
    monkeypatch.setattr(outboxes, "in_thread", start)

    def sent(notify: NotifyPolicy, *events: Event, seconds: float = 0.0, refused: int = 0) -> list[Event]:
        nonlocal takes, lacking
        takes, lacking = seconds, refused
        settled: list[Event] = []

        async def story() -> None:
            outbox = Outbox(settled.append)
            for event in events:
                outbox.put(notify, event)
            await asyncio.sleep(3600)

        loop = VirtualLoop()
        run(story(), loop)
        loop.close()
        return settled

    return sent


def test_a_notifier_renders_its_templates_with_the_event(counts: dict[str, int], virtually: Any) -> None:
    notify = NotifyPolicy(
        f"{HERE}.Recording", {"name": "{{ no template }}", "text": "{{ event.kind }} {{ event.stream }}"}
    )
    orders = begin("orders")

    assert virtually(notify, orders) == [orders]
    assert notifiers.told == [("{{ no template }}", "stalled orders")]
    assert counts["kstream.cluster.notifications"] == 1


def test_a_thousand_streams_with_one_cause_are_one_message(counts: dict[str, int], virtually: Any) -> None:
    settled = virtually(RECORDING, *(begin(f"stream-{number}") for number in range(1000)))

    assert len(settled) == 1000
    [(_, text)] = notifiers.told
    assert "And so for 999 more: prod/stream-1, " in text


@pytest.mark.parametrize("dark", [False, True])
def test_a_notifier_that_raises_is_tried_again(counts: dict[str, int], virtually: Any, *, dark: bool) -> None:
    settled = virtually(NotifyPolicy(f"{HERE}.Raising", {"times": 2, "dark": dark}), begin("orders"))

    assert len(notifiers.attempts) == 3
    assert [name for name, _ in notifiers.told] == ["raising"]
    assert settled == [begin("orders")]
    assert not counts["kstream.cluster.notifications_dropped"]


def test_an_event_for_which_no_thread_starts_comes_later(counts: dict[str, int], virtually: Any) -> None:
    """As often as would leave no place for another one, if each kept its own."""
    virtually(RECORDING, begin("orders"), refused=AT_ONCE)
    assert [name for name, _ in notifiers.told] == ["slack"]


def test_a_notifier_that_always_raises_costs_a_line_and_a_metric(
    counts: dict[str, int], virtually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settled = virtually(NotifyPolicy(f"{HERE}.Raising"), begin("orders"))
    ours = [record.getMessage() for record in caplog.records if record.name == outboxes.__name__]

    assert settled == [begin("orders")]
    assert counts["kstream.cluster.notifications_dropped"] == 1
    assert sum("dropped" in line and "prod/orders" in line for line in ours) == 1
    assert not any("hunter22" in line for line in ours)


@pytest.mark.parametrize("name", ["Recording", "Asynchronous"])
def test_a_notifier_runs_in_a_thread_of_its_own(name: str, counts: dict[str, int]) -> None:
    async def story() -> None:
        told: asyncio.Queue[Event] = asyncio.Queue()
        outbox = Outbox(told.put_nowait)
        outbox.put(NotifyPolicy(f"{HERE}.{name}", {"name": "x"}), begin("orders"))
        assert await told.get() == begin("orders")

    run(story(), HastyLoop())
    assert notifiers.told == [("x", begin("orders").words)]


@pytest.mark.parametrize("form", ["html", "mrkdwn"])
def test_a_notifier_can_have_the_whole_message_escaped(form: str, counts: dict[str, int]) -> None:
    strange = replace(begin("orders"), why="<!channel> & a link")
    notify = NotifyPolicy(f"{HERE}.Recording", {"text": f"{{{{ event.{form} }}}} {{{{ events[1].{form} }}}}"})

    notify_now(notify, context_of((begin("prices"), strange)))

    [(_, text)] = notifiers.told
    assert "prod/prices: it runs" in text
    assert "And so for 1 more: prod/orders" in text
    assert text.endswith("&lt;!channel&gt; &amp; a link")


def test_a_message_links_the_runbook_where_the_site_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = replace(begin("orders"), until=NOW)
    assert context_of((begin("orders"),))["event"]["runbook"] == ""

    monkeypatch.setenv("AIRFLOW__KSTREAM__DOCS_URL", "https://docs.example.com/kstream/")

    told = context_of((begin("orders", EventKind.KILLED),))["event"]
    assert told["runbook"] == "https://docs.example.com/kstream/runbook.html#waits-for-a-person"
    assert told["words"] == f"{begin('orders', EventKind.KILLED).words} Runbook: {told['runbook']}"
    assert "Runbook" not in context_of((ended,))["event"]["words"]


def test_a_notifier_that_hangs_delays_nothing_and_no_other_notifier(counts: dict[str, int]) -> None:
    """The real threads: more events than may hang at once, an event of another notifier, and the loop goes on."""
    kinds = [EventKind.STALLED, EventKind.BLIND, EventKind.BREAKER, EventKind.KILLED]
    # Time jumps when nobody hurries: a thread of a busy machine may take a while to begin.
    loop = HastyLoop(1.0)

    async def story() -> None:
        told: asyncio.Queue[Event] = asyncio.Queue()
        outbox = Outbox(told.put_nowait)
        for kind in kinds:
            outbox.put(NotifyPolicy(f"{HERE}.Hanging"), begin("orders", kind))
        outbox.put(RECORDING, begin("clicks"))
        loop.ahead += DEADLINE

        assert await told.get() == begin("clicks")
        for _ in range(AT_ONCE):
            assert await asyncio.to_thread(notifiers.hanging.acquire, timeout=60)
        while counts.get("kstream.cluster.notifications_dropped", 0) < len(kinds):
            # What it never got is tried again meanwhile, in vain.
            loop.ahead += DEADLINE
            await asyncio.sleep(0.01)
        assert {(await told.get()).kind for _ in kinds} == {*kinds}
        assert len(notifiers.attempts) == AT_ONCE
        assert counts["kstream.cluster.notifications_dropped"] == len(kinds)
        # Once they return, the notifier gets events again.
        notifiers.released.set()
        outbox.put(NotifyPolicy(f"{HERE}.Hanging"), begin("later"))
        loop.ahead += DEADLINE
        assert await told.get() == begin("later")

    run(story(), loop)
    assert counts["kstream.cluster.notifications_dropped"] == len(kinds)


def test_no_event_is_lost_because_its_notifier_is_slow(counts: dict[str, int], virtually: Any) -> None:
    """As a mail server that takes twenty seconds for each message, when a node is lost and much begins at once."""
    begun = [begin("orders", kind) for kind in [*EventKind][:7]]
    assert len(virtually(RECORDING, *begun, seconds=20)) == len(begun)
    assert len(notifiers.told) == len(begun)
    assert counts["kstream.cluster.notifications"] == len(begun)


def test_events_that_exceed_what_may_wait_are_dropped_aloud(
    counts: dict[str, int], virtually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settled = virtually(RECORDING, *(begin(f"stream-{number}") for number in range(MOST + 2)))

    assert len(settled) == MOST + 2
    assert counts["kstream.cluster.notifications_dropped"] == 2
    assert "too many events wait" in caplog.text


def test_without_a_notifier_events_count_as_told(counts: dict[str, int], virtually: Any) -> None:
    assert virtually(NotifyPolicy(), begin("orders")) == [begin("orders")]
    assert not counts


@pytest.mark.parametrize(
    ("notifier", "kwargs", "says"),
    [
        ("no.such.Notifier", {}, "notifier is 'no.such.Notifier', which can't be imported here: No module named"),
        (f"{HERE}.Nobody", {}, "which can't be imported here: module"),
        (f"{HERE}.forget", {}, "allowed is a class derived from Airflow's BaseNotifier"),
        ("venv.__main__.Notifier", {}, "allowed is a class of a library, and `__main__` is a program"),
        ("tests.airflow.ends_its_process.Notifier", {}, "which can't be imported here: it is a program"),
        ("pathlib.Path", {}, "allowed is a class derived from Airflow's BaseNotifier"),
        (f"{HERE}.Recording", {"channel": "x"}, "unexpected keyword argument 'channel'"),
        (
            "airflow.providers.smtp.notifications.smtp.SmtpNotifier",
            {"from_email": "a@b"},
            "missing a required argument",
        ),
    ],
)
def test_a_notifier_that_can_not_be_made_is_refused(notifier: str, kwargs: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        require_usable(NotifyPolicy(notifier, kwargs), "notify.")


def test_airflows_own_notifiers_are_usable() -> None:
    mail = NotifyPolicy("airflow.providers.smtp.notifications.smtp.SmtpNotifier", {"to": "a@b", "smtp_conn_id": "mail"})
    require_usable(mail, "notify.")
    require_usable(NotifyPolicy(), "notify.")


def test_the_settings_name_a_notifier_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(NotifyPolicy()) == NotifyPolicy()
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", RECORDING.notifier or "")
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER_KWARGS", '{"name": "slack"}')
    declared = NotifyPolicy(f"{HERE}.Raising")

    assert configured(NotifyPolicy()) == RECORDING
    assert configured(declared) == declared


@pytest.mark.parametrize(
    ("notifier", "kwargs", "says"),
    [
        ("a.B", "{", r"\[kstream\] notifier_kwargs is not JSON"),
        ("a.B", "[1]", r"\[kstream\] notifier_kwargs is a list; allowed is a mapping"),
        ("B", "", r"\[kstream\] notifier is 'B'; allowed is the dotted path of a class"),
        ("", '{"a": 1}', r"\[kstream\] notifier_kwargs is given, and notifier is missing"),
        ("a.B", '{"password": "hunter22"}', r"\[kstream\] notifier_kwargs.password: a secret in clear"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    notifier: str, kwargs: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", notifier)
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER_KWARGS", kwargs)
    with pytest.raises(InvalidInput, match=says) as refusal:
        settings.notifier()
    assert "hunter22" not in str(refusal.value)
