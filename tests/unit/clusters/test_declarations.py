"""What supervisors keep of declarations: whose counts, what it costs, and that one place's is none of another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound, Unavailable
from airflow_kstream.model.streams.declarations import (
    DeclarationFolder,
    KeptKind,
    KeptPolicies,
    PolicyEdit,
    read_kept_policies,
    written_policies,
    written_streams,
)
from airflow_kstream.supervise.clusters.declarations import Declarations
from airflow_kstream.supervise.clusters.state_dir import StateDir
from airflow_kstream.supervise.clusters.write_once import replace_file
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLACE = DeclarationFolder("", "prod")
OWN = f"{CLUSTER.state_dir}/declared.streamer"
STREAMS, POLICIES = (f"{OWN}/{PLACE.file_name(kind)}" for kind in (KeptKind.STREAMS, KeptKind.POLICIES))
EDIT = PolicyEdit({"restart": {"max_age": "86400s"}, "notify": {"notifier": "os.system", "kwargs": {}}}, NOW)
KEPT = KeptPolicies({"orders": EDIT}, "digest")


@pytest.fixture
def hdfs() -> SimHdfs:
    hdfs = SimHdfs(SimClock())
    hdfs.make_folder(CLUSTER.state_dir, "755")
    return hdfs


def of(hdfs: SimHdfs) -> Declarations:
    """Return what is kept as a new process sees it."""
    return Declarations(cast("Hdfs", hdfs), StateDir(cast("Hdfs", hdfs), CLUSTER.state_dir))


def as_mallory(hdfs: SimHdfs, folder: str) -> None:
    """Let a stranger write both files in a folder of this name, in a state_dir that is open."""
    hdfs.modes[CLUSTER.state_dir] = "1777"
    with hdfs.as_user("mallory"):
        hdfs.make_folder(folder, "755")
        hdfs.write(f"{folder}/{PLACE.file_name(KeptKind.STREAMS)}", written_streams(PLACE, ["orders"], "us"))
        hdfs.write(f"{folder}/{PLACE.file_name(KeptKind.POLICIES)}", written_policies(PLACE, KEPT, "us"))


def test_the_next_process_knows_what_was_kept(hdfs: SimHdfs) -> None:
    assert of(hdfs).keep_streams(PLACE, ["sales", "orders"])
    assert of(hdfs).keep_policies(PLACE, KEPT)
    assert of(hdfs).streams(PLACE) == {"orders", "sales"}
    # No edit is younger than its file.
    assert of(hdfs).policies(PLACE).streams["orders"].mark == EDIT.mark
    assert sorted(hdfs.files) == sorted([STREAMS, POLICIES]), "no draft is left"


@pytest.mark.parametrize("other", [DeclarationFolder("staging", "prod"), DeclarationFolder("", "prod2")])
def test_a_copy_of_another_places_file_counts_for_nothing(hdfs: SimHdfs, other: DeclarationFolder) -> None:
    of(hdfs).keep_streams(other, ["orders"])
    assert of(hdfs).streams(PLACE) == frozenset()
    hdfs.write(STREAMS, hdfs.read(f"{OWN}/{other.file_name(KeptKind.STREAMS)}"))
    with pytest.raises(InvalidInput, match="can't be understood"):
        of(hdfs).streams(PLACE)


@pytest.mark.parametrize("name", ["declared.mallory", "declared.hdfs", "declared.streamer", "declared.streamer.2"])
def test_a_strangers_folder_counts_for_nothing_whatever_its_name(hdfs: SimHdfs, name: str) -> None:
    as_mallory(hdfs, f"{CLUSTER.state_dir}/{name}")
    assert of(hdfs).streams(PLACE) == frozenset()
    assert of(hdfs).policies(PLACE) == KeptPolicies()


def test_a_strangers_file_in_a_folder_of_ours_that_was_opened_counts_for_nothing(hdfs: SimHdfs) -> None:
    hdfs.make_folder(OWN, "777")
    as_mallory(hdfs, OWN)
    assert of(hdfs).streams(PLACE) == frozenset()
    assert of(hdfs).policies(PLACE) == KeptPolicies()


def test_another_supervisors_policies_count_but_for_their_notifier(hdfs: SimHdfs) -> None:
    hdfs.write(f"{CLUSTER.state_dir}/supervisors", "backup\n")
    hdfs.modes[CLUSTER.state_dir] = "1777"
    with hdfs.as_user("backup"):
        of(hdfs).keep_policies(PLACE, KEPT)
    assert [*of(hdfs).policies(PLACE).streams["orders"].policies] == ["restart"]
    of(hdfs).keep_policies(PLACE, KeptPolicies())
    assert of(hdfs).policies(PLACE) == KeptPolicies(), "our own says all"


def test_our_own_file_without_the_right_to_read_it_is_not_taken_for_a_broken_one(hdfs: SimHdfs) -> None:
    """The right comes back without a change of the file, such as one to a key of the KMS."""
    of(hdfs).keep_streams(PLACE, ["orders"])
    watcher = of(hdfs)

    def denied(request: str, path: str) -> None:
        if request == "read" and path == STREAMS:
            raise Denied("no right to the zone's key")

    hdfs.at_request = denied
    with pytest.raises(Denied, match="the zone's key"):
        watcher.streams(PLACE)
    hdfs.at_request = lambda request, path: None
    assert watcher.streams(PLACE) == {"orders"}


def test_who_is_no_supervisor_keeps_nothing(hdfs: SimHdfs) -> None:
    hdfs.modes[CLUSTER.state_dir] = "1777"
    with hdfs.as_user("etl"), pytest.raises(Denied, match="name etl in a line of"):
        of(hdfs).keep_streams(PLACE, ["orders"])


def test_where_there_is_no_state_dir_yet_nothing_is_kept_and_nothing_fails() -> None:
    hdfs = SimHdfs(SimClock())
    hdfs.modes = {"/": "755"}
    assert not of(hdfs).keep_streams(PLACE, ["orders"])
    assert (of(hdfs).streams(PLACE), hdfs.files) == (frozenset(), {})


def test_no_edit_is_younger_than_its_file() -> None:
    text = written_policies(PLACE, KeptPolicies({"orders": PolicyEdit({}, NOW + timedelta(days=999))}), "us")
    kept = read_kept_policies(text, PLACE, NOW)
    assert kept is not None
    assert kept.streams["orders"].at == NOW


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000, '{"version": 1, "streams": ["orders"]}'])
def test_our_own_file_that_can_not_be_understood_is_never_replaced(hdfs: SimHdfs, text: str) -> None:
    """A later version wrote it, and this one would forget the streams whose files are gone. Watchers go on without."""
    hdfs.make_folder(OWN, "755")
    hdfs.write(STREAMS, text)
    hdfs.write(POLICIES, text)
    kept = of(hdfs)
    for read in (kept.streams, kept.policies):
        with pytest.raises(InvalidInput, match=rf"{OWN}/.* can't be understood.*`hdfs dfs -rm {OWN}"):
            read(PLACE)
    assert kept.followed(PLACE) is None


def test_policies_that_can_not_be_read_blind_nobody(hdfs: SimHdfs) -> None:
    """A DataNode is away that has the only replica: what was known before holds, and one look asks once."""
    kept = of(hdfs)
    kept.keep_policies(PLACE, KEPT)
    kept._state.look()
    reads: list[str] = []

    def refuse(request: str, path: str) -> None:
        if request == "read":
            reads.append(path)
            raise Unavailable("BlockMissingException", tried=f"read {path}")

    hdfs.at_request = refuse
    assert [kept.followed(PLACE) for _ in range(1000)] == [None] * 1000
    assert reads == [POLICIES]
    hdfs.at_request = lambda request, path: None
    kept._state.look()
    known = kept.followed(PLACE)
    assert known is not None
    assert [*known.streams] == ["orders"]
    hdfs.at_request = refuse
    kept._state.look()
    assert kept.followed(PLACE) == known


def test_rounds_cost_no_request_of_their_own_while_nothing_changes(hdfs: SimHdfs) -> None:
    """And a listing and a read after a change, for however many streams."""
    of(hdfs).keep_policies(PLACE, KEPT)
    hdfs.clock.sleep(60)
    state = StateDir(cast("Hdfs", hdfs), CLUSTER.state_dir)
    watcher = Declarations(cast("Hdfs", hdfs), state)
    watcher.policies(PLACE)
    requests: list[str] = []
    hdfs.at_request = lambda request, path: requests.append(request) if path.startswith(OWN) else None
    for _ in range(5):
        state.look()
        for _ in range(1000):
            watcher.policies(PLACE)
    assert requests == []
    of(hdfs).keep_policies(PLACE, KeptPolicies())
    hdfs.clock.sleep(60)
    requests.clear()
    state.look()
    assert [watcher.policies(PLACE) for _ in range(1000)][-1] == KeptPolicies()
    # The simulated NameNode asks itself whether it is a file.
    assert sorted({*requests}) == ["list", "read", "status"]
    assert len(requests) == 3


def test_a_cluster_that_is_away_is_no_place_without_streams(hdfs: SimHdfs) -> None:
    of(hdfs).keep_streams(PLACE, ["orders"])

    def refuse(request: str, path: str) -> None:
        raise Unavailable("connection refused", tried=request)

    hdfs.at_request = refuse
    with pytest.raises(Unavailable):
        of(hdfs).streams(PLACE)


def test_a_long_file_that_stands_there_is_believed_although_the_answer_was_lost() -> None:
    class Losing(SimHdfs):
        def rename_over(self, source: str, target: str) -> None:
            super().rename_over(source, target)
            raise NotFound(f"{source}, as the other NameNode says")

    hdfs, text = Losing(SimClock()), "x" * (2 << 20)
    replace_file(cast("Hdfs", hdfs), "/kstream/long", text)
    assert [*hdfs.files] == ["/kstream/long"]
