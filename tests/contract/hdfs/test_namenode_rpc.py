"""The NameNode's RPC: its list of open files, its word about many at a time, and who may ask for what."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Denied, NotFound
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.contract.hdfs.conftest import FOLDER, MANY, ODD
from tests.live.recovering import lease_session


@contextmanager
def rpc(minicluster: Minicluster, who: str, do_as: str | None = None) -> Iterator[NameNodeRpc]:
    with lease_session(minicluster, who, do_as) as session:
        assert session.rpc
        yield session.rpc


pytestmark = pytest.mark.usefixtures("opened")


def test_a_superuser_gets_every_open_file_once_with_its_holder(everything: NameNodeRpc) -> None:
    """In pages, by the file's id."""
    found = list(everything.open_files(FOLDER))
    assert sorted(file.path for file in found) == sorted(MANY + ODD)
    assert len({file.holder for file in found}) == 2
    assert {file.host for file in found} == {"127.0.0.1"}
    assert [file.file_id for file in found] == sorted({file.file_id or 0 for file in found})


def test_a_listing_holds_what_is_below_the_path_and_nothing_beside_it(everything: NameNodeRpc) -> None:
    assert {file.path for file in everything.open_files("/")} >= set(MANY + ODD)
    assert {file.path for file in everything.open_files(f"{FOLDER}/odd/")} == set(ODD)
    assert [file.path for file in everything.open_files(MANY[7])] == [MANY[7]]
    assert list(everything.open_files(f"{FOLDER}/many/1x")) == []
    assert list(everything.open_files("/no/such/folder")) == []


def test_an_ordinary_user_is_denied_the_listing_and_told_why(namenode: NameNodeRpc) -> None:
    with pytest.raises(Denied, match="Superuser privilege is required"):
        next(namenode.open_files(FOLDER))


def test_an_ordinary_user_learns_each_files_holder_and_no_lease_notices(
    owner: LeaseSession, namenode: NameNodeRpc, everything: NameNodeRpc
) -> None:
    """The NameNode's own list, which only the superuser gets, has the same names before and after."""
    before = {file.path: file.holder for file in everything.open_files(FOLDER)}
    asked = [*before, f"{FOLDER}/closed", f"{FOLDER}/missing", FOLDER]
    told = namenode.holders(asked)
    assert dict(zip(asked, told, strict=True)) == before | dict.fromkeys(asked[-3:])
    assert {file.path: file.holder for file in everything.open_files(FOLDER)} == before
    assert owner.base.hdfs.read(f"{FOLDER}/closed") == "closed"


def test_each_file_has_its_own_answer(namenode: NameNodeRpc) -> None:
    """A file that is missing or may not be read does not affect the answers for the others."""
    paths = [MANY[0], f"{FOLDER}/closed", f"{FOLDER}/missing", FOLDER, f"{FOLDER}-beside/private", MANY[1]]
    empty, closed, missing, folder, private, other = namenode.states(paths)
    assert isinstance(empty, FileState)
    assert isinstance(closed, FileState)
    assert isinstance(other, FileState)
    assert (empty.is_open, empty.block, empty.length) == (True, None, 0)
    assert (closed.is_open, closed.length, closed.block and closed.block.complete) == (False, 6, True)
    assert [type(answer) for answer in (missing, folder, private)] == [NotFound, NotFound, Denied]
    answers = namenode.closed(paths[:3])
    assert answers[:2] == [False, True]
    assert isinstance(answers[2], NotFound)


def test_answers_to_many_questions_come_in_order_also_to_threads(namenode: NameNodeRpc) -> None:
    """The NameNode answers several calls of one connection in any order."""
    assert [state.path for state in namenode.states(MANY) if isinstance(state, FileState)] == MANY
    with ThreadPoolExecutor(4) as pool:
        quarters = list(pool.map(namenode.states, [MANY[start::4] for start in range(4)]))
    told = [[state.path for state in states if isinstance(state, FileState)] for states in quarters]
    assert told == [MANY[start::4] for start in range(4)]


def test_a_gateway_looks_as_the_user_whom_it_may_impersonate(minicluster: Minicluster) -> None:
    with rpc(minicluster, "gateway") as gateway, rpc(minicluster, "gateway", getuser()) as impersonating:
        assert isinstance(gateway.states(ODD[:1])[0], Denied)
        assert isinstance(impersonating.states(ODD[:1])[0], FileState)
    with (
        rpc(minicluster, "watcher", getuser()) as refused,
        pytest.raises(Denied, match="not allowed to impersonate"),
    ):
        refused.states(ODD[:1])
