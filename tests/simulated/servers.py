"""An HDFS and a ResourceManager in memory, only as far as a reconcile uses them.

Simulated because the seam for engines is what is tested: on the real cluster only Spark runs, and a second engine
that needed a JVM would prove nothing more. How real servers behave is the business of tests/contract.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ContainerPlace, ResourceManager
from airflow_kstream.clients.yarn_server import ClusterInfo
from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, NotFound
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.queue import Queue, Queues, Size
from airflow_kstream.model.tokens import DelegationToken
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.simulated.hadoop_writers import Written, url_string, writable

CLUSTER = Cluster(
    name="simulated",
    resourcemanagers=("http://rm:8088",),
    namenodes=("http://nn:9870",),
    default_fs="hdfs://simulated",
    watcher=Identity("streamer@EXAMPLE.COM", keytab="/streamer.keytab"),
    state_dir="/kstream",
)
ONE_DAY, ONE_WEEK = timedelta(days=1), timedelta(days=7)
_REAL_SLEEP = time.sleep


@dataclass
class SimClock:
    """The real clock, with jumps ahead on request; a sleep of its own thread is one.

    Threads that an earlier test left behind really sleep: a poller among them would let weeks pass.
    """

    ahead: timedelta = timedelta()
    _owner: int = field(default_factory=threading.get_ident)

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC) + self.ahead

    def monotonic(self) -> float:
        return time.perf_counter() + self.ahead.total_seconds()

    def sleep(self, seconds: float) -> None:
        if threading.get_ident() == self._owner:
            self.ahead += timedelta(seconds=seconds)
        else:
            _REAL_SLEEP(seconds)


@dataclass
class SimHdfs:
    """Files by path; a folder is what has a file. It knows no checkpoints: an engine that reads Spark's fails here.

    `owners` are those of folders that were made and of files that were written; another user writes in no such folder
    unless its mode lets everybody. `at_request` is told each request and its path before the answer: it can raise, or
    let something happen meanwhile.
    """

    clock: SimClock
    files: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    servers: str = "http://nn:9870"
    modes: dict[str, str] = field(default_factory=dict)
    whoami: str = "streamer"
    refused: tuple[str, ...] = ()
    owners: dict[str, str] = field(default_factory=dict)
    at_request: Callable[[str, str], object] = lambda request, path: None

    def user(self) -> str:
        return self.whoami

    def now(self) -> datetime:
        return self.clock.now()

    def status(self, path: str) -> FileStatus:
        self.at_request("status", path)
        if path not in self.files and path != "/" and not any(name.startswith(path + "/") for name in self.files):
            raise NotFound(path)
        return self._status(path, "")

    def _status(self, path: str, name: str) -> FileStatus:
        owner = self.owners.get(path, self.whoami)
        if path not in self.files:
            mode = self.modes.get(path, "755")
            return FileStatus(name, 0, self.now(), is_folder=True, owner=owner, permission=mode)
        text, modified = self.files[path]
        return FileStatus(name, len(text), modified, is_folder=False, owner=owner)

    def list(self, path: str) -> tuple[FileStatus, ...]:
        self.at_request("list", path)
        start = path + "/"
        children = {name[len(start) :].partition("/")[0] for name in self.files if name.startswith(start)}
        return tuple(self._status(start + child, child) for child in sorted(children))

    def check_access(self, path: str, action: str) -> None:
        """Refuse what `refused` names, by its end."""
        self.status(path)
        if any(f"{action} {path}".endswith(refused) for refused in self.refused):
            raise Denied(f"Permission denied: user={self.whoami}, access={action}", tried=f"{action} {path}")

    def names(self, path: str) -> frozenset[str]:
        return frozenset(file.name for file in self.list(path))

    def read(self, path: str) -> str:
        self.at_request("read", path)
        if self.status(path).is_folder:
            raise InvalidInput("it is a folder", tried=f"read {path}")
        try:
            return self.files[path][0].encode().decode()
        except UnicodeEncodeError:
            raise InvalidInput("it is no text", tried=f"read {path}") from None

    def write(self, path: str, content: str | bytes, *, overwrite: bool = False, permission: str = "640") -> None:
        self.at_request("write", path)
        # What is no text stays what it is, until somebody reads it.
        text = content.decode(errors="surrogateescape") if isinstance(content, bytes) else content
        if path in self.files and not overwrite:
            raise Conflict(path)
        self._require_rights(path)
        self.owners.setdefault(path, self.whoami)
        self.files[path] = (text, self.now())

    def _require_rights(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        mode = self.modes.get(folder, "755")
        if self.owners.get(folder, self.whoami) != self.whoami and mode[-1] not in "2367":
            raise Denied(f"Permission denied: user={self.whoami}, access=WRITE, inode={folder}", tried=f"write {path}")

    def make_folder(self, path: str, permission: str = "750") -> None:
        self.modes.setdefault(path, permission)
        self.owners.setdefault(path, self.whoami)

    def rename_onto_nothing(self, source: str, target: str) -> None:
        if target in self.files:
            raise Conflict(target)
        self.rename_over(source, target)

    def rename_over(self, source: str, target: str) -> None:
        self.at_request("rename", target)
        self.status(source)
        self._require_rights(target)
        self.files[target] = self.files.pop(source)
        self.owners[target] = self.owners.pop(source, self.whoami)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self.at_request("delete", path)
        gone = [name for name in self.files if name == path or name.startswith(path + "/")]
        if gone and gone != [path] and not recursive:
            raise Conflict(f"{path} is non empty", tried=f"delete {path}")
        for name in gone:
            del self.files[name]
            self.owners.pop(name, None)
        return bool(gone)

    def new_token(self, renewer: str) -> str:
        now = self.now()
        token = DelegationToken("streamer", renewer, "", now, now + ONE_WEEK, 1, 1)
        return url_string(Written("", "HDFS_DELEGATION_TOKEN", "nn:8020", writable(token), b"password"))

    def renew_token(self, token: str) -> datetime:
        return self.now() + ONE_DAY

    def cancel_token(self, token: str) -> None:
        pass


@dataclass
class SimYarn:
    """Applications by id, in the order of their start.

    `at_request` is told each question, and what it is about, before the answer: it can raise, or let something happen
    meanwhile. Its clock is ahead of everybody else's by `skew`.
    """

    clock: SimClock
    apps: dict[str, Application] = field(default_factory=dict)
    whoami: str | None = "streamer"
    scheduler: Queues = field(
        default_factory=lambda: Queues((Queue("root.default", "RUNNING", Size(8192), Size(4096)),), True)
    )
    at_request: Callable[[str, str], object] = lambda request, about: None
    skew: timedelta = timedelta()

    def user(self) -> str | None:
        return self.whoami

    def start(self, tags: frozenset[str], user: str = "") -> Application:
        number = f"application_1_{len(self.apps) + 1:04d}"
        state, now = ApplicationState.RUNNING, self.clock.now()
        user = user or self.whoami or "streamer"
        self.apps[number] = Application(number, state, "UNDEFINED", user, tags, now, None, "", "")
        return self.apps[number]

    def end(
        self, application_id: str, state: ApplicationState = ApplicationState.FINISHED, diagnostics: str = ""
    ) -> Application:
        app = self.application(application_id)
        final_status = {"FINISHED": "SUCCEEDED"}.get(state, str(state))
        self.apps[app.id] = replace(
            app, state=state, final_status=final_status, finished=self.clock.now(), diagnostics=diagnostics
        )
        return self.apps[app.id]

    def applications(self, tag: str) -> tuple[Application, ...]:
        self.at_request("applications", tag)
        return tuple(app for app in self.apps.values() if tag in app.tags)

    def running_as(self, user: str) -> tuple[Application, ...]:
        self.at_request("running_as", user)
        return tuple(app for app in self.apps.values() if app.user == user and app.alive)

    def queues(self) -> Queues:
        self.at_request("queues", "")
        return self.scheduler

    def application(self, application_id: str) -> Application:
        if application_id not in self.apps:
            raise NotFound(application_id)
        return self.apps[application_id]

    def confirm_absence(self, of: str, age: timedelta, settled: timedelta) -> None:
        """It never restarts, and there is no second one."""
        self.at_request("confirm_absence", of)

    def active(self) -> str:
        return "http://rm:8088"

    def info(self, address: str) -> ClusterInfo:
        """It has been up since long before every claim."""
        return ClusterInfo(address, "ACTIVE", "3.4.3", datetime.fromtimestamp(0, UTC))

    def time_since(self, moment: datetime) -> timedelta:
        self.at_request("time_since", "")
        return self.clock.now() + self.skew - moment

    def driver_places(self, application_id: str) -> frozenset[ContainerPlace]:
        return frozenset()

    def live_places(self, application_id: str) -> frozenset[ContainerPlace]:
        return frozenset()

    def kill(self, application_id: str, diagnostics: str, wait: timedelta) -> Application:
        return self.end(application_id, ApplicationState.KILLED)


def session_of(hdfs: SimHdfs, yarn: SimYarn) -> ClusterSession:
    return ClusterSession(
        CLUSTER, CLUSTER.watcher, cast(Hdfs, hdfs), cast(ResourceManager, yarn), KafkaEnds(CLUSTER.watcher)
    )
