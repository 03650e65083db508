"""The NameNode about leases: what it answers to a probe of a holder and to recoverLease, and what a recovery leaves."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.clients.hdfs.leases import HolderAnswer
from airflow_kstream.clients.hdfs.namenode import namenode_rpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import HolderLiveness
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.contract.hdfs.conftest import HOME, impatient
from tests.live.odd_names import ODD_NAMES
from tests.live.recovering import hdfs_command, lease_session, paused, stuck
from tests.live.streams import await_that
from tests.live.writers import Writer, native_writer, pattern
from tests.live.writers.hadoop_says import ask

NAMES = (*ODD_NAMES, "50%25", "currently owned by X on Y")


def recovering(session: LeaseSession, paths: Sequence[str]) -> list[bool | KstreamError]:
    with closing(namenode_rpc(session.cluster, session.identity)) as recoverer:
        return recoverer.request_recovery(paths)


def kinds(answers: Sequence[bool | KstreamError]) -> list[object]:
    return [type(answer) if isinstance(answer, KstreamError) else answer for answer in answers]


def await_closed(session: LeaseSession, paths: Sequence[str]) -> None:
    await_that(lambda: session.states.closed(paths) == [True] * len(paths), "every file is closed")


def state(session: LeaseSession, path: str) -> FileState:
    (state,) = session.states.states([path])
    assert isinstance(state, FileState), state
    return state


# Probes.


def test_a_probe_of_a_living_holder_names_it_and_harms_nothing(
    owner: LeaseSession, client: Writer, folder: str
) -> None:
    path = f"{folder}/held"
    client.leave(path, 100)
    answer = owner.web.ask_holder(path)
    assert (answer.liveness, answer.holder) == (HolderLiveness.RENEWING, client.holder)
    client.write(path, 50)
    client.close(path)
    assert owner.web.ask_holder(path).closed
    assert (owner.web.state(path).is_open, owner.web.state(path).length) == (False, 150)


def test_both_protocols_tell_the_same_of_a_file_that_is_open_empty_or_closed(
    owner: LeaseSession, client: Writer, folder: str
) -> None:
    paths = [f"{folder}/{name}" for name in ("open", "empty", "closed")]
    client.leave(paths[0], 700)
    client.open(paths[1])
    client.leave(paths[2], 700)
    client.close(paths[2])
    assert owner.rpc
    by_http, by_rpc = owner.pool.states(paths), owner.rpc.states(paths)
    assert [_without_reports(one) for one in by_http] == [_without_reports(one) for one in by_rpc]
    told = [one for one in by_rpc if isinstance(one, FileState)]
    assert [(one.is_open, one.length, one.measured) for one in told] == [
        (True, 700, False), (True, 0, True), (False, 700, True),
    ]  # fmt: skip


def _without_reports(state: FileState | KstreamError) -> FileState:
    """Leave out what a heartbeat changes, and the DataNode's host, which has a name and an address."""
    assert isinstance(state, FileState), state
    return replace(state, block=state.block and replace(state.block, newest_report=None, hosts=()))


def test_names_of_every_kind_are_looked_at_probed_and_recovered(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    paths = [f"{folder}/{name}" for name in NAMES]
    with native_writer(minicluster, paths, 321) as writing:
        assert owner.rpc
        for states in (owner.pool.states(paths), owner.rpc.states(paths)):
            told = [(one.path, one.is_open) for one in states if isinstance(one, FileState)]
            assert told == [(path, True) for path in paths]
        (holder,) = set(owner.rpc.holders(paths))
        assert [owner.web.ask_holder(path).holder for path in paths] == [holder] * len(paths)
        writing.kill()
    assert recovering(owner, paths) == [False] * len(paths)
    await_closed(owner, paths)


def test_an_impossible_probe_is_refused_with_an_error_of_ours(
    minicluster: Minicluster, owner: LeaseSession, client: Writer, folder: str
) -> None:
    """The right to write is told without a probe, too, in the same words."""
    path = f"{folder}/private"
    client.leave(path, 10)
    with pytest.raises(NotFound, match=r"probe the holder of .*/vanished"):
        owner.web.ask_holder(f"{folder}/vanished")
    with pytest.raises(InvalidInput, match="is a directory, not a file"):
        owner.web.state(folder)
    assert owner.pool.right_to_write([path]) == [None]
    with lease_session(minicluster, "watcher") as other:
        (foreseen,) = other.pool.right_to_write([path])
        for refusal in (foreseen, *other.ask_holders([path])):
            assert isinstance(refusal, Denied)
            assert refusal.principal == minicluster.principal("watcher")
            assert "Permission denied: user=watcher" in refusal.message


# Recoveries.


def test_recover_lease_says_whether_a_file_is_closed_or_begins_to_be(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    (path,) = stuck(minicluster, folder, 1)
    asked = [path, f"{folder}/missing", folder]
    assert kinds(recovering(owner, asked)) == [False, NotFound, NotFound]
    await_closed(owner, [path])
    assert recovering(owner, [path]) == [True]


def test_hadoops_own_tool_says_the_same_and_accepts_only_uris(
    minicluster: Minicluster, owner: LeaseSession, folder: str, tmp_path: Path
) -> None:
    """It takes a JVM for each path."""
    (path,) = stuck(minicluster, folder, 1)
    owner.base.hdfs.write(f"{folder}/closed", "")
    asked = [path, f"{folder}/closed", f"{folder}/not a URI"]
    command = hdfs_command(minicluster, tmp_path)
    with closing(DebugRecoverer(owner.cluster, owner.identity, binary=command)) as tool:
        answers = tool.request_recovery(asked)
    assert kinds(answers) == [False, True, InvalidInput]
    assert "only accepts paths that are valid URIs" in str(answers[-1])
    await_closed(owner, [path])


def test_every_flushed_byte_is_there_after_a_recovery_and_the_block_is_stamped(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    (path,) = stuck(minicluster, folder, 1, size=70_000)
    before = state(owner, path).fingerprint
    assert recovering(owner, [path]) == [False]
    await_closed(owner, [path])
    after = state(owner, path)
    assert after.length == 70_000
    assert after.block is not None
    assert before.generation_stamp is not None
    assert after.block.generation_stamp > before.generation_stamp
    assert owner.base.hdfs.read_part(path, 0, 100_000) == pattern(70_000)


def test_another_users_file_is_not_recovered(minicluster: Minicluster, owner: LeaseSession, tmp_path: Path) -> None:
    """Reading it, as others may, is not enough; Hadoop's own tool is refused in the same words."""
    (path,) = stuck(minicluster, "/tmp/contract-recoveries", 1)
    with (
        lease_session(minicluster, "watcher") as other,
        closing(DebugRecoverer(other.cluster, other.identity, binary=hdfs_command(minicluster, tmp_path))) as tool,
    ):
        refusals = [*recovering(other, [path]), *tool.request_recovery([path])]
    for refusal in refusals:
        assert isinstance(refusal, Denied)
        assert "Permission denied: user=watcher, access=WRITE" in refusal.message
    assert state(owner, path).is_open


def test_a_recovery_that_waits_for_its_datanode_says_so_and_is_no_progress(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    """Once the DataNode goes on, it ends by itself."""
    (path,) = stuck(minicluster, folder, 1)
    before = state(owner, path).fingerprint
    with paused(minicluster, "datanode"):
        assert recovering(owner, [path]) == [False]
        assert recovering(owner, [path]) == [False]
        assert owner.web.ask_holder(path).recovering
        assert state(owner, path).fingerprint == before
    await_closed(owner, [path])
    assert owner.base.hdfs.read_part(path, 0, 200) == pattern(100)


def test_a_truncation_whose_client_is_gone_is_open_until_it_is_recovered(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    """A cut through a block is a recovery of its own (FSDirTruncateOp)."""
    path = f"{folder}/cut"
    owner.base.hdfs.write(path, "a" * 100)
    with paused(minicluster, "datanode"):
        assert ask(minicluster, "POST", path, op="TRUNCATE", newlength="40").json() == {"boolean": False}
        assert state(owner, path).is_open
        # Of such a file a TRUNCATE tells nothing.
        [answer] = owner.ask_holders([path])
        assert isinstance(answer, HolderAnswer)
        assert answer.recovering
        assert recovering(owner, [path]) == [False]
    await_closed(owner, [path])
    assert owner.base.hdfs.read(path) == "a" * 40


def test_a_snapshots_file_counts_as_closed_and_grows_with_the_open_one(
    minicluster: Minicluster, owner: LeaseSession, client: Writer, folder: str
) -> None:
    """With dfs.namenode.snapshot.capture.openfiles it keeps its length: see test_files_on_three_datanodes.py."""
    path, held = f"{folder}/part", f"{folder}/.snapshot/then/part"
    client.leave(path, 100)
    assert ask(minicluster, "PUT", folder, "hdfs", op="ALLOWSNAPSHOT").ok
    assert ask(minicluster, "PUT", folder, op="CREATESNAPSHOT", snapshotname="then").ok
    client.write(path, 100)
    client.hflush(path)
    assert (state(owner, path).is_open, state(owner, held).is_open) == (True, False)
    assert recovering(owner, [path]) == [False]
    await_closed(owner, [path])
    assert owner.base.hdfs.read_part(held, 0, 300) == owner.base.hdfs.read_part(path, 0, 300) == pattern(200)


def test_a_paused_namenode_is_not_waited_for_for_ever(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    path = f"{folder}/closed"
    owner.base.hdfs.write(path, "")
    with impatient(minicluster, owner, 1) as recoverer:
        with (
            paused(minicluster, minicluster.active_namenode()),
            pytest.raises(Unavailable, match="does not answer in time"),
        ):
            recoverer.request_recovery([path])
        await_that(lambda: recoverer.request_recovery([path]) == [True], "it answers again")


def test_the_time_to_an_answer_counts_from_its_own_request(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    """All are on their way before a pause of two seconds ends, and at most 64 at a time."""
    path = f"{folder}/closed"
    owner.base.hdfs.write(path, "")
    active = minicluster.active_namenode()
    with closing(namenode_rpc(owner.cluster, owner.identity)) as recoverer:
        assert recoverer.latency == 0.0
        assert recoverer.request_recovery([path] * 500) == [True] * 500
        assert 0 < recoverer.latency < 1
        minicluster.pause(active)
        resuming = threading.Timer(2, minicluster.resume, (active,))
        resuming.start()
        assert recoverer.request_recovery([path] * 20) == [True] * 20
        resuming.join()
        assert 1.5 < recoverer.latency < 10


def test_a_proxy_user_recovers_as_the_owner_that_it_impersonates(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    (path,) = stuck(minicluster, folder, 1)
    with lease_session(minicluster, "watcher") as other:
        (refused,) = recovering(other, [path])
        assert isinstance(refused, Denied)
    with lease_session(minicluster, "gateway", do_as=getuser()) as proxy:
        assert recovering(proxy, [path]) == [False]
    await_closed(owner, [path])


def test_a_keytab_of_another_principal_is_reported_as_such(minicluster: Minicluster, owner: LeaseSession) -> None:
    wrong = Identity(owner.identity.principal, keytab=str(minicluster.keytab("watcher")))
    with closing(namenode_rpc(owner.cluster, wrong)) as recoverer, pytest.raises(CredentialError):
        recoverer.request_recovery([f"{HOME}/any"])
