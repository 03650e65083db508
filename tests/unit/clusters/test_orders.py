"""Orders of persons: whose count, which of two is obeyed, and that none is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.authors import (
    ALL_STREAMS,
    LAST_OF_SUPERVISORS,
    LAST_OF_USERS,
    OrderFile,
    order_name,
)
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput
from airflow_kstream.supervise.clusters.orders import ORDERS_KEPT, Orders
from airflow_kstream.supervise.clusters.state_dir import StateDir
from tests.simulated.fixtures import lived
from tests.simulated.servers import CLUSTER, SimHdfs
from tests.simulated.yarn import STREAM

PLACE, SUBJECT = CLUSTER.state_dir, str(STREAM)
# The stream's own user, beside streamer and hdfs, who are the supervisors.
USERS = frozenset({"billing"})


@dataclass
class Desk:
    """The orders on one stream, given by persons of several users."""

    hdfs: SimHdfs

    def __post_init__(self) -> None:
        self.hdfs.modes[PLACE] = "1777"

    def orders(self) -> tuple[Orders, StateDir]:
        """Return what a program that begins now has."""
        state = StateDir(self.hdfs, PLACE)  # type: ignore[arg-type]
        return Orders(self.hdfs, state), state  # type: ignore[arg-type]

    def give(self, what: str, *, by: str, subject: str = SUBJECT) -> OrderFile:
        with self.hdfs.as_user(by):
            orders, _ = self.orders()
            # The nonce of each is the order that it follows.
            return orders.give(subject, USERS, lambda basis: f"{what} {basis.number + 1 if basis else 1} by {by}")

    def newest(self, subject: str = SUBJECT) -> str:
        orders, state = self.orders()
        order = orders.newest(subject, USERS, state.look())
        return orders.text(order) if order else ""

    @contextmanager
    def before(self, request: str, happens: Callable[[], object]) -> Iterator[None]:
        """Let this happen once, right before the first request of this kind about an order."""

        def once(kind: str, path: str) -> None:
            if kind == request and "/orders." in path:
                self.hdfs.at_request = lambda kind, path: None
                happens()

        self.hdfs.at_request = once
        yield
        self.hdfs.at_request = lambda kind, path: None


@pytest.fixture
def desk() -> Iterator[Desk]:
    with lived() as life:
        yield Desk(life.hdfs)


@pytest.mark.parametrize("by", ["streamer", "hdfs", "billing"])
def test_supervisors_and_the_streams_user_are_obeyed(desk: Desk, by: str) -> None:
    assert desk.give("hold", by=by).author == by
    assert desk.newest() == f"hold 1 by {by}"


def test_numbers_count_over_all_persons_together(desk: Desk) -> None:
    for number, by in enumerate(("streamer", "billing", "hdfs", "billing"), start=1):
        assert desk.give("hold", by=by).number == number
    assert desk.newest() == "hold 4 by billing"


def test_a_stranger_hears_that_nobody_would_obey(desk: Desk) -> None:
    with pytest.raises(Denied, match="name mallory in a line of /kstream/supervisors"):
        desk.give("stop", by="mallory")
    assert desk.hdfs.files == {}


@pytest.mark.parametrize("place", ["orders.mallory", "orders.streamer", "orders.billing.2"])
def test_a_stranger_who_writes_orders_by_hand_is_not_obeyed(desk: Desk, place: str) -> None:
    with desk.hdfs.as_user("mallory"):
        desk.hdfs.make_folder(f"{PLACE}/{place}", "777")
        for subject in (SUBJECT, ALL_STREAMS):
            desk.hdfs.write(f"{PLACE}/{place}/{order_name(subject, 999999)}", '{"state": "stopped"}')
    assert desk.newest() == ""
    assert desk.give("hold", by="streamer").number == 1
    assert desk.newest() == "hold 1 by streamer"
    assert desk.newest(ALL_STREAMS) == ""


def test_in_the_open_folder_of_one_who_may_speak_each_order_has_its_own_author(desk: Desk) -> None:
    desk.give("hold", by="streamer")
    desk.hdfs.modes[f"{PLACE}/orders.streamer"] = "777"
    with desk.hdfs.as_user("mallory"):
        desk.hdfs.write(f"{PLACE}/orders.streamer/{order_name(SUBJECT, 2)}", "stop")
    assert desk.newest() == "hold 1 by streamer"


def test_another_streams_user_is_not_obeyed_and_nobody_freezes_but_supervisors(desk: Desk) -> None:
    desk.give("hold", by="billing")
    orders, state = desk.orders()
    assert orders.newest(SUBJECT, {"sales"}, state.look()) is None
    with desk.hdfs.as_user("billing"):
        desk.hdfs.write(f"{PLACE}/orders.billing/{order_name(ALL_STREAMS, 1)}", "freeze")
    assert orders.newest(ALL_STREAMS, (), state.look()) is None


def test_two_users_who_speak_at_once_both_stand_and_one_decides_again(desk: Desk) -> None:
    """Their folders differ, so no rename of the one is refused for the other's."""
    with desk.before("write", lambda: desk.give("hold", by="billing")):
        late = desk.give("stop", by="streamer")
    assert late.number == 2, "it saw the other's order, and decided again"
    assert desk.newest() == "stop 2 by streamer"
    assert sorted(path.rpartition("/")[2] for path in desk.hdfs.files) == [
        order_name(SUBJECT, 1),
        order_name(SUBJECT, 1),
        order_name(SUBJECT, 2),
    ]


def test_of_two_orders_the_later_writer_sees_the_other_and_decides_again(desk: Desk) -> None:
    given: list[OrderFile] = []
    with desk.before("read", lambda: given.append(desk.give("hold", by="billing"))):
        late = desk.give("stop", by="streamer")
    assert given[0].number != late.number
    assert desk.newest() == f"stop {late.number} by streamer"


def test_two_persons_of_one_user_write_no_order_over_the_others(desk: Desk) -> None:
    with desk.before("write", lambda: desk.give("hold", by="streamer")):
        assert desk.give("stop", by="streamer").number == 2
    assert desk.hdfs.files[f"{PLACE}/orders.streamer/{order_name(SUBJECT, 1)}"][0] == "hold 1 by streamer"


def test_what_is_given_is_closed_to_others_and_readable_by_all(desk: Desk) -> None:
    desk.give("hold", by="billing")
    assert desk.hdfs.modes[f"{PLACE}/orders.billing"] == "755"


def test_an_order_keeps_the_last_ones_of_its_author_and_subject_alone(desk: Desk) -> None:
    desk.give("hold", by="hdfs")
    desk.give("freeze", by="streamer", subject=ALL_STREAMS)
    for _ in range(ORDERS_KEPT + 3):
        desk.give("hold", by="streamer")
    kept = sorted(path.rpartition("/")[2] for path in desk.hdfs.files if "orders.streamer" in path)
    newest = ORDERS_KEPT + 4
    numbers = range(newest - ORDERS_KEPT + 1, newest + 1)
    assert kept == sorted([order_name(ALL_STREAMS, 1), *(order_name(SUBJECT, number) for number in numbers)])
    assert f"{PLACE}/orders.hdfs/{order_name(SUBJECT, 1)}" in desk.hdfs.files


def test_a_new_order_is_seen_at_once_by_who_has_looked_before(desk: Desk) -> None:
    orders, state = desk.orders()
    for what in ("hold", "start", "stop"):
        for pause in (0, 1, 100):
            desk.hdfs.clock.sleep(pause)
            number = desk.give(what, by="streamer").number
            order = orders.newest(SUBJECT, USERS, state.look())
            assert order
            assert orders.text(order) == f"{what} {number} by streamer"


def test_orders_within_one_tick_of_the_namenodes_clock_are_both_seen(desk: Desk) -> None:
    """The time of a folder that changed twice within a tick shows one change."""
    moment = desk.hdfs.now()
    desk.hdfs.clock.now = lambda: moment  # type: ignore[method-assign]
    orders, state = desk.orders()
    for what in ("hold", "stop"):
        desk.give(what, by="billing")
        order = orders.newest(SUBJECT, USERS, state.look())
        assert order
        assert orders.text(order).startswith(what)


def test_folders_that_nobody_changed_are_not_listed_again(desk: Desk) -> None:
    desk.give("hold", by="streamer")
    desk.give("hold", by="billing")
    desk.hdfs.clock.sleep(60)
    orders, state = desk.orders()
    orders.newest(SUBJECT, USERS, state.look())
    listing = state.look()
    asked: list[str] = []
    desk.hdfs.at_request = lambda request, path: asked.append(json.dumps([request, path]))
    for subject in (SUBJECT, ALL_STREAMS, "sales-00000000"):
        orders.newest(subject, USERS, listing)
    assert asked == []


@dataclass
class DefaultAcl(SimHdfs):
    """HDFS with a state_dir whose default ACL gives others nothing."""

    def make_folder(self, path: str, permission: str = "750") -> None:
        super().make_folder(path, permission[:-1] + "0")
        self.acls.add(path)


def test_a_default_acl_closes_no_folder_of_orders_to_its_readers(desk: Desk) -> None:
    """A supervisor's orders that others can't list leave every stream alone: nobody knows what is wanted."""
    desk.hdfs = DefaultAcl(desk.hdfs.clock)
    desk.give("hold", by="streamer")
    folder = f"{PLACE}/orders.streamer"
    assert (desk.hdfs.modes[folder], desk.hdfs.acls) == ("755", set())


@dataclass
class NeverBack(SimHdfs):
    """HDFS, which sets the time of a folder only ahead, and a NameNode whose clock is `behind` the former one's."""

    behind: timedelta = timedelta()
    newest: dict[str, datetime] = field(default_factory=dict)

    def now(self) -> datetime:
        return self.clock.now() - self.behind

    def _status(self, path: str, name: str) -> FileStatus:
        found = super()._status(path, name)
        if not found.is_folder:
            return found
        self.newest[path] = max(self.newest.get(path, found.modified), found.modified)
        return replace(found, modified=self.newest[path])


def test_an_order_after_a_failover_to_a_slower_clock_is_seen_in_a_minute(desk: Desk) -> None:
    desk.hdfs = NeverBack(desk.hdfs.clock)
    desk.give("start", by="streamer")
    orders, state = desk.orders()
    desk.hdfs.clock.sleep(10)
    assert (first := orders.newest(SUBJECT, USERS, state.look()))
    desk.hdfs.behind = timedelta(minutes=3)
    desk.give("hold", by="streamer")
    desk.hdfs.behind = timedelta()
    desk.hdfs.clock.sleep(60)
    second = orders.newest(SUBJECT, USERS, state.look())
    assert second
    assert (first.number, orders.text(second)) == (1, "hold 2 by streamer")


def test_while_the_time_of_a_folder_lies_ahead_each_order_is_seen(desk: Desk) -> None:
    desk.hdfs = NeverBack(desk.hdfs.clock)
    orders, state = desk.orders()
    desk.give("start", by="streamer")
    desk.hdfs.clock.sleep(10)
    orders.newest(SUBJECT, USERS, state.look())
    desk.hdfs.behind = timedelta(minutes=3)
    desk.give("hold", by="streamer")
    assert (order := orders.newest(SUBJECT, USERS, state.look()))
    assert orders.text(order) == "hold 2 by streamer"


def test_among_more_orders_than_one_listing_keeps_each_streams_are_found(desk: Desk) -> None:
    """Ten are kept on each stream, also on those that are gone."""
    desk.hdfs.most_rows = 50
    for number in range(60):
        desk.give("start", by="streamer", subject=f"a{number:02d}-00000000")
    desk.give("hold", by="streamer")
    desk.give("freeze", by="streamer", subject=ALL_STREAMS)
    assert (desk.newest(), desk.newest(ALL_STREAMS)) == ("hold 1 by streamer", "freeze 1 by streamer")
    assert desk.give("start", by="streamer").number == 2


def test_a_long_folder_that_nobody_changed_is_not_listed_again(desk: Desk) -> None:
    desk.hdfs.most_rows = 5
    for number in range(9):
        desk.give("start", by="streamer", subject=f"a{number:02d}-00000000")
    desk.hdfs.clock.sleep(10)
    orders, state = desk.orders()
    orders.newest(SUBJECT, USERS, listing := state.look())
    asked: list[str] = []
    desk.hdfs.at_request = lambda request, path: asked.append(path)
    assert orders.newest(SUBJECT, USERS, listing) is None
    assert asked == []


def test_of_each_streams_orders_the_text_of_the_newest_alone_is_remembered(desk: Desk) -> None:
    orders, _ = desk.orders()
    older, newer = desk.give("hold", by="streamer"), desk.give("stop", by="streamer")
    asked: list[str] = []
    desk.hdfs.at_request = lambda request, path: asked.append(path) if request == "read" else None
    for order in (older, newer, newer, older):
        assert orders.text(order).endswith(f"{order.number} by streamer")
    assert asked == [older.path, newer.path, older.path]


def test_nobody_reads_an_order_that_is_longer_than_any_honest_one(desk: Desk) -> None:
    order = desk.give("hold", by="billing")
    desk.hdfs.files[order.path] = ("x" * 65537, order.at)
    orders, _ = desk.orders()
    with pytest.raises(InvalidInput, match="it is longer than 65536 bytes"):
        orders.text(order)


def test_an_order_that_is_removed_at_once_was_not_given(desk: Desk) -> None:
    def removed(request: str, path: str) -> None:
        if (request, path) == ("list", PLACE):
            desk.hdfs.files.clear()

    desk.hdfs.at_request = removed
    with pytest.raises(Conflict, match="it was written, and is not among the orders that count"):
        desk.give("hold", by="streamer")


def test_above_the_last_number_of_a_user_a_supervisor_has_more(desk: Desk) -> None:
    for number in (LAST_OF_USERS, LAST_OF_USERS + 1, LAST_OF_SUPERVISORS):
        with desk.hdfs.as_user("billing"):
            desk.hdfs.make_folder(f"{PLACE}/orders.billing", "755")
            desk.hdfs.write(f"{PLACE}/orders.billing/{order_name(SUBJECT, number)}", f"start {number}")
    assert desk.newest() == f"start {LAST_OF_USERS}"
    path = f"{PLACE}/orders.billing/{order_name(SUBJECT, LAST_OF_USERS)}"
    with pytest.raises(Conflict, match=f"billing or HDFS's superuser removes .* with `hdfs dfs -rm {path}`"):
        desk.give("hold", by="billing")
    assert desk.give("stop", by="streamer").number == LAST_OF_USERS + 1
    assert desk.newest() == f"stop {LAST_OF_USERS + 1} by streamer"
