"""Hadoop's own client, as Spark and Flink have it: what its files look like to the NameNode and to readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.leases.open_file import FileState, Fingerprint
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.triage.scan import own_catalogue, triage_path
from tests.live.streams import await_that
from tests.live.writers import Writer, leave_bucket, pattern, writer
from tests.live.writers.children import Refused


@pytest.fixture
def short_lived(minicluster: Minicluster) -> Iterator[Writer]:
    """A client of this test alone: some end in it."""
    with writer(minicluster) as short_lived:
        yield short_lived


def open_files(superuser: LeaseSession, folder: str) -> dict[str, str | None]:
    """Return the holder of each open file."""
    assert superuser.rpc
    return {file.path: file.holder for file in superuser.rpc.open_files(folder)}


def fingerprint(session: LeaseSession, path: str) -> Fingerprint:
    (state,) = session.states.states([path])
    assert isinstance(state, FileState), state
    return state.fingerprint


def read(session: LeaseSession, path: str) -> bytes:
    return session.base.hdfs.read_part(path, 0, 10_000)


def test_a_killed_clients_files_stay_open_by_its_name_with_what_it_flushed(
    owner: LeaseSession, superuser: LeaseSession, client: Writer, short_lived: Writer, folder: str
) -> None:
    """Both the one that it created and the one that it opened again to append."""
    created, appended = f"{folder}/created", f"{folder}/appended"
    client.leave(appended, 100)
    client.close(appended)
    short_lived.leave(created, 1000)
    short_lived.write(created, 500)
    assert short_lived.append(appended) == 100
    short_lived.write(appended, 50)
    short_lived.hflush(appended)
    short_lived.kill()
    assert open_files(superuser, folder) == dict.fromkeys((created, appended), short_lived.holder)
    assert (read(owner, created), read(owner, appended)) == (pattern(1000), pattern(150))


def test_a_client_that_exits_closes_its_files_even_those_that_it_forgot(
    minicluster: Minicluster, owner: LeaseSession, superuser: LeaseSession, folder: str
) -> None:
    with writer(minicluster) as tidy:
        tidy.leave(f"{folder}/kept", 10)
        tidy.leave(f"{folder}/forgotten", 10)
        tidy.abandon(f"{folder}/forgotten")
    assert open_files(superuser, folder) == {}
    assert read(owner, f"{folder}/forgotten") == pattern(10)


def test_a_slow_writer_grows_for_readers_while_the_namenode_sees_no_change(
    owner: LeaseSession, client: Writer, folder: str
) -> None:
    path = f"{folder}/slow"
    client.leave(path, 100)
    known = fingerprint(owner, path)
    client.grow(path, seconds=0.1)

    def grown() -> bool:
        (length,) = owner.lengths.visible_lengths([path])
        return isinstance(length, int) and length >= 100 + 5 * 251

    await_that(grown, "it grew five times")
    assert fingerprint(owner, path) == known
    client.close(path)
    content = read(owner, path)
    assert content == pattern(len(content))


def test_only_a_sync_that_updates_the_length_tells_the_namenode_of_growth(
    owner: LeaseSession, client: Writer, folder: str
) -> None:
    path = f"{folder}/synced"
    client.leave(path, 100)
    client.write(path, 100)
    client.hsync(path)
    assert fingerprint(owner, path).length == 100
    client.hsync(path, update_length=True)
    assert fingerprint(owner, path).length == 200


def test_a_file_that_is_renamed_while_open_is_open_under_its_other_name(
    owner: LeaseSession, superuser: LeaseSession, client: Writer, folder: str
) -> None:
    client.leave(f"{folder}/before", 100)
    client.rename(f"{folder}/before", f"{folder}/after")
    client.write(f"{folder}/after", 100)
    client.hflush(f"{folder}/after")
    assert open_files(superuser, folder) == {f"{folder}/after": client.holder}
    assert owner.lengths.visible_lengths([f"{folder}/after"]) == [200]


def test_a_task_interrupted_in_close_leaves_its_file_open_while_its_client_lives(
    owner: LeaseSession, superuser: LeaseSession, client: Writer, folder: str, tmp_path: Path
) -> None:
    """A leak of Flink's BucketingSink: close() is interrupted, the restored task renames the file, and the client goes
    on with its other streams. A client that wants the file is refused in words that triage knows.
    """
    client.leave(f"{folder}/other", 10)
    bucket = leave_bucket(client, folder, valid_length=1000, flushed=1700)
    assert open_files(superuser, folder) == dict.fromkeys((f"{folder}/other", bucket.part), client.holder)
    # Two bytes of length, then the number: Java's writeUTF.
    assert read(owner, bucket.companion) == b"\x00\x041000"
    assert read(owner, bucket.part) == pattern(1700)
    with pytest.raises(Refused, match="AlreadyBeingCreatedException") as refused:
        client.append(bucket.part)
    told = {"itself": str(refused.value), "other": owner.rpc and owner.rpc.refusal_to_open(bucket.part).message}
    for who, words in told.items():
        log = tmp_path / who
        log.write_text(f"{words}\n")
        assert triage_path(log, own_catalogue()).cause == f"file-held-by-{who}", words
