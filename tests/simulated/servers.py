"""An HDFS and a ResourceManager in memory, only as far as a reconcile uses them.

Simulated because the seam for engines is what is tested: on the real cluster only Spark runs, and a second engine
that needed a JVM would prove nothing more. How real servers behave is the business of tests/contract.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from airflow_kstream.clients.hdfs.answers import LONGEST_TEXT, MOST_ROWS, Listing, kept
from airflow_kstream.clients.hdfs.webhdfs import Contents, FileStatus, Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ContainerPlace, ResourceManager
from airflow_kstream.clients.yarn_failover import ClusterInfo
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Queue, Queues, Size
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, NotFound
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import DelegationToken
from airflow_kstream.model.logs.container_log import LoggedContainer
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
    """A clock that stands, and jumps ahead on request; a sleep of its own thread is one. It starts at the real time.

    So how long a test takes changes nothing in it. Threads that an earlier test left behind really sleep: a poller
    among them would let weeks pass.
    """

    ahead: timedelta = timedelta()
    _began: datetime = field(default_factory=lambda: datetime.now(UTC))
    _owner: int = field(default_factory=threading.get_ident)

    def now(self) -> datetime:
        return self._began + self.ahead

    def monotonic(self) -> float:
        return self.now().timestamp()

    def sleep(self, seconds: float) -> None:
        if threading.get_ident() == self._owner:
            self.ahead += timedelta(seconds=seconds)
        else:
            _REAL_SLEEP(seconds)


@dataclass
class SimHdfs:
    """Files by path; a folder is what has a file or was made. It knows no checkpoints: an engine that reads Spark's
    fails here.

    `owners` are those of folders that were made and of files that were written; another user writes in no such folder
    unless its mode lets everybody, and deletes nobody's files where it has the sticky bit. Nobody deletes what is in a
    folder of mode 555. `acls` are the paths with an ACL, whose `entries` are told if this NameNode `keeps_acls`. Of a
    listing, `most_rows` are kept. `at_request` is told each request and its path before the answer: it can raise, or
    let something happen meanwhile.
    """

    clock: SimClock
    files: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    servers: str = "http://nn:9870"
    modes: dict[str, str] = field(default_factory=lambda: {"/": "755", CLUSTER.state_dir: "755"})
    whoami: str = "streamer"
    refused: tuple[str, ...] = ()
    owners: dict[str, str] = field(default_factory=lambda: {"/": "hdfs", CLUSTER.state_dir: "streamer"})
    at_request: Callable[[str, str], object] = lambda request, path: None
    acls: set[str] = field(default_factory=set)
    most_rows: int = MOST_ROWS
    entries: dict[str, tuple[str, ...]] = field(default_factory=dict)
    keeps_acls: bool = True
    groups: dict[str, str] = field(default_factory=dict)

    def user(self) -> str:
        return self.whoami

    @contextmanager
    def as_user(self, user: str) -> Iterator[SimHdfs]:
        """Let another user send the requests meanwhile."""
        before, self.whoami = self.whoami, user
        try:
            yield self
        finally:
            self.whoami = before

    def now(self) -> datetime:
        return self.clock.now()

    def status(self, path: str) -> FileStatus:
        self.at_request("status", path)
        if path not in self.files and not self._is_folder(path):
            raise NotFound(path)
        return self._status(path, "")

    def _is_folder(self, path: str) -> bool:
        return path in self.modes or any(name.startswith(path + "/") for name in self.files)

    def _status(self, path: str, name: str) -> FileStatus:
        owner = self.owners.get(path, "streamer")
        if path not in self.files:
            mode = self.modes.get(path, "755")
            modified = max(
                (at for file, (_, at) in self.files.items() if file.startswith(path + "/")), default=self.now()
            )
            group = self.groups.get(path, "supergroup")
            return FileStatus(name, 0, modified, True, mode, owner, path in self.acls, group)
        text, modified = self.files[path]
        return FileStatus(name, len(text), modified, False, self.modes.get(path, "644"), owner)

    def list(self, path: str) -> tuple[FileStatus, ...]:
        self.at_request("list", path)
        start = path.rstrip("/") + "/"
        there = (*self.files, *self.modes)
        children = {name[len(start) :].partition("/")[0] for name in there if name.startswith(start)} - {""}
        return tuple(self._status(start + child, child) for child in sorted(children))

    def contents(self, path: str) -> Contents:
        self.at_request("sum", path)
        if not self._is_folder(path):
            raise NotFound(path)
        below = [text for name, (text, _) in self.files.items() if name.startswith(path + "/")]
        return Contents(len(below), 1, sum(map(len, below)))

    def matching(
        self, path: str, wanted: Callable[[FileStatus], bool], *, prefix: str = "", after: str = ""
    ) -> tuple[FileStatus, ...]:
        entries = (entry for entry in self.list(path) if entry.name > after and entry.name.startswith(prefix))
        return tuple(filter(wanted, entries))

    def listing(self, path: str, prefix: str = "") -> Listing:
        return Listing(*kept([[entry for entry in self.list(path) if entry.name.startswith(prefix)]], self.most_rows))

    def check_access(self, path: str, action: str) -> None:
        """Refuse what `refused` names, by its end."""
        self.status(path)
        if any(f"{action} {path}".endswith(refused) for refused in self.refused):
            raise Denied(f"Permission denied: user={self.whoami}, access={action}", tried=f"{action} {path}")

    def names(self, path: str) -> frozenset[str]:
        return frozenset(file.name for file in self.list(path))

    def read(self, path: str, at_most: int = LONGEST_TEXT) -> str:
        self.at_request("read", path)
        if self.status(path).is_folder:
            raise InvalidInput("it is a folder", tried=f"read {path}")
        if len(self.files[path][0]) > at_most:
            raise InvalidInput(f"it is longer than {at_most} bytes", tried=f"read {path}")
        try:
            return self.files[path][0].encode().decode()
        except UnicodeEncodeError:
            raise InvalidInput("it is not text", tried=f"read {path}") from None

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        self.at_request("read", path)
        self.status(path)
        return self.files[path][0].encode(errors="surrogateescape")[offset : offset + length]

    def write(self, path: str, content: str | bytes, *, overwrite: bool = False, permission: str = "640") -> None:
        self.at_request("write", path)
        # What is not text stays what it is, until somebody reads it.
        text = content.decode(errors="surrogateescape") if isinstance(content, bytes) else content
        if (path in self.files and not overwrite) or (path not in self.files and self._is_folder(path)):
            raise Conflict(path)
        self._require_rights(path)
        if self.owners.get(path, self.whoami) != self.whoami:
            raise Denied(f"Permission denied: user={self.whoami}, access=WRITE, inode={path}", tried=f"write {path}")
        self.owners.setdefault(path, self.whoami)
        self.files[path] = (text, self.now())

    def write_secret(self, path: str, content: SecretBytes) -> None:
        self.write(path, content.reveal(), permission="600")

    def _require_rights(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        mode = self.modes.get(folder, "755")
        if self.owners.get(folder, self.whoami) != self.whoami and mode[-1] not in "2367":
            raise Denied(f"Permission denied: user={self.whoami}, access=WRITE, inode={folder}", tried=f"write {path}")

    def make_folder(self, path: str, permission: str = "750") -> None:
        self.at_request("make", path)
        self.modes.setdefault(path, permission)
        self.owners.setdefault(path, self.whoami)

    def close_folder(self, path: str, permission: str = "755") -> None:
        self.at_request("close", path)
        self._require_owner(path, "close")
        self.modes[path] = permission
        self.acls.discard(path)

    def change_mode(self, path: str, permission: str) -> None:
        self.at_request("mode", path)
        if path not in self.files and not self._is_folder(path):
            raise NotFound(path)
        self._require_owner(path, "change the mode of")
        self.modes[path] = permission

    def acl(self, path: str) -> tuple[str, ...] | None:
        return self.entries.get(path, ()) if self.keeps_acls else None

    def change_acl(self, path: str, entries: str) -> None:
        """Set an ACL. The mask is made of all entries, and stands in the mode in the group's place."""
        self._require_owner(path, "change the ACL of")
        given = dict(entry.rsplit(":", 1) for entry in entries.split(","))
        kept = dict(entry.rsplit(":", 1) for entry in self.entries.get(path, ()))
        acl = kept | {key: rights for key, rights in given.items() if key not in {"user:", "other:"}}
        mask = "".join(letter if any(letter in rights for rights in acl.values()) else "-" for letter in "rwx")
        self.entries[path] = tuple(f"{key}:{rights}" for key, rights in acl.items())
        digits = (given.get("user:", "rwx"), mask, given.get("other:", "---"))
        octal = "".join(str(sum(4 >> "rwx".index(one) for one in each if one != "-")) for each in digits)
        self.modes[path] = self.modes[path][:-3] + octal
        self.acls.add(path)

    def _require_owner(self, path: str, tried: str) -> None:
        if self.owners.get(path, "streamer") != self.whoami:
            words = f"Permission denied. user={self.whoami} is not the owner of inode={path}"
            raise Denied(words, tried=f"{tried} {path}")

    def rename_onto_nothing(self, source: str, target: str) -> None:
        if target in self.files:
            raise Conflict(target)
        self.rename_over(source, target)

    def rename_over(self, source: str, target: str) -> None:
        self.at_request("rename", target)
        self.status(source)
        self._require_rights(target)
        self.owners.pop(target, None)
        for path in [path for path in self.files if path == source or path.startswith(source + "/")]:
            self.files[target + path.removeprefix(source)] = self.files.pop(path)
        for told in (self.owners, self.modes):
            for path in [path for path in told if path == source or path.startswith(source + "/")]:
                told[target + path.removeprefix(source)] = told.pop(path)
        self.owners.setdefault(target, self.whoami)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self.at_request("delete", path)
        folders = [name for name in self.modes if name == path or name.startswith(path + "/")]
        for name in folders:
            if self.modes[name] == "555" and self.list(name):
                raise Denied(f"Permission denied: access=ALL, inode={name}", tried=f"delete {path}")
        gone = [name for name in self.files if name == path or name.startswith(path + "/")]
        if gone and gone != [path] and not recursive:
            raise Conflict(f"{path} is non empty", tried=f"delete {path}")
        for name in gone:
            self._require_not_sticky(name)
            del self.files[name]
            self.owners.pop(name, None)
        for name in folders:
            del self.modes[name]
            self.owners.pop(name, None)
        return bool(gone or folders)

    def _require_not_sticky(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        may = {self.owners.get(path, self.whoami), self.owners.get(folder, self.whoami)}
        if self.modes.get(folder, "755")[:-3] == "1" and self.whoami not in may:
            raise Denied(f"Permission denied by sticky bit: user={self.whoami}, path={path}", tried=f"delete {path}")

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
    meanwhile. Its clock is ahead of everybody else's by `skew`. `unstoppable` is why nobody can stop applications.
    It places what is submitted in `places_in`, whatever that asks for, and its user may submit where `rights` say so.
    """

    clock: SimClock
    apps: dict[str, Application] = field(default_factory=dict)
    whoami: str | None = "streamer"
    unstoppable: str = ""
    places_in: str = "root.default"
    scheduler: Queues = field(
        default_factory=lambda: Queues((Queue("root.default", "RUNNING", Size(8192), Size(4096)),), True)
    )
    rights: dict[str, bool] = field(default_factory=lambda: {"root": True, "root.default": True})
    acls: bool = True
    at_request: Callable[[str, str], object] = lambda request, about: None
    skew: timedelta = timedelta()
    address: str = "http://rm:8088"
    containers: tuple[LoggedContainer, ...] = ()
    nodes: int = 1

    def user(self) -> str | None:
        return self.whoami

    def way_to_stop(self) -> str:
        if self.unstoppable:
            raise Denied(self.unstoppable)
        return "over REST"

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

    def running_nodes(self) -> int:
        self.at_request("running_nodes", "")
        return self.nodes

    def queue_rights(self) -> Mapping[str, bool]:
        self.at_request("queue_rights", "")
        return self.rights

    def queue_of(self, application_id: str) -> str:
        self.at_request("queue_of", application_id)
        return self.places_in

    def checks_rights(self) -> bool:
        self.at_request("checks_rights", "")
        return self.acls

    def application(self, application_id: str) -> Application:
        if application_id not in self.apps:
            raise NotFound(application_id)
        return self.apps[application_id]

    def confirm_absence(self, of: str, age: timedelta, settled: timedelta) -> None:
        """It never restarts, and there is no second one."""
        self.at_request("confirm_absence", of)

    def active(self) -> str:
        return self.address

    def info(self, address: str) -> ClusterInfo:
        """It has been up since long before every claim."""
        return ClusterInfo(address, "ACTIVE", "3.4.3", datetime.fromtimestamp(0, UTC))

    def time_since(self, moment: datetime) -> timedelta:
        self.at_request("time_since", "")
        return self.clock.now() + self.skew - moment

    def driver_places(self, application_id: str) -> frozenset[ContainerPlace]:
        return frozenset()

    def live_containers(self, application_id: str) -> tuple[LoggedContainer, ...]:
        return self.containers

    def live_places(self, application_id: str) -> frozenset[ContainerPlace]:
        return frozenset()

    def kill(self, application_id: str, diagnostics: str, wait: timedelta) -> Application:
        self.at_request("kill", application_id)
        return self.end(application_id, ApplicationState.KILLED)


def session_of(hdfs: SimHdfs, yarn: SimYarn) -> ClusterSession:
    return ClusterSession(
        CLUSTER, CLUSTER.watcher, cast(Hdfs, hdfs), cast(ResourceManager, yarn), KafkaEnds(CLUSTER.watcher)
    )
