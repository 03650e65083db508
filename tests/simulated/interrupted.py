"""Supervisors of one checkpoint on simulated servers, where each request can be the moment of something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.model.checkpoint_owner import Owner
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.generation import ALL_STREAMS_TAG
from airflow_kstream.model.plan import Report
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.stream_policies import WatchPolicy
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.run import StreamRun
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

    `renamed` happens after each rename, and may raise. One that `ignores_options` of a rename, as HttpFS does, answers
    that it succeeded, and did nothing.
    """

    at: int = 0
    happens: Callable[[], object] | None = None
    asked: int = 0
    renamed: Callable[[str], object] = lambda target: None
    ignores_options: bool = False

    def status(self, path: str) -> FileStatus:
        self._ask()
        return super().status(path)

    def list(self, path: str) -> tuple[FileStatus, ...]:
        self._ask()
        inside = [name.removeprefix(path + "/") for name in self.files if name.startswith(path + "/")]
        children = sorted({name.partition("/")[0] for name in inside})
        return tuple(replace(SimHdfs.status(self, f"{path}/{child}"), name=child) for child in children)

    def read(self, path: str) -> str:
        self._ask()
        SimHdfs.status(self, path)
        return self.files[path][0]

    def write(self, path: str, content: str | bytes, *, overwrite: bool = False, permission: str = "640") -> None:
        self._ask()
        super().write(path, content, overwrite=overwrite, permission=permission)

    def make_folder(self, path: str, permission: str = "750") -> None:
        self._ask()

    def rename_onto_nothing(self, source: str, target: str) -> None:
        self._ask()
        if self.ignores_options:
            return
        if target in self.files:
            raise Conflict(target)
        SimHdfs.status(self, source)
        self.files[target] = self.files.pop(source)
        self.renamed(target)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self._ask()
        return super().delete(path, recursive=recursive)

    def _ask(self) -> None:
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
    cluster = replace(CLUSTER, state_dir=state_dir, default_fs=filesystem or CLUSTER.default_fs)
    session = replace(life.run.session, cluster=cluster, hdfs=cast(Hdfs, life.hdfs))
    return StreamRun(session, spec, life.engine)


def supervise(run: StreamRun, mode: Mode = Mode.ENSURE) -> Report:
    return Reconciler(run, tell=lambda line: None).run(mode)


def owner(run: StreamRun, checkpoint: str = HERE) -> Owner | None:
    entry = CheckpointLock(run.session.hdfs, checkpoint).newest()
    return entry.owner if entry and not entry.released else None


def alive(life: Life) -> list[str]:
    return [app.id for app in life.yarn.applications(ALL_STREAMS_TAG) if app.alive]


def attempt(act: Callable[[], object]) -> None:
    with suppress(Conflict):
        act()


def rewrite(hdfs: SimHdfs, **changed: object) -> None:
    name = f"{RECORD}owner-000001"
    hdfs.write(name, json.dumps(json.loads(hdfs.read(name)) | changed), overwrite=True)
