"""A job that gives orders: it runs as its stream's user, whose orders on the stream count, and stops no supervisor's.

`etl` is the user of a stream, and its driver is in a stranger's hands. HDFS and YARN are simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.authors import ALL_STREAMS, LAST_OF_USERS, FolderKind, folder_name, order_name
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import Desired, DesiredState, StreamId
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream_policies import StopPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.formats import written_desired, written_freeze
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.registry import registered
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from tests.simulated.fixtures import lived
from tests.simulated.folders import keep_copy, order_path
from tests.simulated.servers import CLUSTER, ONE_WEEK
from tests.simulated.tenants import Tenant

RUNNING, STOPPED = DesiredState.RUNNING, DesiredState.STOPPED


def closed(request: str, path: str) -> None:
    """Refuse all but etl to list its orders, as a mode of 700 does."""
    if request == "list" and path.endswith("/orders.etl"):
        raise Denied("Permission denied: user=streamer, access=READ_EXECUTE", tried=f"list {path}")


def kept_copy(tenant: Tenant) -> None:
    """Keep its declaration as a supervisor that read it: the copy tells everybody whose stream it is."""
    keep_copy(tenant.hdfs, tenant.stream, tenant.spec, tenant.acting().session.state.user)


class Driver(Tenant):
    """The stream of etl, whose first generation runs, with a driver that writes what it likes."""

    def __init__(self) -> None:
        with lived() as life:
            life.hdfs.modes[CLUSTER.state_dir] = "1777"
            super().__init__(life)
            self.spec = replace(self.spec, stop=StopPolicy(silence=timedelta(seconds=1)))
            kept_copy(self)
            self.reconcile()

    def orders(self, text: str, number: int = 1) -> None:
        path = order_path(self.stream, number, "etl")
        with self.hdfs.as_user("etl"):
            self.hdfs.make_folder(path.rpartition("/")[0], "755")
            self.hdfs.write(path, text)

    @property
    def supervisor(self) -> StreamRun:
        return replace(self.life.run, session=self.session(CLUSTER.watcher), declared=False)

    @property
    def wanted(self) -> Desired:
        return registered(self.session(CLUSTER.watcher), self.stream).desired()


@pytest.fixture
def driver() -> Iterator[Driver]:
    with lived():
        yield Driver()


@pytest.mark.parametrize(
    "text", ["rubbish", '{"version": 99}', '{"version": 3, "state": "running\udcff"}', "x" * 70000]
)
def test_an_order_that_nobody_can_read_gives_way_to_a_supervisors(driver: Driver, text: str) -> None:
    driver.orders(text)
    set_desired(driver.supervisor, STOPPED, "enough")
    assert (driver.wanted.state, driver.wanted.author) == (STOPPED, "streamer")
    assert driver.reconcile().phase is Phase.STOPPED


@pytest.mark.parametrize("number", [LAST_OF_USERS, LAST_OF_USERS + 1, 10**9 - 1, 10**9, 10**233])
def test_no_number_is_so_high_that_a_supervisor_has_none_left(driver: Driver, number: int) -> None:
    driver.orders(written_desired(Desired(RUNNING), "x", "n"), number)
    set_desired(driver.supervisor, STOPPED, "enough")
    assert driver.reconcile().phase is Phase.STOPPED


def test_a_restart_of_generations_to_come_restarts_none(driver: Driver) -> None:
    driver.orders(written_desired(Desired(RUNNING, restart_up_to=10**9), "x", "n"))
    driver.life.engine.at_submit = lambda: pytest.fail("it was restarted")
    assert driver.reconcile(mode=Mode.WATCH).generation == 1


def test_beside_such_an_order_a_person_restarts_the_newest_generation_once(driver: Driver) -> None:
    driver.orders(written_desired(Desired(RUNNING, restart_up_to=10**9), "x", "n"))
    assert request_restart(driver.supervisor, "a new jar") == 1
    for _ in range(3):
        assert driver.reconcile(mode=Mode.WATCH).generation == 2


def test_more_files_than_one_listing_keeps_hide_no_order(driver: Driver) -> None:
    driver.hdfs.most_rows = 50
    with driver.hdfs.as_user("etl"):
        folder = order_path(driver.stream, 1, "etl").rpartition("/")[0]
        driver.hdfs.make_folder(folder, "755")
        for number in range(60):
            driver.hdfs.write(f"{folder}/{number:03d}", "")
    assert "is RUNNING" in driver.watched().why
    assert not FreezeStore(driver.session(CLUSTER.watcher)).newest().holds(driver.hdfs.now())
    set_desired(driver.supervisor, STOPPED, "enough")
    assert driver.reconcile().phase is Phase.STOPPED


@pytest.mark.parametrize("number", [1, LAST_OF_USERS])
def test_a_folder_of_orders_that_only_its_user_may_list_stops_no_supervisor(driver: Driver, number: int) -> None:
    driver.orders(written_desired(Desired(RUNNING), "x", "n"), number)

    for state in (STOPPED, RUNNING, STOPPED):
        driver.hdfs.at_request = closed
        set_desired(driver.supervisor, state, "enough")
        assert driver.wanted.state is state
        driver.hdfs.at_request = lambda request, path: None
        assert driver.wanted.state is state, "for those who can list it, too"
    assert driver.reconcile().phase is Phase.STOPPED


def test_before_that_nobody_knows_what_is_wanted(driver: Driver) -> None:
    driver.orders(written_desired(Desired(DesiredState.HELD), "x", "n"))

    driver.hdfs.at_request = closed
    with pytest.raises(Denied, match="holds orders of etl, and without them nobody knows what is wanted"):
        assert driver.wanted


class TestFormerUser:
    """The stream went from etl to billing, and etl's last driver, or a person, still writes orders."""

    @pytest.fixture
    def billing(self, driver: Driver) -> Tenant:
        driver.yarn.end("application_1_0001", ApplicationState.FAILED, "an error")
        driver.life.clock.ahead += ONE_WEEK
        for path in [path for path in driver.hdfs.owners if path.startswith("/data/")]:
            driver.hdfs.owners[path] = "billing"
        driver.hdfs.owners[driver.stream.folder] = "billing"
        billing = Tenant(driver.life, "billing")
        kept_copy(billing)
        assert billing.reconcile().generation == 2
        assert driver.hdfs.owners[f"{driver.stream.folder}/{claim_file(2)}"] == "billing"
        return billing

    @pytest.mark.parametrize("number", [1, 77])
    def test_its_orders_after_the_hand_over_count_nowhere(self, driver: Driver, billing: Tenant, number: int) -> None:
        driver.orders(written_desired(Desired(STOPPED), "etl", "n"), number)
        assert billing.reconcile(mode=Mode.WATCH).generation == 2
        assert all("is RUNNING" in billing.watched(user).why for user in ("streamer", "hdfs", "etl", "ann"))

    def test_a_time_that_it_sets_back_makes_none_count(self, driver: Driver, billing: Tenant) -> None:
        driver.orders(written_desired(Desired(STOPPED), "etl", "n"))
        path = order_path(driver.stream, 1, "etl")
        driver.hdfs.files[path] = driver.hdfs.files[path][0], driver.hdfs.now() - 4 * ONE_WEEK
        assert billing.reconcile(mode=Mode.WATCH).phase is Phase.RUNNING

    def test_it_hears_that_its_orders_no_longer_count(self, driver: Driver, billing: Tenant) -> None:
        with pytest.raises(Denied, match="orders of etl don't count here, but those of hdfs, streamer and billing"):
            set_desired(driver.acting(), STOPPED, "it was mine")

    def test_those_of_its_present_user_and_of_supervisors_do(self, driver: Driver, billing: Tenant) -> None:
        for run in (billing.acting(), driver.supervisor):
            set_desired(run, STOPPED, "enough")
            assert driver.wanted.state is STOPPED
            set_desired(run, RUNNING, "go on")

    def test_on_the_way_back_each_ones_orders_hold_until_the_others_claim(
        self, driver: Driver, billing: Tenant
    ) -> None:
        set_desired(billing.acting(), DesiredState.HELD, "back to etl")
        driver.hdfs.owners[driver.stream.folder] = "etl"
        assert driver.wanted.state is DesiredState.HELD
        assert driver.reconcile().phase is Phase.HELD


class TestADriverOfEachKind:
    """A driver writes as its user: a stream's own one speaks for that stream, and a supervisor's for all of them."""

    OTHER = "sales-fdb55c8c"

    def says(self, tenant: Tenant, user: str) -> None:
        """Let the driver of this user freeze everything, and stop another stream."""
        stopped = written_desired(replace(Desired(), state=STOPPED), "jane@edge1", "x")
        frozen = written_freeze(tenant.life.clock.now() + timedelta(days=1), "jane@edge1", "maintenance", "x")
        folder = f"{CLUSTER.state_dir}/{folder_name(FolderKind.ORDERS, user)}"
        with tenant.hdfs.as_user(user):
            tenant.hdfs.make_folder(folder, "755")
            tenant.hdfs.write(f"{folder}/{order_name(self.OTHER, 1)}", stopped)
            tenant.hdfs.write(f"{folder}/{order_name(ALL_STREAMS, 1)}", frozen)

    def heard(self, tenant: Tenant) -> tuple[bool, DesiredState]:
        """Return whether all is frozen, and the state that is wanted of the other stream."""
        session = tenant.session(CLUSTER.watcher)
        other = StreamId("sales", CLUSTER.state_dir)
        assert str(other) == self.OTHER
        return FreezeStore(session).newest().holds(session.hdfs.now()), registered(session, other).desired().state

    def test_one_of_a_streams_own_user_freezes_nothing_and_stops_no_other_stream(self, driver: Driver) -> None:
        self.says(driver, "etl")
        assert self.heard(driver) == (False, RUNNING)

    def test_one_of_a_supervisors_user_speaks_for_all_streams(self, driver: Driver) -> None:
        """So docs/security.md says, and the doctor names such streams."""
        self.says(driver, "streamer")
        assert self.heard(driver) == (True, STOPPED)
