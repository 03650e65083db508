"""Housekeeping on a real NameNode and ResourceManager: what `kstream state clean` prints is what goes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from getpass import getuser
from pathlib import Path

import pytest
import yaml

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.authors import FolderKind, folder_name
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.clusters.connection import cluster_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.live.cli import Ran, ran
from tests.live.streams import await_that, fields, rate_stream

STATE_DIR = f"/user/{getuser()}/housekeeping"
ORDERS = folder_name(FolderKind.ORDERS, getuser())
WEEK = TokenLifetimes(timedelta(days=1), timedelta(days=7))
DRAFT = ".claim-0123456789ab"


@dataclass
class Kept:
    """A state_dir of its own, with the file of its cluster and the folder of its declarations."""

    session: ClusterSession
    file: Path
    declared: Path

    def stop(self, name: str) -> StreamId:
        """Claim a generation that never arrives, and give the stream up."""
        spec = rate_stream(name, TicketCredentials())
        run = StreamRun(self.session, spec, engine_of(spec))
        run.folder.make_claim(ClaimDraft(1, f"nonce{name}", spec, WEEK, {}, "test"))
        set_desired(run, DesiredState.STOPPED, "given up")
        return run.id

    def age(self, folder: str) -> None:
        """Let all files of the folder be older than a month, by the NameNode's clock."""
        then = int((self.session.hdfs.now() - timedelta(days=31)).timestamp() * 1000)
        for name in self.session.hdfs.names(folder):
            self.session.hdfs._client.set_times(f"{folder}/{name}", access_time=then, modification_time=then)

    def clean(self, *options: str) -> Ran:
        return ran("state", "clean", "--cluster", str(self.file), "--declarations", str(self.declared), *options)


@contextmanager
def _kept(minicluster: Minicluster, folder: Path) -> Iterator[Kept]:
    connection = fields(minicluster, state_dir=STATE_DIR)
    file, declared = folder / "housekeeping.yaml", folder / "declared"
    file.write_text(yaml.safe_dump({name: value for name, value in asdict(connection).items() if value}))
    declared.mkdir()
    (declared / "kept.yaml").write_text("name: kept")
    with cluster_of("minicluster", connection) as cluster, open_session(cluster, cluster.watcher) as session:
        session.hdfs.make_folder(STATE_DIR, "755")
        yield Kept(session, file, declared)
        session.hdfs.delete(STATE_DIR, recursive=True)


@pytest.fixture
def kept(minicluster: Minicluster, tmp_path: Path) -> Iterator[Kept]:
    with _kept(minicluster, tmp_path) as kept:
        yield kept


def test_a_draft_goes_as_the_dry_run_printed_and_a_gone_stream_by_the_command(kept: Kept) -> None:
    hdfs, gone, stays = kept.session.hdfs, kept.stop("gone"), kept.stop("kept")
    young = kept.clean()
    assert young.out.startswith("gone stays: it changed ")
    assert young.out.endswith("0 files would go; nothing was removed\n")
    hdfs.write(f"{stays.folder}/{DRAFT}", "half")
    for folder in (gone.folder, stays.folder, f"{STATE_DIR}/{ORDERS}"):
        kept.age(folder)
    before = {stream: hdfs.names(stream.folder) for stream in (gone, stays)}
    # A ResourceManager that has just started proves no absence.
    await_that(lambda: "gone is gone" in kept.clean().out, "the ResourceManager's word counts")
    dry = kept.clean()
    assert dry.code == 0, dry.err
    draft = f"{stays.folder}/{DRAFT}"
    assert [line.split()[2] for line in dry.out.splitlines() if line.startswith("would remove ")] == [draft]
    assert {stream: hdfs.names(stream.folder) for stream in (gone, stays)} == before

    done = kept.clean("--yes")
    assert done.code == 0, done.out + done.err
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("removed ")] == [draft]
    assert hdfs.names(gone.folder) == before[gone]
    assert hdfs.names(stays.folder) == before[stays] - {DRAFT}
    given = hdfs.listing(f"{STATE_DIR}/{ORDERS}", f"{gone}.").entries
    orders = [f"{STATE_DIR}/{ORDERS}/{file.name}" for file in given]
    assert orders, "what stopped it goes with it"
    (words,) = [line for line in done.out.splitlines() if line.startswith("gone is gone: ")]
    assert shlex.split(words.split("`")[1]) == ["hdfs", "dfs", "-rm", "-r", gone.folder, *orders]


def test_nothing_goes_while_the_cluster_is_frozen(kept: Kept) -> None:
    stays = kept.stop("kept")
    kept.session.hdfs.write(f"{stays.folder}/{DRAFT}", "half")
    kept.age(stays.folder)
    assert ran("streams", "freeze", "--cluster", str(kept.file), "--reason", "a new NameNode").code == 0
    before = kept.session.hdfs.names(stays.folder)
    refused = kept.clean("--yes")
    assert refused.code == 1
    assert "a new NameNode" in refused.err
    assert kept.session.hdfs.names(stays.folder) == before
