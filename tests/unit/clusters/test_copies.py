"""Copies of declarations: whose count, which is found, and what a reader remembers of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from airflow_kstream.model.clusters.authors import FolderKind, folder_name
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.clusters.copies import Copies, adopted_name, copy_name, written_copy
from airflow_kstream.supervise.clusters.state_dir import StateDir
from tests.simulated.fixtures import lived
from tests.simulated.life import SPEC
from tests.simulated.servers import CLUSTER, SimHdfs
from tests.simulated.yarn import STREAM

EDITED = replace(SPEC, application="/jobs/edited.jar")


@dataclass
class Shelf:
    """The copies of one stream, and a reader of them."""

    hdfs: SimHdfs

    def __post_init__(self) -> None:
        self.hdfs.modes[CLUSTER.state_dir] = "1777"
        self.state = StateDir(self.hdfs, CLUSTER.state_dir)  # type: ignore[arg-type]
        self.copies = Copies(self.hdfs, self.state)  # type: ignore[arg-type]

    def keep(self, spec: StreamSpec, user: str = "orders", *, by: str = "streamer", named: str = "") -> None:
        text = written_copy(spec, f"{user}_on_yarn")
        self.write(named or copy_name(fingerprint(spec), user), text, by)

    def write(self, name: str, text: str, by: str) -> None:
        folder = f"{CLUSTER.state_dir}/{folder_name(FolderKind.DECLARED, by)}"
        with self.hdfs.as_user(by):
            self.hdfs.make_folder(folder, "755")
            self.hdfs.write(f"{folder}/{STREAM}/{name}", text, overwrite=True)
        self.hdfs.clock.sleep(1)
        self.state.look()

    def application_of(self, spec: StreamSpec, claimed_by: str = "streamer") -> str:
        copy = self.copies.of(STREAM, fingerprint(spec), claimed_by)
        return copy.spec.application if copy else ""


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with lived() as life:
        yield Shelf(life.hdfs)


def test_a_fingerprint_chooses_among_the_copies(shelf: Shelf) -> None:
    shelf.keep(SPEC)
    shelf.keep(EDITED)
    assert shelf.application_of(SPEC) == SPEC.application
    assert shelf.application_of(EDITED) == EDITED.application
    assert shelf.application_of(replace(SPEC, application="/jobs/typo.jar")) == ""


def test_a_copy_tells_who_the_stream_was_for_hdfs_and_for_yarn(shelf: Shelf) -> None:
    shelf.keep(SPEC, "svc orders/ü")
    copy = shelf.copies.of(STREAM, fingerprint(SPEC), "svc orders/ü")
    assert copy
    assert (copy.user, copy.yarn_user, copy.author) == ("svc orders/ü", "svc orders/ü_on_yarn", "streamer")
    assert shelf.copies.yarn_user(STREAM, "svc orders/ü") == "svc orders/ü_on_yarn"


@pytest.mark.parametrize("by", ["mallory", "orders"])
def test_nobody_but_a_supervisor_declares(shelf: Shelf, by: str) -> None:
    """Also the stream's own user doesn't: its job would choose what is submitted."""
    shelf.keep(SPEC, "mallory", by=by)
    shelf.write(adopted_name("application_1_0001", "mallory"), "", by)
    assert shelf.application_of(SPEC) == ""
    assert shelf.copies.yarn_user(STREAM, "mallory") == ""
    assert shelf.copies.users(STREAM, among=["mallory"]) == frozenset()
    assert shelf.copies.user_of_adopted(STREAM, "application_1_0001") == ""


def test_a_strangers_file_in_a_supervisors_folder_is_no_copy(shelf: Shelf) -> None:
    shelf.keep(EDITED)
    place = f"{CLUSTER.state_dir}/{folder_name(FolderKind.DECLARED, 'streamer')}/{STREAM}"
    shelf.hdfs.modes[place] = "777"
    with shelf.hdfs.as_user("mallory"):
        shelf.hdfs.write(f"{place}/{copy_name(fingerprint(SPEC), 'mallory')}", written_copy(SPEC, ""))
    assert shelf.application_of(SPEC) == ""
    assert shelf.copies.users(STREAM, among=["mallory"]) == frozenset()


def test_a_flood_in_a_supervisors_folder_hides_no_copy(shelf: Shelf) -> None:
    shelf.hdfs.most_rows = 20
    place = f"{CLUSTER.state_dir}/{folder_name(FolderKind.DECLARED, 'streamer')}/{STREAM}"
    shelf.hdfs.modes[place] = "777"
    with shelf.hdfs.as_user("mallory"):
        for number in range(100):
            shelf.hdfs.write(f"{place}/{number}", "")
    shelf.keep(SPEC)
    assert shelf.application_of(SPEC) == SPEC.application


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 9}', '{"version": 1, "spec": 7}'])
def test_a_copy_that_nobody_can_read_is_none_and_an_older_one_serves(shelf: Shelf, text: str) -> None:
    shelf.keep(SPEC, "")
    shelf.write(copy_name(fingerprint(SPEC), "orders"), text, "streamer")
    assert shelf.application_of(SPEC) == SPEC.application


def test_a_copy_that_is_not_what_its_name_says_is_none(shelf: Shelf) -> None:
    shelf.keep(EDITED, named=copy_name(fingerprint(SPEC), "orders"))
    assert shelf.application_of(SPEC) == ""


@pytest.mark.parametrize(("reader", "author"), [("streamer", "streamer"), ("hdfs", "hdfs"), ("orders", "hdfs")])
def test_of_two_supervisors_copies_ones_own_counts_or_else_the_last(shelf: Shelf, reader: str, author: str) -> None:
    for by in ("streamer", "hdfs", "streamer", "hdfs"):
        shelf.keep(SPEC, by=by)
    hdfs = replace(shelf.hdfs, whoami=reader)
    state = StateDir(hdfs, CLUSTER.state_dir)  # type: ignore[arg-type]
    copy = Copies(hdfs, state).of(STREAM, fingerprint(SPEC), "orders")  # type: ignore[arg-type]
    assert copy
    assert copy.author == author


def test_a_claim_chooses_among_the_copies_of_its_author(shelf: Shelf) -> None:
    shelf.keep(SPEC, "orders")
    assert shelf.application_of(SPEC, claimed_by="orders") == SPEC.application
    assert shelf.application_of(SPEC, claimed_by="billing") == ""


@pytest.mark.parametrize("user", ["orders", ""])
@pytest.mark.parametrize("supervisor", ["streamer", "hdfs"])
def test_a_supervisors_claim_chooses_among_all(shelf: Shelf, user: str, supervisor: str) -> None:
    shelf.keep(SPEC, user)
    assert shelf.application_of(SPEC, claimed_by=supervisor) == SPEC.application


def test_what_one_author_misses_another_finds(shelf: Shelf) -> None:
    assert shelf.application_of(SPEC, claimed_by="billing") == ""
    shelf.keep(SPEC, "orders")
    assert shelf.application_of(SPEC, claimed_by="orders") == SPEC.application


def test_what_is_known_is_not_asked_again(shelf: Shelf) -> None:
    shelf.keep(SPEC)
    assert shelf.application_of(SPEC)
    asked = []
    shelf.hdfs.at_request = lambda request, path: asked.append(path)
    assert shelf.application_of(SPEC) == SPEC.application
    assert shelf.copies.users(STREAM, among=["orders"]) == {"orders"}
    assert asked == []


def test_what_is_missing_is_looked_for_at_times_and_not_at_each_look(shelf: Shelf) -> None:
    assert shelf.application_of(SPEC) == ""
    shelf.keep(EDITED)
    asked: list[str] = []
    shelf.hdfs.at_request = lambda request, path: asked.append(path)
    assert shelf.application_of(SPEC) == ""
    assert asked == []
    shelf.keep(SPEC)
    shelf.hdfs.clock.sleep(600)
    assert shelf.application_of(SPEC) == SPEC.application


def test_a_stream_that_was_given_to_another_user_has_two(shelf: Shelf) -> None:
    """A reader who knows the former one still learns of the new one: its claims would be a stranger's."""
    shelf.keep(SPEC, "orders")
    assert shelf.copies.users(STREAM, among=["orders"]) == {"orders"}
    shelf.keep(EDITED, "billing")
    assert shelf.copies.users(STREAM, among=["orders", "billing", "mallory"]) == {"orders", "billing"}


def test_a_new_file_of_somebody_unknown_is_looked_into_at_once(shelf: Shelf) -> None:
    """A watcher that lives for weeks knew the user for the author of orders on other streams alone."""
    shelf.keep(SPEC, "orders")
    assert shelf.copies.users(STREAM, among=["billing"]) == frozenset()
    assert shelf.copies.users_of(STREAM, {"closing": "billing"}) == frozenset()
    shelf.keep(EDITED, "billing")
    assert shelf.copies.users_of(STREAM, {"closing": "billing", "gen-000002": "billing"}) == {"billing"}


def test_a_strangers_files_cost_a_listing_once_in_minutes(shelf: Shelf) -> None:
    shelf.keep(SPEC, "orders")
    strange = {"gen-000009": "mallory", "junk": "eve"}
    asked: list[str] = []
    shelf.hdfs.at_request = lambda request, path: asked.append(path)
    for _ in range(5):
        assert shelf.copies.users_of(STREAM, strange) == frozenset()
        assert shelf.copies.users(STREAM, among=["mallory", "ann"], where="/data/orders") == frozenset()
        assert shelf.copies.users(STREAM, among=["ann"]) == frozenset()
    assert len(asked) == 3, "one for each place"
    shelf.hdfs.clock.sleep(600)
    shelf.copies.users_of(STREAM, strange)
    assert len(asked) == 4


def test_a_supervisor_says_whose_an_adopted_application_is(shelf: Shelf) -> None:
    shelf.write(adopted_name("application_1_0001", "billing"), "", "streamer")
    assert shelf.copies.user_of_adopted(STREAM, "application_1_0001") == "billing"
    assert shelf.copies.user_of_adopted(STREAM, "application_1_00011") == ""
    assert shelf.copies.users(STREAM, among=["billing", ""]) == frozenset()
