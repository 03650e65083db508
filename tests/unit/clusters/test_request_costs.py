"""The proof of authors costs a watcher one listing of the state_dir a round, and nothing else once it is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.authors import ALL_STREAMS, FolderKind, folder_name, order_name
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.look.status import StandingLook
from airflow_kstream.supervise.streams.look.watch import Watch
from tests.simulated.fixtures import lived
from tests.simulated.folders import keep_copy
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, session_of

PLACE = CLUSTER.state_dir
# Whose streams there are: a supervisor's, and a tenant's.
STREAMER, TENANT = "streamer", "billing"
Asked = Counter[tuple[str, str]]


class Fleet:
    """So many streams of two users, persons who gave orders, and a stranger among them."""

    def __init__(self, size: int, life: Life) -> None:
        self.life = life
        self.hdfs, self.yarn = self.life.hdfs, self.life.yarn
        self.hdfs.modes[PLACE] = "1777"
        self.hdfs.write(f"{PLACE}/supervisors", "backup\n")
        self.lives = [self._begun(f"s{number}", (STREAMER, TENANT)[number % 2]) for number in range(size)]
        self.names = [life.run.spec.name for life in self.lives]
        self._speak()
        self._a_stranger()
        self.hdfs.clock.sleep(60)
        self.watch = Watch(session_of(self.hdfs, self.yarn), lambda spec: self.life.engine, again=True)

    def _begun(self, name: str, user: str) -> Life:
        life = Life()
        life.clock, life.yarn = self.life.clock, self.yarn
        life.use(self.hdfs)
        spec = replace(SPEC, name=name, checkpoints=(f"/data/{name}",))
        life.run = replace(life.run, spec=spec)
        self.hdfs.modes |= {spec.checkpoints[0]: "1777", "/tmp/fake": "1777"}
        keep_copy(self.hdfs, life.run.id, spec, user)
        with self.hdfs.as_user(user):
            self.yarn.whoami = user
            assert life.begin().generation == 1
            life.engine.complete_epoch(spec)
        self.yarn.whoami = STREAMER
        return life

    def _speak(self) -> None:
        for life in self.lives:
            life.run = replace(life.run, session=session_of(self.hdfs, self.yarn))
            life.set_desired(DesiredState.RUNNING)
        brake = FreezeStore(self.lives[0].run.session)
        brake.freeze(timedelta(hours=1), "a new NameNode")
        brake.lift("it is in service")

    def _a_stranger(self) -> None:
        """Let mallory write all that an open state_dir allows, and in the folder of a tenant who left it open."""
        opened = self.lives[-1].run.id.folder
        self.hdfs.modes[opened] = "777"
        with self.hdfs.as_user("mallory"):
            for number in range(9):
                self.hdfs.make_folder(f"{PLACE}/{folder_name(FolderKind.ORDERS, f'mallory{number}')}", "755")
                self.hdfs.make_folder(f"{PLACE}/{folder_name(FolderKind.DECLARED, f'mallory{number}')}", "755")
            order = f"{PLACE}/{folder_name(FolderKind.ORDERS, 'mallory0')}/{order_name(ALL_STREAMS, 99)}"
            self.hdfs.write(order, '{"version": 3}')
            self.hdfs.write(f"{opened}/gen-000099", "{")

    def round(self) -> Asked:
        """Return the requests of one round, HDFS's and YARN's."""
        asked: Asked = Counter()
        for server in (self.hdfs, self.yarn):
            server.at_request = lambda request, about: asked.update([(request, about)])
        verdicts = self.watch.round(self.names)
        for server in (self.hdfs, self.yarn):
            server.at_request = lambda request, about: None
        assert {name for name, verdict in verdicts.items() if "is RUNNING" in verdict.why} == set(self.names)
        return asked


def outside(asked: Asked, fleet: Fleet) -> Asked:
    """Return the requests that are not about one stream's own folder or checkpoint."""
    own = {path for life in fleet.lives for path in (life.run.id.folder, *life.run.spec.checkpoints)}
    return Counter({what: times for what, times in asked.items() if not what[1].startswith(tuple(own))})


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with lived() as life:
        yield Fleet(6, life)


def test_the_second_round_asks_nothing_about_authors_copies_and_orders(fleet: Fleet) -> None:
    first, second = fleet.round(), fleet.round()
    assert any("declared." in about or "orders." in about for _, about in first)
    assert outside(second, fleet) == {("list", PLACE): 1, ("applications", "kstream"): 1}


def test_a_round_costs_each_stream_one_listing_beside_its_engines_questions(fleet: Fleet) -> None:
    """Only where a stranger left something, its folder is looked at and listed once more."""
    fleet.round()
    second = fleet.round()
    for life in fleet.lives:
        folder = life.run.id.folder
        of_state = {what: times for what, times in second.items() if what[1].startswith(folder)}
        strange = life is fleet.lives[-1]
        assert of_state == ({("list", folder): 2, ("status", folder): 1} if strange else {("list", folder): 1})


def test_what_changed_is_asked_once_and_for_one_stream(fleet: Fleet) -> None:
    fleet.round()
    fleet.lives[0].set_desired(DesiredState.RUNNING)
    fleet.hdfs.clock.sleep(60)
    folder = f"{PLACE}/{folder_name(FolderKind.ORDERS, STREAMER)}"
    changed = outside(fleet.round(), fleet)
    newest = f"{folder}/{order_name(str(fleet.lives[0].run.id), 2)}"
    orders = {what: times for what, times in changed.items() if what[1].startswith(folder)}
    assert orders.pop(("list", folder)) == 1
    assert set(orders) <= {(request, newest) for request in ("read", "status")}
    assert outside(fleet.round(), fleet) == {("list", PLACE): 1, ("applications", "kstream"): 1}


def test_watching_the_status_costs_no_look_more_than_a_single_one(fleet: Fleet) -> None:
    """Of a thousand streams, the second look asks for what may have changed alone."""

    def standing(again: bool) -> StandingLook:
        session, engine = session_of(fleet.hdfs, fleet.yarn), fleet.life.engine
        return StandingLook(session, again, Watch(session, lambda spec: engine, again=again))

    def cost(standing: StandingLook) -> int:
        asked: Asked = Counter()
        for server in (fleet.hdfs, fleet.yarn):
            server.at_request = lambda request, about: asked.update([(request, about)])
        assert set(standing.look()) == set(fleet.names)
        fleet.hdfs.clock.sleep(15)
        return asked.total()

    single, watching = cost(standing(again=False)), standing(again=True)
    assert cost(watching) == single
    assert max(cost(watching) for _ in range(3)) < single / 2


def test_twice_as_many_streams_cost_twice_their_own_requests_and_no_more() -> None:
    rounds = []
    for size in (4, 8):
        with lived() as life:
            fleet = Fleet(size, life)
            fleet.round()
            rounds.append(fleet.round().total())
    # The state_dir and the applications, and what the stranger's file costs.
    common = 2 + 2
    assert rounds[1] - common == 2 * (rounds[0] - common)


def test_a_strangers_folders_are_never_listed(fleet: Fleet) -> None:
    asked = fleet.round() + fleet.round()
    assert not [about for _, about in asked if "mallory" in about]
