"""Supervisors of one checkpoint on simulated servers, where each request can be the moment of something else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.answers import LONGEST_TEXT
from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.checkpoint_owner import Owner, Ownership
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated import life as lives
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER, SimHdfs

# With the usual looks: each of their requests is a moment at which another one may come.
SPEC = replace(lives.SPEC, watch=WatchPolicy())
HERE = SPEC.checkpoints[0]
RECORD = f"{HERE}/_kstream/"
COPY = replace(SPEC, name="copy")
US = Owner("orders", CLUSTER.state_dir, CLUSTER.default_fs)


@dataclass
class Interrupted(SimHdfs):
    """An HDFS that counts its requests; before request number `at`, something else happens, once.

    `renamed` happens after each rename onto nothing, and may raise. One that `ignores_options` of a rename, as HttpFS
    does, answers that it succeeded, and did nothing.
    """

    at: int = 0
    happens: Callable[[], object] | None = None
    asked: int = 0
    renamed: Callable[[str], object] = lambda target: None
    ignores_options: bool = False
    answering: bool = False

    def status(self, path: str) -> FileStatus:
        with self._request():
            return super().status(path)

    def list(self, path: str) -> tuple[FileStatus, ...]:
        with self._request():
            return super().list(path)

    def read(self, path: str, at_most: int = LONGEST_TEXT) -> str:
        with self._request():
            return super().read(path, at_most)

    def write(self, path: str, content: str | bytes, *, overwrite: bool = False, permission: str = "640") -> None:
        with self._request():
            super().write(path, content, overwrite=overwrite, permission=permission)

    def make_folder(self, path: str, permission: str = "750") -> None:
        with self._request():
            super().make_folder(path, permission)

    def close_folder(self, path: str, permission: str = "755") -> None:
        with self._request():
            super().close_folder(path, permission)

    def rename_onto_nothing(self, source: str, target: str) -> None:
        with self._request():
            if self.ignores_options:
                return
            super().rename_onto_nothing(source, target)
        self.renamed(target)

    def rename_over(self, source: str, target: str) -> None:
        with self._request():
            super().rename_over(source, target)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        with self._request():
            return super().delete(path, recursive=recursive)

    def kept(self) -> Callable[[], None]:
        """Return what brings all files back as they are now."""
        files, modes, owners = dict(self.files), dict(self.modes), dict(self.owners)

        def bring_back() -> None:
            self.files, self.modes, self.owners = dict(files), dict(modes), dict(owners)

        return bring_back

    @contextmanager
    def _request(self) -> Iterator[None]:
        """Count what is asked from outside, not what one answer asks itself."""
        inside, self.answering = self.answering, True
        try:
            if not inside:
                self._count()
            yield
        finally:
            self.answering = inside

    def _count(self) -> None:
        self.asked += 1
        happens, due = self.happens, self.asked == self.at
        if happens and due:
            self.happens = None
            happens()


@pytest.fixture
def hdfs(life: Life) -> Interrupted:
    """The HDFS of the life, which can be interrupted."""
    life.hdfs = life.engine.hdfs = Interrupted(life.clock)
    life.run = subject(life, SPEC)
    return life.hdfs


def subject(life: Life, spec: StreamSpec, state_dir: str = CLUSTER.state_dir, filesystem: str = "") -> StreamRun:
    """Return a run of this stream in a session of its own, as the user who sends the requests now."""
    life.hdfs.modes.setdefault(state_dir, "755")
    life.hdfs.owners.setdefault(state_dir, life.hdfs.whoami)
    cluster = replace(CLUSTER, state_dir=state_dir, default_fs=filesystem or CLUSTER.default_fs)
    session = replace(life.run.session, cluster=cluster, hdfs=cast(Hdfs, life.hdfs))
    return StreamRun(session, spec, life.engine)


def supervise(run: StreamRun, mode: Mode = Mode.ENSURE) -> Report:
    return Reconciler(run, tell=lambda line: None).run(mode)


def newest(run: StreamRun, checkpoint: str = HERE) -> Ownership | None:
    """Return the newest entry, regardless of its author."""
    lock = CheckpointLock(run.session.hdfs, checkpoint)
    return next((lock.read(file) for file in lock.files()), None)


def give(run: StreamRun, to: Owner, checkpoint: str = HERE) -> None:
    """Write the next entry, as the user who sends the requests now."""
    lock = CheckpointLock(run.session.hdfs, checkpoint)
    lock.give([file.number for file in lock.files()], to)


def owner(run: StreamRun, checkpoint: str = HERE) -> Owner | None:
    entry = newest(run, checkpoint)
    return entry.owner if entry and not entry.released else None


def alive(life: Life) -> list[str]:
    return [app.id for app in life.yarn.applications(ALL_STREAMS_TAG) if app.alive]


def attempt(act: Callable[[], object]) -> None:
    with suppress(Conflict):
        act()


def rewrite(hdfs: SimHdfs, **changed: object) -> None:
    name = f"{RECORD}owner-000001"
    hdfs.write(name, json.dumps(json.loads(hdfs.read(name)) | changed), overwrite=True)
