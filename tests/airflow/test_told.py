"""What was told outlives triggerers and HDFS's failures: in notes of those who told it, and never by a row's word."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.streams.event import EventKind, Ledger, Trouble
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.notifications import ledgers
from airflow_kstream.triggers import notifying
from airflow_kstream.triggers.notifying import Teller, told_subject
from tests.airflow import notifiers
from tests.airflow.test_events import CALM, HOUR, MINUTE, names, told
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import CLUSTER

pytestmark = pytest.mark.usefixtures("recording")

STALLED, QUEUED = Trouble(EventKind.STALLED, "no commit"), Trouble(EventKind.QUEUED, "no room")
AWAY = Unavailable("connection refused", tried="ask HDFS", server="http://nn:9870")
REFUSED = Denied("the NameSpace quota of /kstream is exceeded", tried="write")
EVERYTHING = frozenset(EventKind)
OWN = f"{CLUSTER.state_dir}/told.streamer"


def refuse_requests(fleet: Fleet, error: KstreamError, *requests: str, of: str = "") -> None:
    """Let HDFS answer these requests so, or all, whose path has these words."""

    def answer(request: str, path: str) -> None:
        if (not requests or request in requests) and of in path:
            raise error

    fleet.hdfs.at_request = answer


def answer_again(fleet: Fleet) -> None:
    fleet.hdfs.at_request = lambda request, path: None


def note_of(fleet: Fleet, stream: str = "") -> Ledger:
    subject = told_subject((CONNECTION, stream))
    return fleet.session.told.read([subject])[subject]


def notes(fleet: Fleet) -> list[str]:
    return [path for path in fleet.hdfs.files if path.startswith(OWN)]


def kill(fleet: Fleet) -> None:
    """End this triggerer, with all that it had not told yet."""
    fleet.restart_triggerer()
    notifiers.told.clear()


def test_a_triggerer_that_is_killed_with_standing_events_tells_none_again(fleet: Fleet) -> None:
    """And the end of each once."""
    fifty = names(50)

    async def watch(seen: list[Trouble], hours: float) -> None:
        async with AsyncExitStack() as opened:
            tellers = [await opened.enter_async_context(Teller(CONNECTION, name)) for name in fifty]
            for _ in range(int(hours * 12)):
                await asyncio.sleep(5 * MINUTE)
                for teller in tellers:
                    teller.saw(seen, EVERYTHING)

    async def story() -> None:
        await watch([STALLED], 2)
        assert {note_of(fleet, name).kinds for name in fifty} == {frozenset({EventKind.STALLED})}
        kill(fleet)
        await watch([STALLED], 2)
        assert told(fleet) == []
        await watch([], 2)

    fleet.live(story)
    ((_, text),) = notifiers.told
    assert text.startswith("simulated/stream-0: it is stalled no longer")
    assert "And so for 49 more: " in text


@pytest.mark.parametrize("killed", [False, True])
def test_namenodes_that_are_away_for_an_hour_are_one_message(fleet: Fleet, killed: bool) -> None:
    """It is noted when they are back. A triggerer that is killed meanwhile may tell it once more, and its end once."""
    fleet.declare(*names(5), watch=CALM)

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        refuse_requests(fleet, AWAY)
        await asyncio.sleep(HOUR)
        if killed:
            fleet.restart_triggerer()
            await asyncio.sleep(HOUR)
        begins = told(fleet)
        assert begins == ["the cluster is unreachable, so none of its streams is seen"] * (1 + killed)
        answer_again(fleet)
        await asyncio.sleep(30 * MINUTE)
        assert told(fleet)[len(begins) :] == ["the cluster is reachable"]
        assert [event.kind for event in note_of(fleet).past] == [EventKind.UNREACHABLE]
        assert not note_of(fleet).lasting

    fleet.live(story)
    assert fleet.told("What was told of simulated can't be noted on HDFS") == 1 + killed


@pytest.mark.parametrize("error", [AWAY, REFUSED])
def test_a_note_that_can_not_be_made_costs_no_message_and_is_made_later(fleet: Fleet, error: KstreamError) -> None:
    async def story() -> None:
        refuse_requests(fleet, error, "write", of="/told.")
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(1)
            teller.saw([STALLED], EVERYTHING)
            await asyncio.sleep(3 * HOUR)
            teller.saw([], EVERYTHING)
            await asyncio.sleep(HOUR)
        assert len(told(fleet)) == 2
        assert notes(fleet) == []
        answer_again(fleet)
        await asyncio.sleep(15 * MINUTE)
        assert [event.kind for event in note_of(fleet, "orders").past] == [EventKind.STALLED]

    fleet.live(story)
    assert fleet.told("can't be noted on HDFS") == 1, "each cause once"


def test_what_others_told_counts_once_it_can_be_read(fleet: Fleet) -> None:
    """Meanwhile it is told as if there were nothing: an event that lasts comes once more, and none is missed."""
    subject = told_subject((CONNECTION, "orders"))

    async def story() -> None:
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(1)
            teller.saw([STALLED, QUEUED], EVERYTHING)
            await asyncio.sleep(HOUR)
        kill(fleet)
        refuse_requests(fleet, AWAY)
        async with Teller(CONNECTION, "orders") as teller:
            teller.saw([STALLED], {EventKind.STALLED})
            await asyncio.sleep(MINUTE + 1)
            assert told(fleet) == []
            teller.saw([STALLED], {EventKind.STALLED})
            await asyncio.sleep(HOUR)
            assert told(fleet) == ["it runs and makes no progress"]
            answer_again(fleet)
            await asyncio.sleep(15 * MINUTE)
            assert fleet.session.told.read([subject])[subject].kinds == {EventKind.STALLED, EventKind.QUEUED}
            teller.saw([], EVERYTHING)
            await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert sorted(told(fleet)[1:]) == ["it is stalled no longer", "it waits in YARN's queue no longer"]
    assert not note_of(fleet, "orders").lasting


def forged(value: str) -> object:
    lasting = [{"kind": kind.value, "about": "", "since": "2026-01-01T00:00:00+00:00"} for kind in EventKind]
    rows: dict[str, object] = {
        "everything": {"version": 1, "changes": 10**9, "lasting": lasting},
        "rubbish": ["told"],
        "huge": {"version": 1, "changes": 10**9, "lasting": [{**lasting[0], "about": str(n)} for n in range(20_000)]},
    }
    return rows[value]


@pytest.mark.parametrize("row", ["everything", "rubbish", "huge"])
def test_a_forged_row_neither_suppresses_nor_ends_an_event(fleet: Fleet, row: str) -> None:
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(minutes=1)))
    for uri in (asset_uri(CONNECTION), asset_uri(CONNECTION, "orders")):
        fleet.store[uri, ledgers.KEY] = forged(row)

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        assert told(fleet) == []
        fleet.yarn.away = True
        await asyncio.sleep(10 * MINUTE)
        fleet.restart_triggerer()
        await asyncio.sleep(10 * MINUTE)
        assert told(fleet) == ["the cluster is unreachable, so none of its streams is seen"]

    fleet.live(story)


def test_what_was_on_its_way_at_a_kill_comes_from_the_next_triggerer(fleet: Fleet) -> None:
    """Its task had deferred again by then, and carries what had left."""
    carried: list[Ledger] = []

    async def story() -> None:
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(1)
            teller.saw([STALLED], EVERYTHING)
            carried.append(Ledger.from_json(teller.handed_on.to_json()))
        fleet.notifiers_hang = True
        await asyncio.sleep(MINUTE / 2)
        fleet.restart_triggerer()
        fleet.notifiers_hang = False
        async with Teller(CONNECTION, "orders", carried[0]) as teller:
            for _ in range(20):
                teller.saw([STALLED], EVERYTHING)
                await asyncio.sleep(10)

    fleet.live(story)
    assert told(fleet) == ["it runs and makes no progress"]


@pytest.mark.parametrize("unread", [True, False])
def test_a_stream_whose_triggers_live_for_seconds_tells_without_its_notes(fleet: Fleet, unread: bool) -> None:
    """It dies at each start: each trigger waits, and has ended before its minute is over. Or a killed one carried on
    what never left."""
    if unread:
        refuse_requests(fleet, AWAY)

    async def story() -> None:
        carried = Ledger(changes=7, under_way=0 if unread else 1)
        for _ in range(20):
            async with Teller(CONNECTION, "orders", carried) as teller:
                for _ in range(4):
                    await asyncio.sleep(10)
                    teller.saw([STALLED], EVERYTHING)
                carried = Ledger.from_json(teller.handed_on.to_json())

    fleet.live(story)
    assert told(fleet) == ["it runs and makes no progress"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_is_on_its_way_as_a_task_defers_again_comes_once(fleet: Fleet, elsewhere: bool) -> None:
    """Also if another triggerer goes on: it waits for the note of the one that told it."""

    async def story() -> None:
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(1)
            teller.saw([STALLED], EVERYTHING)
            carried = Ledger.from_json(teller.handed_on.to_json())
        if elsewhere:
            notifying._process = notifying._Process()
        async with Teller(CONNECTION, "orders", carried) as teller:
            for _ in range(20):
                teller.saw([STALLED], EVERYTHING)
                await asyncio.sleep(10)
            teller.saw([], EVERYTHING)
            await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert told(fleet) == ["it runs and makes no progress", "it is stalled no longer"]


def test_what_can_not_be_noted_comes_once_though_its_task_defers_again(fleet: Fleet) -> None:
    async def story() -> None:
        refuse_requests(fleet, AWAY)
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(MINUTE + 1)
            teller.saw([STALLED], EVERYTHING)
            carried = Ledger.from_json(teller.handed_on.to_json())
        async with Teller(CONNECTION, "orders", carried) as teller:
            for _ in range(20):
                await asyncio.sleep(10)
                teller.saw([STALLED], EVERYTHING)

    fleet.live(story)
    assert told(fleet) == ["it runs and makes no progress"]


def test_what_another_task_of_this_process_tells_right_now_comes_once(fleet: Fleet) -> None:
    """A task that a person cleared hands nothing on, and its message has not left yet."""

    async def story() -> None:
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(1)
            teller.saw([STALLED], EVERYTHING)
        async with Teller(CONNECTION, "orders") as teller:
            for _ in range(20):
                await asyncio.sleep(1)
                teller.saw([STALLED], EVERYTHING)
            await asyncio.sleep(MINUTE)
            assert note_of(fleet, "orders").changes == 1

    fleet.live(story)
    assert told(fleet) == ["it runs and makes no progress"]


def test_an_event_that_has_not_left_is_not_noted_with_one_that_has(fleet: Fleet) -> None:
    async def story() -> None:
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(1)
            teller.saw([STALLED], EVERYTHING)
            await asyncio.sleep(15)
            teller.saw([STALLED, QUEUED], EVERYTHING)
            await asyncio.sleep(10)
            assert note_of(fleet, "orders").kinds == {EventKind.STALLED}
            await asyncio.sleep(MINUTE)
            assert note_of(fleet, "orders").kinds == {EventKind.STALLED, EventKind.QUEUED}

    fleet.live(story)


def test_an_event_that_was_over_before_it_left_keeps_no_other_from_its_note(fleet: Fleet) -> None:
    async def story() -> None:
        async with Teller(CONNECTION, "orders") as teller:
            await asyncio.sleep(1)
            teller.saw([STALLED], EVERYTHING)
            teller.saw([], EVERYTHING)
            assert teller.handed_on.under_way == 0
            teller.saw([QUEUED], EVERYTHING)
            await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert told(fleet) == ["it waits in YARN's queue"]
    assert note_of(fleet, "orders").kinds == {EventKind.QUEUED}


def test_a_thousand_streams_that_begin_cost_some_requests_together(fleet: Fleet) -> None:
    """A look at the state_dir for each two hundred, and one request for each note that is there; none writes."""
    for name in ("stream-7", "stream-900"):
        fleet.session.told.note(told_subject((CONNECTION, name)), Ledger(changes=3))
    requests: list[tuple[str, str]] = []
    fleet.hdfs.at_request = lambda request, path: requests.append((request, path))

    async def story() -> None:
        tellers = [Teller(CONNECTION, name) for name in names(1000)]
        for teller in tellers:
            teller.load()
        await asyncio.sleep(1)
        assert sum(teller.ledger.changes for teller in tellers) == 6
        await asyncio.sleep(HOUR)

    fleet.live(story)
    reads = [path for request, path in requests if request == "read"]
    assert len(reads) == 2
    assert len(requests) <= 20
    assert {request for request, _ in requests} == {"read", "list", "status"}


def test_nothing_is_noted_of_a_stream_that_is_well(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        for _ in range(24):
            await asyncio.sleep(HOUR)
            fleet.engine.complete_epoch(fleet.specs["orders"])

    fleet.live(story)
    assert notes(fleet) == []
